//! An online pass: units in order of time, each into the lowest hole that is free when it begins, as an allocator would
//! that is told what to place at the moment when it is needed.
//!
//! The quickest packing there is but for stacking everything: it is made first of all for a large problem, so that there
//! is something to hand over however early the caller stops. XLA's "fast merge" does the like, with the tightest hole.

use super::heuristics::TICK;
use super::holes::Holes;
use super::model::Model;
use super::packing::Control;
use super::radix;

/// Units of one part and no phase, in order of time, and when they end.
pub(super) struct Timeline {
    /// In the model's order, which is by begin.
    pub(super) units: Vec<u32>,
    /// `(end, unit)`, by end.
    pub(super) ends: Vec<(u32, u32)>,
    /// The coarsest alignment: those of the units divide it.
    pub(super) step: u64,
}

impl Timeline {
    /// The units that an online pass can place; none when `tick` stops it. O(n).
    pub(super) fn new(model: &Model, tick: &mut dyn FnMut(u64) -> Control) -> Self {
        let step = model.step();
        let nothing = || Self {
            units: Vec::new(),
            ends: Vec::new(),
            step,
        };
        if tick(0) == Control::Stop {
            return nothing();
        }
        let is_plain = |&unit: &u32| {
            let it = &model.units[unit as usize];
            let (align, phase) = it.residue.align_and_phase();
            let parts = model.parts(unit);
            let is_rigid = it.fixed.is_some() || phase != 0 || !step.is_multiple_of(align);
            !is_rigid && parts.len() == 1 && parts[0].delta == 0
        };
        let units: Vec<u32> = (0..model.units.len() as u32).filter(is_plain).collect();
        if tick(0) == Control::Stop {
            return nothing();
        }
        let ends: Vec<(u32, u32)> = units
            .iter()
            .map(|&unit| (model.parts(unit)[0].end, unit))
            .collect();
        if tick(0) == Control::Stop {
            return nothing();
        }
        let mut is_stopped = || tick(0) == Control::Stop;
        match radix::by_small_key(ends, model.sections, |it| it.0, &mut is_stopped) {
            Some(ends) => Self { units, ends, step },
            None => nothing(),
        }
    }

    /// Some of the units. O(n).
    pub(super) fn only(&self, has: impl Fn(u32) -> bool) -> Self {
        let units = self.units.iter().copied();
        let ends = self.ends.iter().copied();
        Self {
            units: units.filter(|&unit| has(unit)).collect(),
            ends: ends.filter(|it| has(it.1)).collect(),
            step: self.step,
        }
    }

    /// Gives each unit the lowest place that is free when it begins, `place[unit]`, and returns the highest end. Once
    /// `tick` says so, the others are stacked on top. O(n √n) at the very most, and nearly O(n).
    pub(super) fn place(
        &self,
        model: &Model,
        place: &mut [u64],
        tick: &mut dyn FnMut(u64) -> Control,
    ) -> (u64, Control) {
        let mut holes = Holes::default();
        let length = |unit: u32| {
            let height = model.units[unit as usize].height;
            height.next_multiple_of(self.step)
        };
        let (mut ended, mut highest, mut control) = (0, 0, Control::Continue);
        for (done, &unit) in (1u64..).zip(&self.units) {
            if control == Control::Continue && done.is_multiple_of(4 * TICK) {
                control = tick(0);
            }
            if control == Control::Stop {
                place[unit as usize] = highest;
                highest += length(unit);
                continue;
            }
            let begin = model.parts(unit)[0].begin;
            while self.ends[ended].0 <= begin {
                let gone = self.ends[ended].1;
                holes.give(place[gone as usize], length(gone));
                ended += 1;
            }
            let start = holes.take(length(unit));
            place[unit as usize] = start;
            highest = highest.max(start + length(unit));
        }
        (highest, control)
    }
}
