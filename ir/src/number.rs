//! Floating-point numbers of every element type as bits and bytes.
//!
//! Conversion rounds to nearest, ties to even, once: `f64` to an 8-bit float
//! never goes through `f32`. What happens past the largest number follows
//! ml_dtypes, the library that XLA itself uses.

use crate::ElementType;

/// What the largest bit patterns of a format mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Specials {
    /// The largest exponent holds infinity and the NaNs.
    Ieee,
    /// Only the all-ones magnitude is NaN; no infinity. Overflow gives NaN.
    OneNan,
    /// Negative zero is NaN; no infinity. Overflow gives NaN.
    UnsignedZero,
    /// Neither infinity nor NaN. Overflow gives the largest number.
    Finite,
}

/// A small binary floating-point format with a sign.
#[derive(Clone, Copy, Debug)]
struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    specials: Specials,
}

const fn format(exponent_bits: u32, mantissa_bits: u32, bias: i32, specials: Specials) -> Format {
    Format {
        exponent_bits,
        mantissa_bits,
        bias,
        specials,
    }
}

/// The format of a type that is narrower than `f32` and has a sign.
const fn small_format(ty: ElementType) -> Option<Format> {
    use ElementType as E;
    Some(match ty {
        E::F16 => format(5, 10, 15, Specials::Ieee),
        E::Bf16 => format(8, 7, 127, Specials::Ieee),
        E::F8e5m2 => format(5, 2, 15, Specials::Ieee),
        E::F8e4m3 => format(4, 3, 7, Specials::Ieee),
        E::F8e3m4 => format(3, 4, 3, Specials::Ieee),
        E::F8e4m3fn => format(4, 3, 7, Specials::OneNan),
        E::F8e4m3b11fnuz => format(4, 3, 11, Specials::UnsignedZero),
        E::F8e5m2fnuz => format(5, 2, 16, Specials::UnsignedZero),
        E::F8e4m3fnuz => format(4, 3, 8, Specials::UnsignedZero),
        E::F4e2m1fn => format(2, 1, 1, Specials::Finite),
        _ => return None,
    })
}

/// The bits of `value` as a number of float type `ty`, rounded to nearest even.
///
/// # Panics
/// If `ty` is not a floating-point type.
pub fn encode_float(ty: ElementType, value: f64) -> u64 {
    match ty {
        ElementType::F64 => value.to_bits(),
        ElementType::F32 => u64::from((value as f32).to_bits()),
        ElementType::F8e8m0fnu => encode_scale(value),
        _ => small_format(ty)
            .expect("a floating-point type")
            .encode(value),
    }
}

/// The value of `bits` as a number of float type `ty`. Exact.
///
/// # Panics
/// If `ty` is not a floating-point type.
pub fn decode_float(ty: ElementType, bits: u64) -> f64 {
    match ty {
        ElementType::F64 => f64::from_bits(bits),
        ElementType::F32 => f64::from(f32::from_bits(bits as u32)),
        ElementType::F8e8m0fnu if bits & 0xff == 0xff => f64::NAN,
        ElementType::F8e8m0fnu => power_of_two((bits & 0xff) as i32 - 127),
        _ => small_format(ty)
            .expect("a floating-point type")
            .decode(bits),
    }
}

/// The value of the float of type `ty` in `bytes` (little-endian, [`ElementType::byte_width`] of them).
pub fn read_float(ty: ElementType, bytes: &[u8]) -> f64 {
    decode_float(ty, read_bits(bytes))
}

/// Writes `value` as a float of type `ty` to `bytes` (little-endian, [`ElementType::byte_width`] of them).
pub fn write_float(ty: ElementType, value: f64, bytes: &mut [u8]) {
    write_bits(encode_float(ty, value), bytes);
}

/// A little-endian number of at most 8 bytes.
pub fn read_bits(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(wide)
}

/// The low bytes of `bits`, little-endian.
pub fn write_bits(bits: u64, bytes: &mut [u8]) {
    let n = bytes.len();
    bytes.copy_from_slice(&bits.to_le_bytes()[..n]);
}

/// Bits below the sign of a float type that has one.
pub(crate) fn magnitude_bits(ty: ElementType) -> u32 {
    match ty {
        ElementType::F8e8m0fnu => 8,
        _ => ty.bits() - 1,
    }
}

/// Bits in which the NaNs of a float type may differ; 0 where there is one NaN or none.
pub(crate) fn nan_payload_bits(ty: ElementType) -> u32 {
    match ty {
        ElementType::F64 => 52,
        ElementType::F32 => 23,
        _ => small_format(ty)
            .filter(|f| f.specials == Specials::Ieee)
            .map_or(0, |f| f.mantissa_bits),
    }
}

impl Format {
    fn width(self) -> u32 {
        1 + self.exponent_bits + self.mantissa_bits
    }

    /// All bits below the sign.
    fn magnitude_mask(self) -> u64 {
        (1 << (self.width() - 1)) - 1
    }

    /// The magnitude of positive infinity, if there is one.
    fn infinity(self) -> Option<u64> {
        let all_exponent = ((1 << self.exponent_bits) - 1) << self.mantissa_bits;
        (self.specials == Specials::Ieee).then_some(all_exponent)
    }

    fn largest(self) -> u64 {
        match self.specials {
            Specials::Ieee => self.infinity().map_or(0, |i| i - 1),
            Specials::OneNan => self.magnitude_mask() - 1,
            Specials::UnsignedZero | Specials::Finite => self.magnitude_mask(),
        }
    }

    fn nan(self, sign: u64) -> u64 {
        match self.specials {
            Specials::Ieee => sign | self.infinity().unwrap_or(0) | 1 << (self.mantissa_bits - 1),
            Specials::OneNan => sign | self.magnitude_mask(),
            Specials::UnsignedZero => self.magnitude_mask() + 1,
            // There is no better answer than XLA's: the zero below.
            Specials::Finite => self.magnitude_mask() + 1,
        }
    }

    /// What a value past the largest number becomes.
    fn overflow(self, sign: u64) -> u64 {
        match self.specials {
            Specials::Ieee => sign | self.infinity().unwrap_or(0),
            Specials::OneNan | Specials::UnsignedZero => self.nan(sign),
            Specials::Finite => sign | self.largest(),
        }
    }

    fn encode(self, value: f64) -> u64 {
        let sign = u64::from(value.is_sign_negative()) << (self.width() - 1);
        if value.is_nan() {
            return self.nan(sign);
        }
        if value.is_infinite() {
            return self.overflow(sign);
        }
        let magnitude = self.round(value.abs());
        if self.largest() < magnitude {
            return self.overflow(sign);
        }
        if magnitude == 0 && self.specials == Specials::UnsignedZero {
            return 0;
        }
        sign | magnitude
    }

    /// The magnitude nearest to `value`, as if exponents had no end.
    fn round(self, value: f64) -> u64 {
        let bits = value.to_bits();
        let field = (bits >> 52) as i32;
        if field == 0 {
            // Zero, or far below the smallest number of any small format.
            return 0;
        }
        let exponent = field - 1023;
        let significand = bits & ((1 << 52) - 1) | 1 << 52;
        let smallest = 1 - self.bias;
        let scale = exponent.max(smallest);
        // Bits of the significand below the last place of the result.
        let dropped = (52 - self.mantissa_bits as i32) + (scale - exponent);
        if 54 < dropped {
            return 0;
        }
        let rounded = round_off(significand, dropped as u32);
        // A carry out of the mantissa moves into the exponent by itself.
        (((scale - smallest) as u64) << self.mantissa_bits) + rounded
    }

    fn decode(self, bits: u64) -> f64 {
        let magnitude = bits & self.magnitude_mask();
        let negative = bits >> (self.width() - 1) & 1 == 1;
        let value = match self.specials {
            Specials::Ieee if self.infinity() == Some(magnitude) => f64::INFINITY,
            Specials::Ieee | Specials::OneNan if self.largest() < magnitude => f64::NAN,
            Specials::UnsignedZero if negative && magnitude == 0 => f64::NAN,
            _ => {
                let field = (magnitude >> self.mantissa_bits) as i32;
                let mantissa = magnitude & ((1 << self.mantissa_bits) - 1);
                let hidden = u64::from(field != 0) << self.mantissa_bits;
                let exponent = field.max(1) - self.bias - self.mantissa_bits as i32;
                (mantissa | hidden) as f64 * power_of_two(exponent)
            }
        };
        if negative { -value } else { value }
    }
}

/// `value >> n`, rounded to nearest, ties to even. `n` from 1 to 63.
fn round_off(value: u64, n: u32) -> u64 {
    let half = 1 << (n - 1);
    let rest = value & ((1 << n) - 1);
    let quotient = value >> n;
    quotient + u64::from(half < rest || (rest == half && quotient & 1 == 1))
}

/// `2^n` for `n` in the range of normal `f64`.
fn power_of_two(n: i32) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

/// A power of two as its biased exponent; NaN for what has none near.
fn encode_scale(value: f64) -> u64 {
    const NAN: u64 = 0xff;
    if value.is_nan() || value.is_infinite() || value.is_sign_negative() || value == 0.0 {
        return NAN;
    }
    // Half way between two powers counts as nearer to the greater one.
    let bits = value.to_bits() + (1 << 51);
    let field = (bits >> 52) as i64 - 1023 + 127;
    match field {
        ..0 => 0,
        0..=254 => field as u64,
        _ => NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same NaN-ness, or the same value and sign.
    fn same(a: f64, b: f64) -> bool {
        (a.is_nan() && b.is_nan()) || a.to_bits() == b.to_bits()
    }

    #[test]
    fn narrow_floats_are_those_of_ml_dtypes() {
        let data = include_str!("small_floats.txt");
        let mut types = 0;
        for line in data.lines().filter(|l| !l.starts_with('#')) {
            let mut words = line.split(' ');
            let what = words.next().unwrap();
            let ty = ElementType::from_name(words.next().unwrap()).unwrap();
            if what == "decode" {
                types += 1;
                for (code, word) in words.enumerate() {
                    let expected = match word {
                        "nan" => f64::NAN,
                        bits => f64::from(f32::from_bits(u32::from_str_radix(bits, 16).unwrap())),
                    };
                    let actual = decode_float(ty, code as u64);
                    assert!(
                        same(actual, expected),
                        "{ty} {code:#x}: {actual}, not {expected}"
                    );
                    if !expected.is_nan() {
                        assert_eq!(encode_float(ty, expected), code as u64, "{ty} {expected}");
                    }
                }
            } else {
                for pair in words {
                    let (value, code) = pair.split_once(':').unwrap();
                    let value = f64::from_bits(u64::from_str_radix(value, 16).unwrap());
                    let code = u64::from_str_radix(code, 16).unwrap();
                    assert_eq!(encode_float(ty, value), code, "{ty} {value:e}");
                }
            }
        }
        assert_eq!(types, 9);
    }

    #[test]
    fn half_precision_agrees_with_the_half_crate_on_every_code() {
        for code in 0..=u16::MAX {
            let f16 = half::f16::from_bits(code).to_f64();
            let bf16 = half::bf16::from_bits(code).to_f64();
            for (ty, value) in [(ElementType::F16, f16), (ElementType::Bf16, bf16)] {
                assert!(same(decode_float(ty, code.into()), value), "{ty} {code:#x}");
                if !value.is_nan() {
                    assert_eq!(encode_float(ty, value), u64::from(code), "{ty} {value:e}");
                }
            }
        }
    }

    #[test]
    fn half_precision_rounds_to_nearest_even() {
        // Every midpoint between neighbours, and the numbers next to it.
        for code in (0..0x7bff_u16).step_by(7) {
            let low = half::f16::from_bits(code).to_f64();
            let high = half::f16::from_bits(code + 1).to_f64();
            let middle = f64::midpoint(low, high);
            let even = u64::from(code + (code & 1));
            assert_eq!(encode_float(ElementType::F16, middle), even);
            assert_eq!(
                encode_float(ElementType::F16, middle.next_down()),
                u64::from(code)
            );
            assert_eq!(
                encode_float(ElementType::F16, middle.next_up()),
                u64::from(code + 1)
            );
        }
    }

    #[test]
    fn one_rounding_only() {
        // 1 + 2^-8 is half way between two bf16; a little more must go up. Through f32, whose last
        // place is 2^-23, the little more would be lost and the tie go to the even 1.
        let value = 1.0 + 2f64.powi(-8) + 2f64.powi(-40);
        assert_eq!(
            decode_float(ElementType::Bf16, encode_float(ElementType::Bf16, value)),
            1.0 + 2f64.powi(-7)
        );
    }

    #[test]
    fn bytes_are_little_endian() {
        let mut bytes = [0; 4];
        write_float(ElementType::F32, 1.0, &mut bytes);
        assert_eq!(bytes, [0, 0, 0x80, 0x3f]);
        assert_eq!(read_float(ElementType::F32, &bytes), 1.0);
    }
}
