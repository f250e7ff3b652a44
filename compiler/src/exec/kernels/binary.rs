//! Elementwise operations of two operands of one type.

use slabplan_ir::{ElementType, Opcode};

use super::complex::Complex;
use super::lanes::{Loop2, map2, vector2};
use super::real::Real;
use super::scalar::{Int, Scalar, match_complex, match_int, match_real};

/// The loop of `opcode` on elements of type `ty`, if HLO defines it there.
///
/// `complex` takes two reals and yields the complex type; the others yield `ty`.
pub(super) fn binary(opcode: Opcode, ty: ElementType) -> Option<Loop2> {
    if ty == ElementType::Pred {
        return pred(opcode);
    }
    match_real!(ty, T => real::<T>(opcode), _ =>
        match_int!(ty, T => int::<T>(opcode), _ =>
            match_complex!(ty, T => <T as ComplexOps>::complex(opcode), _ => None)))
}

fn pred(opcode: Opcode) -> Option<Loop2> {
    use Opcode as O;
    Some(match opcode {
        O::Add | O::Or | O::Maximum => |x, y, out| map2(x, y, out, |x: bool, y: bool| x | y),
        O::Multiply | O::And | O::Minimum => |x, y, out| map2(x, y, out, |x: bool, y: bool| x & y),
        O::Xor | O::Subtract => |x, y, out| map2(x, y, out, |x: bool, y: bool| x ^ y),
        _ => return None,
    })
}

fn real<T: Real + Scalar>(opcode: Opcode) -> Option<Loop2> {
    macro_rules! f {
        (|$x:ident, $y:ident| $value:expr) => {
            |x, y, out| map2::<T, T, T>(x, y, out, |$x, $y| $value)
        };
    }
    macro_rules! v {
        (|$x:ident, $y:ident| $value:expr) => {
            |x, y, out| vector2::<T, T, T>(x, y, out, |$x, $y| $value)
        };
    }
    use Opcode as O;
    Some(match opcode {
        O::Add => v!(|x, y| x + y),
        O::Atan2 => f!(|y, x| y.atan2(x)),
        O::Complex => |x, y, out| map2::<T, T, Complex<T>>(x, y, out, Complex::new),
        O::Divide => v!(|x, y| x / y),
        O::Maximum => v!(|x, y| x.max_nan(y)),
        O::Minimum => v!(|x, y| x.min_nan(y)),
        O::Multiply => v!(|x, y| x * y),
        O::Power => f!(|x, y| x.power(y)),
        O::Remainder => f!(|x, y| x % y),
        O::Subtract => v!(|x, y| x - y),
        _ => return None,
    })
}

fn int<T: Int>(opcode: Opcode) -> Option<Loop2> {
    macro_rules! f {
        (|$x:ident, $y:ident| $value:expr) => {
            |x, y, out| {
                map2::<T, T, T>(x, y, out, |x, y| {
                    let ($x, $y) = (x.wide(), y.wide());
                    T::wrap($value)
                })
            }
        };
    }
    use Opcode as O;
    Some(match opcode {
        O::Add => f!(|x, y| x.wrapping_add(y)),
        O::And => f!(|x, y| x & y),
        O::Divide => f!(|x, y| divide::<T>(x, y)),
        O::Maximum => |x, y, out| map2::<T, T, T>(x, y, out, Ord::max),
        O::Minimum => |x, y, out| map2::<T, T, T>(x, y, out, Ord::min),
        O::Multiply => f!(|x, y| x.wrapping_mul(y)),
        O::Or => f!(|x, y| x | y),
        O::Power => f!(|x, y| power::<T>(x, y)),
        O::Remainder => f!(|x, y| remainder::<T>(x, y)),
        O::ShiftLeft => f!(|x, y| if in_width::<T>(y) { x << y } else { 0 }),
        O::ShiftRightArithmetic => f!(|x, y| {
            let signed = (x << (64 - T::BITS)) >> (64 - T::BITS);
            signed >> if in_width::<T>(y) { y } else { 63 }
        }),
        O::ShiftRightLogical => f!(|x, y| {
            let unsigned = (x as u64) << (64 - T::BITS) >> (64 - T::BITS);
            if in_width::<T>(y) {
                (unsigned >> y) as i64
            } else {
                0
            }
        }),
        O::Subtract => f!(|x, y| x.wrapping_sub(y)),
        O::Xor => f!(|x, y| x ^ y),
        _ => return None,
    })
}

/// Whether a shift by `amount` leaves some of the element's bits.
fn in_width<T: Int>(amount: i64) -> bool {
    (amount as u64) < u64::from(T::BITS)
}

/// Quotient rounded towards zero; all bits set where the divisor is zero.
fn divide<T: Int>(x: i64, y: i64) -> i64 {
    if y == 0 {
        -1
    } else if T::SIGNED {
        x.wrapping_div(y)
    } else {
        (x as u64 / y as u64) as i64
    }
}

/// Remainder with the dividend's sign; the dividend where the divisor is zero.
fn remainder<T: Int>(x: i64, y: i64) -> i64 {
    if y == 0 {
        x
    } else if T::SIGNED {
        x.wrapping_rem(y)
    } else {
        (x as u64 % y as u64) as i64
    }
}

/// Power by squaring; a negative exponent gives 0, but for the base 1.
fn power<T: Int>(base: i64, exponent: i64) -> i64 {
    if T::SIGNED && exponent < 0 {
        return i64::from(base == 1);
    }
    let (mut result, mut square, mut rest) = (1i64, base, exponent as u64);
    while rest > 0 {
        if rest & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        rest >>= 1;
    }
    result
}

/// The complex loops, a trait so that the real type can be named.
trait ComplexOps {
    fn complex(opcode: Opcode) -> Option<Loop2>;
}

impl<R: Real + Scalar> ComplexOps for Complex<R> {
    fn complex(opcode: Opcode) -> Option<Loop2> {
        macro_rules! f {
            (|$x:ident, $y:ident| $value:expr) => {
                |x, y, out| map2::<Complex<R>, Complex<R>, Complex<R>>(x, y, out, |$x, $y| $value)
            };
        }
        use Opcode as O;
        Some(match opcode {
            O::Add => f!(|x, y| x + y),
            O::Divide => f!(|x, y| x / y),
            O::Multiply => f!(|x, y| x * y),
            O::Power => f!(|x, y| x.power(y)),
            O::Subtract => f!(|x, y| x - y),
            _ => return None,
        })
    }
}
