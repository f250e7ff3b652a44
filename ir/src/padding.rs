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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::EntityId;

    /// The shape written as `text`, as the parameter of a module.
    fn array(text: &str) -> ArrayShape {
        let module = crate::text::parse(&format!("ENTRY e {{ p = {text} parameter(0) }}"))
            .into_result()
            .unwrap_or_else(|errors| panic!("{text}: {}", errors[0]));
        let param = crate::InstrId::from_index(0);
        let shape = module.instrs[param].shape;
        module.shapes.array(shape).unwrap().clone()
    }

    #[track_caller]
    fn check(text: &str, logical: u64, padded: u64) {
        let array = array(text);
        assert_eq!(
            logical_bytes(&array).unwrap().get(),
            logical,
            "{text} logical"
        );
        assert_eq!(padded_bytes(&array).unwrap().get(), padded, "{text} padded");
    }

    #[test]
    fn tiles_of_32_bits() {
        check("f32[3,5]{1,0}", 60, 60);
        check("f32[3,5]{1,0:T(2,2)}", 60, 96);
        check("f32[129,1024]{1,0:T(8,128)}", 528_384, 557_056);
        check("f32[1,128]{1,0:T(8,128)}", 512, 4096);
        check("f32[1,128]{1,0:T(1,128)}", 512, 512);
        check("f32[4,2,2]{0,2,1:T(2,128)}", 64, 2048);
        // The order of the dimensions alone: 2.5 times as much.
        check("f32[2,3,5]{2,1,0:T(8,128)}", 120, 8192);
        check("f32[2,3,5]{0,1,2:T(8,128)}", 120, 20_480);
    }

    #[test]
    fn tiles_of_higher_rank_than_the_array() {
        check("f32[5]{0:T(8,128)}", 20, 4096);
        check("f32[]{:T(128)}", 4, 512);
        check("f32[384]{0:T(512)}", 1536, 2048);
    }

    #[test]
    fn second_tiles_that_divide_the_first() {
        check("bf16[1000,100]{1,0:T(8,128)(2,1)}", 200_000, 256_000);
        check("bf16[7,100]{1,0:T(8,128)(2,1)}", 1400, 2048);
        check("bf16[7,100]{1,0:T(16,128)(2,1)}", 1400, 4096);
        check("bf16[100]{0:T(256)(128)(2,1)}", 200, 512);
        check("bf16[6144]{0:T(1024)(128)(2,1)}", 12_288, 12_288);
        check("pred[1]{0:T(512)(128)(4,1)}", 1, 512);
        check("s8[5,200]{1,0:T(8,128)(4,1)}", 1000, 2048);
        check("s8[5,200]{1,0:T(32,128)(4,1)}", 1000, 8192);
    }

    #[test]
    fn second_tiles_that_pad() {
        // XLA's `ArraySize` looks at the first tile only and gives half of each.
        check("bf16[1,6144]{1,0:T(1,128)(2,1)}", 12_288, 24_576);
        check("bf16[8,128]{1,0:T(8,128)(2,1,1,1)}", 2048, 4096);
        // Six rows become two groups of four.
        check("bf16[6,128]{1,0:T(6,128)(4,1)}", 1536, 2048);
    }

    #[test]
    fn packed_elements() {
        check(
            "s4[9216,6144]{1,0:T(64,128)(8,1)E(4)}",
            28_311_552,
            28_311_552,
        );
        // 15 elements of half a byte: rounded up once, not row by row.
        check("s4[3,5]{1,0:E(4)}", 8, 8);
        check("s4[3,5]{1,0}", 15, 15);
    }

    #[test]
    fn combined_dimensions_and_tails() {
        check("f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", 49_280, 49_728);
        check("f32[3,5]{1,0:T(2,2)L(16)}", 60, 128);
    }

    #[test]
    fn reports_of_tpus() {
        const MIB: u64 = 1 << 20;
        check(
            "s32[8388608,8,4]{2,1,0:T(8,128)}",
            1024 * MIB,
            32 * 1024 * MIB,
        );
        check("s32[8388608,8,4]{0,2,1:T(4,128)}", 1024 * MIB, 1024 * MIB);
        check(
            "f32[1024,245,64]{1,2,0:T(8,128)}",
            61 * MIB + MIB / 4,
            64 * MIB,
        );
        check(
            "bf16[4,512,512,64]{3,0,2,1:T(4,128)(2,1)}",
            128 * MIB,
            256 * MIB,
        );
    }

    #[test]
    fn dynamic_dimensions_and_cuts() {
        check("f32[<=4,8]{1,0:M(64)}", 128, 128 + 64);
        // Cut at 10 and 20 of 32 rows: the largest part has 12.
        check("f32[32,8]{1,0:SC(0:10,20)}", 1024, 12 * 8 * 4);
        assert_eq!(
            padded_bytes(&array("f32[2,?]")),
            Err(SizeError::Unbounded { dimension: 1 })
        );
    }

    #[test]
    fn sizes_without_a_number() {
        let overflow = Err(SizeError::Overflow);
        assert_eq!(
            padded_bytes(&array("f32[4611686018427387904,16]")),
            overflow
        );
        assert_eq!(
            padded_bytes(&array("s8[9223372036854775807]{0:T(128)}")),
            overflow
        );
        assert_eq!(
            padded_bytes(&array("f32[8]{0:T(0)}")),
            Err(SizeError::BadTile)
        );
        assert_eq!(
            padded_bytes(&array("f32[8,8]{1,0:T(8,*)}")),
            Err(SizeError::BadTile)
        );
        assert_eq!(
            padded_bytes(&array("f32[0,4611686018427387904]"))
                .unwrap()
                .get(),
            0
        );
    }
}
