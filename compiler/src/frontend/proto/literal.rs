//! Literals of protos as HLO text.

use slabplan_ir::literal::{Literal as Decoded, encode};
use slabplan_ir::{ArrayShape, ElementType, ShapePool};

use super::messages::{Literal, Shape};
use super::shape::{TUPLE, write_shape};

/// Appends a literal; one that was left out of the proto is written `{...}`.
pub(super) fn write_literal(out: &mut String, value: Option<&Literal>) -> Result<(), String> {
    let Some(value) = value else {
        out.push_str("{...}");
        return Ok(());
    };
    if !value.tuple_literals.is_empty() {
        out.push('(');
        for (i, element) in value.tuple_literals.iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            write_literal(out, Some(element))?;
        }
        out.push(')');
        return Ok(());
    }
    let shape = value.shape.as_ref().ok_or("a literal without a shape")?;
    let array = array_shape(shape)?;
    let count = array.element_count().ok_or("a literal that is too large")?;
    let stored = stored_bytes(value, array.element_type);
    let width = array.element_type.byte_width();
    if Some(stored.len() as u64) != count.checked_mul(width) {
        return Err(format!(
            "a literal of {count} elements has {} bytes of values, not {width} each",
            stored.len()
        ));
    }
    let order = minor_to_major(shape, array.rank())?;
    let bytes = row_major(&stored, &array, &order, width as usize);
    let mut shapes = ShapePool::new();
    let id = shapes.intern_array(array);
    let arrays = vec![Some(bytes)];
    out.push_str(&encode(&shapes, id, &Decoded { arrays }));
    Ok(())
}

/// Appends a literal that stands for itself: an array with its shape before it, a tuple as such literals in parentheses.
pub(super) fn write_literal_with_shape(out: &mut String, value: &Literal) -> Result<(), String> {
    let shape = value.shape.as_ref().ok_or("a literal without a shape")?;
    if shape.element_type != TUPLE {
        write_shape(out, shape)?;
        out.push(' ');
        return write_literal(out, Some(value));
    }
    out.push_str("( ");
    for (i, element) in value.tuple_literals.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        write_literal_with_shape(out, element)?;
    }
    out.push_str(" )");
    Ok(())
}

fn array_shape(shape: &Shape) -> Result<ArrayShape, String> {
    let element_type = u32::try_from(shape.element_type)
        .ok()
        .and_then(ElementType::from_proto_number)
        .ok_or("a literal of no array type")?;
    let dims = shape
        .dimensions
        .iter()
        .map(|&d| u64::try_from(d).map_err(|_| "a literal with a negative dimension".to_owned()))
        .collect::<Result<Vec<u64>, _>>()?;
    Ok(ArrayShape::new(element_type, &dims))
}

/// The values in the order of the proto, little-endian.
fn stored_bytes(l: &Literal, element_type: ElementType) -> Vec<u8> {
    macro_rules! le {
        ($list:expr) => {
            $list.iter().flat_map(|v| v.to_le_bytes()).collect()
        };
    }
    use ElementType as E;
    match element_type {
        E::Pred => l.preds.iter().map(|&b| u8::from(b)).collect(),
        E::S1 => sign_extended(&l.s1s, 1),
        E::S2 => sign_extended(&l.s2s, 2),
        E::S4 => sign_extended(&l.s4s, 4),
        E::S8 => l.s8s.clone(),
        E::S16 => l.s16s.clone(),
        E::S32 => le!(l.s32s),
        E::S64 => le!(l.s64s),
        E::U1 => l.u1s.clone(),
        E::U2 => l.u2s.clone(),
        E::U4 => l.u4s.clone(),
        E::U8 => l.u8s.clone(),
        E::U16 => l.u16s.clone(),
        E::U32 => le!(l.u32s),
        E::U64 => le!(l.u64s),
        E::F16 => l.f16s.clone(),
        E::Bf16 => l.bf16s.clone(),
        E::F32 => le!(l.f32s),
        E::F64 => le!(l.f64s),
        E::C64 => le!(l.c64s),
        E::C128 => le!(l.c128s),
        E::F8e5m2 => l.f8e5m2s.clone(),
        E::F8e4m3fn => l.f8e4m3fns.clone(),
        E::F8e4m3b11fnuz => l.f8e4m3b11fnuzs.clone(),
        E::F8e5m2fnuz => l.f8e5m2fnuzs.clone(),
        E::F8e4m3fnuz => l.f8e4m3fnuzs.clone(),
        E::F8e4m3 => l.f8e4m3s.clone(),
        E::F8e3m4 => l.f8e3m4s.clone(),
        E::F4e2m1fn => l.f4e2m1fns.clone(),
        E::F8e8m0fnu => l.f8e8m0fnus.clone(),
    }
}

/// Narrow signed integers are stored masked, one a byte.
fn sign_extended(bytes: &[u8], bits: u32) -> Vec<u8> {
    let shift = 8 - bits;
    bytes
        .iter()
        .map(|&b| (((b << shift) as i8) >> shift) as u8)
        .collect()
}

/// Checked to be a permutation, descending where the literal has no layout.
fn minor_to_major(shape: &Shape, rank: usize) -> Result<Vec<usize>, String> {
    let listed = shape.layout.as_ref().map_or(&[][..], |l| &l.minor_to_major);
    if listed.is_empty() {
        return Ok((0..rank).rev().collect());
    }
    let order: Vec<usize> = listed
        .iter()
        .filter_map(|&d| usize::try_from(d).ok())
        .collect();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if sorted.into_iter().eq(0..rank) {
        Ok(order)
    } else {
        Err("a literal's layout does not name every dimension once".to_owned())
    }
}

/// Elements stored in the order of `minor_to_major`, reordered to row-major.
fn row_major(stored: &[u8], array: &ArrayShape, minor_to_major: &[usize], width: usize) -> Vec<u8> {
    if minor_to_major.iter().copied().eq((0..array.rank()).rev()) {
        return stored.to_vec();
    }
    let mut strides = vec![0usize; array.rank()];
    let mut step = 1;
    for &d in minor_to_major {
        strides[d] = step;
        step *= array.dims[d] as usize;
    }
    let mut index = vec![0u64; array.rank()];
    let mut bytes = Vec::with_capacity(stored.len());
    while bytes.len() < stored.len() {
        let at: usize = index
            .iter()
            .zip(&strides)
            .map(|(&i, s)| i as usize * s)
            .sum();
        bytes.extend_from_slice(&stored[at * width..(at + 1) * width]);
        for d in (0..array.rank()).rev() {
            index[d] += 1;
            if index[d] < array.dims[d] {
                break;
            }
            index[d] = 0;
        }
    }
    bytes
}
