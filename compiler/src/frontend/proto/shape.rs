//! Shapes and layouts of protos as HLO text.

use std::fmt::Write;

use slabplan_ir::ElementType;

use super::messages::{Layout, Shape};

/// `xla.PrimitiveType` numbers of what is not an array.
pub(super) const TUPLE: i32 = 13;
pub(super) const OPAQUE: i32 = 14;
pub(super) const TOKEN: i32 = 17;
pub(super) const BUFFER: i32 = 34;

/// Stands for `*` in a tile.
pub(super) const COMBINE: i64 = i64::MIN;

/// Appends a shape with its layouts.
pub(super) fn write_shape(out: &mut String, shape: &Shape) -> Result<(), String> {
    match shape.element_type {
        TUPLE => {
            out.push('(');
            for (i, s) in shape.tuple_shapes.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                write_shape(out, s)?;
            }
            out.push(')');
        }
        OPAQUE => out.push_str("opaque[]"),
        TOKEN => out.push_str("token[]"),
        BUFFER => {
            let inner = shape
                .tuple_shapes
                .first()
                .ok_or("a buffer shape without its array")?;
            out.push_str("b(");
            write_shape(out, inner)?;
            out.push(')');
        }
        number => {
            let element_type = u32::try_from(number)
                .ok()
                .and_then(ElementType::from_proto_number)
                .ok_or_else(|| format!("unknown element type {number}"))?;
            write_array(out, element_type, shape);
        }
    }
    Ok(())
}

fn write_array(out: &mut String, element_type: ElementType, shape: &Shape) {
    let _ = write!(out, "{element_type}[");
    for (i, &d) in shape.dimensions.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        let dynamic = shape.is_dynamic_dimension.get(i).copied().unwrap_or(false);
        match (dynamic, d) {
            (true, i64::MIN) => out.push('?'),
            (true, _) => {
                let _ = write!(out, "<={d}");
            }
            (false, _) => {
                let _ = write!(out, "{d}");
            }
        }
    }
    out.push(']');
    if let Some(layout) = &shape.layout {
        write_layout(out, layout);
    }
}

fn write_layout(out: &mut String, layout: &Layout) {
    let mut tail = String::new();
    for (i, tile) in layout.tiles.iter().enumerate() {
        tail.push_str(if i == 0 { "T(" } else { "(" });
        for (j, &d) in tile.dimensions.iter().enumerate() {
            if j > 0 {
                tail.push(',');
            }
            if d == COMBINE {
                tail.push('*');
            } else {
                let _ = write!(tail, "{d}");
            }
        }
        tail.push(')');
    }
    let mut item = |name: &str, value: i64, absent: &[i64]| {
        if !absent.contains(&value) {
            let _ = write!(tail, "{name}({value})");
        }
    };
    item("L", layout.tail_padding_alignment_in_elements, &[0, 1]);
    item("E", layout.element_size_in_bits, &[0]);
    item("S", layout.memory_space, &[0]);
    for (i, split) in layout.split_configs.iter().enumerate() {
        tail.push_str(if i == 0 { "SC(" } else { "(" });
        let _ = write!(tail, "{}:{})", split.dimension, join(&split.split_indices));
    }
    if layout.dynamic_shape_metadata_prefix_bytes != 0 {
        let _ = write!(tail, "M({})", layout.dynamic_shape_metadata_prefix_bytes);
    }
    if layout.minor_to_major.is_empty() && tail.is_empty() {
        return;
    }
    out.push('{');
    out.push_str(&join(&layout.minor_to_major));
    if !tail.is_empty() {
        out.push(':');
        out.push_str(&tail);
    }
    out.push('}');
}

/// `1,2,3`.
pub(super) fn join<T: ToString>(items: &[T]) -> String {
    items
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(",")
}
