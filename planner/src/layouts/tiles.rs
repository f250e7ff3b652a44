//! The tiles that a target gives an array whose dimensions lie in a given order.

use smallvec::SmallVec;

use slabplan_ir::layout::{Tile, TileDim};
use slabplan_ir::padding::{SizeError, padded_bytes};
use slabplan_ir::target::{Target, Tiling};
use slabplan_ir::{ArrayShape, Layout};

/// Logical dimension numbers, most minor first.
pub type Order = SmallVec<[u32; 6]>;

/// The array with its dimensions in `order`, tiled as `target` tiles its element type.
///
/// Memory space and whatever else a layout says beside order and tiles are kept.
pub fn tiled(array: &ArrayShape, order: &[u32], target: &Target) -> ArrayShape {
    let mut layout = array.layout.clone().unwrap_or_default();
    layout.minor_to_major = order.into();
    layout.tiles = SmallVec::new();
    if let Some(tiling) = target.tiling(array.element_type.bits()) {
        layout.tiles = tiles(array, &layout, tiling);
        if array.element_type.is_sub_byte() {
            layout.element_size_in_bits = array.element_type.bits();
        }
    }
    ArrayShape {
        layout: Some(layout),
        ..array.clone()
    }
}

/// Bytes of [`tiled`]; what has no size counts as the largest one.
pub fn tiled_bytes(array: &ArrayShape, order: &[u32], target: &Target) -> u64 {
    bytes_or_max(padded_bytes(&tiled(array, order, target)))
}

pub(super) fn bytes_or_max(size: Result<slabplan_ir::Bytes, SizeError>) -> u64 {
    size.map_or(u64::MAX, slabplan_ir::Bytes::get)
}

/// The default order: row-major.
pub fn row_major(rank: usize) -> Order {
    (0..rank as u32).rev().collect()
}

/// The tiles of one array: `(8,128)`, `(4,128)`, `(8,128)(2,1)`, `(1024)(128)(2,1)`, `(256)`.
fn tiles(array: &ArrayShape, layout: &Layout, tiling: &Tiling) -> SmallVec<[Tile; 2]> {
    let tile = |sizes: &[u64]| Tile(sizes.iter().map(|&n| TileDim::Size(n)).collect());
    let minor = |i: usize| array.dims[layout.minor_to_major[i] as usize];
    let packed = tiling.packing > 1;
    let mut tiles: SmallVec<[Tile; 2]> = SmallVec::new();
    match array.rank() {
        0 => tiles.push(tile(&[tiling.rank1_min])),
        1 => {
            let n = minor(0)
                .checked_next_power_of_two()
                .unwrap_or(tiling.rank1_max)
                .clamp(tiling.rank1_min, tiling.rank1_max);
            tiles.push(tile(&[n]));
            if packed {
                tiles.push(tile(&[tiling.lanes]));
                tiles.push(tile(&[tiling.packing, 1]));
            }
        }
        _ => {
            let rows = tiling
                .compact_sublanes
                .iter()
                .copied()
                .find(|&s| minor(1) <= s)
                .unwrap_or(tiling.sublanes);
            tiles.push(tile(&[rows, tiling.lanes]));
            if packed {
                tiles.push(tile(&[tiling.packing, 1]));
            }
        }
    }
    tiles
}
