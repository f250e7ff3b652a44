//! `compare`, `select` and `clamp`.

use slabplan_ir::ElementType;

use super::lanes::{Loop2, Loop3, map2, map3, vector3};
use super::real::Real;
use super::scalar::{NarrowFloat, match_complex, match_int, match_narrow, match_real};

/// Direction of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Greater or equal.
    Ge,
    /// Greater.
    Gt,
    /// Less or equal.
    Le,
    /// Less.
    Lt,
}

impl Direction {
    /// The direction HLO text calls `name`.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "EQ" => Self::Eq,
            "NE" => Self::Ne,
            "GE" => Self::Ge,
            "GT" => Self::Gt,
            "LE" => Self::Le,
            "LT" => Self::Lt,
            _ => return None,
        })
    }
}

/// The loop that compares elements of type `ty` and yields `pred`.
///
/// In the partial order of floats a NaN is unequal to everything and neither
/// less nor greater; the total order is IEEE 754's. Complex numbers are only
/// equal or not.
pub(super) fn compare(direction: Direction, total: bool, ty: ElementType) -> Option<Loop2> {
    macro_rules! ordered {
        ($t:ty, $key:expr) => {
            Some(match direction {
                Direction::Eq => |x, y, out| map2(x, y, out, |x: $t, y: $t| $key(x) == $key(y)),
                Direction::Ne => |x, y, out| map2(x, y, out, |x: $t, y: $t| $key(x) != $key(y)),
                Direction::Ge => |x, y, out| map2(x, y, out, |x: $t, y: $t| $key(x) >= $key(y)),
                Direction::Gt => |x, y, out| map2(x, y, out, |x: $t, y: $t| $key(x) > $key(y)),
                Direction::Le => |x, y, out| map2(x, y, out, |x: $t, y: $t| $key(x) <= $key(y)),
                Direction::Lt => |x, y, out| map2(x, y, out, |x: $t, y: $t| $key(x) < $key(y)),
            })
        };
    }
    if ty == ElementType::Pred {
        return ordered!(bool, std::convert::identity);
    }
    match_real!(ty,
        T => if total { ordered!(T, T::total_order) } else { ordered!(T, std::convert::identity) },
        _ => match_int!(ty,
            T => ordered!(T, std::convert::identity),
            _ => match_narrow!(ty,
                T => if total {
                    ordered!(T, |x: T| x.widen().total_order())
                } else {
                    ordered!(T, T::widen)
                },
                _ => match_complex!(ty,
                    T => match direction {
                        Direction::Eq => Some(|x, y, out| map2(x, y, out, |x: T, y: T| x == y)),
                        Direction::Ne => Some(|x, y, out| map2(x, y, out, |x: T, y: T| x != y)),
                        _ => None,
                    },
                    _ => None))))
}

/// The loop that picks its second operand where the first is true, else its third; `width` is
/// that of one element.
pub(super) fn select(width: usize) -> Option<Loop3> {
    Some(match width {
        1 => |p, x, y, out| map3(p, x, y, out, |p: bool, x: u8, y: u8| if p { x } else { y }),
        2 => |p, x, y, out| {
            map3(
                p,
                x,
                y,
                out,
                |p: bool, x: u16, y: u16| if p { x } else { y },
            );
        },
        4 => |p, x, y, out| {
            vector3(
                p,
                x,
                y,
                out,
                |p: bool, x: u32, y: u32| if p { x } else { y },
            );
        },
        8 => |p, x, y, out| {
            map3(
                p,
                x,
                y,
                out,
                |p: bool, x: u64, y: u64| if p { x } else { y },
            );
        },
        16 => |p, x, y, out| {
            map3(
                p,
                x,
                y,
                out,
                |p: bool, x: u128, y: u128| if p { x } else { y },
            );
        },
        _ => return None,
    })
}

/// The loop that keeps its second operand between its first and third.
///
/// A NaN bound or value gives NaN; with bounds the wrong way round the upper one wins.
pub(super) fn clamp(ty: ElementType) -> Option<Loop3> {
    if ty == ElementType::Pred {
        return Some(|lo, x, hi, out| {
            map3(lo, x, hi, out, |lo: bool, x: bool, hi: bool| (x | lo) & hi);
        });
    }
    match_real!(ty,
        T => Some(|lo, x, hi, out| map3(lo, x, hi, out, |lo: T, x: T, hi: T| {
            x.max_nan(lo).min_nan(hi)
        })),
        _ => match_int!(ty,
            T => Some(|lo, x, hi, out| map3(lo, x, hi, out, |lo: T, x: T, hi: T| x.max(lo).min(hi))),
            _ => None))
}
