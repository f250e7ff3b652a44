//! Largest size times duration first: XLA's "spatial-temporal" order.

use super::super::model::Model;

/// All units. O(n log n).
pub(in super::super) fn order(model: &Model) -> Vec<u32> {
    let mut list: Vec<u32> = (0..model.units.len() as u32).collect();
    let key = |unit: u32| (model.area(unit), model.units[unit as usize].height);
    list.sort_by_cached_key(|&unit| std::cmp::Reverse(key(unit)));
    list
}
