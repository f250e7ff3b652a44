//! Large problems, which the packer takes apart: validity, order of rows, stops, and every heuristic alone.

mod random;

use random::Random;
use slabplan_planner::pack::{
    Buffer, Control, Effort, Heuristic, Interval, PackConfig, Packing, Problem, Progress, Tie, csv,
    pack, pack_with, validate, validate_fast,
};

/// Like a network's trace: a few buffers that last, many short ones, and some that are much larger than most.
fn trace(count: u64, seed: u64) -> Problem {
    let mut random = Random(seed);
    let mut buffer = |id| {
        let start = random.below(count);
        let length = match random.below(20) {
            0 => 1 + random.below(count / 4),
            1..5 => 5 + random.below(60),
            _ => 1 + random.below(4),
        };
        let size = (16 + random.below(64)) << random.below(8);
        Buffer::new(id, start, start + length, 16 * size)
    };
    Problem {
        buffers: (0..count).map(&mut buffer).collect(),
        ..Problem::default()
    }
}

/// The same with holes, alignments, fixed offsets and ties.
fn odd_trace(count: u64, seed: u64) -> Problem {
    let mut problem = trace(count, seed);
    let mut random = Random(seed + 1);
    let mut base = 0;
    for buffer in &mut problem.buffers {
        buffer.alignment = [1, 1, 16, 64, 96][random.below(5) as usize];
        if random.below(10) == 0 {
            let start = buffer.live[0].end + 1 + random.below(9);
            buffer
                .live
                .push(Interval::new(start, start + 1 + random.below(9)));
        }
        if random.below(200) == 0 {
            // One above the other, so that no two overlap.
            let offset = u64::next_multiple_of(base, buffer.alignment);
            buffer.fixed = Some(offset);
            base = offset + buffer.size;
        }
    }
    for _ in 0..count / 100 {
        let (base, member) = (random.below(count) as u32, random.below(count) as u32);
        let is_fixed = |it: u32| problem.buffers[it as usize].fixed.is_some();
        let is_tied = |it: u32| {
            problem
                .ties
                .iter()
                .any(|tie| [tie.base, tie.member].contains(&it))
        };
        if base != member && ![base, member].iter().any(|&it| is_fixed(it) || is_tied(it)) {
            problem.ties.push(Tie {
                base,
                member,
                distance: 0,
            });
        }
    }
    problem
}

fn packed(problem: &Problem, effort: Effort) -> Packing {
    let config = PackConfig {
        effort,
        ..PackConfig::default()
    };
    let packing = pack(problem, &config, &mut |_| Control::Continue).expect("a sound problem");
    assert_eq!(validate(problem, &packing.offsets), Ok(packing.height));
    assert_eq!(validate_fast(problem, &packing.offsets), Ok(packing.height));
    assert!(packing.lower_bound <= packing.height);
    packing
}

#[test]
fn large_packings_are_valid_and_low() {
    for seed in 1..=3 {
        let problem = trace(5_000, seed);
        let found = packed(&problem, Effort::Default);
        assert!(
            found.height as f64 <= 1.01 * found.lower_bound as f64,
            "seed {seed}: {} of {}",
            found.height,
            found.lower_bound
        );
        packed(&problem, Effort::Fast);
    }
}

#[test]
fn large_packings_with_every_feature_are_valid() {
    let problem = odd_trace(4_500, 7);
    packed(&problem, Effort::Default);
    packed(&problem, Effort::Fast);
}

/// Each row lies within the one before it, and hardly two ends are at a multiple of the alignment.
fn nested(count: u64) -> Problem {
    let mut random = Random(11);
    let mut buffer = |id| Buffer {
        alignment: [1, 64, 512][random.below(3) as usize],
        ..Buffer::new(id, id, 2 * count - id, 1 + random.below(1_000_000))
    };
    Problem {
        buffers: (0..count).map(&mut buffer).collect(),
        ..Problem::default()
    }
}

/// As [`nested`], at random times.
fn scattered(count: u64) -> Problem {
    let mut random = Random(12);
    let mut problem = nested(count);
    for buffer in &mut problem.buffers {
        let start = random.below(50 * count);
        buffer.live[0] = Interval::new(start, start + 1 + random.below(5 * count));
    }
    problem
}

#[test]
fn unequal_alignments_cost_little() {
    for (problem, most) in [(nested(6_000), 1.005), (scattered(5_000), 1.15)] {
        let found = packed(&problem, Effort::Fast);
        let ratio = found.height as f64 / found.lower_bound as f64;
        assert!(ratio <= most, "{ratio}");
    }
}

/// Whoever stops as soon as there is a packing has one that is worth having.
#[test]
fn the_first_packing_is_a_good_one() {
    for problem in [nested(6_000), scattered(5_000), trace(5_000, 13)] {
        let stop_early = &mut |progress: &Progress| match progress.height {
            u64::MAX => Control::Continue,
            _ => Control::Stop,
        };
        let found = pack(&problem, &PackConfig::default(), stop_early).expect("sound");
        assert_eq!(validate_fast(&problem, &found.offsets), Ok(found.height));
        let ratio = found.height as f64 / found.lower_bound as f64;
        assert!(ratio <= 1.5, "{ratio}");
    }
}

/// Three rows are live at a time, everywhere alike: no section is hotter than the others.
#[test]
fn a_stream_is_no_higher_than_first_fit_in_order_of_time() {
    let rows = 20_000u64;
    let buffers = (0..rows).map(|id| Buffer::new(id, id, id + 3, 16 + id % 7));
    let problem = Problem {
        buffers: buffers.collect(),
        ..Problem::default()
    };
    // `(offset, end)` of the last two, and the highest end of all.
    let (mut live, mut highest) = ([(0, 0); 2], 0);
    for row in 0..rows {
        let size = 16 + row % 7;
        let is_free = |at: &u64| live.iter().all(|it| it.1 <= *at || at + size <= it.0);
        let lowest = [0, live[0].1, live[1].1].into_iter().filter(is_free).min();
        let offset = lowest.expect("above everything is free");
        live = [live[1], (offset, offset + size)];
        highest = highest.max(offset + size);
    }
    for effort in [Effort::Fast, Effort::Default] {
        assert!(packed(&problem, effort).height <= highest);
    }
}

#[test]
fn the_order_of_rows_does_not_matter_when_large() {
    let straight = trace(5_000, 4);
    let mut shuffled = straight.clone();
    // 5000 and 1999 have no common divisor, so this is a permutation.
    shuffled.buffers = (0..5_000)
        .map(|at| straight.buffers[at * 1_999 % 5_000].clone())
        .collect();
    let (one, other) = (
        packed(&straight, Effort::Default),
        packed(&shuffled, Effort::Default),
    );
    assert_eq!(one.height, other.height);
    for (buffer, offset) in shuffled.buffers.iter().zip(&other.offsets) {
        assert_eq!(one.offsets[buffer.id as usize], *offset);
    }
}

#[test]
fn a_stop_at_any_time_leaves_a_valid_packing() {
    for problem in [trace(5_000, 5), odd_trace(4_500, 6)] {
        for patience in (0..12).chain([20, 40]) {
            let mut asked = 0;
            let packing = pack(&problem, &PackConfig::default(), &mut |_| {
                asked += 1;
                if asked > patience {
                    Control::Stop
                } else {
                    Control::Continue
                }
            });
            let packing = packing.expect("a sound problem");
            assert_eq!(
                validate_fast(&problem, &packing.offsets),
                Ok(packing.height),
                "after {patience}"
            );
        }
    }
}

#[test]
fn every_heuristic_is_valid_on_every_kind_of_problem() {
    let mut problems = vec![trace(700, 8), odd_trace(700, 9), Problem::default()];
    let hundred = |id| Buffer::new(id, id % 3, 3 + id % 4, 1 + id % 7);
    problems.push(Problem {
        buffers: (0..100).map(hundred).collect(),
        ..Problem::default()
    });
    for problem in &problems {
        for heuristic in Heuristic::ALL {
            let packing = pack_with(problem, heuristic, &mut |_| Control::Continue).expect("sound");
            let name = heuristic.name();
            assert_eq!(
                validate(problem, &packing.offsets),
                Ok(packing.height),
                "{name}"
            );
            assert!(packing.lower_bound <= packing.height, "{name}");
        }
    }
}

/// By hand: `a` lies at 0; `b` and `c` are live with it, not with each other, and rest on it.
#[test]
fn every_heuristic_finds_the_plain_packing() {
    let text = "id,lower,upper,size\na,0,10,4\nb,0,5,3\nc,5,10,3\n";
    let problem = csv::parse(text).expect("well-formed").problem;
    for heuristic in Heuristic::ALL {
        let packing = pack_with(&problem, heuristic, &mut |_| Control::Continue).expect("sound");
        assert_eq!(
            (packing.height, packing.optimal),
            (7, true),
            "{}",
            heuristic.name()
        );
    }
}
