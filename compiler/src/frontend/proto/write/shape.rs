//! Shapes and layouts.

use slabplan_ir::layout::TileDim;
use slabplan_ir::shape::{self, ShapePool, UNBOUNDED};
use slabplan_ir::{ArrayShape, ShapeId};

use crate::frontend::proto::messages::{Layout, Shape, SplitConfig, Tile};
use crate::frontend::proto::shape::{BUFFER, COMBINE, OPAQUE, TOKEN, TUPLE};

/// The proto of a shape. O(its arrays).
pub(super) fn shape(pool: &ShapePool, id: ShapeId) -> Shape {
    let of = |element_type, parts: &[ShapeId]| Shape {
        element_type,
        ..tuple(parts.iter().map(|&p| shape(pool, p)).collect())
    };
    match pool.get(id) {
        shape::Shape::Array(a) => array(a),
        shape::Shape::Tuple(parts) => of(TUPLE, parts),
        shape::Shape::Token => of(TOKEN, &[]),
        shape::Shape::Opaque => of(OPAQUE, &[]),
        shape::Shape::Buffer(inner) => of(BUFFER, std::slice::from_ref(inner)),
    }
}

/// The proto of a tuple.
pub(super) fn tuple(parts: Vec<Shape>) -> Shape {
    Shape {
        element_type: TUPLE,
        tuple_shapes: parts,
        ..Shape::default()
    }
}

/// The proto of an array.
pub(super) fn array(array: &ArrayShape) -> Shape {
    let dims = array.dims.iter();
    Shape {
        element_type: array.element_type.proto_number() as i32,
        dimensions: dims
            .map(|&d| if d == UNBOUNDED { i64::MIN } else { d as i64 })
            .collect(),
        tuple_shapes: Vec::new(),
        layout: Some(layout(array)),
        is_dynamic_dimension: (0..array.rank())
            .map(|d| array.dynamic >> d & 1 == 1)
            .collect(),
    }
}

/// A part of a shape.
pub(super) fn index(index: &[u32]) -> Vec<i64> {
    index.iter().map(|&n| i64::from(n)).collect()
}

fn layout(array: &ArrayShape) -> Layout {
    let order = array.minor_to_major();
    let minor_to_major = order.iter().map(|&d| i64::from(d)).collect();
    let Some(layout) = &array.layout else {
        return Layout {
            minor_to_major,
            tail_padding_alignment_in_elements: 1,
            ..Layout::default()
        };
    };
    let tile = |t: &slabplan_ir::layout::Tile| Tile {
        dimensions: t
            .0
            .iter()
            .map(|d| match d {
                TileDim::Size(n) => *n as i64,
                TileDim::Combine => COMBINE,
            })
            .collect(),
    };
    Layout {
        minor_to_major,
        tiles: layout.tiles.iter().map(tile).collect(),
        element_size_in_bits: i64::from(layout.element_size_in_bits),
        memory_space: i64::from(layout.memory_space),
        dynamic_shape_metadata_prefix_bytes: layout.dynamic_shape_metadata_prefix_bytes as i64,
        tail_padding_alignment_in_elements: layout.tail_padding_alignment.0 as i64,
        split_configs: layout
            .split_configs
            .iter()
            .map(|s| SplitConfig {
                dimension: s.dimension as i64,
                split_indices: s.split_indices.iter().map(|&i| i as i64).collect(),
            })
            .collect(),
    }
}
