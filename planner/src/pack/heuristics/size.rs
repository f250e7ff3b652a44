//! Largest first, then longest: the order of TFLite's planner and of XLA's "spatial" one.

use super::super::model::Model;
use super::super::radix;

/// All units.
pub(in super::super) fn order(model: &Model) -> Vec<u32> {
    let mut list: Vec<u32> = (0..model.units.len() as u32).collect();
    sort(model, &mut list);
    list
}

/// Sorts units that are in the model's order. O(n).
pub(in super::super) fn sort(model: &Model, units: &mut [u32]) {
    radix::sort_descending(units, |unit| u64::from(model.units[unit as usize].duration));
    radix::sort_descending(units, |unit| model.units[unit as usize].height);
}
