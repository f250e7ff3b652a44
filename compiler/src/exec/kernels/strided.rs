//! Copying a box of elements between two arrays with a step of its own along each dimension.
//!
//! Broadcast, transpose, slice, pad, concatenate, gather and the packing of
//! matrix products are all this copy with different steps.

use smallvec::SmallVec;

use super::prepare::MAX_RANK;

/// One dimension of the box: its size and the distances, in bytes, between neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    size: usize,
    from: isize,
    to: isize,
}

/// A copy of a box of elements.
#[derive(Clone, Debug)]
pub(super) struct StridedCopy {
    width: usize,
    /// Outermost first; neighbours that step alike are merged, so a plain copy has one axis at most.
    axes: SmallVec<[Axis; 6]>,
    empty: bool,
}

impl StridedCopy {
    /// A copy of elements of `width` bytes, over axes `(size, source step, target step)` in elements,
    /// outermost first.
    pub(super) fn new(width: usize, axes: impl IntoIterator<Item = (usize, isize, isize)>) -> Self {
        let mut merged: SmallVec<[Axis; 6]> = SmallVec::new();
        let mut empty = false;
        for (size, from, to) in axes {
            empty |= size == 0;
            if size == 1 {
                continue;
            }
            let axis = Axis {
                size,
                from: from.wrapping_mul(width as isize),
                to: to.wrapping_mul(width as isize),
            };
            match merged.last_mut() {
                Some(outer)
                    if outer.from == axis.from.wrapping_mul(size as isize)
                        && outer.to == axis.to.wrapping_mul(size as isize) =>
                {
                    *outer = Axis {
                        size: outer.size * size,
                        ..axis
                    };
                }
                _ => merged.push(axis),
            }
        }
        Self {
            width,
            axes: merged,
            empty,
        }
    }

    /// Whether it is one contiguous run from the first byte on.
    pub(super) fn is_plain(&self) -> bool {
        let w = self.width as isize;
        match self.axes[..] {
            [] => true,
            [Axis { from, to, .. }] => from == w && to == w,
            _ => false,
        }
    }

    /// Copies from `source` to `target`; the box's first element is at these byte positions.
    ///
    /// # Panics
    /// If the box leaves either slice.
    pub(super) fn run(&self, source: &[u8], from: usize, target: &mut [u8], to: usize) {
        if self.empty {
            return;
        }
        match self.width {
            1 => self.run_width::<1>(source, from, target, to),
            2 => self.run_width::<2>(source, from, target, to),
            4 => self.run_width::<4>(source, from, target, to),
            8 => self.run_width::<8>(source, from, target, to),
            _ => self.run_width::<16>(source, from, target, to),
        }
    }

    /// [`run`](Self::run) by at most `parts` threads.
    pub(super) fn run_in_parallel(
        &self,
        source: &[u8],
        from: usize,
        target: &mut [u8],
        to: usize,
        parts: usize,
    ) {
        let elements: usize = self.axes.iter().map(|a| a.size).product();
        let outermost = self.axes.first().copied();
        let Some(first) = outermost.filter(|a| {
            parts > 1 && a.size > 1 && elements * self.width >= SEQUENTIAL && self.is_nested()
        }) else {
            self.run(source, from, target, to);
            return;
        };
        let low = parts / 2;
        let share = (first.size * low / parts).max(1);
        let (mut lower, mut upper) = (self.clone(), self.clone());
        lower.axes[0].size = share;
        upper.axes[0].size = first.size - share;
        let middle = to.wrapping_add_signed(first.to * share as isize);
        let from_middle = from.wrapping_add_signed(first.from * share as isize);
        let (low_target, high_target) = target.split_at_mut(middle);
        rayon::join(
            || lower.run_in_parallel(source, from, low_target, to, low),
            || upper.run_in_parallel(source, from_middle, high_target, 0, parts - low),
        );
    }

    /// Whether each index of an axis lies behind everything of the one before.
    fn is_nested(&self) -> bool {
        let mut extent = self.width as isize;
        self.axes.iter().rev().all(|a| {
            let nested = a.to >= extent;
            extent = a.to.saturating_mul(a.size as isize);
            nested
        })
    }

    fn run_width<const W: usize>(&self, source: &[u8], from: usize, target: &mut [u8], to: usize) {
        let Some((&inner, outer)) = self.axes.split_last() else {
            target[to..to + W].copy_from_slice(&source[from..from + W]);
            return;
        };
        let w = W as isize;
        let lies_across = |a: &Axis| a.from == w && a.size >= MIN_TILE;
        if inner.from != w
            && inner.from != 0
            && inner.size >= MIN_TILE
            && let Some(across) = outer.iter().position(lies_across)
        {
            let across_axis = outer[across];
            let mut others = self.axes.clone();
            others.pop();
            others.remove(across);
            each_place(&others, from, to, |from, to| {
                transpose::<W>(across_axis, inner, source, from, target, to);
            });
            return;
        }
        each_place(outer, from, to, |from, to| {
            copy_row::<W>(inner, source, from, target, to);
        });
    }
}

/// Bytes below which one thread does all.
const SEQUENTIAL: usize = 256 << 10;
/// Sizes from which on a transposition goes by tiles, and the side of one.
const MIN_TILE: usize = 4;
const TILE: usize = 16;

/// Calls `f` with the byte positions of all indices of a box.
#[inline]
fn each_place(axes: &[Axis], from: usize, to: usize, mut f: impl FnMut(usize, usize)) {
    let (mut from, mut to) = (from, to);
    let mut index = [0usize; MAX_RANK];
    loop {
        f(from, to);
        let mut axis = axes.len();
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            let a = axes[axis];
            index[axis] += 1;
            if index[axis] < a.size {
                from = from.wrapping_add_signed(a.from);
                to = to.wrapping_add_signed(a.to);
                break;
            }
            index[axis] = 0;
            from = from.wrapping_add_signed(-a.from * (a.size as isize - 1));
            to = to.wrapping_add_signed(-a.to * (a.size as isize - 1));
        }
    }
}

/// Copies two axes tile by tile, so that the lines of source and target that a tile touches stay
/// in the cache: `across` goes along the source, `inner` along the target.
fn transpose<const W: usize>(
    across: Axis,
    inner: Axis,
    source: &[u8],
    from: usize,
    target: &mut [u8],
    to: usize,
) {
    for a0 in (0..across.size).step_by(TILE) {
        let a_count = TILE.min(across.size - a0);
        for i0 in (0..inner.size).step_by(TILE) {
            let i_count = TILE.min(inner.size - i0);
            let offset = |from: isize, to: isize, n: usize| (from * n as isize, to * n as isize);
            let (af, at) = offset(across.from, across.to, a0);
            let (bf, bt) = offset(inner.from, inner.to, i0);
            let from = from.wrapping_add_signed(af + bf);
            let to = to.wrapping_add_signed(at + bt);
            let row = Axis {
                size: i_count,
                ..inner
            };
            for a in 0..a_count {
                let (f, t) = offset(across.from, across.to, a);
                let (from, to) = (from.wrapping_add_signed(f), to.wrapping_add_signed(t));
                copy_row::<W>(row, source, from, target, to);
            }
        }
    }
}

#[inline]
fn copy_row<const W: usize>(row: Axis, source: &[u8], from: usize, target: &mut [u8], to: usize) {
    let w = W as isize;
    if row.from == w && row.to == w {
        let n = row.size * W;
        target[to..to + n].copy_from_slice(&source[from..from + n]);
    } else if row.from == 0 && row.to == w {
        let element: [u8; W] = source[from..from + W].try_into().expect("W bytes");
        for out in target[to..to + row.size * W].chunks_exact_mut(W) {
            out.copy_from_slice(&element);
        }
    } else {
        let (mut from, mut to) = (from, to);
        for _ in 0..row.size {
            let element: [u8; W] = source[from..from + W].try_into().expect("W bytes");
            target[to..to + W].copy_from_slice(&element);
            from = from.wrapping_add_signed(row.from);
            to = to.wrapping_add_signed(row.to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_alike_merge_into_one_run() {
        let copy = StridedCopy::new(4, [(2, 12, 12), (3, 4, 4), (1, 99, 7), (4, 1, 1)]);
        assert!(copy.is_plain());
        let transpose = StridedCopy::new(4, [(2, 1, 3), (3, 2, 1)]);
        assert!(!transpose.is_plain());
    }

    #[test]
    fn transposes_and_reverses() {
        let source = [0, 1, 2, 3, 4, 5];
        let mut target = [9; 6];
        // 2x3 to 3x2.
        StridedCopy::new(1, [(3, 1, 2), (2, 3, 1)]).run(&source, 0, &mut target, 0);
        assert_eq!(target, [0, 3, 1, 4, 2, 5]);
        StridedCopy::new(1, [(6, -1, 1)]).run(&source, 5, &mut target, 0);
        assert_eq!(target, [5, 4, 3, 2, 1, 0]);
        StridedCopy::new(1, [(0, 1, 1), (6, 1, 1)]).run(&source, 0, &mut [], 0);
    }
}
