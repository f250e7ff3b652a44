//! Lower bounds on the height of any packing.

use super::bound_gaps::between_fixed;
use super::bound_stacks::stacked;
use super::model::{Model, Part};
use super::packing::Control;
use super::problem::Problem;
use super::share_load::sharing_load;
use std::cmp::Reverse;

/// The most bytes live in one section, when nothing is shared. O(sections + parts).
pub(super) fn max_load(model: &Model) -> u64 {
    loads(model).into_iter().max().unwrap_or(0)
}

/// The first section of those with the most bytes live.
pub(super) fn fullest_section(model: &Model) -> u32 {
    let loads = loads(model);
    let most = loads.iter().copied().max().unwrap_or(0);
    loads.iter().position(|&load| load == most).unwrap_or(0) as u32
}

/// Bytes live in each section.
pub(super) fn loads(model: &Model) -> Vec<u64> {
    sums(model, |_, part| Some(part.size))
}

/// By section: the sum of what the parts that cover it count, where they count. O(sections + parts).
pub(super) fn sums(model: &Model, count: impl Fn(u32, &Part) -> Option<u64>) -> Vec<u64> {
    let mut change = vec![0i128; model.sections as usize + 1];
    for unit in 0..model.units.len() as u32 {
        for part in model.parts(unit) {
            if let Some(bytes) = count(unit, part) {
                change[part.begin as usize] += i128::from(bytes);
                change[part.end as usize] -= i128::from(bytes);
            }
        }
    }
    change.pop();
    let mut sum = 0;
    let sums = change.into_iter().map(|step| {
        sum += step;
        sum as u64
    });
    sums.collect()
}

/// The most that is taken up in one section by what starts at multiples of one step, for the best of the coarsest
/// alignments: all but the highest keep others out up to the next multiple. Nothing may be shared.
/// O(sections + parts) for each of [`STEPS`] alignments, and asks before each whether to go on.
fn aligned_load(model: &Model, ask: &mut dyn FnMut() -> Control) -> u64 {
    let mut steps: Vec<u64> = Vec::new();
    for unit in &model.units {
        let align = unit.residue.align_and_phase().0;
        if align > 1 && !steps.contains(&align) {
            steps.push(align);
            steps.sort_unstable_by_key(|&it| Reverse(it));
            steps.truncate(STEPS);
        }
    }
    let of = |step: u64| {
        let padded = |unit: u32, part: &Part| {
            let (align, phase) = model.units[unit as usize].residue.align_and_phase();
            let starts_there = [align, phase, part.delta]
                .iter()
                .all(|it| it.is_multiple_of(step));
            starts_there.then(|| part.size.next_multiple_of(step))
        };
        let units = 0..model.units.len() as u32;
        let parts = units.flat_map(|unit| model.parts(unit).iter().map(move |it| (unit, it)));
        let padding = parts
            .filter_map(|(unit, it)| Some(padded(unit, it)? - it.size))
            .max();
        let fullest = sums(model, padded).into_iter().max();
        fullest.unwrap_or(0).saturating_sub(padding.unwrap_or(0))
    };
    let asked = steps.into_iter().take_while(|_| ask() == Control::Continue);
    asked.map(of).max().unwrap_or(0)
}

/// Alignments that [`aligned_load`] looks at.
const STEPS: usize = 8;

/// The tallest unit at its lowest position.
pub(super) fn tallest(model: &Model) -> u64 {
    let ends = model
        .units
        .iter()
        .map(|unit| unit.fixed.unwrap_or_else(|| unit.residue.at_least(0)) + unit.height);
    ends.max().unwrap_or(0)
}

/// The best bound that costs near-linear time: the load of the fullest section, with what alignments waste there, pairs
/// and triples there, the gaps between what is fixed, and the tallest unit. Asks in between whether to go on, and is a weaker one when not.
pub(super) fn lower_bound(
    problem: &Problem,
    model: &Model,
    ask: &mut dyn FnMut() -> Control,
) -> u64 {
    let load = if problem.may_share.is_empty() {
        let load = max_load(model);
        if ask() == Control::Continue {
            let aligned = aligned_load(model, ask);
            load.max(aligned)
                .max(stacked(model))
                .max(between_fixed(model, ask))
        } else {
            load
        }
    } else {
        sharing_load(problem, model)
    };
    load.max(tallest(model))
}

#[cfg(test)]
mod tests {
    use super::{Control, lower_bound};
    use crate::pack::model::Model;
    use crate::pack::problem::{Buffer, Problem};

    fn bound(rows: &[(u64, u64, u64, u64)]) -> u64 {
        let buffers = (0..)
            .zip(rows)
            .map(|(id, &(start, end, size, alignment))| Buffer {
                alignment,
                ..Buffer::new(id, start, end, size)
            });
        let problem = Problem {
            buffers: buffers.collect(),
            ..Problem::default()
        };
        let model = Model::new(&problem, &[]).expect("sound");
        lower_bound(&problem, &model, &mut || Control::Continue)
    }

    #[test]
    fn alignment_keeps_bytes_from_others() {
        // Starts at 0, 4 and 8; the last one ends at 8 + 3 at the least, as the 1s pad 3.
        assert_eq!(bound(&[(0, 2, 3, 4), (0, 2, 3, 4), (0, 2, 3, 4)]), 11);
        assert_eq!(bound(&[(0, 2, 1, 4), (0, 2, 1, 4), (0, 2, 1, 4)]), 9);
        // A multiple of 8 is one of 4. The 9 leaves 3 bytes below the next one; what has no alignment is not counted in
        // more than three.
        assert_eq!(bound(&[(0, 2, 1, 8), (0, 2, 1, 4), (0, 2, 9, 1)]), 13);
        assert_eq!(bound(&[(0, 2, 1, 8), (0, 2, 1, 4), (0, 2, 1, 1)]), 5);
        // Not at one time.
        assert_eq!(bound(&[(0, 2, 3, 4), (2, 4, 3, 4)]), 3);
    }

    /// Rows with the only offset of some; see [`bound`].
    fn bound_of(buffers: Vec<Buffer>) -> u64 {
        let problem = Problem {
            buffers,
            ..Problem::default()
        };
        let model = Model::new(&problem, &[]).expect("sound");
        lower_bound(&problem, &model, &mut || Control::Continue)
    }

    fn fixed(id: u64, (start, end): (u64, u64), size: u64, offset: u64) -> Buffer {
        Buffer {
            fixed: Some(offset),
            ..Buffer::new(id, start, end, size)
        }
    }

    #[test]
    fn what_is_fixed_leaves_gaps() {
        // Free are [0, 3) and [5, 9); nothing of 5 fits below 9, where 10 ends.
        let taken = || vec![fixed(0, (0, 2), 2, 3), fixed(1, (0, 2), 1, 9)];
        let with = |more: &[Buffer]| bound_of([taken(), more.to_vec()].concat());
        assert_eq!(with(&[Buffer::new(2, 1, 4, 5)]), 15);
        assert_eq!(with(&[Buffer::new(2, 1, 4, 4)]), 10);
        assert_eq!(with(&[Buffer::new(2, 2, 4, 5)]), 10);
        // Two of 4 are more than the one gap that holds them; the other ends above 10.
        assert_eq!(
            with(&[Buffer::new(2, 1, 4, 4), Buffer::new(3, 0, 2, 4)]),
            14
        );
    }

    #[test]
    fn pairs_and_triples_leave_gaps() {
        let aligned = |id, size, alignment| Buffer {
            alignment,
            ..Buffer::new(id, 0, 2, size)
        };
        // 5 first and 8 + 3, or 3 first and 4 + 5.
        assert_eq!(bound_of(vec![aligned(0, 5, 4), aligned(1, 3, 8)]), 9);
        // Only at 6 there is no room for 7 below: above it, from 9 on, at 10.
        let low = fixed(0, (0, 2), 3, 6);
        assert_eq!(bound_of(vec![low, aligned(1, 7, 5)]), 17);
    }

    /// The least height, by trying every offset.
    fn least_height(problem: &Problem) -> u64 {
        fn fits(problem: &Problem, offsets: &mut Vec<u64>, height: u64) -> bool {
            let Some(next) = problem.buffers.get(offsets.len()) else {
                return true;
            };
            let ends = height.checked_sub(next.size);
            (0..=ends.unwrap_or(0)).any(|offset| {
                let is_allowed = ends.is_some()
                    && offset.is_multiple_of(next.alignment)
                    && next.fixed.is_none_or(|it| it == offset);
                let is_apart = |(it, &other): (&Buffer, &u64)| {
                    !it.overlaps_in_time(next)
                        || offset + next.size <= other
                        || other + it.size <= offset
                };
                if !is_allowed || !problem.buffers.iter().zip(&*offsets).all(is_apart) {
                    return false;
                }
                offsets.push(offset);
                let fits = fits(problem, offsets, height);
                offsets.pop();
                fits
            })
        }
        let heights = 0..200;
        let least = heights
            .into_iter()
            .find(|&it| fits(problem, &mut Vec::new(), it));
        least.expect("stacked, they are lower")
    }

    #[test]
    fn no_bound_is_above_the_least_height() {
        let (mut state, mut met) = (5u64, 0);
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for case in 0..600 {
            let mut buffers = Vec::new();
            for id in 0..2 + case % 4 {
                let start = random(4);
                let mut it = Buffer::new(id, start, start + 1 + random(4), 1 + random(6));
                it.alignment = [1, 1, 2, 3, 4, 8][random(6) as usize];
                // Far enough apart not to meet each other.
                it.fixed = (random(3) == 0).then(|| 24 * (id % 2) / 3 + random(2) * 24);
                it.fixed = it.fixed.filter(|_| id < 2);
                if let Some(offset) = it.fixed {
                    it.fixed = Some(offset.next_multiple_of(it.alignment));
                }
                buffers.push(it);
            }
            let problem = Problem {
                buffers,
                ..Problem::default()
            };
            let met_by_fixed = |a: &Buffer, b: &Buffer| match (a.fixed, b.fixed) {
                (Some(x), Some(y)) => a.overlaps_in_time(b) && x < y + b.size && y < x + a.size,
                _ => false,
            };
            if met_by_fixed(&problem.buffers[0], &problem.buffers[1]) {
                continue;
            }
            let least = least_height(&problem);
            let bound = bound_of(problem.buffers.clone());
            assert!(bound <= least, "{bound} above {least}: {problem:?}");
            met += u32::from(bound == least);
        }
        assert!(met > 400, "{met}");
    }
}
