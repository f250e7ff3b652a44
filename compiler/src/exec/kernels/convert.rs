//! `convert`, `bitcast-convert`'s reinterpretation aside: from any element type to any other.

use half::{bf16, f16};
use slabplan_ir::ElementType;

use super::complex::Complex;
use super::lanes::{Loop1, map1, vector1};
use super::real::Real;
use super::scalar::{Int, NarrowFloat, match_complex, match_int, match_narrow, match_real, width};

/// Elements converted at a time.
const CHUNK: usize = 128;

/// A conversion of elements.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Convert {
    /// One loop does it.
    Direct(Loop1),
    /// Through a wide type that holds every value of both.
    Wide {
        /// Bytes of a source element.
        from: usize,
        /// Bytes of a target element.
        to: usize,
        /// Source to the wide type.
        load: Loop1,
        /// The wide type to the target.
        store: Loop1,
        /// Bytes of an element of the wide type.
        wide: usize,
    },
}

impl Convert {
    /// The conversion from `from` to `to`.
    ///
    /// Floats round to nearest even; float to integer truncates, saturates and takes NaN to 0;
    /// integers wrap; anything but zero is true; a complex number gives its real part.
    pub(super) fn new(from: ElementType, to: ElementType) -> Option<Self> {
        use ElementType as E;
        if from == to {
            return Some(Self::Direct(|x, out| out.copy_from_slice(x)));
        }
        Some(Self::Direct(match (from, to) {
            (E::F32, E::Bf16) => |x, out| vector1(x, out, bf16::from_f32),
            (E::Bf16, E::F32) => |x, out| vector1(x, out, bf16::to_f32),
            (E::F32, E::F16) => |x, out| map1(x, out, f16::from_f32),
            (E::F16, E::F32) => |x, out| map1(x, out, f16::to_f32),
            (E::F64, E::F32) => |x, out| vector1(x, out, |x: f64| x as f32),
            (E::F32, E::F64) => |x, out| vector1(x, out, |x: f32| f64::from(x)),
            (E::S32, E::F32) => |x, out| vector1(x, out, |x: i32| x as f32),
            (E::F32, E::S32) => |x, out| vector1(x, out, truncated),
            (E::U8, E::F32) => |x, out| vector1(x, out, |x: u8| f32::from(x)),
            (E::Pred, E::F32) => |x, out| vector1(x, out, |x: bool| f32::from(u8::from(x))),
            (E::Pred, E::S32) => |x, out| vector1(x, out, |x: bool| i32::from(x)),
            _ => {
                let (kind, load) = load(from)?;
                return Some(Self::Wide {
                    from: width(from),
                    to: width(to),
                    load,
                    store: store(kind, to)?,
                    wide: kind.width(),
                });
            }
        }))
    }

    /// Converts every element of `x` into `out`.
    pub(super) fn apply(&self, x: &[u8], out: &mut [u8]) {
        match *self {
            Self::Direct(f) => f(x, out),
            Self::Wide {
                from,
                to,
                load,
                store,
                wide,
            } => {
                let mut buffer = [0; CHUNK * 16];
                for (x, out) in x.chunks(CHUNK * from).zip(out.chunks_mut(CHUNK * to)) {
                    let buffer = &mut buffer[..x.len() / from * wide];
                    load(x, buffer);
                    store(buffer, out);
                }
            }
        }
    }
}

/// The wide types.
#[derive(Clone, Copy)]
enum Wide {
    Signed,
    Unsigned,
    Real,
    Complex,
}

impl Wide {
    fn width(self) -> usize {
        match self {
            Wide::Complex => 16,
            _ => 8,
        }
    }
}

fn load(from: ElementType) -> Option<(Wide, Loop1)> {
    if from == ElementType::Pred {
        return Some((Wide::Unsigned, |x, out| {
            map1(x, out, |x: bool| u64::from(x));
        }));
    }
    match_real!(from,
        T => Some((Wide::Real, |x, out| map1(x, out, T::to_f64))),
        _ => match_narrow!(from,
            T => Some((Wide::Real, |x, out| map1(x, out, T::widen))),
            _ => match_int!(from,
                T => Some((if T::SIGNED { Wide::Signed } else { Wide::Unsigned },
                    |x, out| map1(x, out, T::wide))),
                _ => match_complex!(from,
                    T => Some((Wide::Complex, |x, out| map1(x, out, |x: T| {
                        Complex::new(x.re.to_f64(), x.im.to_f64())
                    }))),
                    _ => None))))
}

fn store(wide: Wide, to: ElementType) -> Option<Loop1> {
    if to == ElementType::Pred {
        return Some(match wide {
            Wide::Signed | Wide::Unsigned => |x, out| map1(x, out, |x: i64| x != 0),
            Wide::Real => |x, out| map1(x, out, |x: f64| x != 0.0),
            Wide::Complex => |x, out| map1(x, out, |x: Complex<f64>| x != Complex::ZERO),
        });
    }
    match_real!(to,
        T => Some(match wide {
            Wide::Signed => |x, out| map1(x, out, |x: i64| x as T),
            Wide::Unsigned => |x, out| map1(x, out, |x: u64| x as T),
            Wide::Real => |x, out| map1(x, out, |x: f64| x as T),
            Wide::Complex => |x, out| map1(x, out, |x: Complex<f64>| x.re as T),
        }),
        _ => match_narrow!(to,
            T => Some(match wide {
                Wide::Signed => |x, out| map1(x, out, |x: i64| T::narrow((x as f32).into())),
                Wide::Unsigned => |x, out| map1(x, out, |x: u64| T::narrow((x as f32).into())),
                Wide::Real => |x, out| map1(x, out, T::narrow),
                Wide::Complex => |x, out| map1(x, out, |x: Complex<f64>| T::narrow(x.re)),
            }),
            _ => match_int!(to,
                T => Some(match wide {
                    Wide::Signed | Wide::Unsigned => |x, out| map1(x, out, T::wrap),
                    Wide::Real => |x, out| map1(x, out, saturate::<T>),
                    Wide::Complex => |x, out| map1(x, out, |x: Complex<f64>| saturate::<T>(x.re)),
                }),
                _ => match_complex!(to,
                    T => Some(match wide {
                        Wide::Signed => |x, out| map1(x, out, |x: i64| T::real(Real::from_f64(x as f64))),
                        Wide::Unsigned => |x, out| map1(x, out, |x: u64| T::real(Real::from_f64(x as f64))),
                        Wide::Real => |x, out| map1(x, out, |x: f64| T::real(Real::from_f64(x))),
                        Wide::Complex => |x, out| map1(x, out, |x: Complex<f64>| {
                            T::new(Real::from_f64(x.re), Real::from_f64(x.im))
                        }),
                    }),
                    _ => None))))
}

/// Truncated, held to the range of `T`; NaN gives 0.
fn saturate<T: Int>(x: f64) -> T {
    // `as` saturates to 64 bits and takes NaN to 0.
    T::wrap(if T::SIGNED {
        let max = i64::MAX >> (64 - T::BITS);
        (x as i64).clamp(-max - 1, max)
    } else {
        (x as u64).min(u64::MAX >> (64 - T::BITS)) as i64
    })
}

/// Truncated, held to the range; NaN gives 0. `as` gives the same, element by element; this is shifts alone, which vector
/// registers have.
fn truncated(x: f32) -> i32 {
    let bits = x.to_bits();
    // The number is `mantissa` times two to the `exponent`.
    let exponent = (bits >> 23 & 0xff) as i32 - 150;
    let mantissa = bits & 0x7f_ffff | 0x80_0000;
    let whole = mantissa.wrapping_shl(exponent.clamp(0, 7) as u32);
    let part = mantissa.wrapping_shr((-exponent).clamp(0, 31) as u32);
    let magnitude = if exponent < 0 { part } else { whole } as i32;
    let is_negative = bits >> 31 == 1;
    let signed = if is_negative { -magnitude } else { magnitude };
    let end = if is_negative { i32::MIN } else { i32::MAX };
    let beyond = if x.is_nan() { 0 } else { end };
    if exponent > 7 { beyond } else { signed }
}

#[cfg(test)]
mod tests {
    use super::truncated;

    /// Every sign and exponent, with the mantissas at the edges and some between.
    #[test]
    fn truncation_is_that_of_the_language() {
        let mantissas = (0..64)
            .map(|n| n * 0x2_1357)
            .chain((0..23).flat_map(|n| [1 << n, (1 << n) - 1, 0x7f_ffff ^ (1 << n)]));
        for mantissa in mantissas {
            for high in 0..512u32 {
                let x = f32::from_bits(high << 23 | (mantissa & 0x7f_ffff));
                assert_eq!(truncated(x), x as i32, "{x}");
            }
        }
    }
}
