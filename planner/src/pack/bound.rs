//! Lower bounds on the height of any packing.

use super::model::Model;
use super::problem::Problem;
use super::share_load::sharing_load;

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
    let mut change = vec![0i128; model.sections as usize + 1];
    for unit in 0..model.units.len() as u32 {
        for part in model.parts(unit) {
            change[part.begin as usize] += i128::from(part.size);
            change[part.end as usize] -= i128::from(part.size);
        }
    }
    change.pop();
    let mut load = 0;
    let sums = change.into_iter().map(|step| {
        load += step;
        load as u64
    });
    sums.collect()
}

/// The tallest unit at its lowest position.
pub(super) fn tallest(model: &Model) -> u64 {
    let ends = model
        .units
        .iter()
        .map(|unit| unit.fixed.unwrap_or_else(|| unit.residue.at_least(0)) + unit.height);
    ends.max().unwrap_or(0)
}

/// The best bound that costs near-linear time: the load of the fullest section, and the tallest unit.
pub(super) fn lower_bound(problem: &Problem, model: &Model) -> u64 {
    let load = if problem.may_share.is_empty() {
        max_load(model)
    } else {
        sharing_load(problem, model)
    };
    load.max(tallest(model))
}
