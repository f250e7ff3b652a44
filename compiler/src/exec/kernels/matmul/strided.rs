//! Matrices whose entries lie at steps of their own along each of several dimensions.

use super::super::walk::Axes;
use super::{Accumulator, Lines, Sink};
use crate::exec::kernels::matmul::tile::{LINE, ROWS};

/// Where the entries of a matrix lie: which dimensions make up its lines and its depth, with
/// steps in elements.
#[derive(Clone, Debug)]
pub(in super::super) struct Matrix {
    /// One index a line; outermost first.
    pub(in super::super) lines: Axes,
    /// One index an entry of a line; outermost first.
    pub(in super::super) depth: Axes,
}

/// A [`Matrix`] in an array of the accumulator's type.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct StridedLines<'a> {
    pub(in super::super) matrix: &'a Matrix,
    /// From the first entry on.
    pub(in super::super) data: &'a [u8],
}

/// Most lines of a panel.
const WIDTH: usize = LINE;
/// Entries of a line that are brought into a panel before those of the next line.
const STRETCH: usize = 16;

impl Lines for StridedLines<'_> {
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must use the dispatched instructions")]
    fn pack<T: Accumulator>(
        &self,
        first: usize,
        count: usize,
        depth: (usize, usize),
        width: usize,
        panel: &mut [u8],
    ) -> (usize, usize) {
        let mut starts = [0; WIDTH];
        let starts = &mut starts[..count];
        positions(&self.matrix.lines, first, starts);
        if count < width {
            panel.fill(0);
        }
        let side_by_side = starts.iter().enumerate().all(|(i, &s)| s == starts[0] + i);
        each_run(&self.matrix.depth, depth, |at, from, length, step| {
            let panel = &mut panel[(at - depth.0) * width * T::BYTES..];
            if side_by_side {
                let bytes = count * T::BYTES;
                for (l, out) in panel.chunks_mut(width * T::BYTES).take(length).enumerate() {
                    let from = (starts[0] + from + l * step) * T::BYTES;
                    copy_line(&self.data[from..from + bytes], &mut out[..bytes]);
                }
            } else {
                match width {
                    ROWS => scatter::<T, ROWS>(self.data, starts, from, length, step, panel),
                    _ => interleave::<T>(self.data, starts, from, length, step, width, panel),
                }
            }
        });
        (0, depth.1 - depth.0)
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must use the dispatched instructions")]
    fn in_place<T: Accumulator>(&self, first: usize, depth: usize) -> Option<(&[u8], usize)> {
        let (&[(_, 1)], &[(_, step)]) = (&self.matrix.lines[..], &self.matrix.depth[..]) else {
            return None;
        };
        let from = (first + depth * step) * T::BYTES;
        (step > 0).then(|| (&self.data[from..], step))
    }
}

/// Copies between slices of one length; those of whole panels without a call.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must use the dispatched instructions")]
pub(in super::super) fn copy_line(from: &[u8], to: &mut [u8]) {
    /// Copies `N` bytes if that is how many there are.
    #[inline(always)]
    fn whole<const N: usize>(from: &[u8], to: &mut [u8]) -> bool {
        let (Ok(from), Ok(to)) = (<&[u8; N]>::try_from(from), <&mut [u8; N]>::try_from(to)) else {
            return false;
        };
        *to = *from;
        true
    }
    // A line of columns, and the rows of a tile in single precision.
    if !whole::<LINE>(from, to) && !whole::<{ ROWS * 4 }>(from, to) {
        to.copy_from_slice(from);
    }
}

/// [`interleave`] with the panel's width known.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must use the dispatched instructions")]
fn scatter<T: Accumulator, const WIDTH: usize>(
    data: &[u8],
    starts: &[usize],
    from: usize,
    length: usize,
    step: usize,
    panel: &mut [u8],
) {
    interleave::<T>(data, starts, from, length, step, WIDTH, panel);
}

/// Entry `l` of line `i` goes to `panel[l * width + i]`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must use the dispatched instructions")]
fn interleave<T: Accumulator>(
    data: &[u8],
    starts: &[usize],
    from: usize,
    length: usize,
    step: usize,
    width: usize,
    panel: &mut [u8],
) {
    let panel = &mut panel[..length * width * T::BYTES];
    // A stretch of every line in turn, so that the memory is asked for many lines at a time.
    for (block, panel) in panel.chunks_mut(STRETCH * width * T::BYTES).enumerate() {
        let from = from + block * STRETCH * step;
        for (i, start) in starts.iter().enumerate() {
            let line = &data[(start + from) * T::BYTES..];
            let out = panel.chunks_exact_mut(width * T::BYTES);
            if step == 1 {
                for (out, x) in out.zip(line.chunks_exact(T::BYTES)) {
                    out[i * T::BYTES..][..T::BYTES].copy_from_slice(x);
                }
            } else {
                for (l, out) in out.enumerate() {
                    let x = &line[l * step * T::BYTES..][..T::BYTES];
                    out[i * T::BYTES..][..T::BYTES].copy_from_slice(x);
                }
            }
        }
    }
}

/// The positions of consecutive indices of a box, in row-major order.
pub(super) fn positions(axes: &Axes, first: usize, out: &mut [usize]) {
    if let [(_, step)] = axes[..] {
        for (i, out) in out.iter_mut().enumerate() {
            *out = (first + i) * step;
        }
        return;
    }
    for (i, out) in out.iter_mut().enumerate() {
        *out = position(axes, first + i);
    }
}

/// The position of the `index`-th place of a box, in row-major order.
#[inline]
pub(in super::super) fn position(axes: &Axes, index: usize) -> usize {
    if let [(_, step)] = axes[..] {
        return index * step;
    }
    let (mut rest, mut position) = (index, 0);
    for &(size, step) in axes.iter().rev() {
        position += rest % size * step;
        rest /= size;
    }
    position
}

/// Calls `f` with the stretches of `range` along the innermost axis: the first index, its
/// position, how many there are, and their step.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must use the dispatched instructions")]
fn each_run(axes: &Axes, range: (usize, usize), mut f: impl FnMut(usize, usize, usize, usize)) {
    let &(size, step) = axes.last().unwrap_or(&(1, 1));
    let mut at = range.0;
    while at < range.1 {
        let length = (size - at % size).min(range.1 - at);
        f(at, position(axes, at), length, step);
        at += length;
    }
}

/// A result whose rows and columns lie at steps of their own.
#[derive(Debug)]
pub(in super::super) struct StridedSink<'a> {
    /// From the first entry of all rows on, less `base` bytes.
    pub(in super::super) data: &'a mut [u8],
    pub(in super::super) base: usize,
    /// Number of the sink's first row.
    pub(in super::super) first_row: usize,
    /// Steps in elements.
    pub(in super::super) rows: &'a Axes,
    pub(in super::super) columns: &'a Axes,
}

impl Sink for StridedSink<'_> {
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must use the dispatched instructions")]
    fn put<T: Accumulator>(&mut self, row: usize, column: usize, values: &[u8], first: bool) {
        let start = position(self.rows, self.first_row + row);
        if let [] | [(_, 1)] = self.columns[..] {
            let at = (start + column) * T::BYTES - self.base;
            let out = &mut self.data[at..][..values.len()];
            if first {
                copy_line(values, out);
            } else {
                let values = values.chunks_exact(T::BYTES);
                for (out, x) in out.chunks_exact_mut(T::BYTES).zip(values) {
                    T::load(out).add(T::load(x)).store(out);
                }
            }
            return;
        }
        for (i, x) in values.chunks_exact(T::BYTES).enumerate() {
            let at = (start + position(self.columns, column + i)) * T::BYTES - self.base;
            let out = &mut self.data[at..][..T::BYTES];
            if first {
                out.copy_from_slice(x);
            } else {
                T::load(out).add(T::load(x)).store(out);
            }
        }
    }
}
