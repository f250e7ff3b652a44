//! The discrete Fourier transform of one line of any length.

use std::f64::consts::PI;

use super::complex::Complex;
use super::field::{get, set};
use super::scalar::Scalar;

type C = Complex<f64>;

/// Bytes of an element in the transform's memory.
pub(super) const ELEMENT: usize = C::BYTES;

/// A transform of lines of one length, in double precision.
///
/// Powers of two go through the iterative radix-2 algorithm (Cooley and Tukey, 1965), other lengths
/// through a convolution of a power-of-two length (Bluestein, 1970): O(n log n) for every length.
#[derive(Debug)]
pub(super) struct Line {
    n: usize,
    radix2: Radix2,
    /// `exp(-i pi k^2 / n)` and the transform of its conjugate, if `n` is no power of two.
    chirp: Option<(Vec<C>, Vec<C>)>,
}

impl Line {
    /// For lines of `n` elements, `n` at least 1.
    pub(super) fn new(n: usize) -> Self {
        if n.is_power_of_two() {
            return Self {
                n,
                radix2: Radix2::new(n),
                chirp: None,
            };
        }
        let m = (2 * n - 1).next_power_of_two();
        let radix2 = Radix2::new(m);
        // k^2 modulo 2n keeps the angle exact for large k.
        let chirp: Vec<C> = (0..n as u128)
            .map(|k| unit(-PI * (k * k % (2 * n as u128)) as f64 / n as f64))
            .collect();
        let mut memory = vec![0; m * ELEMENT];
        for (k, c) in chirp.iter().enumerate() {
            set(&mut memory, k, c.conj());
            set(&mut memory, (m - k) % m, c.conj());
        }
        radix2.run(&mut memory);
        let transformed = (0..m).map(|k| get(&memory, k)).collect();
        Self {
            n,
            radix2,
            chirp: Some((chirp, transformed)),
        }
    }

    /// Bytes of scratch [`run`](Self::run) needs.
    pub(super) fn scratch_bytes(&self) -> usize {
        if self.chirp.is_some() {
            self.radix2.n * ELEMENT
        } else {
            0
        }
    }

    /// Transforms a line in place; `inverse` conjugates the roots and divides by the length.
    pub(super) fn run(&self, line: &mut [u8], inverse: bool, scratch: &mut [u8]) {
        if inverse {
            self.conjugate(line, 1.0);
        }
        match &self.chirp {
            None => self.radix2.run(line),
            Some((chirp, transformed)) => self.convolve(line, chirp, transformed, scratch),
        }
        if inverse {
            self.conjugate(line, 1.0 / self.n as f64);
        }
    }

    fn conjugate(&self, line: &mut [u8], scale: f64) {
        for k in 0..self.n {
            let x: C = get(line, k);
            set(line, k, x.conj().scale(scale));
        }
    }

    fn convolve(&self, line: &mut [u8], chirp: &[C], transformed: &[C], scratch: &mut [u8]) {
        let m = self.radix2.n;
        let memory = &mut scratch[..m * ELEMENT];
        memory.fill(0);
        for (k, &c) in chirp.iter().enumerate() {
            let x: C = get(line, k);
            set(memory, k, x * c);
        }
        self.radix2.run(memory);
        // The inverse transform is the conjugate of the transform of the conjugate.
        for (k, &t) in transformed.iter().enumerate() {
            let x: C = get(memory, k);
            set(memory, k, (x * t).conj());
        }
        self.radix2.run(memory);
        for (k, &c) in chirp.iter().enumerate() {
            let x: C = get(memory, k);
            set(line, k, x.conj().scale(1.0 / m as f64) * c);
        }
    }
}

/// A transform of a power-of-two length.
#[derive(Debug)]
struct Radix2 {
    n: usize,
    /// `exp(-2 pi i k / n)` for `k` below `n / 2`.
    roots: Vec<C>,
}

impl Radix2 {
    fn new(n: usize) -> Self {
        let roots = (0..n / 2)
            .map(|k| unit(-2.0 * PI * k as f64 / n as f64))
            .collect();
        Self { n, roots }
    }

    fn run(&self, line: &mut [u8]) {
        let n = self.n;
        if n < 2 {
            return;
        }
        for i in 0..n {
            let j = i.reverse_bits() >> (usize::BITS - n.trailing_zeros());
            if i < j {
                let (x, y): (C, C) = (get(line, i), get(line, j));
                set(line, i, y);
                set(line, j, x);
            }
        }
        let mut half = 1;
        while half < n {
            for start in (0..n).step_by(2 * half) {
                for k in 0..half {
                    let x: C = get(line, start + k);
                    let y = get::<C>(line, start + k + half) * self.roots[k * (n / (2 * half))];
                    set(line, start + k, x + y);
                    set(line, start + k + half, x - y);
                }
            }
            half *= 2;
        }
    }
}

fn unit(angle: f64) -> C {
    Complex::new(angle.cos(), angle.sin())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_definition() {
        for n in [1usize, 2, 3, 8, 15, 17, 64] {
            let x: Vec<C> = (0..n)
                .map(|k| Complex::new((k % 5) as f64, (k % 3) as f64 - 1.0))
                .collect();
            let line = Line::new(n);
            let mut memory = vec![0; n * ELEMENT];
            for (k, &v) in x.iter().enumerate() {
                set(&mut memory, k, v);
            }
            let mut scratch = vec![0; line.scratch_bytes()];
            line.run(&mut memory, false, &mut scratch);
            for k in 0..n {
                let expected = (0..n).fold(C::ZERO, |sum, j| {
                    sum + x[j] * unit(-2.0 * PI * (j * k % n) as f64 / n as f64)
                });
                let found: C = get(&memory, k);
                assert!(
                    (found - expected).abs() < 1e-11,
                    "{n} {k} {found:?} {expected:?}"
                );
            }
            line.run(&mut memory, true, &mut scratch);
            for (k, &v) in x.iter().enumerate() {
                assert!((get::<C>(&memory, k) - v).abs() < 1e-12);
            }
        }
    }
}
