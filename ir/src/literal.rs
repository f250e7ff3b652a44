//! Literals: the text between the parentheses of `constant(...)`, and its bytes.
//!
//! Bytes are in the dense host form: row-major logical order, little-endian,
//! one byte an element for `pred` and for types narrower than a byte.

mod print;

use std::ops::Range;

use crate::ElementType;
use crate::entity::ShapeId;
use crate::number;
use crate::shape::{ArrayShape, Shape, ShapePool};
use crate::text::cursor::{Cursor, Quotes};
use crate::text::diagnostic::{Fault, Rule, shown};

/// What is wrong with a literal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LiteralError {
    /// Bytes of the literal's text that are wrong.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
}

/// The arrays of a literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// Dense bytes of every array of the shape, in preorder; absent where the text is elided.
    pub arrays: Vec<Option<Vec<u8>>>,
}

/// Checks that `text` is a literal of `shape`, without storing its bytes. Linear in the text.
pub fn validate(shapes: &ShapePool, shape: ShapeId, text: &str) -> Result<(), LiteralError> {
    Reader::new(text, None).whole(shapes, shape)
}

/// The bytes of `text`, a literal of `shape`. Linear in the text.
pub fn decode(shapes: &ShapePool, shape: ShapeId, text: &str) -> Result<Literal, LiteralError> {
    let mut reader = Reader::new(text, Some(Vec::new()));
    reader.whole(shapes, shape)?;
    Ok(Literal {
        arrays: reader.arrays,
    })
}

/// Whether a part of the literal was left out as `{...}`.
pub fn is_elided(text: &str) -> bool {
    text.contains("...")
}

/// The text of a literal of `shape` as XLA prints it, which [`decode`] gives back bit by bit.
///
/// # Panics
/// If the arrays are not those of `shape`.
pub fn encode(shapes: &ShapePool, shape: ShapeId, literal: &Literal) -> String {
    let mut out = String::new();
    let mut arrays = literal.arrays.iter();
    print::encode_part(shapes, shape, &mut arrays, &mut out);
    out
}

/// Reads one literal.
struct Reader<'t> {
    cursor: Cursor<'t>,
    /// Bytes of the array being read, if they are wanted.
    bytes: Option<Vec<u8>>,
    arrays: Vec<Option<Vec<u8>>>,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str, bytes: Option<Vec<u8>>) -> Self {
        Self {
            cursor: Cursor::new(text),
            bytes,
            arrays: Vec::new(),
        }
    }

    fn whole(&mut self, shapes: &ShapePool, shape: ShapeId) -> Result<(), LiteralError> {
        self.part(shapes, shape)
            .and_then(|()| {
                self.cursor.skip_space();
                if self.cursor.at_end() {
                    Ok(())
                } else {
                    Err(self.cursor.unexpected("the end of the literal"))
                }
            })
            .map_err(|fault| {
                let diagnostic = fault.into_diagnostic();
                LiteralError {
                    span: diagnostic.span,
                    message: diagnostic.message,
                }
            })
    }

    /// The part of a literal that has shape `shape`.
    fn part(&mut self, shapes: &ShapePool, shape: ShapeId) -> Rule<()> {
        match shapes.get(shape) {
            Shape::Array(array) => self.array(array),
            // XLA prints a whole tuple as one elided literal.
            Shape::Tuple(_) if self.elided() => {
                let arrays = shapes.preorder(shape);
                let count = arrays
                    .iter()
                    .filter(|&&s| shapes.array(s).is_some())
                    .count();
                self.arrays.extend(std::iter::repeat_n(None, count));
                Ok(())
            }
            Shape::Tuple(elements) => {
                self.cursor.expect(b'(', "`(` before a tuple's elements")?;
                for (i, &element) in elements.iter().enumerate() {
                    if i > 0 {
                        self.cursor.expect(b',', "`,` between a tuple's elements")?;
                    }
                    self.part(shapes, element)?;
                }
                self.cursor.expect(b')', "`)` after a tuple's elements")
            }
            Shape::Token | Shape::Opaque | Shape::Buffer(_) => {
                let at = self.cursor.pos();
                Err(Fault::new(
                    at..self.cursor.text().len(),
                    "only arrays and tuples have literals",
                ))
            }
        }
    }

    fn array(&mut self, array: &ArrayShape) -> Rule<()> {
        if self.elided() {
            self.arrays.push(None);
            return Ok(());
        }
        if array.rank() == 0 {
            self.element(array.element_type)?;
        } else {
            self.dimension(array, 0)?;
        }
        if let Some(bytes) = &mut self.bytes {
            self.arrays.push(Some(std::mem::take(bytes)));
        }
        Ok(())
    }

    /// Whether `{...}` stands here; moves over it.
    fn elided(&mut self) -> bool {
        let mut probe = self.cursor.clone();
        let found = probe.eat(b'{') && probe.eat_str("...") && probe.eat(b'}');
        if found {
            self.cursor = probe;
        }
        found
    }

    /// The elements of dimension `dim` in braces.
    fn dimension(&mut self, array: &ArrayShape, dim: usize) -> Rule<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        self.cursor
            .expect(b'{', "`{` before the elements of a dimension")?;
        let mut count = 0;
        loop {
            while self.cursor.eat(b',') {}
            if self.cursor.eat(b'}') {
                break;
            }
            if self.cursor.at_end() {
                return Err(self.cursor.unexpected("an element or `}`"));
            }
            if count == array.dims[dim] {
                return Err(self.wrong_count(start, array, dim, "more"));
            }
            if dim + 1 == array.rank() {
                self.element(array.element_type)?;
            } else {
                self.dimension(array, dim + 1)?;
            }
            count += 1;
        }
        if count < array.dims[dim] {
            return Err(self.wrong_count(start, array, dim, "fewer"));
        }
        Ok(())
    }

    fn wrong_count(&self, start: usize, array: &ArrayShape, dim: usize, how: &str) -> Fault {
        Fault::new(
            start..self.cursor.pos(),
            format!(
                "{how} than {} elements in dimension {dim} of the literal",
                array.dims[dim]
            ),
        )
    }

    /// One element, appended to the bytes.
    fn element(&mut self, ty: ElementType) -> Rule<()> {
        if ty.is_complex() {
            let part = if ty == ElementType::C64 {
                ElementType::F32
            } else {
                ElementType::F64
            };
            self.cursor.expect(b'(', "`(` before a complex number")?;
            self.element(part)?;
            self.cursor.expect(b',', "`,` in a complex number")?;
            self.element(part)?;
            return self.cursor.expect(b')', "`)` after a complex number");
        }
        let span = self.number_span()?;
        let bits = number_bits(self.cursor.slice(span.clone()), ty)
            .map_err(|message| Fault::new(span, message))?;
        if let Some(bytes) = &mut self.bytes {
            let width = ty.byte_width() as usize;
            bytes.extend_from_slice(&bits.to_le_bytes()[..width]);
        }
        Ok(())
    }

    /// A number or a word, `nan(0x1)` as a whole.
    fn number_span(&mut self) -> Rule<Range<usize>> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        while matches!(
            self.cursor.peek(),
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'.' | b'-' | b'+'
        ) {
            self.cursor.bump();
        }
        if self.cursor.pos() == start {
            return Err(self.cursor.unexpected("a number"));
        }
        if self.cursor.peek() == b'(' {
            self.cursor.balanced(Quotes::Both, "NaN payload")?;
        }
        Ok(start..self.cursor.pos())
    }
}

/// The bits of one number of type `ty`, which is not complex.
fn number_bits(text: &str, ty: ElementType) -> Result<u64, String> {
    if ty == ElementType::Pred {
        return match text {
            "true" | "1" => Ok(1),
            "false" | "0" => Ok(0),
            _ => Err(format!("`{}` is not a value of pred", shown(text))),
        };
    }
    if ty.is_integer() {
        return integer_bits(text, ty);
    }
    float_bits(text, ty)
}

fn integer_bits(text: &str, ty: ElementType) -> Result<u64, String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let value = match text.parse::<i128>() {
        Ok(value) if digits.starts_with(|c: char| c.is_ascii_digit()) => value,
        _ => return Err(format!("`{}` is not an integer of 64 bits", shown(text))),
    };
    let bits = ty.bits();
    let (low, high) = if ty.is_signed_integer() {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else if bits == 64 {
        // XLA reads a negative number here as the same bits.
        (i128::from(i64::MIN), i128::from(u64::MAX))
    } else {
        (0, (1i128 << bits) - 1)
    };
    if value < low || high < value {
        return Err(format!(
            "{text} is out of the range of {ty}, {low} to {high}"
        ));
    }
    Ok(value as u64)
}

fn float_bits(text: &str, ty: ElementType) -> Result<u64, String> {
    let (negative, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if let Some(payload) = magnitude.strip_prefix("nan") {
        return nan_bits(payload, negative, ty);
    }
    let value = match magnitude {
        "inf" => f64::INFINITY,
        _ if magnitude.starts_with(|c: char| c.is_ascii_digit()) => magnitude
            .parse::<f64>()
            .map_err(|_| format!("`{}` is not a number", shown(text)))?,
        _ => return Err(format!("`{}` is not a number", shown(text))),
    };
    let value = if negative { -value } else { value };
    let bits = number::encode_float(ty, value);
    let decoded = number::decode_float(ty, bits);
    // XLA takes what rounds to the largest number, and an infinity written as one.
    if !decoded.is_finite() && magnitude != "inf" {
        return Err(format!("{} is out of the range of {ty}", shown(text)));
    }
    Ok(bits)
}

/// NaN with an optional payload `(0x...)`.
fn nan_bits(payload: &str, negative: bool, ty: ElementType) -> Result<u64, String> {
    let nan = number::encode_float(ty, if negative { -f64::NAN } else { f64::NAN });
    if payload.is_empty() {
        return Ok(nan);
    }
    let digits = payload
        .strip_prefix("(0x")
        .and_then(|p| p.strip_suffix(')'))
        .ok_or_else(|| format!("`{}` is not a NaN payload like `(0x1)`", shown(payload)))?;
    let value = u64::from_str_radix(digits, 16)
        .map_err(|_| format!("`{}` is not a NaN payload like `(0x1)`", shown(payload)))?;
    let mantissa = number::nan_payload_bits(ty);
    if mantissa == 0 {
        return Err(format!("{ty} has no NaN payloads"));
    }
    let mask = (1u64 << mantissa) - 1;
    if value == 0 || mask < value {
        return Err(format!(
            "NaN payload {value:#x} does not fit the {mantissa} mantissa bits of {ty}"
        ));
    }
    Ok(nan & !mask | value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(element_type: ElementType, dims: &[u64]) -> (ShapePool, ShapeId) {
        let mut shapes = ShapePool::new();
        let shape = shapes.intern_array(ArrayShape::new(element_type, dims));
        (shapes, shape)
    }

    /// The bytes of an array literal, after checking that text and bytes give each other.
    #[track_caller]
    fn bytes(element_type: ElementType, dims: &[u64], text: &str) -> Vec<u8> {
        let (shapes, shape) = pool(element_type, dims);
        validate(&shapes, shape, text).unwrap();
        let literal = decode(&shapes, shape, text).unwrap();
        let again = encode(&shapes, shape, &literal);
        assert_eq!(decode(&shapes, shape, &again).unwrap(), literal, "{again}");
        literal.arrays[0].clone().unwrap()
    }

    #[track_caller]
    fn refused(element_type: ElementType, dims: &[u64], text: &str, words: &str) {
        let (shapes, shape) = pool(element_type, dims);
        let error = validate(&shapes, shape, text).unwrap_err();
        assert!(error.message.contains(words), "{}", error.message);
        assert_eq!(decode(&shapes, shape, text).unwrap_err(), error);
        assert!(error.span.start <= error.span.end && error.span.end <= text.len());
    }

    /// Texts that XLA prints for these numbers.
    #[test]
    fn floats_as_xla_prints_them() {
        let text = |ty, value: f64| {
            let mut out = String::new();
            let bits = number::encode_float(ty, value);
            print::encode_float(ty, bits, &mut out);
            out
        };
        use ElementType as E;
        assert_eq!(text(E::F32, -1e9), "-1e+09");
        assert_eq!(text(E::F32, 1e-5), "1e-05");
        assert_eq!(text(E::F32, 1.0 / 768.0), "0.00130208337");
        assert_eq!(text(E::F32, 256.0), "256");
        assert_eq!(text(E::F32, -0.0), "-0");
        assert_eq!(text(E::F32, f64::NEG_INFINITY), "-inf");
        assert_eq!(text(E::Bf16, 0.044_677_734_375), "0.04468");
        assert_eq!(text(E::F64, 0.1), "0.1");
        assert_eq!(text(E::F64, 1.0 / 3.0), "0.33333333333333331");
        assert_eq!(text(E::F16, 65504.0), "65504");
    }

    #[test]
    fn integers() {
        use ElementType as E;
        assert_eq!(bytes(E::S8, &[3], "{-128, 0, 127}"), [0x80, 0, 0x7f]);
        assert_eq!(bytes(E::S4, &[2], "{-8, 7}"), [0xf8, 7]);
        assert_eq!(bytes(E::U4, &[2], "{0, 15}"), [0, 15]);
        assert_eq!(bytes(E::S1, &[2], "{-1, 0}"), [0xff, 0]);
        assert_eq!(bytes(E::U16, &[], "258"), [2, 1]);
        assert_eq!(
            bytes(E::S64, &[], "-9223372036854775808"),
            i64::MIN.to_le_bytes()
        );
        assert_eq!(bytes(E::U64, &[], "18446744073709551615"), [0xff; 8]);
        assert_eq!(bytes(E::U64, &[], "-1"), [0xff; 8]);
        refused(E::S8, &[], "128", "out of the range of s8, -128 to 127");
        refused(E::U8, &[], "-1", "out of the range of u8");
        refused(E::U2, &[], "4", "out of the range of u2, 0 to 3");
        refused(
            E::S64,
            &[],
            "9223372036854775808",
            "out of the range of s64",
        );
        refused(E::S32, &[], "1.0", "not an integer");
        refused(E::S32, &[], "true", "not an integer");
        refused(E::S32, &[], "+1", "not an integer");
    }

    #[test]
    fn predicates() {
        use ElementType as E;
        assert_eq!(
            bytes(E::Pred, &[2, 2], "{{1, 0}, {true, false}}"),
            [1, 0, 1, 0]
        );
        refused(E::Pred, &[], "2", "not a value of pred");
    }

    #[test]
    fn floats() {
        use ElementType as E;
        let f32s = |text: &str| f32::from_le_bytes(bytes(E::F32, &[], text).try_into().unwrap());
        assert_eq!(f32s("-1.5e3"), -1500.0);
        assert_eq!(f32s("1."), 1.0);
        assert_eq!(f32s("1e-45").to_bits(), 1);
        assert_eq!(f32s("-0").to_bits(), 0x8000_0000);
        assert_eq!(f32s("-inf"), f32::NEG_INFINITY);
        assert_eq!(f32s("nan").to_bits(), 0x7fc0_0000);
        assert_eq!(f32s("-nan(0x12)").to_bits(), 0xff80_0012);
        assert_eq!(bytes(E::F16, &[], "65519"), 0x7bffu16.to_le_bytes());
        assert_eq!(bytes(E::Bf16, &[], "nan(0x41)"), 0x7fc1u16.to_le_bytes());
        assert_eq!(bytes(E::F8e4m3fn, &[2], "{448, nan}"), [0x7e, 0x7f]);
        assert_eq!(bytes(E::F8e8m0fnu, &[2], "{0.25, 2}"), [125, 128]);
        assert_eq!(bytes(E::F4e2m1fn, &[2], "{6, -0.5}"), [7, 9]);
        refused(E::F32, &[], "1e39", "out of the range of f32");
        refused(E::F16, &[], "65520", "out of the range of f16");
        refused(E::F64, &[], "1e400", "out of the range of f64");
        refused(E::F8e4m3fn, &[], "465", "out of the range of f8e4m3fn");
        refused(E::F8e8m0fnu, &[], "0", "out of the range");
        refused(E::F8e4m3fn, &[], "nan(0x1)", "no NaN payloads");
        refused(
            E::F32,
            &[],
            "nan(0x800000)",
            "does not fit the 23 mantissa bits",
        );
        refused(E::F32, &[], "nan(0x0)", "does not fit");
        refused(E::F32, &[], "nan(7)", "not a NaN payload");
        refused(E::F32, &[], "0x10", "not a number");
        refused(E::F32, &[], ".5", "not a number");
        refused(E::F32, &[], "infinity", "not a number");
    }

    #[test]
    fn every_bit_pattern_of_a_narrow_float_survives_as_text() {
        for &ty in ElementType::ALL
            .iter()
            .filter(|t| t.is_float() && t.bits() <= 16)
        {
            let width = ty.byte_width() as usize;
            let count = 1u64 << ty.bits();
            let (shapes, shape) = pool(ty, &[count]);
            let dense: Vec<u8> = (0..count)
                .flat_map(|code| code.to_le_bytes()[..width].to_vec())
                .collect();
            let literal = Literal {
                arrays: vec![Some(dense)],
            };
            let text = encode(&shapes, shape, &literal);
            assert_eq!(decode(&shapes, shape, &text).as_ref(), Ok(&literal), "{ty}");
        }
    }

    #[test]
    fn complex_numbers() {
        use ElementType as E;
        let dense = bytes(E::C64, &[2], "{(1, -2.5), (nan, inf)}");
        assert_eq!(dense[..8], [0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0]);
        assert_eq!(bytes(E::C128, &[], "(0, 1)").len(), 16);
        refused(E::C64, &[], "1", "expected `(`");
        refused(E::C64, &[], "(1e39, 0)", "out of the range of f32");
    }

    #[test]
    fn nested_dimensions_with_comments() {
        let text = "{ { /*i0=0*/ {1, 2}, {3, 4} }, // first\n { {5,,6} {7 8} } }";
        assert_eq!(
            bytes(ElementType::U8, &[2, 2, 2], text),
            [1, 2, 3, 4, 5, 6, 7, 8]
        );
        assert!(bytes(ElementType::U8, &[2, 0], "{ {}, {} }").is_empty());
        assert!(bytes(ElementType::U8, &[0, 2], "{  }").is_empty());
        refused(ElementType::U8, &[2], "{1}", "fewer than 2");
        refused(ElementType::U8, &[2], "{1, 2, 3}", "more than 2");
        refused(ElementType::U8, &[2, 2], "{1, 2, 3, 4}", "expected `{`");
        refused(ElementType::U8, &[], "{1}", "expected a number");
        refused(ElementType::U8, &[2], "{1, 2}}", "end of the literal");
        refused(ElementType::U8, &[2], "{1, 2", "end of the text");
    }

    #[test]
    fn elided_parts_have_no_bytes() {
        let (mut shapes, array) = pool(ElementType::F32, &[1 << 40]);
        assert!(is_elided("{...}") && !is_elided("{1, 2}"));
        let elided = Literal { arrays: vec![None] };
        assert_eq!(decode(&shapes, array, "{...}"), Ok(elided.clone()));
        assert_eq!(encode(&shapes, array, &elided), "{...}");
        let scalar = shapes.intern_array(ArrayShape::new(ElementType::U8, &[]));
        let tuple = shapes.intern_tuple(&[scalar, array]);
        let mixed = decode(&shapes, tuple, "(5, {...})").unwrap();
        assert_eq!(mixed.arrays, [Some(vec![5]), None]);
        let whole = decode(&shapes, tuple, "{...}").unwrap();
        assert_eq!(whole.arrays, [None, None]);
    }

    #[test]
    fn tuples() {
        let mut shapes = ShapePool::new();
        let scalar = shapes.intern_array(ArrayShape::new(ElementType::S8, &[]));
        let array = shapes.intern_array(ArrayShape::new(ElementType::S8, &[2]));
        let empty = shapes.intern_tuple(&[]);
        let inner = shapes.intern_tuple(&[array]);
        let tuple = shapes.intern_tuple(&[scalar, inner, empty]);
        let literal = decode(&shapes, tuple, "(1, ({2, 3}), ())").unwrap();
        assert_eq!(literal.arrays, [Some(vec![1]), Some(vec![2, 3])]);
        assert_eq!(encode(&shapes, tuple, &literal), "(1, ({2, 3}), ())");
        let token = shapes.intern(Shape::Token);
        let error = validate(&shapes, token, "1").unwrap_err();
        assert!(error.message.contains("only arrays and tuples"));
    }
}
