//! Complex elements and the functions HLO defines on them.

use super::real::Real;
use super::scalar::Scalar;

/// A complex number, stored real part first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Complex<R> {
    /// Real part.
    pub(super) re: R,
    /// Imaginary part.
    pub(super) im: R,
}

impl<R: Scalar> Scalar for Complex<R> {
    const BYTES: usize = 2 * R::BYTES;
    #[inline]
    fn load(bytes: &[u8]) -> Self {
        let (re, im) = bytes.split_at(R::BYTES);
        Self {
            re: R::load(re),
            im: R::load(im),
        }
    }
    #[inline]
    fn store(self, bytes: &mut [u8]) {
        let (re, im) = bytes.split_at_mut(R::BYTES);
        self.re.store(re);
        self.im.store(im);
    }
}

impl<R: Real> std::ops::Add for Complex<R> {
    type Output = Self;
    #[inline]
    fn add(self, b: Self) -> Self {
        Self::new(self.re + b.re, self.im + b.im)
    }
}

impl<R: Real> std::ops::Sub for Complex<R> {
    type Output = Self;
    #[inline]
    fn sub(self, b: Self) -> Self {
        Self::new(self.re - b.re, self.im - b.im)
    }
}

impl<R: Real> std::ops::Mul for Complex<R> {
    type Output = Self;
    #[inline]
    fn mul(self, b: Self) -> Self {
        Self::new(
            self.re * b.re - self.im * b.im,
            self.re * b.im + self.im * b.re,
        )
    }
}

impl<R: Real> std::ops::Neg for Complex<R> {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self::new(-self.re, -self.im)
    }
}

impl<R: Real> std::ops::Div for Complex<R> {
    type Output = Self;
    /// Smith's method (1962): scaled by the larger part of the divisor, so that squares do not overflow.
    fn div(self, b: Self) -> Self {
        if b.re.abs() < b.im.abs() {
            let ratio = b.re / b.im;
            let scale = b.re * ratio + b.im;
            Self::new(
                (self.re * ratio + self.im) / scale,
                (self.im * ratio - self.re) / scale,
            )
        } else {
            let ratio = b.im / b.re;
            let scale = b.re + b.im * ratio;
            Self::new(
                (self.re + self.im * ratio) / scale,
                (self.im - self.re * ratio) / scale,
            )
        }
    }
}

impl<R: Real> Complex<R> {
    /// Zero.
    pub(super) const ZERO: Self = Self {
        re: R::ZERO,
        im: R::ZERO,
    };
    /// One.
    pub(super) const ONE: Self = Self {
        re: R::ONE,
        im: R::ZERO,
    };

    /// `re + i im`.
    #[inline]
    pub(super) fn new(re: R, im: R) -> Self {
        Self { re, im }
    }

    /// A real number.
    #[inline]
    pub(super) fn real(re: R) -> Self {
        Self { re, im: R::ZERO }
    }

    /// The conjugate.
    #[inline]
    pub(super) fn conj(self) -> Self {
        Self::new(self.re, -self.im)
    }

    /// `self * factor`, part by part.
    #[inline]
    pub(super) fn scale(self, factor: R) -> Self {
        Self::new(self.re * factor, self.im * factor)
    }

    /// Distance from zero.
    pub(super) fn abs(self) -> R {
        self.re.hypot(self.im)
    }

    fn arg(self) -> R {
        self.im.atan2(self.re)
    }

    fn half() -> R {
        R::from_f64(0.5)
    }

    /// Exponential.
    pub(super) fn exp(self) -> Self {
        let r = self.re.exp();
        if self.im == R::ZERO {
            return Self::new(r, self.im);
        }
        if r == R::ZERO {
            return Self::ZERO;
        }
        Self::new(r * self.im.cos(), r * self.im.sin())
    }

    /// Exponential minus one, exact near zero.
    pub(super) fn exp_m1(self) -> Self {
        // e^x cos y - 1 = (e^x - 1) cos y - 2 sin^2(y/2)
        let s = (self.im * Self::half()).sin();
        let two = R::ONE + R::ONE;
        Self::new(
            self.re.exp_m1() * self.im.cos() - two * s * s,
            self.re.exp() * self.im.sin(),
        )
    }

    /// Natural logarithm, imaginary part in [-pi, pi].
    pub(super) fn ln(self) -> Self {
        Self::new(self.abs().ln(), self.arg())
    }

    /// Natural logarithm of one plus the argument.
    pub(super) fn ln_1p(self) -> Self {
        // |1 + z|^2 - 1 = x (2 + x) + y^2
        let (x, y) = (self.re, self.im);
        let two = R::ONE + R::ONE;
        let squares = x * (two + x) + y * y;
        let re = if squares.is_finite() {
            Self::half() * squares.ln_1p()
        } else {
            (R::ONE + x).hypot(y).ln()
        };
        Self::new(re, y.atan2(R::ONE + x))
    }

    /// Square root with a non-negative real part.
    pub(super) fn sqrt(self) -> Self {
        let (x, y) = (self.re, self.im);
        if x == R::ZERO && y == R::ZERO {
            return Self::new(R::ZERO, y);
        }
        if y.abs() == R::INFINITY {
            return Self::new(R::INFINITY, y);
        }
        if x.is_nan() {
            return Self::new(R::NAN, R::NAN);
        }
        if x.abs() == R::INFINITY {
            let other = if y.is_nan() { y } else { R::ZERO.copysign(y) };
            return if R::ZERO < x {
                Self::new(x, other)
            } else {
                Self::new(other.abs(), R::INFINITY.copysign(y))
            };
        }
        let t = ((x.abs() + self.abs()) * Self::half()).sqrt();
        let u = y.abs() * Self::half() / t;
        if x < R::ZERO {
            Self::new(u, t.copysign(y))
        } else {
            Self::new(t, u.copysign(y))
        }
    }

    /// One over the square root.
    pub(super) fn rsqrt(self) -> Self {
        Self::ONE / self.sqrt()
    }

    /// Sine.
    pub(super) fn sin(self) -> Self {
        Self::new(
            self.re.sin() * self.im.cosh(),
            self.re.cos() * self.im.sinh(),
        )
    }

    /// Cosine.
    pub(super) fn cos(self) -> Self {
        Self::new(
            self.re.cos() * self.im.cosh(),
            -(self.re.sin() * self.im.sinh()),
        )
    }

    /// Hyperbolic sine.
    pub(super) fn sinh(self) -> Self {
        // sinh z = -i sin(i z)
        let s = Self::new(-self.im, self.re).sin();
        Self::new(s.im, -s.re)
    }

    /// Hyperbolic cosine.
    pub(super) fn cosh(self) -> Self {
        Self::new(-self.im, self.re).cos()
    }

    /// Hyperbolic tangent.
    pub(super) fn tanh(self) -> Self {
        // Beyond this |x| the real part is 1 to the last bit and cosh would overflow.
        if R::from_f64(20.0) < self.re.abs() {
            let decay = (-(self.re.abs() + self.re.abs())).exp();
            let four = R::from_f64(4.0);
            return Self::new(
                R::ONE.copysign(self.re),
                four * self.im.sin() * self.im.cos() * decay,
            );
        }
        let t = self.im.tan();
        let s = self.re.sinh();
        let c = self.re.cosh();
        // (sinh x cosh x (1 + t^2) + i t) / (1 + sinh^2 x (1 + t^2))
        let b = R::ONE + t * t;
        if !b.is_finite() {
            return Self::new(c / s, R::ZERO);
        }
        let d = R::ONE + b * s * s;
        Self::new(b * s * c / d, t / d)
    }

    /// Tangent.
    pub(super) fn tan(self) -> Self {
        // tan z = -i tanh(i z)
        let t = Self::new(-self.im, self.re).tanh();
        Self::new(t.im, -t.re)
    }

    /// The logistic function.
    pub(super) fn logistic(self) -> Self {
        Self::ONE / (Self::ONE + (-self).exp())
    }

    /// The number of length one in the same direction; zero stays zero.
    pub(super) fn sign(self) -> Self {
        let r = self.abs();
        if r == R::ZERO {
            Self::ZERO
        } else {
            Self::new(self.re / r, self.im / r)
        }
    }

    /// Power, with XLA's rules for a zero exponent and zero base.
    pub(super) fn power(self, exponent: Self) -> Self {
        if exponent == Self::ZERO || self == Self::ONE {
            return Self::ONE;
        }
        if self == Self::ZERO {
            return if R::ZERO < exponent.re {
                Self::ZERO
            } else {
                Self::new(R::NAN, R::NAN)
            };
        }
        (exponent * self.ln()).exp()
    }
}
