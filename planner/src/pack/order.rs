//! Orders in which to place units, and the rule that picks an offset.

use super::bound::fullest_section;
use super::model::{Model, Unit};
use super::occupancy::Occupancy;
use super::packing::Control;
use super::share_options::UNPLACED;

/// What is placed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Largest first, then longest.
    Size,
    /// Longest first, then largest.
    Duration,
    /// Largest size times duration first.
    Area,
    /// What is live where most is live, the longest first; then the others, largest first. The first ones stack up to
    /// the bound exactly.
    Peak,
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
            Self::Peak => (size, duration),
        }
    }

    /// All units: the fixed ones, then the others in this order.
    pub(super) fn units(self, model: &Model) -> Vec<u32> {
        let mut list: Vec<u32> = (0..model.units.len() as u32).collect();
        if self == Self::Peak {
            let peak = fullest_section(model);
            let at_peak = |unit: u32| {
                model
                    .parts(unit)
                    .iter()
                    .any(|it| it.begin <= peak && peak < it.end)
            };
            list.sort_by_cached_key(|&unit| {
                let (it, first) = (&model.units[unit as usize], at_peak(unit));
                let order = if first { Self::Duration } else { Self::Size };
                (it.fixed.is_none(), !first, std::cmp::Reverse(order.key(it)))
            });
            return list;
        }
        list.sort_by_cached_key(|&unit| {
            let unit = &model.units[unit as usize];
            (unit.fixed.is_none(), std::cmp::Reverse(self.key(unit)))
        });
        list
    }
}

/// Placements between two questions to the caller.
pub(super) const TICK: u64 = 1024;

/// Places the units one by one where the rule says. When `tick` stops it, the rest is stacked on top: that is quick,
/// and always valid.
pub(super) fn place(
    model: &Model,
    order: &[u32],
    fit: Fit,
    mut tick: impl FnMut() -> Control,
) -> (Vec<u64>, Control) {
    let mut occupancy = Occupancy::new(model.sections);
    let mut offsets = vec![UNPLACED; model.units.len()];
    let mut height = 0;
    let mut control = Control::Continue;
    for (done, &unit) in order.iter().enumerate() {
        let it = &model.units[unit as usize];
        if done as u64 % TICK == TICK - 1 && control == Control::Continue {
            control = tick();
        }
        let offset = match (it.fixed, control) {
            (Some(offset), _) => offset,
            (None, Control::Stop) => it.residue.at_least(height),
            (None, Control::Continue) => {
                let free = match fit {
                    Fit::First => occupancy.first_fit(model, unit, 0),
                    Fit::Best => occupancy.best_fit(model, unit, height),
                };
                let options = &model.options;
                let shared = options.lowest(model, &mut occupancy, unit, &offsets, free);
                shared.unwrap_or(free)
            }
        };
        if control == Control::Continue {
            occupancy.insert(model, unit, offset);
        }
        offsets[unit as usize] = offset;
        height = height.max(offset + it.height);
    }
    (offsets, control)
}
