//! The problem as the algorithms see it: rigid units over compressed time, in an order that does not depend on the input's.

use super::draft::{self, Groups, Singles};
use super::packing::Control;
use super::problem::{Problem, ProblemError};
use super::sections::sections;
use super::share_options::ShareOptions;
use super::ties::Residue;
use smallvec::SmallVec;

/// A stretch of sections `[begin, end)` in which a unit needs `size` bytes from `delta` above its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    pub(super) begin: u32,
    pub(super) end: u32,
    pub(super) delta: u64,
    pub(super) size: u64,
}

impl Part {
    /// True when it is live in a section.
    pub(super) fn covers(&self, section: u32) -> bool {
        self.begin <= section && section < self.end
    }
}

/// One thing to place: a buffer, or several at fixed distances.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) first_part: u32,
    pub(super) last_part: u32,
    /// Bytes from the offset to the highest end of a part.
    pub(super) height: u64,
    /// Sections in use.
    pub(super) duration: u32,
    /// Offsets that the alignments permit.
    pub(super) residue: Residue,
    pub(super) fixed: Option<u64>,
}

/// Units to place. Time is cut into *sections*: runs of points such that two buffers are live together exactly when
/// they have a section in common. A new section starts at the first start that follows an end:
///
/// ```text
///   point     0  1  2  3  4  5  6
///   a         [-----)
///   b            [--------)
///   c                  [--------)
///   section   0        1     (a and b meet in 0; b and c in 1)
/// ```
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) units: Vec<Unit>,
    pub(super) parts: Vec<Part>,
    pub(super) sections: u32,
    /// Unit and distance from its offset, for each buffer of the problem.
    pub(super) position: Vec<(u32, u64)>,
    /// Ways to share bytes that placement may use; none unless asked for.
    pub(super) options: ShareOptions,
}

impl Model {
    /// Builds the model of `problem`, in which the pairs of `shared` also have one offset. O(n log n).
    pub(super) fn new(problem: &Problem, shared: &[(u32, u32)]) -> Result<Self, ProblemError> {
        let model = Self::build(problem, shared, &mut || Control::Continue)?;
        Ok(model.unwrap_or_default())
    }

    /// [`Self::new`], which asks now and then whether to go on; `None` when not. A problem with ties or fixed offsets
    /// is built to the end in any case.
    pub(super) fn build(
        problem: &Problem,
        shared: &[(u32, u32)],
        ask: &mut dyn FnMut() -> Control,
    ) -> Result<Option<Self>, ProblemError> {
        let can_stop = problem.ties.is_empty()
            && shared.is_empty()
            && problem.buffers.iter().all(|it| it.fixed.is_none());
        let mut is_stopped = || can_stop && ask() == Control::Stop;
        let Some((spans, sections)) = sections(problem, &mut is_stopped) else {
            return Ok(None);
        };
        let model = if problem.ties.is_empty() && shared.is_empty() {
            let singles = Singles::new(problem, &spans);
            draft::arrange(&singles, sections, &mut is_stopped)
        } else {
            let groups = Groups::new(problem, shared, &spans)?;
            draft::arrange(&groups, sections, &mut is_stopped)
        };
        Ok(model)
    }

    /// Some of the units, in the same order, and which unit each of them is here. O(units + sections).
    pub(super) fn restrict(&self, has: impl Fn(u32) -> bool) -> (Self, Vec<u32>) {
        let (mut units, mut parts, mut from) = (Vec::new(), Vec::new(), Vec::new());
        for (index, unit) in (0u32..).zip(&self.units).filter(|it| has(it.0)) {
            let first_part = parts.len() as u32;
            parts.extend_from_slice(self.parts(index));
            from.push(index);
            units.push(Unit {
                first_part,
                last_part: parts.len() as u32,
                ..*unit
            });
        }
        let mut model = Self {
            units,
            parts,
            sections: self.sections,
            position: Vec::new(),
            options: ShareOptions::default(),
        };
        model.compress_time();
        (model, from)
    }

    /// Joins neighbouring sections that need not be told apart.
    fn compress_time(&mut self) {
        let mut marks = vec![(false, false); self.sections as usize + 1];
        for part in &self.parts {
            marks[part.begin as usize].0 = true;
            marks[part.end as usize].1 = true;
        }
        let (mut section, mut ended) = (0, false);
        let new: Vec<u32> = marks
            .iter()
            .map(|&(starts, ends)| {
                ended |= ends;
                section += u32::from(starts && std::mem::take(&mut ended));
                section
            })
            .collect();
        for part in &mut self.parts {
            part.begin = new[part.begin as usize];
            part.end = new[part.end as usize - 1] + 1;
        }
        self.sections = if self.parts.is_empty() {
            0
        } else {
            section + 1
        };
        for unit in &mut self.units {
            let parts = &self.parts[unit.first_part as usize..unit.last_part as usize];
            unit.duration = parts.iter().map(|part| part.end - part.begin).sum();
        }
    }

    /// The same model, in which placement may let the units of a may-share pair share bytes.
    pub(super) fn with_options(mut self, problem: &Problem) -> Self {
        self.options = ShareOptions::new(problem, &self);
        self
    }

    /// The parts of a unit, by begin.
    pub(super) fn parts(&self, unit: u32) -> &[Part] {
        let unit = &self.units[unit as usize];
        &self.parts[unit.first_part as usize..unit.last_part as usize]
    }

    /// The coarsest alignment.
    pub(super) fn step(&self) -> u64 {
        let aligns = self.units.iter().map(|it| it.residue.align_and_phase().0);
        aligns.max().unwrap_or(1)
    }

    /// Bytes in use, summed over the sections.
    pub(super) fn area(&self, unit: u32) -> u128 {
        let parts = self.parts(unit).iter();
        parts
            .map(|it| u128::from(it.end - it.begin) * u128::from(it.size))
            .sum()
    }

    /// True when the unit is live in a section.
    pub(super) fn covers(&self, unit: u32, section: u32) -> bool {
        self.parts(unit).iter().any(|it| it.covers(section))
    }

    /// The parts of a unit with their numbers among all parts.
    pub(super) fn numbered_parts(&self, unit: u32) -> impl Iterator<Item = (u32, &Part)> {
        (self.units[unit as usize].first_part..).zip(self.parts(unit))
    }

    /// A part by its number.
    pub(super) fn part(&self, number: u32) -> Part {
        self.parts[number as usize]
    }

    /// The buffers of every unit.
    pub(super) fn members(&self) -> Vec<SmallVec<[u32; 1]>> {
        let mut members = vec![SmallVec::new(); self.units.len()];
        for (buffer, &(unit, _)) in (0..).zip(&self.position) {
            members[unit as usize].push(buffer);
        }
        members
    }

    /// Offsets of the problem's buffers from those of the units.
    pub(super) fn buffer_offsets(&self, units: &[u64]) -> Vec<u64> {
        self.position
            .iter()
            .map(|&(unit, delta)| units[unit as usize] + delta)
            .collect()
    }

    /// The unit that holds a buffer of the problem, and the distance from its offset.
    pub(super) fn place_of(&self, buffer: u32) -> (u32, u64) {
        self.position[buffer as usize]
    }

    /// Offsets of the units from those of the problem's buffers, in which ties must hold.
    pub(super) fn unit_offsets(&self, buffers: &[u64]) -> Vec<u64> {
        let mut units = vec![0; self.units.len()];
        for (&(unit, delta), offset) in self.position.iter().zip(buffers) {
            units[unit as usize] = offset.saturating_sub(delta);
        }
        units
    }

    /// Height of a packing of the units.
    pub(super) fn height(&self, offsets: &[u64]) -> u64 {
        self.units
            .iter()
            .zip(offsets)
            .map(|(unit, offset)| offset + unit.height)
            .max()
            .unwrap_or(0)
    }
}
