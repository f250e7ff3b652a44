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

    fn run_width<const W: usize>(&self, source: &[u8], from: usize, target: &mut [u8], to: usize) {
        let Some((&inner, outer)) = self.axes.split_last() else {
            target[to..to + W].copy_from_slice(&source[from..from + W]);
            return;
        };
        let (mut from, mut to) = (from, to);
        let mut index = [0usize; MAX_RANK];
        loop {
            copy_row::<W>(inner, source, from, target, to);
            let mut axis = outer.len();
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                let a = outer[axis];
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
