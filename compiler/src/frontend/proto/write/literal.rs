//! Literals.

use slabplan_ir::instr::Payload;
use slabplan_ir::literal::{decode, is_elided};
use slabplan_ir::shape::{self, ShapePool};
use slabplan_ir::{ArrayShape, ElementType, ShapeId};

use super::shape::{array, shape as write_shape, tuple};
use crate::frontend::proto::messages::Literal;

/// The proto of a literal; nothing where its values were left out of the text.
pub(super) fn literal(
    pool: &ShapePool,
    shape: ShapeId,
    text: &str,
) -> Result<Option<Literal>, String> {
    if is_elided(text) {
        return Ok(None);
    }
    let decoded = decode(pool, shape, text).map_err(|e| e.to_string())?;
    let mut arrays = decoded.arrays.into_iter();
    part(pool, shape, &mut arrays).map(Some)
}

/// The proto of a literal that stands for itself, as `f32[2]{0} {1, 2}` or `( f32[] 1, s32[] 2 )`.
pub(super) fn with_shape(text: &str) -> Result<Option<Literal>, String> {
    let text = text.trim();
    let Some(elements) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) else {
        return array_with_shape(text);
    };
    let mut literals = Vec::new();
    for element in elements_of(elements) {
        match with_shape(element)? {
            Some(literal) => literals.push(literal),
            None => return Ok(None),
        }
    }
    Ok(Some(Literal {
        shape: Some(tuple(
            literals.iter().filter_map(|it| it.shape.clone()).collect(),
        )),
        tuple_literals: literals,
        ..Literal::default()
    }))
}

/// What stands between the commas that are in no brackets; nothing after the last comma is no element.
fn elements_of(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0usize;
    let elements = text.split(move |c| {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    elements.filter(|it| !it.trim().is_empty())
}

fn array_with_shape(text: &str) -> Result<Option<Literal>, String> {
    let source = format!(
        "HloModule literal\nENTRY e {{ ROOT c = {} }}",
        constant(text)?
    );
    let module = slabplan_ir::text::parse(&source).into_result();
    let module = module.map_err(|d| d[0].to_string())?;
    let root = &module.instrs[module.entry().root];
    match root.payload {
        Payload::Literal(values) => literal(&module.shapes, root.shape, module.str(values)),
        _ => Err("expected a shape and values".to_owned()),
    }
}

/// A constant's shape and opcode, made of an array's shape and values.
fn constant(text: &str) -> Result<String, String> {
    let dims = text.find(']').ok_or("expected a shape and values")?;
    let layout = text[dims + 1..]
        .starts_with('{')
        .then(|| text[dims..].find('}'))
        .flatten();
    let (shape, values) = text.split_at(dims + layout.unwrap_or(0) + 1);
    Ok(format!("{shape} constant({})", values.trim()))
}

fn part(
    pool: &ShapePool,
    id: ShapeId,
    arrays: &mut impl Iterator<Item = Option<Vec<u8>>>,
) -> Result<Literal, String> {
    match pool.get(id) {
        shape::Shape::Array(a) => {
            let bytes = arrays.next().flatten().ok_or("a literal without values")?;
            Ok(values(a, &stored_order(a, &bytes)))
        }
        shape::Shape::Tuple(parts) => {
            let elements = parts.iter().map(|&p| part(pool, p, arrays));
            Ok(Literal {
                shape: Some(write_shape(pool, id)),
                tuple_literals: elements.collect::<Result<_, _>>()?,
                ..Literal::default()
            })
        }
        _ => Ok(Literal {
            shape: Some(write_shape(pool, id)),
            ..Literal::default()
        }),
    }
}

/// Row-major elements in the order of the array's layout.
fn stored_order(array: &ArrayShape, bytes: &[u8]) -> Vec<u8> {
    let order = array.minor_to_major();
    let rank = array.rank();
    if order.iter().map(|&d| d as usize).eq((0..rank).rev()) {
        return bytes.to_vec();
    }
    let width = array.element_type.byte_width() as usize;
    let mut strides = vec![width; rank];
    for d in (1..rank).rev() {
        strides[d - 1] = strides[d] * array.dims[d] as usize;
    }
    let mut index = vec![0u64; rank];
    let mut stored = Vec::with_capacity(bytes.len());
    while stored.len() < bytes.len() {
        let at: usize = (0..rank).map(|d| index[d] as usize * strides[d]).sum();
        stored.extend_from_slice(&bytes[at..at + width]);
        for &d in &order {
            let d = d as usize;
            index[d] += 1;
            if index[d] < array.dims[d] {
                break;
            }
            index[d] = 0;
        }
    }
    stored
}

fn values(shape: &ArrayShape, bytes: &[u8]) -> Literal {
    macro_rules! numbers {
        ($t:ty) => {
            bytes
                .chunks_exact(size_of::<$t>())
                .map(|c| <$t>::from_le_bytes(c.try_into().expect("chunks are of this size")))
                .collect()
        };
    }
    use ElementType as E;
    let raw = || bytes.to_vec();
    let mut l = Literal {
        shape: Some(array(shape)),
        ..Literal::default()
    };
    match shape.element_type {
        E::Pred => l.preds = bytes.iter().map(|&b| b != 0).collect(),
        E::S1 => l.s1s = masked(bytes, 1),
        E::S2 => l.s2s = masked(bytes, 2),
        E::S4 => l.s4s = masked(bytes, 4),
        E::S8 => l.s8s = raw(),
        E::S16 => l.s16s = raw(),
        E::S32 => l.s32s = numbers!(i32),
        E::S64 => l.s64s = numbers!(i64),
        E::U1 => l.u1s = raw(),
        E::U2 => l.u2s = raw(),
        E::U4 => l.u4s = raw(),
        E::U8 => l.u8s = raw(),
        E::U16 => l.u16s = raw(),
        E::U32 => l.u32s = numbers!(u32),
        E::U64 => l.u64s = numbers!(u64),
        E::F16 => l.f16s = raw(),
        E::Bf16 => l.bf16s = raw(),
        E::F32 => l.f32s = numbers!(f32),
        E::F64 => l.f64s = numbers!(f64),
        E::C64 => l.c64s = numbers!(f32),
        E::C128 => l.c128s = numbers!(f64),
        E::F8e5m2 => l.f8e5m2s = raw(),
        E::F8e4m3fn => l.f8e4m3fns = raw(),
        E::F8e4m3b11fnuz => l.f8e4m3b11fnuzs = raw(),
        E::F8e5m2fnuz => l.f8e5m2fnuzs = raw(),
        E::F8e4m3fnuz => l.f8e4m3fnuzs = raw(),
        E::F8e4m3 => l.f8e4m3s = raw(),
        E::F8e3m4 => l.f8e3m4s = raw(),
        E::F4e2m1fn => l.f4e2m1fns = raw(),
        E::F8e8m0fnu => l.f8e8m0fnus = raw(),
    }
    l
}

/// Narrow signed integers are stored without the sign's copies.
fn masked(bytes: &[u8], bits: u32) -> Vec<u8> {
    let mask = (1u8 << bits) - 1;
    bytes.iter().map(|b| b & mask).collect()
}
