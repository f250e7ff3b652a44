//! What one dimension contributes to the place of an element.

use slabplan_ir::layout::{Tile, TileDim};
use slabplan_ir::shape::ArrayShape;
use smallvec::SmallVec;

use super::{LayoutError, MAX_TABLE, unsupported};

/// The function `i -> table[i % period] + i / period * stride`, in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    /// Indices run from 0 to this.
    pub(super) extent: u64,
    period: u64,
    stride: u64,
    /// Stretches of one period whose places are consecutive. One entry of `len` 1 where the
    /// period is 1.
    runs: Vec<Run>,
}

/// `len` indices from `start` on lie at consecutive places from `place` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) start: u64,
    pub(super) place: u64,
    pub(super) len: u64,
}

impl Axis {
    /// Calls `f` with stretches `(first index, place, length)` that cover all indices in order.
    pub(super) fn each_run(&self, mut f: impl FnMut(Run)) {
        if self.is_contiguous() {
            return f(Run {
                start: 0,
                place: 0,
                len: self.extent,
            });
        }
        let mut base = 0;
        let mut start = 0;
        while start < self.extent {
            for run in &self.runs {
                let first = start + run.start;
                if first >= self.extent {
                    break;
                }
                f(Run {
                    start: first,
                    place: base + run.place,
                    len: run.len.min(self.extent - first),
                });
            }
            start += self.period;
            base += self.stride;
        }
    }

    /// Whether index `i` lies at place `i`.
    pub(super) fn is_contiguous(&self) -> bool {
        self.linear_stride() == Some(1)
    }

    /// The `s` of a function that is `i * s`, if it is one.
    pub(super) fn linear_stride(&self) -> Option<u64> {
        (self.period == 1).then_some(self.stride)
    }

    fn linear(extent: u64, stride: u64) -> Self {
        Self {
            extent,
            period: 1,
            stride,
            runs: vec![Run {
                start: 0,
                place: 0,
                len: 1,
            }],
        }
    }

    /// From the places of the indices of one period (or of all, if there are fewer).
    fn new(extent: u64, period: u64, stride: u64, table: &[u64]) -> Self {
        let step = match table {
            [] | [_] => stride,
            [_, second, ..] => *second,
        };
        let within = table.iter().enumerate().all(|(i, &p)| p == i as u64 * step);
        if within && (extent <= period || stride == period * step) {
            return Self::linear(extent, step);
        }
        let mut runs: Vec<Run> = Vec::new();
        for (i, &place) in table.iter().enumerate() {
            match runs.last_mut() {
                Some(r) if r.place + r.len == place => r.len += 1,
                _ => runs.push(Run {
                    start: i as u64,
                    place,
                    len: 1,
                }),
            }
        }
        Self {
            extent,
            period,
            stride,
            runs,
        }
    }
}

/// A dimension in memory: the value of logical dimension `of` after some splits.
#[derive(Clone, Debug)]
struct Digit {
    /// Logical dimension; `None` for the leading ones that a tile of higher rank sees.
    of: Option<usize>,
    extent: u64,
    /// Splits from the logical index on.
    splits: SmallVec<[Split; 3]>,
}

#[derive(Clone, Copy, Debug)]
enum Split {
    Quotient(u64),
    Remainder(u64),
}

impl Digit {
    fn split(&self, tile: u64) -> (Digit, Digit) {
        let with = |split, extent| {
            let mut digit = self.clone();
            digit.splits.push(split);
            digit.extent = extent;
            digit
        };
        (
            with(Split::Quotient(tile), self.extent.div_ceil(tile)),
            with(Split::Remainder(tile), tile),
        )
    }

    fn value(&self, index: u64) -> u64 {
        self.splits.iter().fold(index, |v, split| match *split {
            Split::Quotient(t) => v / t,
            Split::Remainder(t) => v % t,
        })
    }

    /// For the digit that is never a remainder: the indices over which it is constant.
    fn period(&self) -> Option<u64> {
        self.splits.iter().try_fold(1u64, |n, split| match *split {
            Split::Quotient(t) => Some(n.saturating_mul(t)),
            Split::Remainder(_) => None,
        })
    }
}

/// The axes of `array`, major to minor in logical order, dimensions of extent 1 left out and
/// neighbours that run into each other merged. The tiles have no `*` and a valid size.
///
/// # Errors
/// Tiles so large that the table of one dimension would be.
pub(super) fn axes(array: &ArrayShape, tiles: &[Tile]) -> Result<SmallVec<[Axis; 4]>, LayoutError> {
    let digits = tiles.iter().fold(untiled(array), apply);
    let mut strides = vec![1u64; digits.len()];
    for i in (1..digits.len()).rev() {
        // A size that overflows was refused; with an extent of zero nothing is ever addressed.
        strides[i - 1] = strides[i].wrapping_mul(digits[i].extent);
    }
    let mut axes: SmallVec<[Axis; 4]> = SmallVec::new();
    if array.dims.contains(&0) {
        return Ok(axes);
    }
    for (dim, &extent) in array.dims.iter().enumerate() {
        if extent == 1 {
            continue;
        }
        let mine: Vec<(&Digit, u64)> = digits
            .iter()
            .zip(strides.iter().copied())
            .filter(|(d, _)| d.of == Some(dim))
            .collect();
        push_merged(&mut axes, axis(extent, &mine)?);
    }
    Ok(axes)
}

fn untiled(array: &ArrayShape) -> Vec<Digit> {
    array
        .minor_to_major()
        .iter()
        .rev()
        .map(|&d| Digit {
            of: Some(d as usize),
            extent: array.dims[d as usize],
            splits: SmallVec::new(),
        })
        .collect()
}

fn apply(mut digits: Vec<Digit>, tile: &Tile) -> Vec<Digit> {
    let missing = tile.0.len().saturating_sub(digits.len());
    let one = Digit {
        of: None,
        extent: 1,
        splits: SmallVec::new(),
    };
    digits.splice(0..0, std::iter::repeat_n(one, missing));
    let tiled = digits.split_off(digits.len() - tile.0.len());
    let mut remainders = Vec::with_capacity(tiled.len());
    for (digit, entry) in tiled.iter().zip(&tile.0) {
        let TileDim::Size(size) = *entry else {
            continue;
        };
        let (quotient, remainder) = digit.split(size);
        digits.push(quotient);
        remainders.push(remainder);
    }
    digits.extend(remainders);
    digits
}

/// The axis of one logical dimension from its digits with their strides.
fn axis(extent: u64, digits: &[(&Digit, u64)]) -> Result<Axis, LayoutError> {
    let (period, stride) = digits
        .iter()
        .find_map(|(d, stride)| d.period().map(|p| (p, *stride)))
        .unwrap_or((extent, 0));
    if period.min(extent) > MAX_TABLE {
        return Err(unsupported("tiles this large"));
    }
    let table: Vec<u64> = (0..period.min(extent))
        .map(|i| digits.iter().map(|(d, stride)| d.value(i) * stride).sum())
        .collect();
    Ok(Axis::new(extent, period, stride, &table))
}

/// Adds an axis, as part of the last one where both are linear and the last one steps over
/// exactly the whole new one.
fn push_merged(axes: &mut SmallVec<[Axis; 4]>, axis: Axis) {
    if let Some(last) = axes.last_mut()
        && let (Some(outer), Some(inner)) = (last.linear_stride(), axis.linear_stride())
        && outer == axis.extent * inner
    {
        *last = Axis::linear(last.extent * axis.extent, inner);
    } else {
        axes.push(axis);
    }
}
