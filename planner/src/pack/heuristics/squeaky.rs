//! Local search over orders: what ends too high is placed earlier next time.
//!
//! This is "squeaky wheel" optimisation (D. Joslin and D. Clements, JAIR 1999): each round places everything in an
//! order, blames the units that end above the bound, and moves those to the front. A round costs one placement, so the
//! search suits problems that an order nearly solves.

use super::super::model::Model;
use super::super::packing::Control;
use super::place::{Fit, place};

/// Runs up to `rounds` rounds from `order`; `consider` sees every packing. Returns when it or `tick` says so, or when
/// nothing changes any more.
pub(in super::super) fn squeak(
    model: &Model,
    mut order: Vec<u32>,
    bound: u64,
    rounds: usize,
    tick: &mut dyn FnMut(u64) -> Control,
    mut consider: impl FnMut(&[u64]) -> Control,
) {
    for _ in 0..rounds {
        let (offsets, control) = place(model, &order, Fit::First, tick);
        if consider(&offsets) == Control::Stop || control == Control::Stop {
            return;
        }
        let is_blamed = |unit: &u32| {
            let it = &model.units[*unit as usize];
            it.fixed.is_none() && offsets[*unit as usize] + it.height > bound
        };
        let (mut next, mut rest): (Vec<u32>, Vec<u32>) = order.iter().partition(|it| is_blamed(it));
        next.append(&mut rest);
        if next == order {
            return;
        }
        order = next;
    }
}
