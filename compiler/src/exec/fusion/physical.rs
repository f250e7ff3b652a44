//! Fusions that can run over physical memory from end to end, padding included.
//!
//! Where every array has one layout and each element of a result is made of the elements at the
//! same index, and of scalars, the index does not matter: the loop goes through the padded bytes
//! as they lie, whatever the tiles.

use slabplan_ir::layout::Layout;
use slabplan_ir::shape::ArrayShape;

use super::Source;
use super::graph::{Dims, Graph, Kind, View};
use crate::exec::tiled::{TiledMap, plain_strides};

/// Turns `graph` into one on the padded memory of its arrays, if it can be.
pub(super) fn over_memory(
    graph: &mut Graph,
    operands: &[&ArrayShape],
    results: &[&ArrayShape],
) -> bool {
    let Some(elements) = padded_elements(graph, operands, results) else {
        return false;
    };
    for node in &mut graph.nodes {
        if node.dims.is_empty() {
            continue;
        }
        node.dims = Dims::from_elem(elements, 1);
        node.strides = Dims::from_elem(1, 1);
        if let Kind::Memory(view) = &mut node.kind {
            *view = View::whole(view.source, &node.strides);
        }
    }
    true
}

/// The elements of the common layout, padding included.
fn padded_elements(
    graph: &Graph,
    operands: &[&ArrayShape],
    results: &[&ArrayShape],
) -> Option<usize> {
    let &first = results.first()?;
    let map = TiledMap::new(first).ok()?;
    // Without padding and tiles the loop's own view of memory is as good.
    if first.dims.is_empty() || plain_strides(first).is_some() || map.is_dense() {
        return None;
    }
    let alike = |shape: &ArrayShape| {
        shape.dims == first.dims && layout(shape) == layout(first) && stored_as_is(shape)
    };
    if !results.iter().all(|r| alike(r)) {
        return None;
    }
    let fits = |node: &super::graph::Node| {
        let scalar = node.dims.is_empty();
        let same = node
            .dims
            .iter()
            .map(|&d| d as u64)
            .eq(first.dims.iter().copied());
        match &node.kind {
            Kind::Memory(view) => match view.source {
                Source::Operand(n) => scalar || (same && operands.get(n).is_some_and(|o| alike(o))),
                _ => scalar,
            },
            Kind::Compute { .. } => scalar || same,
            Kind::Move { of, .. } => scalar || (same && graph.nodes[*of].dims.is_empty()),
            Kind::Iota { .. } | Kind::Reshape { .. } | Kind::Result { .. } => false,
        }
    };
    let width = first.element_type.byte_width() as usize;
    graph
        .nodes
        .iter()
        .all(fits)
        .then(|| map.padded_bytes() / width)
}

/// The layout without the memory space.
fn layout(shape: &ArrayShape) -> Option<Layout> {
    let mut layout = shape.layout.clone()?;
    layout.memory_space = 0;
    // Says how wide an element is stored, which is looked at apart.
    layout.element_size_in_bits = 0;
    Some(layout)
}

/// Whether elements are stored as in dense form, and nothing but elements.
fn stored_as_is(shape: &ArrayShape) -> bool {
    let natural = shape.element_type.byte_width() as u32 * 8;
    shape.layout.as_ref().is_some_and(|l| {
        (l.element_size_in_bits == 0 || l.element_size_in_bits == natural)
            && l.dynamic_shape_metadata_prefix_bytes == 0
            && l.split_configs.is_empty()
    })
}
