//! The search against brute force: its heights are the lowest there are, and its proofs are true.

use arbtest::arbitrary::{Result, Unstructured};
use slabplan_planner::pack::{
    Buffer, Control, Effort, Interval, PackConfig, Packing, Problem, pack, validate,
};

fn best(problem: &Problem) -> Packing {
    // The bound on the callback only keeps a broken search from running for ever.
    let mut calls = 0;
    let packing = pack(
        problem,
        &PackConfig {
            effort: Effort::Max,
            ..PackConfig::default()
        },
        &mut |_| {
            calls += 1;
            if calls > 10_000 {
                Control::Stop
            } else {
                Control::Continue
            }
        },
    );
    packing.expect("a sound problem")
}

/// The lowest height, by dropping the buffers in every order onto what is below them. Some order drops every buffer
/// where a best packing has it, as in that each rests on something lower.
fn brute_force(buffers: &[Buffer]) -> u64 {
    fn drop_rest(
        buffers: &[Buffer],
        placed: &mut Vec<(usize, u64)>,
        height: u64,
        load: u64,
        lowest: &mut u64,
    ) {
        if height >= *lowest || *lowest == load {
            return;
        }
        if placed.len() == buffers.len() {
            *lowest = height;
        }
        for (index, buffer) in buffers.iter().enumerate() {
            if placed.iter().any(|it| it.0 == index) {
                continue;
            }
            let below = placed
                .iter()
                .filter(|it| buffers[it.0].overlaps_in_time(buffer));
            let top = below.map(|it| it.1 + buffers[it.0].size).max().unwrap_or(0);
            let offset = top.next_multiple_of(buffer.alignment);
            placed.push((index, offset));
            drop_rest(
                buffers,
                placed,
                height.max(offset + buffer.size),
                load,
                lowest,
            );
            placed.pop();
        }
    }
    // No packing is lower than what is live at one start.
    let starts = buffers
        .iter()
        .flat_map(|it| it.live.iter().map(|span| span.start));
    let is_live = |it: &&Buffer, time| {
        it.live
            .iter()
            .any(|span| span.start <= time && time < span.end)
    };
    let load = |time| -> u64 {
        buffers
            .iter()
            .filter(|it| is_live(it, time))
            .map(|it| it.size)
            .sum()
    };
    let most = starts.map(load).max().unwrap_or(0);
    let mut lowest = u64::MAX;
    drop_rest(buffers, &mut Vec::new(), 0, most, &mut lowest);
    lowest
}

fn check(buffers: Vec<Buffer>) {
    let expected = brute_force(&buffers);
    let problem = Problem {
        buffers,
        ..Problem::default()
    };
    let packing = best(&problem);
    assert_eq!(
        validate(&problem, &packing.offsets),
        Ok(packing.height),
        "{problem:?}"
    );
    assert_eq!(
        (packing.height, packing.optimal),
        (expected, true),
        "{problem:?} {packing:?}"
    );
}

#[test]
fn all_small_shapes() {
    // Every choice of four buffers among the spans of four points, in sizes 1 to 3, up to the order of the buffers.
    let spans = (0..4u64).flat_map(|start| (start + 1..=4).map(move |end| (start, end)));
    let kinds: Vec<(u64, u64, u64)> = spans
        .flat_map(|(start, end)| (1..=3).map(move |size| (start, end, size)))
        .collect();
    let buffer = |id: usize, kind: (u64, u64, u64)| Buffer::new(id as u64, kind.0, kind.1, kind.2);
    for a in 0..kinds.len() {
        for b in a..kinds.len() {
            for c in b..kinds.len() {
                // The fourth buffer only where it can matter: across the middle.
                for d in (c..kinds.len()).filter(|&d| kinds[d].0 < 2 && kinds[d].1 > 2) {
                    check(
                        [a, b, c, d]
                            .iter()
                            .enumerate()
                            .map(|(id, &kind)| buffer(id, kinds[kind]))
                            .collect(),
                    );
                }
            }
        }
    }
}

#[test]
fn all_shapes_of_seven_buffers_on_a_small_grid() {
    // Every choice of seven buffers among the spans of three points that are not everywhere, in sizes 1 and 2.
    let spans = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)];
    let kinds: Vec<(u64, u64, u64)> = spans
        .iter()
        .flat_map(|&(a, b)| [(a, b, 1), (a, b, 2)])
        .collect();
    let mut chosen = [0usize; 7];
    loop {
        let buffers = (0..).zip(chosen).map(|(id, kind)| {
            let (start, end, size) = kinds[kind];
            Buffer::new(id, start, end, size)
        });
        check(buffers.collect());
        // The next ascending choice.
        let Some(at) = chosen.iter().rposition(|&kind| kind + 1 < kinds.len()) else {
            break;
        };
        let next = chosen[at] + 1;
        chosen[at..].fill(next);
    }
}

#[test]
fn random_shapes() {
    fn any(u: &mut Unstructured<'_>) -> Result<Vec<Buffer>> {
        let horizon = u.int_in_range(2..=9u64)?;
        let largest = u.int_in_range(1..=12u64)?;
        let has_alignments = u.ratio(1, 2)?;
        let has_holes = u.ratio(1, 3)?;
        let most = if u.ratio(1, 8)? { 10 } else { 7 };
        (0..u.int_in_range(1..=most)?)
            .map(|id| {
                let start = u.int_in_range(0..=horizon - 1)?;
                let end = u.int_in_range(start + 1..=horizon)?;
                let mut buffer = Buffer::new(id, start, end, u.int_in_range(1..=largest)?);
                if has_alignments {
                    buffer.alignment = *u.choose(&[1, 2, 3, 4, 8])?;
                }
                if has_holes && u.ratio(1, 3)? {
                    let again = end + u.int_in_range(1..=3)?;
                    buffer
                        .live
                        .push(Interval::new(again, again + u.int_in_range(1..=3)?));
                }
                Ok(buffer)
            })
            .collect()
    }
    arbtest::arbtest(|u| {
        check(any(u)?);
        Ok(())
    })
    .budget_ms(4000);
}

/// A full slab cut into pieces, where the optimum is known.
#[test]
fn perfect_cuts() {
    arbtest::arbtest(|u| {
        let (width, height) = (u.int_in_range(4..=40u64)?, u.int_in_range(4..=60u64)?);
        let mut pieces = vec![(0, width, 0, height)];
        for _ in 0..u.int_in_range(3..=40)? {
            let at = u.choose_index(pieces.len())?;
            let (a, b, low, high) = pieces[at];
            if u.arbitrary()? && b - a > 1 {
                let cut = u.int_in_range(a + 1..=b - 1)?;
                pieces[at] = (a, cut, low, high);
                pieces.push((cut, b, low, high));
            } else if high - low > 1 {
                let cut = u.int_in_range(low + 1..=high - 1)?;
                pieces[at] = (a, b, low, cut);
                pieces.push((a, b, cut, high));
            }
        }
        let buffers = (0..)
            .zip(&pieces)
            .map(|(id, &(a, b, low, high))| Buffer::new(id, a, b, high - low))
            .collect();
        let problem = Problem {
            buffers,
            ..Problem::default()
        };
        let packing = best(&problem);
        assert_eq!(validate(&problem, &packing.offsets), Ok(height));
        assert!(packing.optimal);
        Ok(())
    })
    .budget_ms(1500);
}
