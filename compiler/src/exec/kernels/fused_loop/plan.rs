//! Preparing a loop: dimensions merged, registers placed.

use smallvec::SmallVec;

use super::super::strided::StridedCopy;
use super::join::join;
use super::{LoopSpec, Operand, Read, Step, Write};

/// Bytes that the registers of one task should take at most, and most elements of a block.
const REGISTER_BYTES: usize = 24 << 10;
const MAX_BLOCK: usize = 1024;
const MIN_BLOCK: usize = 64;
/// Inner dimensions from this size on are walked row by row; shorter rows share a block.
const LONG_ROW: usize = 128;

/// A loop ready to run.
#[derive(Debug)]
pub(crate) struct FusedLoop {
    pub(super) spec: LoopSpec,
    pub(super) total: usize,
    /// Elements of a block.
    pub(super) block: usize,
    /// How each read gets into the block.
    pub(super) modes: Vec<Mode>,
    /// Where each step puts its result.
    pub(super) places: Vec<StepPlace>,
    /// Bytes of registers of one task.
    pub(super) register_bytes: usize,
    /// A loop without steps.
    pub(super) copy: Option<StridedCopy>,
    /// Reads whose bytes are those of the result.
    pub(super) in_place: Vec<usize>,
    /// Whether the result's elements lie side by side in the loop's order.
    pub(super) linear: bool,
    /// Most tasks that run at once.
    pub(super) parts: usize,
}

/// How elements get into a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// They lie side by side in memory.
    Borrow,
    /// One element in all blocks: a register at this byte, filled once.
    Once(usize),
    /// A register at this byte, filled for each block.
    Fill(usize),
}

/// Where a step's result goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepPlace {
    /// A register at this byte.
    Register(usize),
    /// The loop's result itself.
    Result,
}

impl FusedLoop {
    /// Prepares a loop for at most `threads` threads.
    pub(crate) fn new(mut spec: LoopSpec, threads: usize) -> Self {
        merge(&mut spec);
        join(&mut spec);
        let total = spec.dims.iter().product();
        let linear =
            is_linear(&spec.write.access.steps, &spec.dims) && spec.write.access.start == 0;
        let copy = copy(&spec);
        let mut this = Self {
            total,
            block: 0,
            modes: Vec::new(),
            places: Vec::new(),
            register_bytes: 0,
            copy,
            in_place: Vec::new(),
            linear,
            parts: if linear { threads } else { 1 },
            spec,
        };
        this.place();
        this
    }

    /// Whether `read` is of the bytes that the result will be written to, at each index the same.
    fn same_place(&self, read: &Read) -> bool {
        let write = &self.spec.write;
        self.linear && read.width == write.width && read.access == write.access
    }

    /// Whether operand `n` may be the result's own memory.
    pub(crate) fn may_overwrite(&self, n: usize) -> bool {
        let mut reads = self.spec.reads.iter().filter(|r| r.input == Some(n));
        self.total > 0 && reads.all(|r| self.same_place(r))
    }

    /// From now on operand `n` is the result's own memory, and given as no bytes.
    pub(crate) fn overwrite(&mut self, n: usize) {
        let reads = self.spec.reads.iter().enumerate();
        let mine = reads.filter(|(_, r)| r.input == Some(n)).map(|(i, _)| i);
        self.in_place.extend(mine);
        self.copy = None;
        self.place();
    }

    /// Bytes of scratch, for all tasks.
    pub(crate) fn scratch_bytes(&self) -> usize {
        self.parts * self.register_bytes
    }

    fn row(&self) -> usize {
        self.spec.dims.last().copied().unwrap_or(1)
    }

    /// Whether blocks lie within one row.
    pub(super) fn by_row(&self) -> bool {
        self.row() >= LONG_ROW || self.spec.dims.len() <= 1
    }

    /// Places registers: those of reads first, then those of steps, which are used again once
    /// their value has been read for the last time.
    fn place(&mut self) {
        let by_row = self.by_row();
        let mode = |i: usize, r: &Read| {
            let inner = r.access.steps.last().copied().unwrap_or(0);
            let constant = r.input.is_some() && r.access.steps.iter().all(|&s| s == 0);
            if self.in_place.contains(&i) {
                Mode::Fill(0)
            } else if constant {
                Mode::Once(0)
            } else if r.input.is_some() && by_row && inner == 1 {
                Mode::Borrow
            } else {
                Mode::Fill(0)
            }
        };
        let reads = self.spec.reads.iter().enumerate();
        let mut modes: Vec<Mode> = reads.map(|(i, r)| mode(i, r)).collect();
        let (places, step_bytes) = step_places(&self.spec, self.linear);
        // What may be computed over has a register in any case: scratch must not grow later.
        let takes_room = |read: &Read, mode: Mode| mode != Mode::Borrow || self.same_place(read);
        let read_bytes: usize = (self.spec.reads.iter().zip(&modes))
            .filter(|(r, m)| takes_room(r, **m))
            .map(|(r, _)| r.width)
            .sum();
        let per_element = (read_bytes + step_bytes).max(1);
        let block = (REGISTER_BYTES / per_element).clamp(MIN_BLOCK, MAX_BLOCK) / 64 * 64;
        let block = block.min(self.total.max(1).next_multiple_of(16));
        let mut at = 0;
        for (mode, read) in modes.iter_mut().zip(&self.spec.reads) {
            if let Mode::Once(place) | Mode::Fill(place) = mode {
                *place = at;
            }
            if takes_room(read, *mode) {
                at += read.width * block;
            }
        }
        self.places = places
            .into_iter()
            .map(|p| match p {
                StepPlace::Register(offset) => StepPlace::Register(at + offset * block),
                StepPlace::Result => StepPlace::Result,
            })
            .collect();
        self.modes = modes;
        self.block = block;
        self.register_bytes = at + step_bytes * block;
    }
}

/// Drops dimensions of size 1 and merges neighbours over which every access steps evenly.
fn merge(spec: &mut LoopSpec) {
    let dims = std::mem::take(&mut spec.dims);
    let mut kept: SmallVec<[usize; 6]> = SmallVec::new();
    let mut sizes: SmallVec<[usize; 6]> = SmallVec::new();
    for (d, &size) in dims.iter().enumerate() {
        if size == 1 {
            continue;
        }
        let even = |steps: &[isize], last: usize| steps[last] == steps[d] * size as isize;
        let merges = kept.last().is_some_and(|&last| {
            spec.reads.iter().all(|r| even(&r.access.steps, last))
                && even(&spec.write.access.steps, last)
        });
        if merges {
            let last = kept.len() - 1;
            kept[last] = d;
            sizes[last] *= size;
        } else {
            kept.push(d);
            sizes.push(size);
        }
    }
    let pick = |steps: &mut SmallVec<[isize; 6]>| *steps = kept.iter().map(|&d| steps[d]).collect();
    for read in &mut spec.reads {
        pick(&mut read.access.steps);
    }
    pick(&mut spec.write.access.steps);
    spec.dims = sizes;
}

/// Whether places follow each other without gaps in the order of the loop.
fn is_linear(steps: &[isize], dims: &[usize]) -> bool {
    let mut expected = 1;
    steps.iter().zip(dims).rev().all(|(&step, &size)| {
        let fits = step == expected;
        expected *= size as isize;
        fits
    })
}

/// The loop as a plain copy, if it computes nothing.
fn copy(spec: &LoopSpec) -> Option<StridedCopy> {
    let Write { value, access, .. } = &spec.write;
    let &Operand::Read(n) = value else {
        return None;
    };
    let read = &spec.reads[n];
    read.input?;
    let axes = spec.dims.iter().enumerate();
    let axes = axes.map(|(d, &size)| (size, read.access.steps[d], access.steps[d]));
    Some(StridedCopy::new(read.width, axes))
}

/// Where each step's result goes, in elements' bytes of a block of one element, and how many there
/// are. A register is free again after the last step that reads it.
fn step_places(spec: &LoopSpec, linear: bool) -> (Vec<StepPlace>, usize) {
    let n = spec.steps.len();
    let mut last_read = vec![0; n];
    for (at, Step { args, .. }) in spec.steps.iter().enumerate() {
        for arg in args {
            if let Operand::Step(s) = *arg {
                last_read[s] = at;
            }
        }
    }
    let written = match spec.write.value {
        Operand::Step(s) => Some(s),
        Operand::Read(_) => None,
    };
    if let Some(s) = written {
        last_read[s] = n;
    }
    let mut places = Vec::with_capacity(n);
    let mut free: Vec<(usize, usize)> = Vec::new();
    let mut total = 0;
    let mut expiring: Vec<Vec<usize>> = vec![Vec::new(); n + 1];
    for (at, step) in spec.steps.iter().enumerate() {
        // The last value may go where it is wanted at once.
        if linear && written == Some(at) && at + 1 == n {
            places.push(StepPlace::Result);
            continue;
        }
        let width = step.width;
        let found = free.iter().rposition(|&(_, w)| w == width);
        let place = found.map_or_else(
            || {
                total += width;
                total - width
            },
            |i| free.swap_remove(i).0,
        );
        places.push(StepPlace::Register(place));
        expiring[last_read[at].max(at)].push(at);
        for s in std::mem::take(&mut expiring[at]) {
            if let StepPlace::Register(place) = places[s] {
                free.push((place, spec.steps[s].width));
            }
        }
    }
    (places, total)
}
