//! Elementwise operations of one operand.

use slabplan_ir::{ElementType, Opcode};

use super::complex::Complex;
use super::lanes::{Loop1, map1, vector1};
use super::real::Real;
use super::scalar::{Int, Scalar, match_complex, match_int, match_real};

/// The loop of `opcode` on elements of type `ty`, if HLO defines it there.
///
/// `abs`, `real` and `imag` of a complex type yield its real type,
/// `is-finite` yields `pred`; the others yield `ty`.
pub(super) fn unary(opcode: Opcode, ty: ElementType) -> Option<Loop1> {
    if ty == ElementType::Pred {
        return pred(opcode);
    }
    match_real!(ty, T => real::<T>(opcode), _ =>
        match_int!(ty, T => int::<T>(opcode), _ =>
            match_complex!(ty, T => <T as ComplexOps>::complex(opcode), _ => None)))
}

fn pred(opcode: Opcode) -> Option<Loop1> {
    match opcode {
        Opcode::Not => Some(|x, out| map1::<bool, bool>(x, out, |x| !x)),
        _ => None,
    }
}

fn real<T: Real + Scalar>(opcode: Opcode) -> Option<Loop1> {
    macro_rules! f {
        (|$x:ident| $value:expr) => {
            |x, out| map1::<T, T>(x, out, |$x| $value)
        };
    }
    macro_rules! v {
        (|$x:ident| $value:expr) => {
            |x, out| vector1::<T, T>(x, out, |$x| $value)
        };
    }
    use Opcode as O;
    Some(match opcode {
        O::Abs => v!(|x| x.abs()),
        O::Acos => f!(|x| x.acos()),
        O::Acosh => f!(|x| x.acosh()),
        O::Asin => f!(|x| x.asin()),
        O::Asinh => f!(|x| x.asinh()),
        O::Atanh => f!(|x| x.atanh()),
        O::Cbrt => f!(|x| x.cbrt()),
        O::Ceil => v!(|x| x.ceil()),
        O::Cos => f!(|x| x.cos()),
        O::Cosh => f!(|x| x.cosh()),
        O::Erf => f!(|x| x.erf()),
        O::Exp => v!(|x| x.exp()),
        O::Expm1 => f!(|x| x.exp_m1()),
        O::Floor => v!(|x| x.floor()),
        O::IsFinite => |x, out| map1::<T, bool>(x, out, T::is_finite),
        O::Log => f!(|x| x.ln()),
        O::Log1p => f!(|x| x.ln_1p()),
        O::Logistic => v!(|x| x.logistic()),
        O::Negate => v!(|x| -x),
        O::Real => |x, out| out.copy_from_slice(x),
        O::Imag => |_, out| out.fill(0),
        O::RoundNearestAfz => f!(|x| x.round_afz()),
        O::RoundNearestEven => v!(|x| x.round_even()),
        O::Rsqrt => v!(|x| x.rsqrt()),
        O::Sign => f!(|x| x.sign()),
        O::Sin => f!(|x| x.sin()),
        O::Sinh => f!(|x| x.sinh()),
        O::Sqrt => v!(|x| x.sqrt()),
        O::Tan => f!(|x| x.tan()),
        O::Tanh => v!(|x| x.tanh()),
        _ => return None,
    })
}

fn int<T: Int>(opcode: Opcode) -> Option<Loop1> {
    macro_rules! f {
        (|$x:ident| $value:expr) => {
            |x, out| {
                map1::<T, T>(x, out, |x| {
                    let $x = x.wide();
                    T::wrap($value)
                })
            }
        };
    }
    use Opcode as O;
    Some(match opcode {
        O::Abs if T::SIGNED => f!(|x| x.wrapping_abs()),
        O::Abs => f!(|x| x),
        O::Clz => f!(|x| {
            let unused = 64 - T::BITS;
            // Ones below the element stop the count at its width.
            let below = ((1u64 << unused) - 1) as i64;
            i64::from(((x << unused) | below).leading_zeros())
        }),
        O::Negate => f!(|x| x.wrapping_neg()),
        O::Not => f!(|x| !x),
        O::Popcnt => f!(|x| i64::from((x << (64 - T::BITS)).count_ones())),
        O::Sign if T::SIGNED => f!(|x| x.signum()),
        O::Sign => f!(|x| i64::from(x != 0)),
        _ => return None,
    })
}

/// The complex loops, a trait so that the real type can be named.
trait ComplexOps {
    fn complex(opcode: Opcode) -> Option<Loop1>;
}

impl<R: Real + Scalar> ComplexOps for Complex<R> {
    fn complex(opcode: Opcode) -> Option<Loop1> {
        macro_rules! f {
            (|$x:ident| $value:expr) => {
                |x, out| map1::<Complex<R>, Complex<R>>(x, out, |$x| $value)
            };
        }
        use Opcode as O;
        Some(match opcode {
            O::Abs => |x, out| map1::<Complex<R>, R>(x, out, Complex::abs),
            O::Cos => f!(|x| x.cos()),
            O::Cosh => f!(|x| x.cosh()),
            O::Exp => f!(|x| x.exp()),
            O::Expm1 => f!(|x| x.exp_m1()),
            O::Imag => |x, out| map1::<Complex<R>, R>(x, out, |x| x.im),
            O::Log => f!(|x| x.ln()),
            O::Log1p => f!(|x| x.ln_1p()),
            O::Logistic => f!(|x| x.logistic()),
            O::Negate => f!(|x| -x),
            O::Real => |x, out| map1::<Complex<R>, R>(x, out, |x| x.re),
            O::Rsqrt => f!(|x| x.rsqrt()),
            O::Sign => f!(|x| x.sign()),
            O::Sin => f!(|x| x.sin()),
            O::Sinh => f!(|x| x.sinh()),
            O::Sqrt => f!(|x| x.sqrt()),
            O::Tan => f!(|x| x.tan()),
            O::Tanh => f!(|x| x.tanh()),
            _ => return None,
        })
    }
}
