//! A bound from fixed positions: what moves has to find room in the gaps between what does not.

use super::bound::{loads, sums};
use super::model::Model;
use super::occupancy::Occupancy;
use super::packing::Control;
use std::cmp::Reverse;

/// Fixed units beyond which nothing is looked at: the gaps between many are looked through one by one.
const MOST_FIXED: usize = 4_096;

/// The tallest units that are looked at, and the fullest sections.
const LOOKED_AT: usize = 256;

/// The most that follows from one movable unit, which stands in or above the gaps left in its time, and from one section,
/// whose movable bytes do so together. Nothing may be shared. O(units + parts + sections), with a factor of the logarithm
/// for what is fixed. Asks now and then whether to go on, and is a weaker bound when not.
pub(super) fn between_fixed(model: &Model, ask: &mut dyn FnMut() -> Control) -> u64 {
    let units = 0..model.units.len() as u32;
    let is_fixed = |unit: &u32| model.units[*unit as usize].fixed.is_some();
    let (fixed, mut others): (Vec<u32>, Vec<u32>) = units.partition(is_fixed);
    if fixed.is_empty() || fixed.len() > MOST_FIXED || ask() == Control::Stop {
        return 0;
    }
    // No gap may be given up here, or the bound would be too high.
    let mut occupancy = Occupancy::with_ranges(model.sections, usize::MAX);
    for &unit in &fixed {
        if let Some(offset) = model.units[unit as usize].fixed {
            occupancy.insert(model, unit, offset);
        }
    }
    others.retain(|&unit| !model.parts(unit).is_empty());
    others.sort_by_key(|&unit| Reverse(model.units[unit as usize].height));
    let mut bound = 0;
    for &unit in others.iter().take(LOOKED_AT) {
        if ask() == Control::Stop {
            return bound;
        }
        let offset = occupancy.first_fit(model, unit, 0);
        bound = bound.max(offset + model.units[unit as usize].height);
    }
    bound.max(fullest(model, &fixed, ask))
}

/// The bound of the fullest sections in which something is fixed.
fn fullest(model: &Model, fixed: &[u32], ask: &mut dyn FnMut() -> Control) -> u64 {
    let loads = loads(model);
    let held = sums(model, |unit, part| {
        let is_fixed = model.units[unit as usize].fixed.is_some();
        is_fixed.then_some(part.size)
    });
    let mut sections: Vec<usize> = (0..loads.len()).filter(|&it| held[it] > 0).collect();
    let kept = LOOKED_AT.min(sections.len());
    if kept < sections.len() {
        sections.select_nth_unstable_by_key(kept, |&it| (Reverse(loads[it]), it));
        sections.truncate(kept);
    }
    sections.sort_unstable();
    let shortest = shortest_movable(model, &sections);
    let mut bound = 0;
    for (&section, shortest) in sections.iter().zip(shortest) {
        if ask() == Control::Stop {
            break;
        }
        let mut taken: Vec<(u64, u64)> = Vec::new();
        for &unit in fixed {
            let offset = model.units[unit as usize].fixed.unwrap_or(0);
            let parts = model.parts(unit).iter();
            let ranges = parts.filter(|it| it.covers(section as u32));
            taken.extend(ranges.map(|it| (offset + it.delta, offset + it.delta + it.size)));
        }
        bound = bound.max(height_around(
            taken,
            loads[section] - held[section],
            shortest,
        ));
    }
    bound
}

/// Size of the shortest movable part in each of some ascending sections.
fn shortest_movable(model: &Model, sections: &[usize]) -> Vec<u64> {
    let mut shortest = vec![u64::MAX; sections.len()];
    for unit in 0..model.units.len() as u32 {
        if model.units[unit as usize].fixed.is_some() {
            continue;
        }
        for part in model.parts(unit) {
            let first = sections.partition_point(|&it| it < part.begin as usize);
            let last = sections.partition_point(|&it| it < part.end as usize);
            for it in &mut shortest[first..last] {
                *it = part.size.min(*it);
            }
        }
    }
    shortest
}

/// The least height at which `movable` bytes, in pieces of at least `shortest`, have room beside what is taken: gaps
/// that are shorter than every piece hold nothing.
fn height_around(mut taken: Vec<(u64, u64)>, mut movable: u64, shortest: u64) -> u64 {
    taken.sort_unstable();
    let mut top = 0;
    for (low, high) in taken {
        let gap = low.saturating_sub(top);
        if gap >= shortest {
            movable = movable.saturating_sub(gap);
        }
        top = top.max(high);
    }
    top + movable
}

#[cfg(test)]
mod tests {
    use super::height_around;

    #[test]
    fn short_gaps_hold_nothing() {
        // Gaps of 2 and 5 between what is taken; 9 bytes in pieces of 3 or more.
        let taken = vec![(12, 14), (2, 7)];
        assert_eq!(height_around(taken.clone(), 9, 3), 18);
        assert_eq!(height_around(taken.clone(), 9, 2), 16);
        assert_eq!(height_around(taken.clone(), 9, 6), 23);
        assert_eq!(height_around(taken, 4, 3), 14);
        assert_eq!(height_around(Vec::new(), 4, 3), 4);
    }
}
