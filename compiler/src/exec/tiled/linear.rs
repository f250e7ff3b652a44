//! The place of an element by the definition of tiling, for any layout.

use slabplan_ir::layout::TileDim;
use slabplan_ir::padding::{SizeError, physical_dims};
use slabplan_ir::shape::ArrayShape;

/// The place of every element, row-major. O(elements * (rank + tiles)).
pub(super) fn table(array: &ArrayShape) -> Result<Vec<u64>, SizeError> {
    let count = array.element_count().ok_or(SizeError::Overflow)?;
    let mut index = vec![0u64; array.rank()];
    let mut table = Vec::with_capacity(count as usize);
    for _ in 0..count {
        table.push(place(array, &index)?);
        for (i, &extent) in index.iter_mut().zip(&array.dims).rev() {
            *i += 1;
            if *i < extent {
                break;
            }
            *i = 0;
        }
    }
    Ok(table)
}

/// The place of the element at `index`: apply every tile to the index as
/// [`physical_dims`] applies it to the dimensions, then count row-major.
pub(super) fn place(array: &ArrayShape, index: &[u64]) -> Result<u64, SizeError> {
    let order = array.minor_to_major();
    let physical =
        |values: &[u64]| -> Vec<u64> { order.iter().rev().map(|&d| values[d as usize]).collect() };
    let mut dims = physical(&array.dims);
    let mut index = physical(index);
    for tile in array.layout.iter().flat_map(|l| &l.tiles) {
        let missing = tile.0.len().saturating_sub(dims.len());
        dims.splice(0..0, std::iter::repeat_n(1, missing));
        index.splice(0..0, std::iter::repeat_n(0, missing));
        let first = dims.len() - tile.0.len();
        let (tiled_dims, tiled_index) = (dims.split_off(first), index.split_off(first));
        let (mut inner_dims, mut inner_index) = (Vec::new(), Vec::new());
        let (mut dim, mut at) = (1, 0);
        for (i, entry) in tile.0.iter().enumerate() {
            dim *= tiled_dims[i];
            at = at * tiled_dims[i] + tiled_index[i];
            if let TileDim::Size(size) = *entry {
                dims.push(dim.div_ceil(size));
                index.push(at / size);
                inner_dims.push(size);
                inner_index.push(at % size);
                (dim, at) = (1, 0);
            }
        }
        dims.extend(inner_dims);
        index.extend(inner_index);
    }
    debug_assert_eq!(dims.as_slice(), physical_dims(array)?.as_slice());
    Ok(dims
        .iter()
        .zip(&index)
        .fold(0, |place, (&dim, &i)| place * dim + i))
}
