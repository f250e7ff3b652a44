//! Arithmetic that real and complex linear algebra share.

use super::complex::Complex;
use super::real::Real;
use super::scalar::Scalar;

/// A real or complex number.
pub(super) trait Field:
    Scalar
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
{
    /// The conjugate.
    fn conj(self) -> Self;
    /// The square root of the real part.
    fn real_sqrt(self) -> Self;
}

macro_rules! real_field {
    ($($t:ty)*) => {$(
        impl Field for $t {
            fn conj(self) -> Self {
                self
            }
            fn real_sqrt(self) -> Self {
                self.sqrt()
            }
        }
    )*};
}
real_field! { f32 f64 }

impl<R: Real + Scalar> Field for Complex<R> {
    fn conj(self) -> Self {
        Complex::conj(self)
    }
    fn real_sqrt(self) -> Self {
        Self::real(self.re.sqrt())
    }
}

/// Reads element `at` of an array.
pub(super) fn get<T: Field>(matrix: &[u8], at: usize) -> T {
    T::load(&matrix[at * T::BYTES..][..T::BYTES])
}

/// Writes element `at` of an array.
pub(super) fn set<T: Field>(matrix: &mut [u8], at: usize, value: T) {
    value.store(&mut matrix[at * T::BYTES..][..T::BYTES]);
}

/// `body` with `$t` bound to the Rust type of `f32`, `f64`, `c64` or `c128`; `$other` for the rest.
macro_rules! match_field {
    ($ty:expr, $t:ident => $body:expr, _ => $other:expr) => {{
        use slabplan_ir::ElementType as E;
        match $ty {
            E::C64 => {
                type $t = $crate::exec::kernels::complex::Complex<f32>;
                $body
            }
            E::C128 => {
                type $t = $crate::exec::kernels::complex::Complex<f64>;
                $body
            }
            real => {
                $crate::exec::kernels::scalar::match_real!(real, $t => $body, _ => $other)
            }
        }
    }};
}
pub(super) use match_field;
