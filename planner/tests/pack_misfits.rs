//! Why problems with may-share pairs don't fit: each explanation against packings of the buffers that it names.

use slabplan_planner::pack::{
    Buffer, Control, PackConfig, Packing, Problem, Reason, explain_misfit, pack,
};

fn packed(problem: &Problem) -> Packing {
    pack(problem, &PackConfig::default(), &mut |_| Control::Continue).expect("a sound problem")
}

/// Some of the buffers, and the pairs among them.
fn only(problem: &Problem, kept: &[u32]) -> Problem {
    let place = |it: u32| kept.iter().position(|&other| other == it);
    let pair = |&(a, b): &(u32, u32)| Some((place(a)? as u32, place(b)? as u32));
    Problem {
        buffers: kept
            .iter()
            .map(|&it| problem.buffers[it as usize].clone())
            .collect(),
        may_share: problem.may_share.iter().filter_map(pair).collect(),
        ..Problem::default()
    }
}

#[test]
fn of_a_pair_one_is_enough() {
    // 0 and 1 may share; with 2 they need 20 bytes in the best way, and 0 or 1 alone with 2 as many.
    let problem = Problem {
        buffers: (0..3).map(|id| Buffer::new(id, 2, 5, 10)).collect(),
        may_share: vec![(0, 1)],
        ..Problem::default()
    };
    assert_eq!(explain_misfit(&problem, 20, 1_000), Ok(None));
    let misfit = explain_misfit(&problem, 19, 1_000)
        .expect("sound")
        .expect("does not fit");
    assert_eq!((misfit.buffers.len(), misfit.bytes), (2, 20));
    assert!(misfit.buffers.contains(&2) && misfit.is_smallest);
    assert_eq!(misfit.reason, Reason::LiveTogether { time: 2 });
}

/// Every set that is named exceeds the capacity, and not without any one of its buffers.
#[test]
fn what_is_named_does_not_fit_and_is_smallest() {
    let (mut explained, mut shaped) = (0, 0);
    for seed in 0..60u64 {
        let random = |at: u64, below: u64| {
            let mixed = (seed * 64 + at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed >> 40) % below
        };
        let buffer = |id: u64| {
            let start = random(4 * id, 8);
            let mut it = Buffer::new(id, start, start + 1 + random(4 * id + 1, 4), 0);
            it.size = 1 + random(4 * (id / 2) + 2, 6);
            it.alignment = 1 << random(4 * id + 3, 3);
            it
        };
        let problem = Problem {
            buffers: (0..10).map(buffer).collect(),
            may_share: vec![(0, 1), (2, 3), (4, 5)],
            ..Problem::default()
        };
        let whole = packed(&problem);
        assert!(whole.height > 0);
        let fits = explain_misfit(&problem, whole.height, 100_000).expect("sound");
        assert_eq!(fits, None, "seed {seed}");
        if !whole.optimal {
            continue;
        }
        let capacity = whole.height - 1;
        let misfit = explain_misfit(&problem, capacity, 100_000).expect("sound");
        let misfit = misfit.expect("a lowest packing is too high");
        explained += 1;
        shaped += u32::from(misfit.reason == Reason::NoArrangement);
        let named = packed(&only(&problem, &misfit.buffers));
        assert!(named.height > capacity, "seed {seed}: {misfit:?}");
        if misfit.is_smallest {
            for left_out in &misfit.buffers {
                let mut fewer = misfit.buffers.clone();
                fewer.retain(|it| it != left_out);
                let rest = packed(&only(&problem, &fewer));
                assert!(rest.height <= capacity, "seed {seed} without {left_out}");
            }
        }
    }
    assert!(explained > 20 && shaped > 3, "{explained}, {shaped}");
}
