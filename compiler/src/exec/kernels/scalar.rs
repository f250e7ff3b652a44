//! Elements as Rust values: loading, storing and the arithmetic each family of types shares.
//!
//! Arrays are byte slices of any alignment, so elements are read and written
//! through little-endian loads of their exact width; compilers turn loops over
//! them into vector code.

use half::{bf16, f16};
use slabplan_ir::{ElementType, number};

/// One element of an array.
pub(super) trait Scalar: Copy + Send + Sync + 'static {
    /// Bytes of an element in the dense host form.
    const BYTES: usize;
    /// Reads an element from exactly [`BYTES`](Self::BYTES) bytes.
    fn load(bytes: &[u8]) -> Self;
    /// Writes the element to exactly [`BYTES`](Self::BYTES) bytes.
    fn store(self, bytes: &mut [u8]);
}

/// A floating-point element narrower than `f32`: arithmetic on it is done in `f32`.
pub(super) trait NarrowFloat: Scalar {
    /// The exact value.
    fn widen(self) -> f64;
    /// The element XLA converts `value` to: the nearest one, ties to even.
    fn narrow(value: f64) -> Self;
}

/// An integer element, two's complement of [`BITS`](Self::BITS) bits.
pub(super) trait Int: Scalar + Ord {
    /// Bits that carry information.
    const BITS: u32;
    /// Whether the top bit is a sign.
    const SIGNED: bool;
    /// The value sign- or zero-extended to 64 bits.
    fn wide(self) -> i64;
    /// The low [`BITS`](Self::BITS) bits of `value`.
    fn wrap(value: i64) -> Self;
}

macro_rules! native_scalar {
    ($($t:ty)*) => {$(
        impl Scalar for $t {
            const BYTES: usize = size_of::<$t>();
            #[inline]
            fn load(bytes: &[u8]) -> Self {
                <$t>::from_le_bytes(bytes.try_into().expect("an element's bytes"))
            }
            #[inline]
            fn store(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
native_scalar! { f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 u128 }

macro_rules! native_int {
    ($($t:ty, $signed:literal;)*) => {$(
        impl Int for $t {
            const BITS: u32 = <$t>::BITS;
            const SIGNED: bool = $signed;
            #[inline]
            fn wide(self) -> i64 {
                self as i64
            }
            #[inline]
            fn wrap(value: i64) -> Self {
                value as $t
            }
        }
    )*};
}
native_int! {
    i8, true; i16, true; i32, true; i64, true;
    u8, false; u16, false; u32, false; u64, false;
}

impl Scalar for bool {
    const BYTES: usize = 1;
    #[inline]
    fn load(bytes: &[u8]) -> Self {
        bytes[0] != 0
    }
    #[inline]
    fn store(self, bytes: &mut [u8]) {
        bytes[0] = u8::from(self);
    }
}

/// An integer narrower than a byte; the byte holds the extended value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SubByte<const BITS: u32, const SIGNED: bool>(i8);

impl<const BITS: u32, const SIGNED: bool> Scalar for SubByte<BITS, SIGNED> {
    const BYTES: usize = 1;
    #[inline]
    fn load(bytes: &[u8]) -> Self {
        Self::wrap(i64::from(bytes[0]))
    }
    #[inline]
    fn store(self, bytes: &mut [u8]) {
        bytes[0] = self.0 as u8;
    }
}

impl<const BITS: u32, const SIGNED: bool> Int for SubByte<BITS, SIGNED> {
    const BITS: u32 = BITS;
    const SIGNED: bool = SIGNED;
    #[inline]
    fn wide(self) -> i64 {
        i64::from(self.0)
    }
    #[inline]
    fn wrap(value: i64) -> Self {
        let low = (value as u8) << (8 - BITS);
        Self(if SIGNED {
            low as i8 >> (8 - BITS)
        } else {
            (low >> (8 - BITS)) as i8
        })
    }
}

impl NarrowFloat for f16 {
    fn widen(self) -> f64 {
        self.to_f64()
    }
    fn narrow(value: f64) -> Self {
        f16::from_f32(round_to_odd(value))
    }
}

impl NarrowFloat for bf16 {
    fn widen(self) -> f64 {
        self.to_f64()
    }
    fn narrow(value: f64) -> Self {
        // XLA goes through `f32`, rounding twice.
        bf16::from_f32(value as f32)
    }
}

/// A float of at most eight bits, of the element type with proto number `TYPE`.
#[derive(Clone, Copy, Debug)]
pub(super) struct SmallFloat<const TYPE: u32>(u8);

impl<const TYPE: u32> SmallFloat<TYPE> {
    const ELEMENT: ElementType = ElementType::from_proto_number(TYPE).expect("a proto number");
}

impl<const TYPE: u32> Scalar for SmallFloat<TYPE> {
    const BYTES: usize = 1;
    fn load(bytes: &[u8]) -> Self {
        Self(bytes[0])
    }
    fn store(self, bytes: &mut [u8]) {
        bytes[0] = self.0;
    }
}

impl<const TYPE: u32> NarrowFloat for SmallFloat<TYPE> {
    fn widen(self) -> f64 {
        number::decode_float(Self::ELEMENT, self.0.into())
    }
    fn narrow(value: f64) -> Self {
        Self(number::encode_float(Self::ELEMENT, value) as u8)
    }
}

/// The `f32` next to `x` towards zero, its last bit set where that is not exact: rounding it again
/// to fewer bits gives what rounding `x` at once would.
fn round_to_odd(x: f64) -> f32 {
    let nearest = x as f32;
    let back = f64::from(nearest);
    if back == x || x.is_nan() {
        return nearest;
    }
    let truncated = if back.abs() > x.abs() {
        f32::from_bits(nearest.to_bits() - 1)
    } else {
        nearest
    };
    f32::from_bits(truncated.to_bits() | 1)
}

/// `body` with `$t` bound to the Rust type of `f32` and `f64`; `$other` for the rest.
macro_rules! match_real {
    ($ty:expr, $t:ident => $body:expr, _ => $other:expr) => {{
        use slabplan_ir::ElementType as E;
        match $ty {
            E::F32 => {
                type $t = f32;
                $body
            }
            E::F64 => {
                type $t = f64;
                $body
            }
            _ => $other,
        }
    }};
}

/// `body` with `$t` bound to the Rust type of a float narrower than `f32`; `$other` for the rest.
macro_rules! match_narrow {
    ($ty:expr, $t:ident => $body:expr, _ => $other:expr) => {{
        use slabplan_ir::ElementType as E;
        use $crate::exec::kernels::scalar::SmallFloat;
        macro_rules! small {
            ($type:ident) => {{
                type $t = SmallFloat<{ E::$type.proto_number() }>;
                $body
            }};
        }
        match $ty {
            E::F16 => {
                type $t = half::f16;
                $body
            }
            E::Bf16 => {
                type $t = half::bf16;
                $body
            }
            E::F8e5m2 => small!(F8e5m2),
            E::F8e4m3fn => small!(F8e4m3fn),
            E::F8e4m3b11fnuz => small!(F8e4m3b11fnuz),
            E::F8e5m2fnuz => small!(F8e5m2fnuz),
            E::F8e4m3fnuz => small!(F8e4m3fnuz),
            E::F8e4m3 => small!(F8e4m3),
            E::F8e3m4 => small!(F8e3m4),
            E::F4e2m1fn => small!(F4e2m1fn),
            E::F8e8m0fnu => small!(F8e8m0fnu),
            _ => $other,
        }
    }};
}

/// `body` with `$t` bound to the Rust type of an integer element type; `$other` for the rest.
macro_rules! match_int {
    ($ty:expr, $t:ident => $body:expr, _ => $other:expr) => {{
        use slabplan_ir::ElementType as E;
        use $crate::exec::kernels::scalar::SubByte;
        match $ty {
            E::S8 => {
                type $t = i8;
                $body
            }
            E::S16 => {
                type $t = i16;
                $body
            }
            E::S32 => {
                type $t = i32;
                $body
            }
            E::S64 => {
                type $t = i64;
                $body
            }
            E::U8 => {
                type $t = u8;
                $body
            }
            E::U16 => {
                type $t = u16;
                $body
            }
            E::U32 => {
                type $t = u32;
                $body
            }
            E::U64 => {
                type $t = u64;
                $body
            }
            E::S4 => {
                type $t = SubByte<4, true>;
                $body
            }
            E::U4 => {
                type $t = SubByte<4, false>;
                $body
            }
            E::S2 => {
                type $t = SubByte<2, true>;
                $body
            }
            E::U2 => {
                type $t = SubByte<2, false>;
                $body
            }
            E::S1 => {
                type $t = SubByte<1, true>;
                $body
            }
            E::U1 => {
                type $t = SubByte<1, false>;
                $body
            }
            _ => $other,
        }
    }};
}

/// `body` with `$t` bound to the Rust type of a complex element type; `$other` for the rest.
macro_rules! match_complex {
    ($ty:expr, $t:ident => $body:expr, _ => $other:expr) => {{
        use slabplan_ir::ElementType as E;
        use $crate::exec::kernels::complex::Complex;
        match $ty {
            E::C64 => {
                type $t = Complex<f32>;
                $body
            }
            E::C128 => {
                type $t = Complex<f64>;
                $body
            }
            _ => $other,
        }
    }};
}

pub(super) use {match_complex, match_int, match_narrow, match_real};

/// Bytes of one element as a `usize`.
pub(super) fn width(ty: ElementType) -> usize {
    ty.byte_width() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sub_byte_integers_wrap() {
        assert_eq!(SubByte::<4, true>::wrap(7).wide(), 7);
        assert_eq!(SubByte::<4, true>::wrap(8).wide(), -8);
        assert_eq!(SubByte::<4, false>::wrap(-1).wide(), 15);
        assert_eq!(SubByte::<2, true>::wrap(3).wide(), -1);
        assert_eq!(SubByte::<1, true>::wrap(1).wide(), -1);
        assert_eq!(SubByte::<1, false>::wrap(3).wide(), 1);
    }

    #[test]
    fn doubles_round_once() {
        // Just above the tie between 1 and the next f16: through a nearest f32 it would be the tie.
        let above = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(f16::narrow(above).to_f64(), 1.0 + 2f64.powi(-10));
        assert_eq!(f16::narrow(1.0 + 2f64.powi(-11)).to_f64(), 1.0);
        assert_eq!(f16::narrow(-above).to_f64(), -1.0 - 2f64.powi(-10));
    }
}
