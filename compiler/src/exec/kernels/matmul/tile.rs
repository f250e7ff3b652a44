//! The innermost loop: a few rows times one line of columns, kept in registers.

use std::array;
use std::ops::{Add, Mul};

use bytemuck::{cast_slice, pod_read_unaligned};
use pulp::Simd;

use super::super::complex::Complex;
use super::super::real::Real;
use super::super::scalar::Scalar;

/// Most rows of a tile.
pub(super) const ROWS: usize = 12;
/// Bytes of one row of a tile.
pub(super) const LINE: usize = 128;
/// Rows and columns computed at a time where there are few registers.
const FEW: usize = 4;
/// Registers of sums that a product of two lines is kept in.
const SUMS: usize = 4;
const FEW_COLUMNS: usize = 8;

/// A tile of sums, row by row.
#[repr(C, align(64))]
pub(in super::super) struct Sums(pub(super) [u8; ROWS * LINE]);

impl Default for Sums {
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "part of the innermost loop")]
    fn default() -> Self {
        Self([0; ROWS * LINE])
    }
}

/// A type products are accumulated in.
pub(in super::super) trait Accumulator: Scalar {
    /// Nothing.
    const ZERO: Self;
    /// What the address of elements must be a multiple of for [`tile`](Self::tile) to read them.
    const ALIGNMENT: usize = 1;
    /// `self + x`.
    fn add(self, x: Self) -> Self;
    /// `self + x * y`.
    fn add_product(self, x: Self, y: Self) -> Self;

    /// Runs `op` with the vector instructions that [`tile`](Self::tile) makes use of.
    fn dispatch<Op: pulp::WithSimd>(op: Op) -> Op::Output {
        op.with_simd(pulp::Scalar)
    }

    /// The sum of the products of two lines of one length, at any alignment.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must use the dispatched instructions")]
    fn line_product<S: Simd>(_: S, x: &[u8], y: &[u8]) -> Self {
        product(x, y)
    }

    /// The products of `R` rows, entry by entry side by side in `a`, with the columns of one line,
    /// whose entries lie `step` elements apart in `b`.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must use the dispatched instructions")]
    fn tile<S: Simd, const R: usize>(_: S, a: &[u8], b: &[u8], step: usize, sums: &mut Sums) {
        let columns = LINE / Self::BYTES;
        for column in (0..columns).step_by(FEW_COLUMNS) {
            for row in 0..R {
                let mut line = [Self::ZERO; FEW_COLUMNS];
                let lines = b.chunks(step * Self::BYTES);
                for (a, b) in a.chunks_exact(R * Self::BYTES).zip(lines) {
                    let x = Self::load(&a[row * Self::BYTES..][..Self::BYTES]);
                    let b = &b[column * Self::BYTES..][..FEW_COLUMNS * Self::BYTES];
                    let b: [Self; FEW_COLUMNS] =
                        array::from_fn(|j| Self::load(&b[j * Self::BYTES..][..Self::BYTES]));
                    for (sum, y) in line.iter_mut().zip(b) {
                        *sum = sum.add_product(x, y);
                    }
                }
                let at = row * LINE + column * Self::BYTES;
                let out = sums.0[at..].chunks_exact_mut(Self::BYTES);
                for (sum, out) in line.into_iter().zip(out) {
                    sum.store(out);
                }
            }
        }
    }
}

/// The sum of the products of two lines, in their order.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must use the dispatched instructions")]
fn product<T: Accumulator>(x: &[u8], y: &[u8]) -> T {
    let pairs = x.chunks_exact(T::BYTES).zip(y.chunks_exact(T::BYTES));
    pairs.fold(T::ZERO, |sum, (x, y)| {
        sum.add_product(T::load(x), T::load(y))
    })
}

macro_rules! real_tile {
    ($t:ty, $vector:ident, $lanes:ident, $splat:ident, $mul_add:ident, $add:ident, $reduce:ident) => {
        const ALIGNMENT: usize = align_of::<$t>();

        fn dispatch<Op: pulp::WithSimd>(op: Op) -> Op::Output {
            pulp::Arch::new().dispatch(op)
        }

        #[inline(always)]
        #[allow(clippy::inline_always, reason = "must use the dispatched instructions")]
        fn line_product<S: Simd>(simd: S, x: &[u8], y: &[u8]) -> Self {
            let register = size_of::<S::$vector>();
            let add_product = |sum, x: &[u8], y: &[u8]| {
                let (x, y) = (pod_read_unaligned(x), pod_read_unaligned(y));
                simd.$mul_add(x, y, sum)
            };
            let mut sums = [simd.$splat(0.0); SUMS];
            let blocks = x.len() / (SUMS * register) * (SUMS * register);
            let ((xs, x), (ys, y)) = (x.split_at(blocks), y.split_at(blocks));
            let blocks = xs.chunks_exact(SUMS * register);
            for (x, y) in blocks.zip(ys.chunks_exact(SUMS * register)) {
                let registers = x.chunks_exact(register).zip(y.chunks_exact(register));
                for (sum, (x, y)) in sums.iter_mut().zip(registers) {
                    *sum = add_product(*sum, x, y);
                }
            }
            let whole = x.len() / register * register;
            let ((xs, x), (ys, y)) = (x.split_at(whole), y.split_at(whole));
            let registers = xs.chunks_exact(register).zip(ys.chunks_exact(register));
            for (sum, (x, y)) in sums.iter_mut().zip(registers) {
                *sum = add_product(*sum, x, y);
            }
            let [a, b, c, d] = sums;
            let sum = simd.$reduce(simd.$add(simd.$add(a, b), simd.$add(c, d)));
            sum + product::<$t>(x, y)
        }

        #[inline(always)]
        #[allow(clippy::inline_always, reason = "must use the dispatched instructions")]
        fn tile<S: Simd, const R: usize>(
            simd: S,
            a: &[u8],
            b: &[u8],
            step: usize,
            sums: &mut Sums,
        ) {
            /// `Q` of the `R` rows, from `row` on, times two registers of columns.
            #[inline(always)]
            fn part<S: Simd, const R: usize, const Q: usize>(
                simd: S,
                a: &[$t],
                b: &[$t],
                step: usize,
                (row, column): (usize, usize),
                sums: &mut [$t],
            ) {
                let mut parts = [[simd.$splat(0.0); 2]; Q];
                for (a, b) in a.chunks_exact(R).zip(b.chunks(step)) {
                    let line: &[S::$vector] = cast_slice(&b[column..column + 2 * S::$lanes]);
                    let (first, second) = (line[0], line[1]);
                    for (sums, &x) in parts.iter_mut().zip(&a[row..row + Q]) {
                        let x = simd.$splat(x);
                        sums[0] = simd.$mul_add(x, first, sums[0]);
                        sums[1] = simd.$mul_add(x, second, sums[1]);
                    }
                }
                let line = LINE / size_of::<$t>();
                for (i, parts) in parts.iter().enumerate() {
                    sums[(row + i) * line + column..][..2 * S::$lanes]
                        .copy_from_slice(cast_slice(parts));
                }
            }
            let (a, b) = (cast_slice(a), cast_slice(b));
            let sums: &mut [$t] = bytemuck::cast_slice_mut(&mut sums.0);
            for column in (0..LINE / size_of::<$t>()).step_by(2 * S::$lanes) {
                if S::REGISTER_COUNT >= 32 || R < FEW {
                    part::<S, R, R>(simd, a, b, step, (0, column), sums);
                } else {
                    for row in (0..R).step_by(FEW) {
                        part::<S, R, FEW>(simd, a, b, step, (row, column), sums);
                    }
                }
            }
        }
    };
}

macro_rules! accumulator {
    ($($t:ty, $zero:expr, $add:expr, $multiply:expr, { $($tile:tt)* };)*) => {$(
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
            $($tile)*
        }
    )*};
}
accumulator! {
    f32, 0.0, Add::add, Mul::mul, { real_tile! { f32, f32s, F32_LANES, splat_f32s, mul_add_e_f32s, add_f32s, reduce_sum_f32s } };
    f64, 0.0, Add::add, Mul::mul, { real_tile! { f64, f64s, F64_LANES, splat_f64s, mul_add_e_f64s, add_f64s, reduce_sum_f64s } };
    i32, 0, i32::wrapping_add, i32::wrapping_mul, {};
    i64, 0, i64::wrapping_add, i64::wrapping_mul, {};
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
