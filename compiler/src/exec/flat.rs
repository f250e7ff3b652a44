//! Shapes seen as the list of their arrays, in preorder: the form in which operations take them.

use slabplan_ir::entity::ShapeId;
use slabplan_ir::shape::{Shape, ShapePool};

/// The arrays of a shape, in preorder; tokens and opaque values have none.
pub(crate) fn arrays(pool: &ShapePool, shape: ShapeId) -> Vec<ShapeId> {
    match pool.get(shape) {
        Shape::Array(_) => vec![shape],
        Shape::Tuple(_) => pool
            .preorder(shape)
            .into_iter()
            .filter(|&s| pool.array(s).is_some())
            .collect(),
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => Vec::new(),
    }
}

/// Which of the arrays of `tuple` belong to its element `index`.
pub(crate) fn element_range(
    pool: &ShapePool,
    tuple: ShapeId,
    index: usize,
) -> std::ops::Range<usize> {
    let elements = pool.tuple(tuple).unwrap_or(&[]);
    let count = |s: &[ShapeId]| s.iter().map(|&e| arrays(pool, e).len()).sum();
    let start = count(&elements[..index.min(elements.len())]);
    let len = elements.get(index).map_or(0, |&e| arrays(pool, e).len());
    start..start + len
}
