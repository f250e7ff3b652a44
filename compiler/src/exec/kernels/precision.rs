//! `reduce-precision`: a float rounded to fewer exponent and mantissa bits, in its own type.

use half::{bf16, f16};
use slabplan_ir::ElementType;

use super::lanes::map1;

/// A rounding of elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReducePrecision {
    format: Format,
    exponent_bits: u32,
    mantissa_bits: u32,
    apply: Loop,
}

/// A loop over one operand and the result.
type Loop = fn(&ReducePrecision, &[u8], &mut [u8]);

/// The bits of the element type, sign bit aside.
#[derive(Clone, Copy, Debug)]
struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
}

impl ReducePrecision {
    /// The rounding of `ty` to the given bits, if it has a format of its own.
    pub(super) fn new(ty: ElementType, exponent_bits: u32, mantissa_bits: u32) -> Option<Self> {
        let (exponent, mantissa, apply): (_, _, Loop) = match ty {
            ElementType::F32 => (8, 23, |p, x, out| {
                map1(x, out, |x: f32| {
                    f32::from_bits(p.round(x.to_bits().into(), x.is_nan()) as u32)
                });
            }),
            ElementType::F64 => (11, 52, |p, x, out| {
                map1(x, out, |x: f64| {
                    f64::from_bits(p.round(x.to_bits(), x.is_nan()))
                });
            }),
            ElementType::F16 => (5, 10, |p, x, out| {
                map1(x, out, |x: f16| {
                    f16::from_bits(p.round(x.to_bits().into(), x.is_nan()) as u16)
                });
            }),
            ElementType::Bf16 => (8, 7, |p, x, out| {
                map1(x, out, |x: bf16| {
                    bf16::from_bits(p.round(x.to_bits().into(), x.is_nan()) as u16)
                });
            }),
            _ => return None,
        };
        Some(Self {
            format: Format {
                exponent_bits: exponent,
                mantissa_bits: mantissa,
            },
            exponent_bits,
            mantissa_bits,
            apply,
        })
    }

    /// Rounds every element of `x` into `out`.
    pub(super) fn apply(&self, x: &[u8], out: &mut [u8]) {
        (self.apply)(self, x, out);
    }

    /// Rounds the mantissa to nearest even, then sends what the exponent range can't hold to zero
    /// (denormals of the narrower format too) or infinity.
    fn round(&self, bits: u64, is_nan: bool) -> u64 {
        let Format {
            exponent_bits,
            mantissa_bits,
        } = self.format;
        let exponent_mask = ((1u64 << exponent_bits) - 1) << mantissa_bits;
        if is_nan {
            return bits;
        }
        let mut bits = bits;
        if self.mantissa_bits < mantissa_bits {
            let dropped = mantissa_bits - self.mantissa_bits;
            let last = bits >> dropped & 1;
            bits += last + (1 << (dropped - 1)) - 1;
            bits &= !((1u64 << dropped) - 1);
        }
        if self.exponent_bits < exponent_bits {
            let bias = |bits: u32| (1u64 << (bits - 1)) - 1;
            let (own, reduced) = (bias(exponent_bits), bias(self.exponent_bits));
            let sign = bits & (1 << (exponent_bits + mantissa_bits));
            let exponent = bits & exponent_mask;
            if exponent > (own + reduced) << mantissa_bits {
                bits = sign | exponent_mask;
            } else if exponent <= (own - reduced) << mantissa_bits {
                bits = sign;
            }
        }
        bits
    }
}
