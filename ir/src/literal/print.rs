//! Literals as text, number by number as XLA prints them.

use std::fmt::Write;

use crate::ElementType;
use crate::entity::ShapeId;
use crate::number;
use crate::shape::{ArrayShape, Shape, ShapePool};

/// Appends the part of a literal that has shape `shape`.
pub(super) fn encode_part<'a>(
    shapes: &ShapePool,
    shape: ShapeId,
    arrays: &mut impl Iterator<Item = &'a Option<Vec<u8>>>,
    out: &mut String,
) {
    match shapes.get(shape) {
        Shape::Tuple(elements) => {
            out.push('(');
            for (i, &element) in elements.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                encode_part(shapes, element, arrays, out);
            }
            out.push(')');
        }
        Shape::Array(array) => match arrays.next().expect("an entry for every array") {
            None => out.push_str("{...}"),
            Some(bytes) => {
                let mut elements = bytes.chunks_exact(array.element_type.byte_width() as usize);
                encode_dimension(array, 0, None, &mut elements, out);
            }
        },
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => {}
    }
}

/// Part `number` of the dimension before `dim`, as XLA prints it in one line.
fn encode_dimension<'a>(
    array: &ArrayShape,
    dim: usize,
    number: Option<u64>,
    elements: &mut impl Iterator<Item = &'a [u8]>,
    out: &mut String,
) {
    if dim == array.rank() {
        let element = elements.next().expect("bytes of every element");
        return encode_element(array.element_type, array.rank(), element, out);
    }
    let (size, rank) = (array.dims[dim], array.rank());
    let innermost = dim + 1 == rank;
    // XLA's spacing: none in a vector and around a single number.
    let space = if rank == 1 || innermost && size < 2 {
        ""
    } else {
        " "
    };
    out.push('{');
    // XLA numbers the outer dimensions where there are many.
    if let Some(i) = number.filter(|_| rank > 3 && !innermost) {
        let _ = write!(out, " /*i{}={i}*/", dim - 1);
    }
    out.push_str(space);
    for i in 0..size {
        if i > 0 {
            out.push_str(", ");
        }
        encode_dimension(array, dim + 1, Some(i), elements, out);
    }
    out.push_str(space);
    out.push('}');
}

fn encode_element(ty: ElementType, rank: usize, bytes: &[u8], out: &mut String) {
    if ty.is_complex() {
        let (part, half) = if ty == ElementType::C64 {
            (ElementType::F32, 4)
        } else {
            (ElementType::F64, 8)
        };
        out.push('(');
        encode_element(part, rank, &bytes[..half], out);
        out.push_str(", ");
        encode_element(part, rank, &bytes[half..], out);
        out.push(')');
        return;
    }
    let bits = number::read_bits(bytes);
    if ty.is_float() {
        return encode_float(ty, bits, out);
    }
    let text = if ty == ElementType::Pred {
        // XLA writes words alone and digits in lists.
        let in_list = rank > 0;
        if in_list {
            u8::from(bits != 0).to_string()
        } else {
            (bits != 0).to_string()
        }
    } else if ty.is_signed_integer() {
        let unused = 64 - ty.bits();
        (((bits << unused) as i64) >> unused).to_string()
    } else {
        let unused = 64 - ty.bits();
        (bits << unused >> unused).to_string()
    };
    out.push_str(&text);
}

pub(super) fn encode_float(ty: ElementType, bits: u64, out: &mut String) {
    let value = number::decode_float(ty, bits);
    if value.is_nan() {
        let negative = ty != ElementType::F8e8m0fnu && bits >> number::magnitude_bits(ty) & 1 == 1;
        if negative {
            out.push('-');
        }
        out.push_str("nan");
        let plain = number::encode_float(ty, if negative { -f64::NAN } else { f64::NAN });
        if plain != bits {
            let payload = bits & ((1 << number::nan_payload_bits(ty)) - 1);
            write!(out, "(0x{payload:x})").expect("strings take any text");
        }
        return;
    }
    // As XLA: few digits where they are enough, otherwise as many as always are.
    let (few, many) = digits(ty);
    let start = out.len();
    general(value, few, out);
    let reads_back = out[start..]
        .parse()
        .is_ok_and(|v: f64| number::encode_float(ty, v) == bits);
    if !reads_back {
        out.truncate(start);
        general(value, many, out);
    }
}

/// Decimal digits that survive a wide float type, and those that tell all numbers of a type apart.
fn digits(ty: ElementType) -> (usize, usize) {
    use ElementType as E;
    match ty {
        E::F64 => (15, 17),
        E::F32 => (6, 9),
        E::F16 => (5, 5),
        E::Bf16 => (4, 4),
        E::F8e5m2 | E::F8e5m2fnuz | E::F4e2m1fn | E::F8e8m0fnu => (2, 2),
        _ => (3, 3),
    }
}

/// `value` as C's `%.{digits}g` prints it.
fn general(value: f64, digits: usize, out: &mut String) {
    if !value.is_finite() {
        out.push_str(if value < 0.0 { "-inf" } else { "inf" });
        return;
    }
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..digits as i32).contains(&exponent) {
        let decimals = (digits as i32 - 1 - exponent) as usize;
        out.push_str(without_zeros(&format!("{value:.decimals$}")));
    } else {
        out.push_str(without_zeros(mantissa));
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(out, "e{sign}{:02}", exponent.abs()).expect("strings take any text");
    }
}

/// A decimal fraction without the zeros at its end.
fn without_zeros(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}
