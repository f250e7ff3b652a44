//! Local search over orders: what ends too high is placed earlier next time.
//!
//! This is "squeaky wheel" optimisation (D. Joslin and D. Clements, JAIR 1999): each round places everything in an
//! order, blames the units that end above the bound, and moves those to the front. A round costs one placement, so the
//! search suits large problems that an order nearly solves.

use super::model::Model;
use super::order::{Fit, place};
use super::packing::Control;

/// Runs up to `rounds` rounds from `order`; `consider` sees every packing. Returns when it or `tick` (asked every
/// [`TICK`](super::order::TICK) placements) says so, or when nothing changes any more.
pub(super) fn squeak(
    model: &Model,
    order: &mut Vec<u32>,
    fit: Fit,
    bound: u64,
    rounds: usize,
    mut tick: impl FnMut() -> Control,
    mut consider: impl FnMut(&[u64]) -> Control,
) {
    for _ in 0..rounds {
        let (offsets, control) = place(model, order, fit, &mut tick);
        if consider(&offsets) == Control::Stop || control == Control::Stop {
            return;
        }
        let end = |unit: u32| offsets[unit as usize] + model.units[unit as usize].height;
        let is_fixed = |unit: u32| model.units[unit as usize].fixed.is_some();
        let is_blamed = |unit: u32| end(unit) > bound && !is_fixed(unit);
        let (mut next, mut rest) = (
            Vec::with_capacity(order.len()),
            Vec::with_capacity(order.len()),
        );
        next.extend(order.iter().copied().filter(|&unit| is_fixed(unit)));
        for &unit in order.iter().filter(|&&unit| !is_fixed(unit)) {
            if is_blamed(unit) {
                next.push(unit);
            } else {
                rest.push(unit);
            }
        }
        next.append(&mut rest);
        if next == *order {
            return;
        }
        *order = next;
    }
}
