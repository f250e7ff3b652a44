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
        let quotient = if b.re.abs() < b.im.abs() {
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
        };
        if quotient.re.is_nan() && quotient.im.is_nan() {
            self.div_at_the_edge(b).unwrap_or(quotient)
        } else {
            quotient
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

    /// Distance from zero; NaN if either part is, even beside an infinity (XLA's choice).
    pub(super) fn abs(self) -> R {
        if self.has_nan() {
            R::NAN
        } else {
            self.re.hypot(self.im)
        }
    }

    fn has_nan(self) -> bool {
        self.re.is_nan() || self.im.is_nan()
    }

    fn arg(self) -> R {
        self.im.atan2(self.re)
    }

    fn is_infinite(self) -> bool {
        self.re.abs() == R::INFINITY || self.im.abs() == R::INFINITY
    }

    fn is_finite(self) -> bool {
        self.re.is_finite() && self.im.is_finite()
    }

    /// What annex G of the C standard has for quotients by zero, of infinities and by them.
    fn div_at_the_edge(self, b: Self) -> Option<Self> {
        if b == Self::ZERO {
            Some(self.scale(R::INFINITY.copysign(b.re)))
        } else if self.is_infinite() && b.is_finite() {
            Some((self.direction() * b.conj()).scale(R::INFINITY))
        } else if self.is_finite() && b.is_infinite() {
            Some((self * b.direction().conj()).scale(R::ZERO))
        } else {
            None
        }
    }

    /// Where an infinite number lies: parts of length one where it is infinite, zero elsewhere.
    fn direction(self) -> Self {
        let part = |x: R| {
            let is_infinite = x.abs() == R::INFINITY;
            (if is_infinite { R::ONE } else { R::ZERO }).copysign(x)
        };
        Self::new(part(self.re), part(self.im))
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
        Self::new(r * self.im.cos(), r * self.im.sin())
    }

    /// Exponential minus one, exact near zero.
    pub(super) fn exp_m1(self) -> Self {
        if self.im == R::ZERO {
            return Self::new(self.re.exp_m1(), self.im);
        }
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
        if self.has_nan() {
            return Self::new(R::NAN, R::NAN);
        }
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
        if self.has_nan() {
            return Self::new(R::NAN, R::NAN);
        }
        if y.abs() == R::INFINITY {
            return Self::new(R::INFINITY, y);
        }
        if x.abs() == R::INFINITY {
            let other = R::ZERO.copysign(y);
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
        if self.is_infinite() {
            return self.direction().conj().scale(R::ZERO);
        }
        // A quarter of the root of sixteen times less, so that nothing overflows on the way.
        let sixteenth = R::from_f64(1.0 / 16.0);
        let large = R::ONE / sixteenth;
        if large < self.re.abs() || large < self.im.abs() {
            let quarter = R::from_f64(0.25);
            return (Self::ONE / self.scale(sixteenth).sqrt()).scale(quarter);
        }
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
        if self.im == R::ZERO {
            return Self::new(self.re.tanh(), self.im);
        }
        if !self.im.is_finite() {
            return if self.re.abs() == R::INFINITY {
                Self::real(R::ONE.copysign(self.re))
            } else {
                Self::new(R::NAN, R::NAN)
            };
        }
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
        if b == R::INFINITY {
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

    /// Power, with XLA's rules for a zero exponent and for a base of zero, one or infinity.
    pub(super) fn power(self, exponent: Self) -> Self {
        let Self { re: c, im: d } = exponent;
        if exponent == Self::ZERO || self == Self::ONE {
            return Self::ONE;
        }
        let is_real = d == R::ZERO;
        if is_real && self == Self::ZERO && R::ZERO < c {
            return Self::ZERO;
        }
        if is_real && self == Self::real(R::INFINITY) && !c.is_nan() {
            return Self::real(if R::ZERO < c { R::INFINITY } else { R::ZERO });
        }
        let (length, angle) = (self.abs(), self.arg());
        let factor = length.powf(c) * (-d * angle).exp();
        let turned = c * angle + d * length.ln();
        Self::new(factor * turned.cos(), factor * turned.sin())
    }
}
