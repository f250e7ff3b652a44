//! Whatever the problem, the packing is valid by both judges and no lower than the bound.

use arbtest::arbitrary::{Result, Unstructured};
use slabplan_planner::pack::{
    Buffer, Control, Effort, Interval, PackConfig, Problem, ProblemError, Tie, pack, validate,
    validate_fast,
};

/// A problem of up to `most` buffers with every feature there is.
fn any_problem(u: &mut Unstructured<'_>, most: u64) -> Result<Problem> {
    let mut problem = Problem::default();
    let count = u.int_in_range(0..=most)?;
    let horizon = u.int_in_range(1..=12u64)?;
    for id in 0..count {
        let (a, b) = (u.int_in_range(0..=horizon)?, u.int_in_range(0..=horizon)?);
        let mut buffer = Buffer::new(id, a.min(b), a.max(b), u.int_in_range(0..=9)?);
        if u.ratio(1, 5)? {
            let start = a.max(b) + u.int_in_range(0..=3)?;
            buffer
                .live
                .push(Interval::new(start, start + u.int_in_range(0..=3)?));
        }
        buffer.alignment = *u.choose(&[1, 1, 1, 2, 3, 4])?;
        if u.ratio(1, 8)? {
            buffer.fixed = Some(u.int_in_range(0..=20)? * buffer.alignment);
        }
        problem.buffers.push(buffer);
    }
    if count > 1 {
        let last = count as u32 - 1;
        for _ in 0..u.int_in_range(0..=count)? {
            let (a, b) = (u.int_in_range(0..=last)?, u.int_in_range(0..=last)?);
            if u.ratio(1, 2)? {
                problem.buffers[b as usize].size = problem.buffers[a as usize].size;
            }
            problem.may_share.push((a, b));
        }
        for _ in 0..u.int_in_range(0..=2)? {
            let (base, member) = (u.int_in_range(0..=last)?, u.int_in_range(0..=last)?);
            problem.ties.push(Tie {
                base,
                member,
                distance: u.int_in_range(-3..=6)?,
            });
        }
    }
    Ok(problem)
}

#[test]
fn every_packing_is_valid() {
    arbtest::arbtest(|u| {
        let problem = any_problem(u, 12)?;
        for effort in [Effort::Fast, Effort::Default] {
            let packing = match pack(
                &problem,
                &PackConfig {
                    effort,
                    ..PackConfig::default()
                },
                &mut |_| Control::Continue,
            ) {
                Ok(packing) => packing,
                Err(
                    ProblemError::ContradictoryTies { .. }
                    | ProblemError::ImpossibleTies { .. }
                    | ProblemError::FixedOverlap { .. },
                ) => continue,
                Err(error) => panic!("{error}: {problem:?}"),
            };
            assert_eq!(
                validate(&problem, &packing.offsets),
                Ok(packing.height),
                "{problem:?}"
            );
            assert_eq!(
                validate_fast(&problem, &packing.offsets),
                Ok(packing.height),
                "{problem:?}"
            );
            assert!(
                packing.lower_bound <= packing.height,
                "{problem:?} {packing:?}"
            );
        }
        Ok(())
    })
    .budget_ms(1500);
}

#[test]
fn the_judges_agree() {
    arbtest::arbtest(|u| {
        let problem = any_problem(u, 8)?;
        let any_offset = |buffer: &Buffer| {
            Ok(buffer
                .fixed
                .unwrap_or(u.int_in_range(0..=12)? * buffer.alignment))
        };
        let offsets: Vec<u64> = problem
            .buffers
            .iter()
            .map(any_offset)
            .collect::<Result<_>>()?;
        let (slow, fast) = (
            validate(&problem, &offsets),
            validate_fast(&problem, &offsets),
        );
        assert_eq!(
            slow.is_ok(),
            fast.is_ok(),
            "{problem:?} {offsets:?} {slow:?} {fast:?}"
        );
        Ok(())
    })
    .budget_ms(1500);
}
