//! Matrix times vector: nothing is used twice, so nothing is packed.

use super::{Accumulator, Sink, Size, StridedLines};
use crate::exec::kernels::matmul::strided::position;

/// Whether [`multiply_vector`] can be used: one column, and entries side by side.
pub(in super::super) fn is_vector(size: Size, lhs: &super::Matrix, rhs: &super::Matrix) -> bool {
    let side_by_side = |m: &super::Matrix| matches!(m.depth[..], [(_, 1)]);
    size.columns == 1 && side_by_side(lhs) && side_by_side(rhs)
}

/// Multiplies rows `rows.0..rows.1` of `lhs` with the only column of `rhs`.
pub(in super::super) fn multiply_vector<T: Accumulator>(
    lhs: &StridedLines<'_>,
    rhs: &StridedLines<'_>,
    depth: usize,
    rows: (usize, usize),
    sink: &mut impl Sink,
) {
    T::dispatch(Vector::<T, _> {
        lhs,
        x: &rhs.data[..depth * T::BYTES],
        rows,
        sink,
        element: std::marker::PhantomData,
    });
}

struct Vector<'a, T, S> {
    lhs: &'a StridedLines<'a>,
    x: &'a [u8],
    rows: (usize, usize),
    sink: &'a mut S,
    element: std::marker::PhantomData<T>,
}

impl<T: Accumulator, S: Sink> pulp::WithSimd for Vector<'_, T, S> {
    type Output = ();

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must use the dispatched instructions")]
    fn with_simd<V: pulp::Simd>(self, simd: V) {
        for row in self.rows.0..self.rows.1 {
            let start = position(&self.lhs.matrix.lines, row) * T::BYTES;
            let line = &self.lhs.data[start..start + self.x.len()];
            let mut sum = [0; 16];
            let sum = &mut sum[..T::BYTES];
            T::line_product(simd, line, self.x).store(sum);
            self.sink.put::<T>(row - self.rows.0, 0, sum, true);
        }
    }
}
