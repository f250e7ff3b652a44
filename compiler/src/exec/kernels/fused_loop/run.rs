//! Running a loop.

use std::ops::Range;

use super::super::lanes::fill;
use super::plan::{FusedLoop, Mode, StepPlace};
use super::{Operand, Read};
use crate::exec::kernels::{ArrayMut, ArrayRef};

/// Bytes written below which one thread does all.
const SEQUENTIAL: usize = 256 << 10;
/// Most dimensions of a loop, after merging.
const MAX_RANK: usize = 32;
/// Most operands of one operation.
const MAX_ARGS: usize = 3;

impl FusedLoop {
    /// Computes the result.
    pub(crate) fn run(
        &self,
        operands: &[ArrayRef<'_>],
        results: &mut [ArrayMut<'_>],
        scratch: &mut [u8],
    ) {
        let out = &mut *results[0].data;
        if self.total == 0 {
            return;
        }
        if let Some(copy) = &self.copy {
            let read = &self.spec.reads[self.read_of_copy()];
            let width = read.width;
            let from = read.access.start as usize * width;
            let to = self.spec.write.access.start as usize * width;
            let data = operands[read.input.unwrap_or(0)].data;
            copy.run_in_parallel(data, from, out, to, self.parts);
            return;
        }
        let parts = if out.len() < SEQUENTIAL {
            1
        } else {
            self.parts
        };
        self.split(0..self.total, parts, operands, out, scratch);
    }

    fn read_of_copy(&self) -> usize {
        match self.spec.write.value {
            Operand::Read(n) => n,
            Operand::Step(_) => 0,
        }
    }

    /// Divides a range of indices among tasks. `out` is the result from the first of them on if
    /// the loop is linear, and else all of it.
    fn split(
        &self,
        range: Range<usize>,
        parts: usize,
        operands: &[ArrayRef<'_>],
        out: &mut [u8],
        scratch: &mut [u8],
    ) {
        if parts <= 1 {
            self.task(range, operands, out, scratch);
            return;
        }
        let low = parts / 2;
        let share = range.len() * low / parts / self.block * self.block;
        let middle = range.start + share;
        let (low_out, high_out) = out.split_at_mut(share * self.spec.write.width);
        let (low_scratch, high_scratch) = scratch.split_at_mut(low * self.register_bytes);
        rayon::join(
            || self.split(range.start..middle, low, operands, low_out, low_scratch),
            || {
                self.split(
                    middle..range.end,
                    parts - low,
                    operands,
                    high_out,
                    high_scratch,
                );
            },
        );
    }

    fn task(
        &self,
        range: Range<usize>,
        operands: &[ArrayRef<'_>],
        out: &mut [u8],
        registers: &mut [u8],
    ) {
        for (read, mode) in self.spec.reads.iter().zip(&self.modes) {
            if let (Mode::Once(at), Some(input)) = (*mode, read.input) {
                let element = &operands[input].data[read.access.start as usize * read.width..];
                let register = &mut registers[at..at + self.block * read.width];
                fill(&element[..read.width], register);
            }
        }
        let row = self.spec.dims.last().copied().unwrap_or(1);
        let first = range.start;
        let mut at = range.start;
        let mut cursor = Cursor::new(self, at);
        while at < range.end {
            let mut count = self.block.min(range.end - at);
            if self.by_row() {
                count = count.min(row - cursor.column);
            }
            self.block(at - first, count, &cursor, operands, out, registers);
            at += count;
            cursor.advance(self, count);
        }
    }

    /// Computes `count` elements at the cursor, the `at`-th of the task.
    fn block(
        &self,
        at: usize,
        count: usize,
        cursor: &Cursor,
        operands: &[ArrayRef<'_>],
        out: &mut [u8],
        registers: &mut [u8],
    ) {
        let spec = &self.spec;
        for (n, (read, mode)) in spec.reads.iter().zip(&self.modes).enumerate() {
            if let Mode::Fill(place) = *mode {
                let register = &mut registers[place..place + count * read.width];
                if self.in_place.contains(&n) {
                    register.copy_from_slice(&out[at * read.width..][..count * read.width]);
                } else {
                    self.fill(read, count, cursor, operands, register);
                }
            }
        }
        let write = &spec.write;
        for (step, place) in spec.steps.iter().zip(&self.places) {
            let bytes = count * step.width;
            match *place {
                StepPlace::Result => {
                    let target = &mut out[at * write.width..][..bytes];
                    let whole = (&*registers, &[][..]);
                    self.apply(step, whole, usize::MAX, count, cursor, operands, target);
                }
                StepPlace::Register(start) => {
                    let (before, rest) = registers.split_at_mut(start);
                    let (target, after) = rest.split_at_mut(self.block * step.width);
                    let target = &mut target[..bytes];
                    let rest = (&*before, &*after);
                    let end = start + self.block * step.width;
                    self.apply(step, rest, end, count, cursor, operands, target);
                }
            }
        }
        if self.places.last() == Some(&StepPlace::Result) {
            return;
        }
        let bytes = count * write.width;
        let value = match write.value {
            Operand::Step(s) => match self.places[s] {
                StepPlace::Register(place) => &registers[place..place + bytes],
                StepPlace::Result => return,
            },
            Operand::Read(n) => match self.modes[n] {
                Mode::Borrow => borrow(&spec.reads[n], count, cursor, operands),
                Mode::Once(place) | Mode::Fill(place) => &registers[place..place + bytes],
            },
        };
        if self.linear {
            out[at * write.width..][..bytes].copy_from_slice(value);
        } else {
            self.store(value, cursor, out);
        }
    }

    /// Runs one step. Registers come in two parts, the second from byte `end` on.
    #[allow(clippy::too_many_arguments, reason = "the whole state of a block")]
    #[inline]
    fn apply(
        &self,
        step: &super::Step,
        (before, after): (&[u8], &[u8]),
        end: usize,
        count: usize,
        cursor: &Cursor,
        operands: &[ArrayRef<'_>],
        target: &mut [u8],
    ) {
        let register = |place: usize, width: usize| {
            if place < end && place < before.len() {
                &before[place..place + count * width]
            } else {
                &after[place - end..][..count * width]
            }
        };
        let mut args: [&[u8]; MAX_ARGS] = [&[]; MAX_ARGS];
        for (slot, arg) in args.iter_mut().zip(&step.args) {
            *slot = match *arg {
                Operand::Step(s) => match self.places[s] {
                    StepPlace::Register(place) => register(place, self.spec.steps[s].width),
                    StepPlace::Result => &[],
                },
                Operand::Read(n) => {
                    let read = &self.spec.reads[n];
                    match self.modes[n] {
                        Mode::Borrow => borrow(read, count, cursor, operands),
                        Mode::Once(place) | Mode::Fill(place) => register(place, read.width),
                    }
                }
            };
        }
        step.op.apply(&args[..step.args.len()], target);
    }

    /// Brings elements into a register, row by row.
    fn fill(
        &self,
        read: &Read,
        count: usize,
        cursor: &Cursor,
        operands: &[ArrayRef<'_>],
        register: &mut [u8],
    ) {
        let mut cursor = cursor.clone();
        let row = self.spec.dims.last().copied().unwrap_or(1);
        let step = read.access.steps.last().copied().unwrap_or(0);
        let mut done = 0;
        while done < count {
            let n = (row - cursor.column).min(count - done);
            let place = cursor.place(read.access.start, &read.access.steps);
            let out = &mut register[done * read.width..(done + n) * read.width];
            match read.input {
                None => {
                    for (i, out) in out.chunks_exact_mut(8).enumerate() {
                        let value = (place + i as isize * step) as i64;
                        out.copy_from_slice(&value.to_le_bytes());
                    }
                }
                Some(input) => gather(read.width, operands[input].data, place, step, out),
            }
            done += n;
            cursor.advance(self, n);
        }
    }

    /// Writes elements where the result does not lie in the loop's order.
    fn store(&self, value: &[u8], cursor: &Cursor, out: &mut [u8]) {
        let write = &self.spec.write;
        let mut cursor = cursor.clone();
        for element in value.chunks_exact(write.width) {
            let place = cursor.place(write.access.start, &write.access.steps) as usize;
            out[place * write.width..][..write.width].copy_from_slice(element);
            cursor.advance(self, 1);
        }
    }
}

/// Elements that lie side by side.
#[inline]
fn borrow<'a>(read: &Read, count: usize, cursor: &Cursor, operands: &[ArrayRef<'a>]) -> &'a [u8] {
    let data = operands[read.input.unwrap_or(0)].data;
    let at = cursor.place(read.access.start, &read.access.steps);
    &data[at as usize * read.width..][..count * read.width]
}

/// Elements from `place` on, `step` apart.
fn gather(width: usize, data: &[u8], place: isize, step: isize, out: &mut [u8]) {
    match step {
        1 => {
            let n = out.len();
            out.copy_from_slice(&data[place as usize * width..][..n]);
        }
        0 => fill(&data[place as usize * width..][..width], out),
        _ => match width {
            1 => gather_width::<1>(data, place, step, out),
            2 => gather_width::<2>(data, place, step, out),
            4 => gather_width::<4>(data, place, step, out),
            8 => gather_width::<8>(data, place, step, out),
            _ => gather_width::<16>(data, place, step, out),
        },
    }
}

fn gather_width<const W: usize>(data: &[u8], place: isize, step: isize, out: &mut [u8]) {
    let mut at = place;
    for out in out.chunks_exact_mut(W) {
        out.copy_from_slice(&data[at as usize * W..][..W]);
        at += step;
    }
}

/// A place in the loop.
#[derive(Clone)]
struct Cursor {
    /// The index along each dimension but the last.
    outer: [usize; MAX_RANK],
    column: usize,
}

impl Cursor {
    fn new(this: &FusedLoop, index: usize) -> Self {
        let mut outer = [0; MAX_RANK];
        let Some((&row, dims)) = this.spec.dims.split_last() else {
            return Self { outer, column: 0 };
        };
        let mut rest = index / row;
        for (i, &size) in outer.iter_mut().zip(dims).rev() {
            *i = rest % size;
            rest /= size;
        }
        Self {
            outer,
            column: index % row,
        }
    }

    /// Moves on by at most the rest of the block that it was asked for.
    fn advance(&mut self, this: &FusedLoop, count: usize) {
        let Some((&row, dims)) = this.spec.dims.split_last() else {
            return;
        };
        self.column += count;
        while self.column >= row {
            self.column -= row;
            for (i, &size) in self.outer.iter_mut().zip(dims).rev() {
                *i += 1;
                if *i < size {
                    break;
                }
                *i = 0;
            }
        }
    }

    fn place(&self, start: isize, steps: &[isize]) -> isize {
        let Some((&inner, outer)) = steps.split_last() else {
            return start;
        };
        let outer: isize = outer
            .iter()
            .zip(&self.outer)
            .map(|(&step, &i)| step * i as isize)
            .sum();
        start + outer + inner * self.column as isize
    }
}
