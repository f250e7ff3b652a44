//! `stochastic-convert`: rounding up with a probability that the operand's low bits give.

use half::{bf16, f16};
use slabplan_ir::ElementType;

use super::lanes::{Loop2, map2};

/// A stochastic rounding of elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StochasticConvert {
    apply: Loop2,
}

impl StochasticConvert {
    /// From floats of type `from`, with as wide random bits of type `random`, to integers of type `to`.
    ///
    /// As XLA's evaluator has it: the magnitude is rounded up where its fraction, as a fixed-point
    /// number of the random bits' width, exceeds them. Results saturate, NaN gives 0.
    pub(super) fn new(from: ElementType, random: ElementType, to: ElementType) -> Option<Self> {
        use ElementType as E;
        macro_rules! stochastic {
            ($f:ty, $r:ty, $t:ty, $bits:literal) => {
                |x, r, out| {
                    map2(x, r, out, |x: $f, r: $r| {
                        round(f64::from(x), r.into(), $bits) as $t
                    })
                }
            };
        }
        macro_rules! to_signed {
            ($f:ty, $r:ty, $fraction_bits:literal) => {
                match to {
                    E::S8 => stochastic!($f, $r, i8, $fraction_bits),
                    E::S16 => stochastic!($f, $r, i16, $fraction_bits),
                    E::S32 => stochastic!($f, $r, i32, $fraction_bits),
                    E::S64 => stochastic!($f, $r, i64, $fraction_bits),
                    _ => return None,
                }
            };
        }
        let apply: Loop2 = match (from, random) {
            (E::F16, E::U16) => to_signed!(f16, u16, 16),
            (E::Bf16, E::U16) => to_signed!(bf16, u16, 16),
            (E::F32, E::U32) => to_signed!(f32, u32, 32),
            (E::F64, E::U64) => to_signed!(f64, u64, 64),
            _ => return None,
        };
        Some(Self { apply })
    }

    /// Converts every element of `x` with the random bits beside it.
    pub(super) fn apply(&self, x: &[u8], random: &[u8], out: &mut [u8]) {
        (self.apply)(x, random, out);
    }
}

fn round(x: f64, random: u64, fraction_bits: i32) -> f64 {
    let magnitude = x.abs();
    let whole = magnitude.trunc();
    let fraction = ((magnitude - whole) * 2f64.powi(fraction_bits)) as u64;
    (whole + f64::from(u8::from(random < fraction))).copysign(x)
}
