//! The matrix product that `dot` and `convolution` are built from.
//!
//! The right-hand matrix is repacked into panels of [`NR`] columns, so that the
//! inner loop reads it in order and keeps an [`MR`] by [`NR`] block of the
//! result in registers (Goto and van de Geijn, "Anatomy of high-performance
//! matrix multiplication", 2008).

use std::array;
use std::ops::{Add, Mul};

use slabplan_ir::ElementType;

use super::complex::Complex;
use super::real::Real;
use super::scalar::Scalar;

/// Columns of a panel.
const NR: usize = 8;
/// Rows of the block that is kept in registers.
const MR: usize = 4;
/// Rows of the left-hand matrix, and their length, that stay in the cache while all panels pass.
const ROWS: usize = 64;
const DEPTH: usize = 512;

/// A type products are accumulated in.
pub(super) trait Accumulator: Scalar {
    /// Nothing.
    const ZERO: Self;
    /// `self + x`.
    fn add(self, x: Self) -> Self;
    /// `self + x * y`.
    fn add_product(self, x: Self, y: Self) -> Self;
}

macro_rules! accumulator {
    ($($t:ty, $zero:expr, $add:expr, $multiply:expr;)*) => {$(
        impl Accumulator for $t {
            const ZERO: Self = $zero;
            #[inline]
            fn add(self, x: Self) -> Self {
                $add(self, x)
            }
            #[inline]
            fn add_product(self, x: Self, y: Self) -> Self {
                $add(self, $multiply(x, y))
            }
        }
    )*};
}
accumulator! {
    f32, 0.0, Add::add, Mul::mul;
    f64, 0.0, Add::add, Mul::mul;
    i32, 0, i32::wrapping_add, i32::wrapping_mul;
    i64, 0, i64::wrapping_add, i64::wrapping_mul;
}

impl<R: Real + Scalar> Accumulator for Complex<R> {
    const ZERO: Self = Complex::ZERO;
    #[inline]
    fn add(self, x: Self) -> Self {
        self + x
    }
    #[inline]
    fn add_product(self, x: Self, y: Self) -> Self {
        self + x * y
    }
}

/// The element type that products with results of type `ty` are accumulated in: `f32` for narrow
/// floats, and integers that wrap as the result does.
pub(super) fn accumulator_type(ty: ElementType) -> Option<ElementType> {
    use ElementType as E;
    Some(match ty {
        E::F64 | E::C64 | E::C128 => ty,
        _ if ty.is_float() => E::F32,
        _ if ty.is_integer() && ty.bits() <= 32 => E::S32,
        _ if ty.is_integer() => E::S64,
        _ => return None,
    })
}

/// `body` with `$t` bound to the Rust type of an accumulator type.
macro_rules! match_accumulator {
    ($ty:expr, $t:ident => $body:expr) => {{
        use slabplan_ir::ElementType as E;
        match $ty {
            E::F32 => {
                type $t = f32;
                $body
            }
            E::F64 => {
                type $t = f64;
                $body
            }
            E::S32 => {
                type $t = i32;
                $body
            }
            E::S64 => {
                type $t = i64;
                $body
            }
            E::C64 => {
                type $t = $crate::exec::kernels::complex::Complex<f32>;
                $body
            }
            E::C128 => {
                type $t = $crate::exec::kernels::complex::Complex<f64>;
                $body
            }
            other => unreachable!("{other} is no accumulator type"),
        }
    }};
}
pub(super) use match_accumulator;

/// A matrix repacked into panels: for each [`NR`] columns, the rows' entries side by side, the last
/// panel filled up with zeros.
#[derive(Clone, Copy, Debug)]
pub(super) struct Panels {
    /// Rows.
    pub(super) depth: usize,
    /// Columns.
    pub(super) columns: usize,
}

impl Panels {
    /// Elements the panels hold; `None` past `usize`.
    pub(super) fn elements(self) -> Option<usize> {
        self.columns
            .checked_next_multiple_of(NR)?
            .checked_mul(self.depth)
    }

    /// Packs a row-major matrix.
    pub(super) fn pack<T: Scalar>(self, matrix: &[u8], panels: &mut [u8]) {
        let row = NR * T::BYTES;
        let line = self.columns * T::BYTES;
        if self.depth == 0 || self.columns == 0 {
            return;
        }
        for (p, panel) in panels.chunks_exact_mut(self.depth * row).enumerate() {
            let first = p * row;
            let used = row.min(line - first);
            for (out, line) in panel.chunks_exact_mut(row).zip(matrix.chunks_exact(line)) {
                out[..used].copy_from_slice(&line[first..first + used]);
                out[used..].fill(0);
            }
        }
    }
}

/// Rows of the left-hand matrix.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'a> {
    /// Row-major elements.
    pub(super) data: &'a [u8],
    /// Elements from one row to the next.
    pub(super) stride: usize,
    /// Number of rows.
    pub(super) count: usize,
}

/// `c += a * b[from..from + depth, ..]`, where `a` has `depth` columns, `b` is in panels and `c` is
/// row-major with `b`'s columns.
pub(super) fn multiply_add<T: Accumulator>(
    a: Rows<'_>,
    depth: usize,
    panels: Panels,
    b: &[u8],
    from: usize,
    c: &mut [u8],
) {
    for first_row in (0..a.count).step_by(ROWS) {
        let last_row = a.count.min(first_row + ROWS);
        for start in (0..depth).step_by(DEPTH) {
            let length = DEPTH.min(depth - start);
            for column in (0..panels.columns).step_by(NR) {
                let at = column * panels.depth + (from + start) * NR;
                let panel = &b[at * T::BYTES..][..length * NR * T::BYTES];
                let mut row = first_row;
                while row + MR <= last_row {
                    block::<T, MR>(a, row, start, panel, panels.columns, column, c);
                    row += MR;
                }
                while row < last_row {
                    block::<T, 1>(a, row, start, panel, panels.columns, column, c);
                    row += 1;
                }
            }
        }
    }
}

/// Adds the product of `N` rows and one panel to the result.
#[inline]
fn block<T: Accumulator, const N: usize>(
    a: Rows<'_>,
    row: usize,
    start: usize,
    panel: &[u8],
    columns: usize,
    column: usize,
    c: &mut [u8],
) {
    let w = T::BYTES;
    let length = panel.len() / (NR * w);
    let rows: [&[u8]; N] =
        array::from_fn(|r| &a.data[((row + r) * a.stride + start) * w..][..length * w]);
    let mut sums = [[T::ZERO; NR]; N];
    for (k, line) in panel.chunks_exact(NR * w).enumerate() {
        let line: [T; NR] = array::from_fn(|j| T::load(&line[j * w..][..w]));
        for (sums, row) in sums.iter_mut().zip(rows) {
            let x = T::load(&row[k * w..][..w]);
            for (sum, y) in sums.iter_mut().zip(line) {
                *sum = sum.add_product(x, y);
            }
        }
    }
    for (r, sums) in sums.into_iter().enumerate() {
        let used = NR.min(columns - column);
        let out = &mut c[((row + r) * columns + column) * w..][..used * w];
        for (out, sum) in out.chunks_exact_mut(w).zip(sums) {
            T::load(out).add(sum).store(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn agrees_with_the_definition() {
        // Sizes around the block sizes; small integers, so that sums are exact.
        for (m, k, n) in [(1, 1, 1), (4, 8, 8), (5, 9, 17), (67, 515, 9), (3, 0, 4)] {
            let a: Vec<f32> = (0..m * k).map(|i| (i % 7) as f32 - 3.0).collect();
            let b: Vec<f32> = (0..k * n).map(|i| (i % 5) as f32 - 2.0).collect();
            let panels = Panels {
                depth: k,
                columns: n,
            };
            let mut packed = vec![1; panels.elements().unwrap() * 4];
            panels.pack::<f32>(&bytes(&b), &mut packed);
            let mut c = bytes(&vec![1.0; m * n]);
            let rows = Rows {
                data: &bytes(&a),
                stride: k,
                count: m,
            };
            multiply_add::<f32>(rows, k, panels, &packed, 0, &mut c);
            for i in 0..m {
                for j in 0..n {
                    let expected: f32 =
                        1.0 + (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum::<f32>();
                    assert_eq!(f32::load(&c[(i * n + j) * 4..][..4]), expected);
                }
            }
        }
    }
}
