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

use super::holes::Holes;
use super::model::Model;
use super::radix;

/// Units that hang, and how deep.
pub(super) struct Hanging {
    /// In the model's order, which is by begin.
    pub(super) units: Vec<u32>,
    /// By unit of the model: distance from the ceiling down to its offset.
    pub(super) depth: Vec<u64>,
    /// Every depth is a multiple of this.
    pub(super) step: u64,
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
    /// Hangs up the small ones among the units that are not `is_large`: as many size classes, from below, as are sure to
    /// stay within `room` bytes of the ceiling if nothing is wasted. O(n), nearly.
    pub(super) fn new(model: &Model, is_large: &[bool], room: u64) -> Self {
        let step = step(model);
        let is_plain = |&unit: &u32| {
            let it = &model.units[unit as usize];
            let (align, phase) = it.residue.align_and_phase();
            !is_large[unit as usize]
                && it.fixed.is_none()
                && model.parts(unit).len() == 1
                && model.parts(unit)[0].delta == 0
                && phase == 0
                && step.is_multiple_of(align)
        };
        let mut units: Vec<u32> = (0..model.units.len() as u32).filter(is_plain).collect();
        let limit = class_limit(model, &units, room);
        units.retain(|&unit| size_class(model.units[unit as usize].height) < limit);
        let depth = hang(model, &units, step);
        Self { units, depth, step }
    }
}

/// The coarsest alignment, if all others divide it; depths are multiples of it.
fn step(model: &Model) -> u64 {
    let aligns = model.units.iter().map(|it| it.residue.align_and_phase().0);
    aligns.max().unwrap_or(1)
}

/// The class from which on units are too much to hang: the classes below it have no more than `room` bytes live at any
/// one time, even if each had its most at the same.
fn class_limit(model: &Model, units: &[u32], room: u64) -> usize {
    let (mut live, mut most) = ([0u64; CLASSES], [0u64; CLASSES]);
    let ends = by_end(model, units);
    let mut ended = 0;
    for &unit in units {
        let begin = u64::from(model.parts(unit)[0].begin);
        while ends[ended].0 <= begin {
            let size = model.units[ends[ended].1 as usize].height;
            live[size_class(size)] -= size;
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
    most.iter().position(exceeds).unwrap_or(CLASSES)
}

fn by_end(model: &Model, units: &[u32]) -> Vec<(u64, u32)> {
    let mut ends: Vec<(u64, u32)> = units
        .iter()
        .map(|&unit| (u64::from(model.parts(unit)[0].end), unit))
        .collect();
    radix::sort_by_key(&mut ends);
    ends
}

/// Gives each unit the least depth that is free when it begins. Returns the depths of their lower ends.
fn hang(model: &Model, units: &[u32], step: u64) -> Vec<u64> {
    let mut holes = Holes::default();
    let mut depth = vec![0; model.units.len()];
    let ends = by_end(model, units);
    let length = |unit: u32| model.units[unit as usize].height.next_multiple_of(step);
    let mut ended = 0;
    for &unit in units {
        let begin = u64::from(model.parts(unit)[0].begin);
        while ends[ended].0 <= begin {
            let gone = ends[ended].1;
            holes.give(depth[gone as usize] - length(gone), length(gone));
            ended += 1;
        }
        depth[unit as usize] = holes.take(length(unit)) + length(unit);
    }
    depth
}
