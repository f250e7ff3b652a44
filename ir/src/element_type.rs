//! Element types of arrays and their widths.

use std::fmt;

macro_rules! element_types {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $number:literal, $bits:literal;)*) => {
        /// Element type of an array: every primitive type HLO has, but the
        /// ones that stand for whole shapes (tuple, token, opaque, buffer).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ElementType { $($(#[$doc])* $variant,)* }

        impl ElementType {
            /// All element types, in the order of their proto numbers.
            pub const ALL: &'static [ElementType] = &[$(ElementType::$variant,)*];

            /// The name HLO text uses.
            pub const fn name(self) -> &'static str {
                match self { $(ElementType::$variant => $name,)* }
            }

            /// The element type called `name` (lower case).
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(ElementType::$variant),)* _ => None }
            }

            /// The number in `xla.PrimitiveType`.
            pub const fn proto_number(self) -> u32 {
                match self { $(ElementType::$variant => $number,)* }
            }

            /// The element type with this number in `xla.PrimitiveType`.
            pub const fn from_proto_number(number: u32) -> Option<Self> {
                match number { $($number => Some(ElementType::$variant),)* _ => None }
            }

            /// Bits that carry information: 1 for `s1`, 4 for `f4e2m1fn`, 8 for `pred`.
            pub const fn bits(self) -> u32 {
                match self { $(ElementType::$variant => $bits,)* }
            }
        }
    };
}

element_types! {
    /// Boolean, one byte.
    Pred = "pred", 1, 8;
    /// Signed 8-bit integer.
    S8 = "s8", 2, 8;
    /// Signed 16-bit integer.
    S16 = "s16", 3, 16;
    /// Signed 32-bit integer.
    S32 = "s32", 4, 32;
    /// Signed 64-bit integer.
    S64 = "s64", 5, 64;
    /// Unsigned 8-bit integer.
    U8 = "u8", 6, 8;
    /// Unsigned 16-bit integer.
    U16 = "u16", 7, 16;
    /// Unsigned 32-bit integer.
    U32 = "u32", 8, 32;
    /// Unsigned 64-bit integer.
    U64 = "u64", 9, 64;
    /// IEEE half.
    F16 = "f16", 10, 16;
    /// IEEE single.
    F32 = "f32", 11, 32;
    /// IEEE double.
    F64 = "f64", 12, 64;
    /// Complex of two `f32`.
    C64 = "c64", 15, 64;
    /// bfloat16.
    Bf16 = "bf16", 16, 16;
    /// Complex of two `f64`.
    C128 = "c128", 18, 128;
    /// 8-bit float, 5 exponent bits, IEEE-like.
    F8e5m2 = "f8e5m2", 19, 8;
    /// 8-bit float, 4 exponent bits, finite.
    F8e4m3fn = "f8e4m3fn", 20, 8;
    /// Signed 4-bit integer.
    S4 = "s4", 21, 4;
    /// Unsigned 4-bit integer.
    U4 = "u4", 22, 4;
    /// 8-bit float, 4 exponent bits, bias 11, finite, unsigned zero.
    F8e4m3b11fnuz = "f8e4m3b11fnuz", 23, 8;
    /// 8-bit float, 5 exponent bits, finite, unsigned zero.
    F8e5m2fnuz = "f8e5m2fnuz", 24, 8;
    /// 8-bit float, 4 exponent bits, finite, unsigned zero.
    F8e4m3fnuz = "f8e4m3fnuz", 25, 8;
    /// Signed 2-bit integer.
    S2 = "s2", 26, 2;
    /// Unsigned 2-bit integer.
    U2 = "u2", 27, 2;
    /// 8-bit float, 4 exponent bits, IEEE-like.
    F8e4m3 = "f8e4m3", 28, 8;
    /// 8-bit float, 3 exponent bits, IEEE-like.
    F8e3m4 = "f8e3m4", 29, 8;
    /// Signed 1-bit integer.
    S1 = "s1", 30, 1;
    /// Unsigned 1-bit integer.
    U1 = "u1", 31, 1;
    /// 4-bit float.
    F4e2m1fn = "f4e2m1fn", 32, 4;
    /// 8-bit power-of-two scale.
    F8e8m0fnu = "f8e8m0fnu", 33, 8;
}

impl ElementType {
    /// Bytes one element takes in an unpacked array; sub-byte types take one.
    pub const fn byte_width(self) -> u64 {
        self.bits().div_ceil(8) as u64
    }

    /// Whether elements are narrower than a byte.
    pub const fn is_sub_byte(self) -> bool {
        self.bits() < 8
    }

    /// Whether this is a (real) floating-point type.
    pub const fn is_float(self) -> bool {
        use ElementType as E;
        matches!(
            self,
            E::F16
                | E::F32
                | E::F64
                | E::Bf16
                | E::F8e5m2
                | E::F8e4m3fn
                | E::F8e4m3b11fnuz
                | E::F8e5m2fnuz
                | E::F8e4m3fnuz
                | E::F8e4m3
                | E::F8e3m4
                | E::F4e2m1fn
                | E::F8e8m0fnu
        )
    }

    /// Whether this is `c64` or `c128`.
    pub const fn is_complex(self) -> bool {
        matches!(self, ElementType::C64 | ElementType::C128)
    }

    /// Whether this is a signed integer type.
    pub const fn is_signed_integer(self) -> bool {
        use ElementType as E;
        matches!(
            self,
            E::S1 | E::S2 | E::S4 | E::S8 | E::S16 | E::S32 | E::S64
        )
    }

    /// Whether this is an unsigned integer type (`pred` is not).
    pub const fn is_unsigned_integer(self) -> bool {
        use ElementType as E;
        matches!(
            self,
            E::U1 | E::U2 | E::U4 | E::U8 | E::U16 | E::U32 | E::U64
        )
    }

    /// Whether this is an integer type (`pred` is not).
    pub const fn is_integer(self) -> bool {
        self.is_signed_integer() || self.is_unsigned_integer()
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
