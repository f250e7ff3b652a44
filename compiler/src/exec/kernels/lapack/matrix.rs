//! Matrices of complex doubles in borrowed bytes: what all routines work on.
//!
//! Real matrices are complex ones without imaginary parts: every routine keeps them so.

use slabplan_ir::ElementType;

use crate::exec::kernels::complex::Complex;
use crate::exec::kernels::scalar::{Scalar, width};

/// A number.
pub(super) type C = Complex<f64>;

/// Bytes of a number.
const BYTES: usize = C::BYTES;

/// Zero.
pub(super) const ZERO: C = C { re: 0.0, im: 0.0 };
/// One.
pub(super) const ONE: C = C { re: 1.0, im: 0.0 };

/// A real number.
pub(super) fn real(x: f64) -> C {
    C::new(x, 0.0)
}

/// `x * y`; real numbers stay real, beside infinities too.
pub(super) fn product(x: C, y: C) -> C {
    if x.im == 0.0 && y.im == 0.0 {
        real(x.re * y.re)
    } else {
        x * y
    }
}

/// `x / y`; real numbers stay real, by zero too.
pub(super) fn quotient(x: C, y: C) -> C {
    if x.im == 0.0 && y.im == 0.0 {
        real(x.re / y.re)
    } else {
        x / y
    }
}

/// Square of the distance from zero.
pub(super) fn square(x: C) -> f64 {
    x.re * x.re + x.im * x.im
}

/// Bytes to make matrices of.
#[derive(Debug)]
pub(super) struct Scratch<'a>(pub(super) &'a mut [u8]);

/// A matrix, row by row. A vector is one column.
#[derive(Debug)]
pub(super) struct Matrix<'a> {
    bytes: &'a mut [u8],
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl<'a> Matrix<'a> {
    /// Bytes that a matrix needs.
    pub(super) fn bytes(rows: usize, columns: usize) -> usize {
        rows * columns * BYTES
    }

    /// A matrix of zeros at the front of `scratch`, which shrinks by its bytes.
    pub(super) fn carve(scratch: &mut Scratch<'a>, rows: usize, columns: usize) -> Self {
        let all = std::mem::take(&mut scratch.0);
        let (bytes, rest) = all.split_at_mut(Self::bytes(rows, columns));
        scratch.0 = rest;
        bytes.fill(0);
        Self {
            bytes,
            rows,
            columns,
        }
    }

    /// Element in row `i` and column `j`.
    pub(super) fn at(&self, i: usize, j: usize) -> C {
        C::load(&self.bytes[(i * self.columns + j) * BYTES..][..BYTES])
    }

    /// Sets the element in row `i` and column `j`.
    pub(super) fn put(&mut self, i: usize, j: usize, value: C) {
        value.store(&mut self.bytes[(i * self.columns + j) * BYTES..][..BYTES]);
    }

    /// Sets everything to zero but the diagonal, which is one.
    pub(super) fn set_identity(&mut self) {
        self.bytes.fill(0);
        for i in 0..self.rows.min(self.columns) {
            self.put(i, i, ONE);
        }
    }

    /// Takes the values of a matrix of the same shape.
    pub(super) fn copy(&mut self, from: &Matrix<'_>) {
        self.bytes.copy_from_slice(from.bytes);
    }

    /// Rows `i` and `k` change places.
    pub(super) fn swap_rows(&mut self, i: usize, k: usize) {
        for j in 0..self.columns {
            let (x, y) = (self.at(i, j), self.at(k, j));
            self.put(i, j, y);
            self.put(k, j, x);
        }
    }

    /// Columns `j` and `k` change places.
    pub(super) fn swap_columns(&mut self, j: usize, k: usize) {
        for i in 0..self.rows {
            let (x, y) = (self.at(i, j), self.at(i, k));
            self.put(i, j, y);
            self.put(i, k, x);
        }
    }

    /// Columns `j` and `k` times the matrix `[[a, b], [c, d]]`.
    pub(super) fn rotate_columns(&mut self, j: usize, k: usize, [a, b, c, d]: [C; 4]) {
        for i in 0..self.rows {
            let (x, y) = (self.at(i, j), self.at(i, k));
            self.put(i, j, x * a + y * c);
            self.put(i, k, x * b + y * d);
        }
    }

    /// The matrix `[[a, b], [c, d]]` times rows `i` and `k`.
    pub(super) fn rotate_rows(&mut self, i: usize, k: usize, [a, b, c, d]: [C; 4]) {
        for j in 0..self.columns {
            let (x, y) = (self.at(i, j), self.at(k, j));
            self.put(i, j, a * x + b * y);
            self.put(k, j, c * x + d * y);
        }
    }

    /// Square root of the sum of squares of all elements.
    pub(super) fn norm(&self) -> f64 {
        let numbers = self.bytes.chunks_exact(BYTES);
        numbers.map(|b| square(C::load(b))).sum::<f64>().sqrt()
    }

    /// Reads an array of a type that [`is_supported`].
    pub(super) fn load(&mut self, ty: ElementType, data: &[u8]) {
        let numbers = self.bytes.chunks_exact_mut(BYTES);
        for (x, to) in data.chunks_exact(width(ty)).zip(numbers) {
            let value = match ty {
                ElementType::F32 => real(f32::load(x).into()),
                ElementType::F64 => real(f64::load(x)),
                ElementType::C64 => {
                    let c = Complex::<f32>::load(x);
                    C::new(c.re.into(), c.im.into())
                }
                ElementType::C128 => C::load(x),
                _ => real(i32::load(x).into()),
            };
            value.store(to);
        }
    }

    /// Reads the imaginary parts from an array of real numbers.
    pub(super) fn load_imaginary(&mut self, ty: ElementType, data: &[u8]) {
        let numbers = self.bytes.chunks_exact_mut(BYTES);
        for (x, to) in data.chunks_exact(width(ty)).zip(numbers) {
            let im = match ty {
                ElementType::F32 => f32::load(x).into(),
                _ => f64::load(x),
            };
            C::new(C::load(to).re, im).store(to);
        }
    }

    /// Writes the imaginary parts to an array of real numbers.
    pub(super) fn store_imaginary(&self, ty: ElementType, data: &mut [u8]) {
        let numbers = self.bytes.chunks_exact(BYTES).map(C::load);
        for (x, to) in numbers.zip(data.chunks_exact_mut(width(ty))) {
            match ty {
                ElementType::F32 => (x.im as f32).store(to),
                _ => x.im.store(to),
            }
        }
    }

    /// Writes an array of a type that [`is_supported`].
    pub(super) fn store(&self, ty: ElementType, data: &mut [u8]) {
        let numbers = self.bytes.chunks_exact(BYTES).map(C::load);
        for (x, to) in numbers.zip(data.chunks_exact_mut(width(ty))) {
            match ty {
                ElementType::F32 => (x.re as f32).store(to),
                ElementType::F64 => x.re.store(to),
                ElementType::C64 => Complex::new(x.re as f32, x.im as f32).store(to),
                ElementType::C128 => x.store(to),
                _ => (x.re as i32).store(to),
            }
        }
    }
}

/// Whether matrices are loaded and stored from arrays of this type.
pub(super) fn is_supported(ty: ElementType) -> bool {
    use ElementType as E;
    matches!(ty, E::F32 | E::F64 | E::C64 | E::C128 | E::S32)
}
