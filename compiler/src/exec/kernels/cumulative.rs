//! Running sums and the like: a `reduce-window` whose windows reach back (or on) over a whole
//! dimension, computed in one pass instead of one pass for each element.

use super::reducer::Reducer;
use super::scalar_program::LANES;
use super::walk::{Axes, Walk, volume};
use super::{ArrayMut, ArrayRef, Run};

/// Folds along one dimension and keeps every intermediate result.
#[derive(Debug)]
pub(super) struct Cumulative {
    /// For one array and an associative operation.
    pub(super) reducer: Reducer,
    /// Size of the dimension, and its step in elements.
    pub(super) size: usize,
    pub(super) step: usize,
    /// Whether windows reach on to the end instead of back to the start.
    pub(super) from_end: bool,
    /// The other dimensions, with steps in elements.
    pub(super) others: Axes,
}

impl Run for Cumulative {
    fn scratch_bytes(&self) -> usize {
        self.reducer.register_bytes()
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]) {
        self.reducer.begin(scratch);
        let w = self.reducer.width(0);
        let total = volume(&self.others);
        let mut others = Walk::new(&self.others);
        let mut starts = [0; LANES];
        for done in (0..total).step_by(LANES) {
            let lanes = 0..LANES.min(total - done);
            let starts = &mut starts[..lanes.end];
            for start in &mut *starts {
                *start = others.position();
                others.advance();
            }
            self.reducer.set_all(scratch, 0, &lanes, operands[1].data);
            let mut buffer = [0; LANES * 16];
            let buffer = &mut buffer[..lanes.end * w];
            for i in 0..self.size {
                let i = if self.from_end { self.size - 1 - i } else { i };
                let place = |start: usize| (start + i * self.step) * w;
                for (element, &start) in buffer.chunks_exact_mut(w).zip(&*starts) {
                    element.copy_from_slice(&operands[0].data[place(start)..][..w]);
                }
                self.reducer.argument(scratch, 0, &lanes, buffer);
                self.reducer.step(scratch, &lanes);
                self.reducer.get(scratch, 0, &lanes, buffer);
                for (element, &start) in buffer.chunks_exact(w).zip(&*starts) {
                    results[0].data[place(start)..][..w].copy_from_slice(element);
                }
            }
        }
    }
}
