//! What the places of a convolution's output meet under their windows, as lines of a matrix.

use smallvec::SmallVec;

use super::convolution::MAX_SPATIAL;
use super::matmul::{Accumulator, Lines, copy_line};
use super::window::Axis;

/// How places of the output, window elements and input features become places of the input.
#[derive(Debug)]
pub(super) struct Patches {
    pub(super) spatial: SmallVec<[Spatial; 3]>,
    /// The dimensions that places are counted along, outermost first: the size, and which spatial
    /// dimension it is; the batch if none.
    pub(super) places: SmallVec<[(usize, Option<usize>); 4]>,
    /// Steps in elements of the input.
    pub(super) batch_step: usize,
    pub(super) feature_step: usize,
    /// Input features of one group.
    pub(super) features: usize,
}

/// One spatial dimension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spatial {
    pub(super) axis: Axis,
    /// Elements of the input from one index to the next.
    pub(super) step: usize,
    /// Whether the window is turned round.
    pub(super) reversed: bool,
}

impl Patches {
    /// The patches of an input of the accumulator's type.
    pub(super) fn of<'a>(&'a self, input: &'a [u8]) -> InputPatches<'a> {
        InputPatches {
            patches: self,
            input,
        }
    }

    /// Splits the number of a place.
    fn place(&self, index: usize) -> Place {
        let mut place = Place::default();
        let mut rest = index;
        for &(size, spatial) in self.places.iter().rev() {
            let i = rest % size;
            rest /= size;
            match spatial {
                Some(s) => place.spatial[s] = i,
                None => place.batch = i * self.batch_step,
            }
        }
        place
    }

    /// Splits the number of a window element.
    fn window_element(&self, tap: usize) -> [usize; MAX_SPATIAL] {
        let mut element = [0; MAX_SPATIAL];
        let mut rest = tap;
        for (k, s) in element.iter_mut().zip(&self.spatial).rev() {
            let i = rest % s.axis.window;
            rest /= s.axis.window;
            *k = if s.reversed { s.axis.window - 1 - i } else { i };
        }
        element
    }

    /// The input element (of feature 0) that a window element meets at a place.
    #[inline]
    fn meets(&self, place: &Place, element: &[usize; MAX_SPATIAL]) -> Option<usize> {
        let mut position = place.batch;
        for ((s, &at), &k) in self.spatial.iter().zip(&place.spatial).zip(element) {
            position += s.axis.meets(at, k)? * s.step;
        }
        Some(position)
    }
}

/// A place of the output: its index along the spatial dimensions, and where its batch starts.
#[derive(Clone, Copy, Default)]
struct Place {
    spatial: [usize; MAX_SPATIAL],
    batch: usize,
}

/// [`Patches`] of one input.
pub(super) struct InputPatches<'a> {
    patches: &'a Patches,
    input: &'a [u8],
}

/// Most places of a panel.
const WIDTH: usize = 16;

impl Lines for InputPatches<'_> {
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
        let mut places = [Place::default(); WIDTH];
        let places = &mut places[..count];
        for (i, place) in places.iter_mut().enumerate() {
            *place = self.patches.place(first + i);
        }
        let features = self.patches.features;
        let mut used = (0, 0);
        let mut at = depth.0;
        while at < depth.1 {
            let (tap, feature) = (at / features, at % features);
            let length = (features - feature).min(depth.1 - at);
            let element = self.patches.window_element(tap);
            let mut met = [None; WIDTH];
            let met = &mut met[..count];
            for (met, place) in met.iter_mut().zip(&*places) {
                *met = self.patches.meets(place, &element);
            }
            let start = at - depth.0;
            at += length;
            if met.iter().all(Option::is_none) {
                continue;
            }
            let bytes = |entries: (usize, usize)| {
                entries.0 * width * T::BYTES..entries.1 * width * T::BYTES
            };
            if used.0 == used.1 {
                used.0 = start;
            } else {
                panel[bytes((used.1, start))].fill(0);
            }
            used.1 = start + length;
            self.copy::<T>(met, feature, width, &mut panel[bytes((start, used.1))]);
        }
        used
    }
}

impl InputPatches<'_> {
    /// Copies features from `feature` on of the elements met.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must use the dispatched instructions")]
    fn copy<T: Accumulator>(
        &self,
        met: &[Option<usize>],
        feature: usize,
        width: usize,
        panel: &mut [u8],
    ) {
        let step = self.patches.feature_step;
        let row = width * T::BYTES;
        let side_by_side = met.len() == width
            && met[0].is_some_and(|first| {
                let mut all = met.iter().enumerate();
                all.all(|(i, &m)| m == Some(first + i))
            });
        if side_by_side {
            let start = met[0].unwrap_or(0) + feature * step;
            for (f, out) in panel.chunks_exact_mut(row).enumerate() {
                copy_line(&self.input[(start + f * step) * T::BYTES..][..row], out);
            }
            return;
        }
        for (i, met) in met.iter().enumerate() {
            let Some(from) = met else {
                for out in panel.chunks_exact_mut(row) {
                    out[i * T::BYTES..][..T::BYTES].fill(0);
                }
                continue;
            };
            let line = &self.input[(from + feature * step) * T::BYTES..];
            if step == 1 {
                let line = line.chunks_exact(T::BYTES);
                for (out, x) in panel.chunks_exact_mut(row).zip(line) {
                    out[i * T::BYTES..][..T::BYTES].copy_from_slice(x);
                }
            } else {
                for (f, out) in panel.chunks_exact_mut(row).enumerate() {
                    let x = &line[f * step * T::BYTES..][..T::BYTES];
                    out[i * T::BYTES..][..T::BYTES].copy_from_slice(x);
                }
            }
        }
    }
}
