//! A bound from pairs and triples that are live together at the fullest moment: whichever lies lowest, alignments and
//! fixed offsets keep the next one from its end.

use super::bound::fullest_section;
use super::model::{Model, Part, Unit};
use std::cmp::Reverse;

/// Units of the fullest section that are looked at: the tallest, where a gap wastes most of the height.
const TALLEST: usize = 24;

/// The most that two or three units need that are live in the fullest section, in the best of their orders. Nothing may
/// be shared. O(parts + sections), and the cube of a small constant; 0 where nothing is aligned or fixed, as the load
/// then says it all.
pub(super) fn stacked(model: &Model) -> u64 {
    let is_free = |it: &Unit| it.fixed.is_none() && it.residue.align_and_phase() == (1, 0);
    if model.units.iter().all(is_free) {
        return 0;
    }
    let section = fullest_section(model);
    // A unit of several parts may have others between them.
    let here = (0..model.units.len() as u32).filter(|&unit| {
        let height = model.units[unit as usize].height;
        let is_whole = |it: &Part| it.covers(section) && it.delta == 0 && it.size == height;
        model.parts(unit).iter().any(is_whole)
    });
    let mut units: Vec<&Unit> = here.map(|unit| &model.units[unit as usize]).collect();
    units.sort_by_key(|it| Reverse(it.height));
    units.truncate(TALLEST);
    let mut bound = 0;
    for (i, a) in units.iter().enumerate() {
        for (j, b) in units.iter().enumerate().skip(i + 1) {
            bound = bound.max(lowest([[a, b], [b, a]].iter().map(|it| &it[..])));
            for c in &units[j + 1..] {
                let orders = [
                    [a, b, c],
                    [a, c, b],
                    [b, a, c],
                    [b, c, a],
                    [c, a, b],
                    [c, b, a],
                ];
                bound = bound.max(lowest(orders.iter().map(|it| &it[..])));
            }
        }
    }
    bound
}

/// The lowest height of the orders that are possible, from the ground up; 0 when none is.
fn lowest<'a>(orders: impl Iterator<Item = &'a [&'a &'a Unit]>) -> u64 {
    orders.filter_map(height).min().unwrap_or(0)
}

/// The height of units on top of each other; none when a fixed one is not above those before it.
fn height(order: &[&&Unit]) -> Option<u64> {
    order.iter().try_fold(0, |top, it| {
        let offset = it.fixed.unwrap_or_else(|| it.residue.at_least(top));
        (offset >= top).then_some(offset + it.height)
    })
}
