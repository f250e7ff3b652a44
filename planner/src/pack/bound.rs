//! Lower bounds on the height of any packing.

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
fn sums(model: &Model, count: impl Fn(u32, &Part) -> Option<u64>) -> Vec<u64> {
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

/// The best bound that costs near-linear time: the load of the fullest section, with what alignments waste there, and the
/// tallest unit. Asks in between whether to go on, and is a weaker one when not.
pub(super) fn lower_bound(
    problem: &Problem,
    model: &Model,
    ask: &mut dyn FnMut() -> Control,
) -> u64 {
    let load = if problem.may_share.is_empty() {
        let load = max_load(model);
        if ask() == Control::Continue {
            load.max(aligned_load(model, ask))
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
        // A multiple of 8 is one of 4; what has no alignment is not counted with them.
        assert_eq!(bound(&[(0, 2, 1, 8), (0, 2, 1, 4), (0, 2, 9, 1)]), 11);
        assert_eq!(bound(&[(0, 2, 1, 8), (0, 2, 1, 4), (0, 2, 1, 1)]), 5);
        // Not at one time.
        assert_eq!(bound(&[(0, 2, 3, 4), (2, 4, 3, 4)]), 3);
    }
}
