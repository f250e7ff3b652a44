//! Orders in which to place units, and the rule that picks an offset.

use super::model::{Model, Unit};
use super::occupancy::Occupancy;
use super::packing::Control;

/// What is placed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Largest first, then longest.
    Size,
    /// Longest first, then largest.
    Duration,
    /// Largest size times duration first.
    Area,
}

/// Which of the gaps that hold a unit is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// The lowest.
    First,
    /// The one that leaves the least room.
    Best,
}

impl Order {
    fn key(self, unit: &Unit) -> (u128, u128) {
        let (size, duration) = (u128::from(unit.height), u128::from(unit.duration));
        match self {
            Self::Size => (size, duration),
            Self::Duration => (duration, size),
            Self::Area => (unit.area, size),
        }
    }

    /// All units: the fixed ones, then the others in this order.
    pub(super) fn units(self, model: &Model) -> Vec<u32> {
        let mut list: Vec<u32> = (0..model.units.len() as u32).collect();
        list.sort_by_cached_key(|&unit| {
            let unit = &model.units[unit as usize];
            (unit.fixed.is_none(), std::cmp::Reverse(self.key(unit)))
        });
        list
    }
}

/// Places the units one by one where the rule says. Returns the offsets by unit, or `None` when stopped.
pub(super) fn place(
    model: &Model,
    order: &[u32],
    fit: Fit,
    mut tick: impl FnMut() -> Control,
) -> Option<Vec<u64>> {
    let mut occupancy = Occupancy::new(model.sections);
    let mut offsets = vec![0; model.units.len()];
    let mut height = 0;
    for (done, &unit) in order.iter().enumerate() {
        if done % 1024 == 1023 && tick() == Control::Stop {
            return None;
        }
        let it = &model.units[unit as usize];
        let offset = match (it.fixed, fit) {
            (Some(offset), _) => offset,
            (None, Fit::First) => occupancy.first_fit(model, unit, 0),
            (None, Fit::Best) => occupancy.best_fit(model, unit, height),
        };
        occupancy.insert(model, unit, offset);
        offsets[unit as usize] = offset;
        height = height.max(offset + it.height);
    }
    Some(offsets)
}
