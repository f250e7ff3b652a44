//! Matrix times vector: nothing is used twice, so nothing is packed.

use super::super::scalar::Scalar;
use super::{Accumulator, Sink, Size, StridedLines};
use crate::exec::kernels::matmul::strided::position;

/// Sums kept side by side.
const LANES: usize = 32;

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
    fn with_simd<V: pulp::Simd>(self, _: V) {
        for row in self.rows.0..self.rows.1 {
            let start = position(&self.lhs.matrix.lines, row) * T::BYTES;
            let line = &self.lhs.data[start..start + self.x.len()];
            let mut sum = [0; 16];
            let sum = &mut sum[..T::BYTES];
            product::<T>(line, self.x).store(sum);
            self.sink.put::<T>(row - self.rows.0, 0, sum, true);
        }
    }
}

/// The sum of the products: lane by lane, then the lanes in halves.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must use the dispatched instructions")]
fn product<T: Accumulator>(x: &[u8], y: &[u8]) -> T {
    let mut sums = [T::ZERO; LANES];
    let block = LANES * T::BYTES;
    let (xs, ys) = (x.chunks_exact(block), y.chunks_exact(block));
    let (x_rest, y_rest) = (xs.remainder(), ys.remainder());
    for (x, y) in xs.zip(ys) {
        add_products(&mut sums, x, y);
    }
    add_products(&mut sums, x_rest, y_rest);
    let mut lanes = LANES / 2;
    while lanes > 0 {
        for i in 0..lanes {
            sums[i] = sums[i].add(sums[i + lanes]);
        }
        lanes /= 2;
    }
    sums[0]
}

#[inline(always)]
#[allow(clippy::inline_always, reason = "must use the dispatched instructions")]
fn add_products<T: Scalar + Accumulator>(sums: &mut [T; LANES], x: &[u8], y: &[u8]) {
    let pairs = x.chunks_exact(T::BYTES).zip(y.chunks_exact(T::BYTES));
    for (sum, (x, y)) in sums.iter_mut().zip(pairs) {
        *sum = sum.add_product(T::load(x), T::load(y));
    }
}
