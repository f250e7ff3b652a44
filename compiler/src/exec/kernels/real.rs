//! Functions of real numbers that arithmetic on every float type is built from.

use super::smooth;

/// `f32` or `f64` with the functions HLO's elementwise operations need.
///
/// Single-precision functions the standard library computes less exactly than
/// the last bit or two go through double precision.
pub(super) trait Real:
    Copy
    + PartialOrd
    + Send
    + Sync
    + 'static
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Rem<Output = Self>
    + std::ops::Neg<Output = Self>
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// A quiet NaN.
    const NAN: Self;
    /// Positive infinity.
    const INFINITY: Self;
    /// The nearest value.
    fn from_f64(x: f64) -> Self;
    /// The exact value.
    fn to_f64(self) -> f64;
    /// Absolute value.
    fn abs(self) -> Self;
    /// Inverse cosine.
    fn acos(self) -> Self;
    /// Inverse hyperbolic cosine.
    fn acosh(self) -> Self;
    /// Inverse sine.
    fn asin(self) -> Self;
    /// Inverse hyperbolic sine.
    fn asinh(self) -> Self;
    /// Angle of the point (`x`, `self`).
    fn atan2(self, x: Self) -> Self;
    /// Inverse hyperbolic tangent.
    fn atanh(self) -> Self;
    /// Cube root.
    fn cbrt(self) -> Self;
    /// Smallest integer not below.
    fn ceil(self) -> Self;
    /// Cosine.
    fn cos(self) -> Self;
    /// Hyperbolic cosine.
    fn cosh(self) -> Self;
    /// Error function.
    fn erf(self) -> Self;
    /// Exponential.
    fn exp(self) -> Self;
    /// Exponential minus one.
    fn exp_m1(self) -> Self;
    /// Largest integer not above.
    fn floor(self) -> Self;
    /// Whether neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// Natural logarithm of one plus the argument.
    fn ln_1p(self) -> Self;
    /// Length of the hypotenuse.
    fn hypot(self, other: Self) -> Self;
    /// Power.
    fn powf(self, exponent: Self) -> Self;
    /// Nearest integer, ties away from zero.
    fn round_afz(self) -> Self;
    /// Nearest integer, ties to even.
    fn round_even(self) -> Self;
    /// Sine.
    fn sin(self) -> Self;
    /// Hyperbolic sine.
    fn sinh(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Tangent.
    fn tan(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// `self` with the sign of `sign`.
    fn copysign(self, sign: Self) -> Self;

    /// The number whose bits are set in both.
    fn and_bits(self, other: Self) -> Self;
    /// The number whose bits are set in either.
    fn or_bits(self, other: Self) -> Self;

    /// A key that orders as IEEE 754's totalOrder does.
    fn total_order(self) -> i64;

    /// Whether not a number.
    #[inline]
    fn is_nan(self) -> bool {
        self.partial_cmp(&self).is_none()
    }

    /// One over the square root.
    #[inline]
    fn rsqrt(self) -> Self {
        Self::ONE / self.sqrt()
    }

    /// The logistic function.
    #[inline]
    fn logistic(self) -> Self {
        Self::ONE / (Self::ONE + (-self).exp())
    }

    /// -1, 1, or the argument where it is a zero or NaN.
    #[inline]
    fn sign(self) -> Self {
        if self == Self::ZERO || self.is_nan() {
            self
        } else {
            Self::ONE.copysign(self)
        }
    }

    /// IEEE 754-2019 maximum: NaN if either is, and 0 above -0.
    #[inline]
    fn max_nan(self, other: Self) -> Self {
        if self < other {
            other
        } else if other < self {
            self
        } else if self == other {
            // Equal numbers differ at most in the sign of zero.
            self.and_bits(other)
        } else {
            self + other
        }
    }

    /// IEEE 754-2019 minimum: NaN if either is, and -0 below 0.
    #[inline]
    fn min_nan(self, other: Self) -> Self {
        if self < other {
            self
        } else if other < self {
            other
        } else if self == other {
            self.or_bits(other)
        } else {
            self + other
        }
    }

    /// Power with XLA's rule that `1^x` and `x^0` are 1 whatever `x` is.
    #[inline]
    fn power(self, exponent: Self) -> Self {
        if self == Self::ONE || exponent == Self::ZERO {
            Self::ONE
        } else {
            self.powf(exponent)
        }
    }
}

macro_rules! real {
    ($t:ident, $($own:tt)*) => {
        impl Real for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NAN: Self = $t::NAN;
            const INFINITY: Self = $t::INFINITY;
            #[inline]
            fn from_f64(x: f64) -> Self { x as $t }
            #[inline]
            #[allow(clippy::useless_conversion, reason = "the other type needs it")]
            fn to_f64(self) -> f64 { f64::from(self) }
            #[inline]
            fn abs(self) -> Self { self.abs() }
            #[inline]
            fn acos(self) -> Self { self.acos() }
            #[inline]
            fn asin(self) -> Self { self.asin() }
            #[inline]
            fn atan2(self, x: Self) -> Self { self.atan2(x) }
            #[inline]
            fn cbrt(self) -> Self { self.cbrt() }
            #[inline]
            fn ceil(self) -> Self { self.ceil() }
            #[inline]
            fn cos(self) -> Self { self.cos() }
            #[inline]
            fn cosh(self) -> Self { self.cosh() }
            #[inline]
            fn exp_m1(self) -> Self { self.exp_m1() }
            #[inline]
            fn floor(self) -> Self { self.floor() }
            #[inline]
            fn is_finite(self) -> bool { self.is_finite() }
            #[inline]
            fn ln(self) -> Self { self.ln() }
            #[inline]
            fn ln_1p(self) -> Self { self.ln_1p() }
            #[inline]
            fn hypot(self, other: Self) -> Self { self.hypot(other) }
            #[inline]
            fn powf(self, exponent: Self) -> Self { self.powf(exponent) }
            #[inline]
            fn round_afz(self) -> Self { self.round() }
            #[inline]
            fn round_even(self) -> Self { self.round_ties_even() }
            #[inline]
            fn sin(self) -> Self { self.sin() }
            #[inline]
            fn sinh(self) -> Self { self.sinh() }
            #[inline]
            fn sqrt(self) -> Self { self.sqrt() }
            #[inline]
            fn tan(self) -> Self { self.tan() }
            #[inline]
            fn copysign(self, sign: Self) -> Self { self.copysign(sign) }
            #[inline]
            fn and_bits(self, other: Self) -> Self { $t::from_bits(self.to_bits() & other.to_bits()) }
            #[inline]
            fn or_bits(self, other: Self) -> Self { $t::from_bits(self.to_bits() | other.to_bits()) }
            $($own)*
        }
    };
}

real! { f32,
    #[inline]
    fn exp(self) -> Self { smooth::exp(self) }
    #[inline]
    fn tanh(self) -> Self { smooth::tanh(self) }
    fn acosh(self) -> Self { Real::acosh(f64::from(self)) as f32 }
    fn asinh(self) -> Self { f64::from(self).asinh() as f32 }
    fn atanh(self) -> Self { f64::from(self).atanh() as f32 }
    fn erf(self) -> Self { libm::erff(self) }
    fn total_order(self) -> i64 {
        let bits = self.to_bits() as i32;
        i64::from(if bits < 0 { bits ^ i32::MAX } else { bits })
    }
}

real! { f64,
    #[inline]
    fn exp(self) -> Self { self.exp() }
    #[inline]
    fn tanh(self) -> Self { self.tanh() }
    fn acosh(self) -> Self { self.acosh() }
    fn asinh(self) -> Self { self.asinh() }
    fn atanh(self) -> Self { self.atanh() }
    fn erf(self) -> Self { libm::erf(self) }
    fn total_order(self) -> i64 {
        let bits = self.to_bits() as i64;
        if bits < 0 { bits ^ i64::MAX } else { bits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_order_separates_zeros_and_nans() {
        let order = [
            -f32::NAN,
            f32::NEG_INFINITY,
            -1.0,
            -0.0,
            0.0,
            1.0,
            f32::INFINITY,
            f32::NAN,
        ];
        let keys: Vec<i64> = order.iter().map(|x| x.total_order()).collect();
        assert!(keys.windows(2).all(|w| w[0] < w[1]), "{keys:?}");
    }
}
