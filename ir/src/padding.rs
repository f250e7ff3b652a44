//! The one function that says how many bytes a shape occupies.
//!
//! XLA's `ShapeUtil::ArraySize` looks at the first tile only and so counts
//! too little where a later tile pads (`bf16[1,6144]{1,0:T(1,128)(2,1)}`);
//! this is the exact generalisation: apply every tile in turn to the physical
//! dimensions (pad, split, append), as XLA's document on tiled layouts
//! defines it. Both agree whenever later tiles divide earlier ones.

use smallvec::SmallVec;

use crate::entity::ShapeId;
use crate::layout::{SplitConfig, Tile, TileDim};
use crate::shape::{ArrayShape, Shape, ShapePool, UNBOUNDED};
use crate::units::{Bytes, UnitError};

/// Why a shape has no size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// More than 2^63 - 1 bytes.
    #[error("size overflows 2^63 - 1 bytes")]
    Overflow,
    /// A dimension written `?` has no bound to size by.
    #[error("dimension {dimension} is unbounded; give it a bound (`<=N`)")]
    Unbounded {
        /// Logical number of the dimension.
        dimension: usize,
    },
    /// A tile has a zero entry, or ends in `*`.
    #[error("malformed tile: entries must be positive and the last one a number")]
    BadTile,
}

impl From<UnitError> for SizeError {
    fn from(_: UnitError) -> Self {
        SizeError::Overflow
    }
}

/// Dimensions of the array as it lies in memory, major to minor.
pub type PhysicalDims = SmallVec<[u64; 8]>;

/// Bytes that `array` occupies in memory, padding included.
///
/// A dynamic dimension counts by its bound; `M(n)` metadata is added. O(rank + tiles).
pub fn padded_bytes(array: &ArrayShape) -> Result<Bytes, SizeError> {
    let elements = physical_dims(array)?
        .iter()
        .try_fold(1u64, |n, &d| n.checked_mul(d))
        .ok_or(SizeError::Overflow)?;
    let (tail, prefix) = array.layout.as_ref().map_or((1, 0), |l| {
        (
            l.tail_padding_alignment.0.max(1),
            l.dynamic_shape_metadata_prefix_bytes,
        )
    });
    let elements = elements
        .div_ceil(tail)
        .checked_mul(tail)
        .ok_or(SizeError::Overflow)?;
    Ok(element_bytes(array, elements)?.checked_add(Bytes::new(prefix)?)?)
}

/// Bytes of the elements alone, without tiles or tails (XLA's `ByteSizeOf`).
pub fn logical_bytes(array: &ArrayShape) -> Result<Bytes, SizeError> {
    check_bounded(array)?;
    element_bytes(array, array.element_count().ok_or(SizeError::Overflow)?)
}

/// Bytes of one part of a shape: padded bytes of an array, zero for what has none.
///
/// A tuple's index table is not counted: slabplan keeps none.
pub fn shape_bytes(pool: &ShapePool, id: ShapeId) -> Result<Bytes, SizeError> {
    match pool.get(id) {
        Shape::Array(a) => padded_bytes(a),
        // An address: the bytes are those of the array it points to.
        Shape::Buffer(inner) => shape_bytes(pool, *inner),
        Shape::Tuple(_) | Shape::Token | Shape::Opaque => Ok(Bytes::ZERO),
    }
}

/// The dimensions of the array in memory once every tile has been applied, major to minor.
///
/// For `f32[3,5]{1,0:T(2,2)}` these are `[2,3,2,2]`.
pub fn physical_dims(array: &ArrayShape) -> Result<PhysicalDims, SizeError> {
    check_bounded(array)?;
    let mut dims: PhysicalDims = array
        .minor_to_major()
        .iter()
        .rev()
        .map(|&d| array.dims[d as usize])
        .collect();
    let Some(layout) = &array.layout else {
        return Ok(dims);
    };
    for split in &layout.split_configs {
        apply_split(&mut dims, split);
    }
    for tile in &layout.tiles {
        dims = apply_tile(&dims, tile)?;
    }
    Ok(dims)
}

fn check_bounded(array: &ArrayShape) -> Result<(), SizeError> {
    match array.dims.iter().position(|&d| d == UNBOUNDED) {
        Some(dimension) => Err(SizeError::Unbounded { dimension }),
        None => Ok(()),
    }
}

/// `n` elements in bytes, packed where the layout says `E(n)`.
fn element_bytes(array: &ArrayShape, n: u64) -> Result<Bytes, SizeError> {
    let bits = array.layout.as_ref().map_or(0, |l| l.element_size_in_bits);
    if bits == 0 {
        return Ok(Bytes::new(n)?.checked_mul(array.element_type.byte_width())?);
    }
    let total = u128::from(n) * u128::from(bits);
    let bytes = u64::try_from(total.div_ceil(8)).map_err(|_| SizeError::Overflow)?;
    Ok(Bytes::new(bytes)?)
}

/// Reduces the split dimension to its largest part: the array is sized per core.
fn apply_split(dims: &mut PhysicalDims, split: &SplitConfig) {
    let Some(dim) = dims.get_mut(split.dimension as usize) else {
        return;
    };
    let mut largest = 0;
    let mut start = 0;
    for &cut in split.split_indices.iter().chain(std::iter::once(&*dim)) {
        largest = largest.max(cut.saturating_sub(start));
        start = start.max(cut);
    }
    *dim = largest;
}

/// Pads and splits the minor dimensions by one tile and appends the tile.
fn apply_tile(dims: &[u64], tile: &Tile) -> Result<PhysicalDims, SizeError> {
    // A tile of higher rank than the array sees leading dimensions of one.
    let missing = tile.0.len().saturating_sub(dims.len());
    let mut padded: PhysicalDims = std::iter::repeat_n(1, missing).collect();
    padded.extend_from_slice(dims);

    let first = padded.len() - tile.0.len();
    let mut outer: PhysicalDims = padded[..first].into();
    let mut inner = PhysicalDims::new();
    let mut combined = 1u64;
    for (&dim, entry) in padded[first..].iter().zip(&tile.0) {
        combined = combined.checked_mul(dim).ok_or(SizeError::Overflow)?;
        match *entry {
            TileDim::Combine => {}
            TileDim::Size(0) => return Err(SizeError::BadTile),
            TileDim::Size(t) => {
                outer.push(combined.div_ceil(t));
                inner.push(t);
                combined = 1;
            }
        }
    }
    if matches!(tile.0.last(), Some(TileDim::Combine)) {
        return Err(SizeError::BadTile);
    }
    outer.extend_from_slice(&inner);
    Ok(outer)
}
