//! Places units in a given order, each where a rule says.

use super::super::model::Model;
use super::super::occupancy::Occupancy;
use super::super::packing::Control;
use super::super::share_options::UNPLACED;
use super::due;

/// Which of the gaps that hold a unit is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Fit {
    /// The lowest.
    First,
    /// The one that leaves the least room.
    Best,
}

/// Places the fixed units, then the others one by one. When `tick` stops it, the rest is stacked on top: that is
/// quick, and always valid.
pub(in super::super) fn place(
    model: &Model,
    order: &[u32],
    fit: Fit,
    tick: &mut dyn FnMut(u64) -> Control,
) -> (Vec<u64>, Control) {
    let mut occupancy = Occupancy::new(model.sections);
    let mut offsets = vec![UNPLACED; model.units.len()];
    let mut height = 0;
    let mut control = Control::Continue;
    let is_fixed = |unit: &&u32| model.units[**unit as usize].fixed.is_some();
    let fixed = order.iter().filter(is_fixed);
    let movable = order.iter().filter(|unit| !is_fixed(unit));
    for (done, &unit) in (1..).zip(fixed.chain(movable)) {
        let it = &model.units[unit as usize];
        if let Some(steps) = due(done).filter(|_| control == Control::Continue) {
            control = tick(steps);
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
