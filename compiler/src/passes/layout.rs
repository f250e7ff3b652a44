//! Gives every array the target's default tiled layout where the module does not say.

use slabplan_ir::layout::{Tile, TileDim};
use slabplan_ir::module::EntryLayout;
use slabplan_ir::target::{Target, Tiling};
use slabplan_ir::{ArrayShape, EntityId, Layout, Module, Opcode, Shape, ShapeId};

use super::{entry_layout, forwarded_layouts};
use crate::pass::{Changed, Pass, PassError, Property, Unit};

/// Assigns default layouts and tilings, and the entry the layouts that the header promises its caller.
///
/// A module that was compiled for a machine keeps its layouts: one that is scheduled, or one with
/// a bitcast, which means bytes and not elements.
pub struct AssignLayouts;

impl Pass for AssignLayouts {
    fn name(&self) -> &'static str {
        "assign-layouts"
    }

    fn description(&self) -> &'static str {
        "give arrays without a layout the target's default tiled one"
    }

    fn ensures(&self) -> &'static [Property] {
        &[Property::LaidOut]
    }

    fn run(&self, unit: &mut Unit<'_>) -> Result<Changed, PassError> {
        let given = layouts_are_given(&unit.module);
        entry_layout::complete(&mut unit.module);
        let assigned = assign(&mut unit.module, unit.target, !given);
        let settled = !given && forwarded_layouts::settle(&mut unit.module);
        let enforced = entry_layout::enforce(&mut unit.module);
        Ok(Changed(assigned || settled || enforced))
    }
}

/// Whether the module's layouts say where its elements lie, so that they must stay.
fn layouts_are_given(module: &Module) -> bool {
    module.is_scheduled || module.instrs.values().any(|i| i.opcode == Opcode::Bitcast)
}

/// Rewrites every shape of the module; returns whether any changed.
fn assign(module: &mut Module, target: &Target, tile: bool) -> bool {
    // A tuple's elements are interned before the tuple, so one ascending walk meets parts first.
    let old: Vec<ShapeId> = module.shapes.ids().collect();
    let mut new: Vec<ShapeId> = Vec::with_capacity(old.len());
    for &id in &old {
        let shape = match module.shapes.get(id) {
            Shape::Array(a) => Shape::Array(with_layout(a, target, tile)),
            Shape::Tuple(elements) => {
                Shape::Tuple(elements.iter().map(|e| new[e.index()]).collect())
            }
            Shape::Buffer(inner) => Shape::Buffer(new[inner.index()]),
            other => other.clone(),
        };
        new.push(module.shapes.intern(shape));
    }
    if old == new {
        return false;
    }
    for instr in module.instrs.values_mut() {
        instr.shape = new[instr.shape.index()];
    }
    if let Some(EntryLayout { parameters, result }) = &mut module.entry_layout {
        for shape in parameters {
            *shape = new[shape.index()];
        }
        *result = new[result.index()];
    }
    true
}

/// The array with the layout that `target` gives it by default.
pub(crate) fn default_layout(array: &ArrayShape, target: &Target) -> ArrayShape {
    with_layout(array, target, true)
}

/// The array with a layout, tiled as the target does unless it is tiled or `tile` is false.
fn with_layout(array: &ArrayShape, target: &Target, tile: bool) -> ArrayShape {
    let mut array = array.clone();
    let mut layout = array
        .layout
        .take()
        .unwrap_or_else(|| Layout::row_major(array.rank()));
    if tile
        && layout.tiles.is_empty()
        && let Some(tiling) = target.tiling(array.element_type.bits())
    {
        layout.tiles = default_tiles(&array, &layout, tiling);
        if array.element_type.is_sub_byte() {
            layout.element_size_in_bits = array.element_type.bits();
        }
    }
    array.layout = Some(layout);
    array
}

/// The tiles of one array: `(8,128)`, `(4,128)`, `(8,128)(2,1)`, `(1024)(128)(2,1)`, `(256)`.
fn default_tiles(
    array: &ArrayShape,
    layout: &Layout,
    tiling: &Tiling,
) -> smallvec::SmallVec<[Tile; 2]> {
    let tile = |sizes: &[u64]| Tile(sizes.iter().map(|&n| TileDim::Size(n)).collect());
    let packed = tiling.packing > 1;
    let minor = |i: usize| array.dims[layout.minor_to_major[i] as usize];
    match array.rank() {
        0 => [tile(&[tiling.rank1_min])].into_iter().collect(),
        1 => {
            let n = minor(0)
                .checked_next_power_of_two()
                .unwrap_or(tiling.rank1_max)
                .clamp(tiling.rank1_min, tiling.rank1_max);
            let mut tiles: smallvec::SmallVec<[Tile; 2]> = [tile(&[n])].into_iter().collect();
            if packed {
                tiles.push(tile(&[tiling.lanes]));
                tiles.push(tile(&[tiling.packing, 1]));
            }
            tiles
        }
        _ => {
            let rows = tiling
                .compact_sublanes
                .iter()
                .copied()
                .find(|&s| minor(1) <= s)
                .unwrap_or(tiling.sublanes);
            let mut tiles: smallvec::SmallVec<[Tile; 2]> =
                [tile(&[rows, tiling.lanes])].into_iter().collect();
            if packed {
                tiles.push(tile(&[tiling.packing, 1]));
            }
            tiles
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slabplan_ir::ElementType::{self, Bf16, F32, Pred, S4};

    fn laid_out(element_type: ElementType, dims: &[u64]) -> String {
        let target = crate::target::load("tpu-v5e").unwrap();
        let array = with_layout(&ArrayShape::new(element_type, dims), &target, true);
        array.layout.unwrap().to_string()
    }

    /// Expectations are the layouts XLA:TPU gives the same arrays.
    #[test]
    fn tiles_are_those_of_xla() {
        assert_eq!(laid_out(F32, &[129, 1024]), "{1,0:T(8,128)}");
        assert_eq!(laid_out(F32, &[4, 1, 768]), "{2,1,0:T(1,128)}");
        assert_eq!(laid_out(F32, &[2, 10]), "{1,0:T(2,128)}");
        assert_eq!(laid_out(F32, &[3, 100]), "{1,0:T(4,128)}");
        assert_eq!(laid_out(F32, &[]), "{:T(128)}");
        assert_eq!(laid_out(Pred, &[]), "{:T(512)}");
        assert_eq!(laid_out(F32, &[16]), "{0:T(128)}");
        assert_eq!(laid_out(F32, &[384]), "{0:T(512)}");
        assert_eq!(laid_out(F32, &[5000]), "{0:T(1024)}");
        assert_eq!(laid_out(Bf16, &[6144]), "{0:T(1024)(128)(2,1)}");
        assert_eq!(laid_out(Bf16, &[128]), "{0:T(256)(128)(2,1)}");
        assert_eq!(laid_out(Pred, &[1]), "{0:T(512)(128)(4,1)}");
        assert_eq!(laid_out(Bf16, &[1000, 100]), "{1,0:T(8,128)(2,1)}");
        assert_eq!(laid_out(S4, &[9216, 6144]), "{1,0:T(64,128)(8,1)E(4)}");
    }
}
