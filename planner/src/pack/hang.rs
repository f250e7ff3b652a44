//! Small units hang from the ceiling while the large ones stand on the ground.
//!
//! ```text
//!   ceiling ──────────────────────────────
//!            ▼▼▼▼ ▼▼  ▼▼▼▼▼▼  ▼▼▼▼  ▼▼▼▼    small: an online pass in order of time, lowest hole first
//!
//!                 ▄▄▄▄▄      ▄▄▄▄▄▄▄▄       large: first fit by size
//!            █████████████████████████████
//!   ground  ──────────────────────────────
//! ```
//!
//! Most units of a large problem are small and short-lived, and all that are live at one time are a small part of the
//! load. Searching a gap for each costs more than the gap is worth; hung up, they cost a few steps each. Where the two
//! would meet, the small ones come down and are placed like the large.

use super::heuristics::TICK;
use super::model::Model;
use super::online::Timeline;
use super::packing::Control;

/// Units that hang, and how deep.
pub(super) struct Hanging {
    /// In the model's order, which is by begin.
    pub(super) units: Vec<u32>,
    /// By unit of the model: distance from the ceiling down to its offset.
    pub(super) depth: Vec<u64>,
    /// The largest depth.
    pub(super) deepest: u64,
}

/// Number of size classes.
const CLASSES: usize = 8 * 64;

/// The number of the class of a size: eight to the octave.
pub(super) fn size_class(size: u64) -> usize {
    let octave = size.max(1).ilog2();
    let eighth = if octave >= 3 {
        size >> (octave - 3) & 7
    } else {
        0
    };
    8 * octave as usize + eighth as usize
}

impl Hanging {
    /// Hangs up the small ones of `timeline`, but for those that are `apart`: as many size classes, from below, as are sure
    /// to stay within `room` bytes of the ceiling if nothing is wasted. Nothing when `tick` stops it. O(n), nearly.
    pub(super) fn new(
        model: &Model,
        timeline: &Timeline,
        apart: &[bool],
        room: u64,
        tick: &mut dyn FnMut(u64) -> Control,
    ) -> Option<Self> {
        let class = |unit: u32| size_class(model.units[unit as usize].height);
        let limit = class_limit(model, timeline, apart, room, tick)?;
        let small = timeline.only(|unit| !apart[unit as usize] && class(unit) < limit);
        if tick(0) == Control::Stop {
            return None;
        }
        let mut depth = vec![0; model.units.len()];
        let (deepest, control) = small.place(model, &mut depth, tick);
        if control == Control::Stop {
            return None;
        }
        for &unit in &small.units {
            let length = model.units[unit as usize].height;
            depth[unit as usize] += length.next_multiple_of(small.step);
        }
        Some(Self {
            units: small.units,
            depth,
            deepest,
        })
    }
}

/// The class from which on units are too much to hang: the classes below it have no more than `room` bytes live at any
/// one time, even if each had its most at the same. Nothing when `tick` stops it.
fn class_limit(
    model: &Model,
    timeline: &Timeline,
    apart: &[bool],
    room: u64,
    tick: &mut dyn FnMut(u64) -> Control,
) -> Option<usize> {
    let (mut live, mut most) = ([0u64; CLASSES], [0u64; CLASSES]);
    let mut ended = 0;
    let not_apart = timeline.units.iter().filter(|&&it| !apart[it as usize]);
    for (done, &unit) in (1u64..).zip(not_apart) {
        if done.is_multiple_of(64 * TICK) && tick(0) == Control::Stop {
            return None;
        }
        let begin = model.parts(unit)[0].begin;
        while timeline.ends[ended].0 <= begin {
            let gone = timeline.ends[ended].1 as usize;
            if !apart[gone] {
                let size = model.units[gone].height;
                live[size_class(size)] -= size;
            }
            ended += 1;
        }
        let size = model.units[unit as usize].height;
        let at = size_class(size);
        live[at] += size;
        most[at] = most[at].max(live[at]);
    }
    let mut sum = 0;
    let exceeds = |most: &u64| {
        sum += most;
        sum > room
    };
    Some(most.iter().position(exceeds).unwrap_or(CLASSES))
}
