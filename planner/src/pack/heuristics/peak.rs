//! What is live where most is live, the longest first; then the others, largest first. The first ones stack up to the
//! bound exactly.

use super::super::bound::fullest_section;
use super::super::model::Model;
use super::{duration, size};

/// All units. O(n).
pub(in super::super) fn order(model: &Model) -> Vec<u32> {
    let peak = fullest_section(model);
    let all = 0..model.units.len() as u32;
    let (mut first, mut rest): (Vec<u32>, Vec<u32>) =
        all.partition(|&unit| model.covers(unit, peak));
    duration::sort(model, &mut first);
    size::sort(model, &mut rest);
    first.append(&mut rest);
    first
}
