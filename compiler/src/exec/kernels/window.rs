//! Windows sliding over arrays: which element of the base a window position meets.

use slabplan_ir::attr::WindowDim;

use super::KernelError;
use super::prepare::{Dims, Prepare};

/// One dimension of a window over a base.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    /// Elements of the window.
    pub(super) window: usize,
    /// Elements of the base.
    pub(super) base: usize,
    stride: i64,
    pad_low: i64,
    base_dilation: i64,
    window_dilation: i64,
}

impl Axis {
    /// The base element that element `k` of the window at `place` meets, unless that is padding
    /// or a gap between dilated elements.
    #[inline]
    pub(super) fn meets(&self, place: usize, k: usize) -> Option<usize> {
        let at = place as i64 * self.stride + k as i64 * self.window_dilation - self.pad_low;
        let at = if self.base_dilation == 1 {
            at
        } else if at % self.base_dilation == 0 {
            at / self.base_dilation
        } else {
            return None;
        };
        (0 <= at && at < self.base as i64).then_some(at as usize)
    }

    /// Whether each place meets the base element of its own number and no other.
    pub(super) fn is_identity(&self) -> bool {
        self.window == 1 && self.pad_low == 0 && self.stride == 1 && self.base_dilation == 1
    }

    /// Whether each place meets its own base element and all before it (`Some(false)`), or all
    /// after it (`Some(true)`).
    pub(super) fn cumulates_from_end(&self) -> Option<bool> {
        let reach = self.window as i64 - 1;
        let whole = self.stride == 1
            && self.base_dilation == 1
            && self.window_dilation == 1
            && self.window >= self.base;
        match self.pad_low {
            _ if !whole => None,
            0 => Some(true),
            low if low == reach => Some(false),
            _ => None,
        }
    }

    /// How far apart in the base neighbouring places are, where that is the same for all of them.
    pub(super) fn even_step(&self) -> Option<usize> {
        (self.base_dilation == 1).then_some(self.stride as usize)
    }
}

/// The windows of `p`'s instruction over a base of `base` elements at `places` places each.
pub(super) fn axes(
    p: &Prepare<'_>,
    windows: &[WindowDim],
    base: &Dims,
    places: &Dims,
) -> Result<Vec<Axis>, KernelError> {
    p.require(
        windows.len() == base.len() && places.len() == base.len(),
        "the window does not match the operand",
    )?;
    windows
        .iter()
        .zip(base.iter().zip(places))
        .map(|(w, (&base, &places))| {
            let positive = [w.size, w.stride, w.base_dilation, w.window_dilation];
            p.require(
                positive.iter().all(|&n| 1 <= n),
                "the window has a size, stride or dilation below 1",
            )?;
            // All positions must fit i64, and the result must be as large as the window makes it.
            let span = |n: i64, step: i64| {
                if n == 0 {
                    0
                } else {
                    (i128::from(n) - 1) * i128::from(step) + 1
                }
            };
            let padded =
                span(base as i64, w.base_dilation) + i128::from(w.pad_low) + i128::from(w.pad_high);
            let window = span(w.size, w.window_dilation);
            let expected = if padded < window {
                0
            } else {
                (padded - window) / i128::from(w.stride) + 1
            };
            let reach =
                places as i128 * i128::from(w.stride) + window + i128::from(w.pad_low).abs();
            p.require(
                expected == places as i128 && reach < i128::from(i64::MAX),
                "the result's size does not match the window",
            )?;
            Ok(Axis {
                window: w.size as usize,
                base,
                stride: w.stride,
                pad_low: w.pad_low,
                base_dilation: w.base_dilation,
                window_dilation: w.window_dilation,
            })
        })
        .collect()
}
