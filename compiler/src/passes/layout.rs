//! Gives every array the target's default tiled layout where the module does not say.

use slabplan_ir::module::EntryLayout;
use slabplan_ir::target::Target;
use slabplan_ir::{ArrayShape, EntityId, Layout, Module, Opcode, Shape, ShapeId};
use slabplan_planner::layouts::{self, LayoutConfig, tiled};

use super::{assign_layouts, entry_layout, forwarded_layouts, operand_aliases};
use crate::config::LayoutMode;
use crate::pass::{Changed, Pass, PassError, Property, Unit};

/// Assigns layouts and tilings: default ones, or those that take least memory; and the entry the layouts
/// that the header promises its caller.
///
/// Under [`LayoutMode::Default`] a module that was compiled for a machine keeps its layouts: one that is scheduled, or one with
/// a bitcast, which means bytes and not elements.
pub struct AssignLayouts;

impl Pass for AssignLayouts {
    fn name(&self) -> &'static str {
        "assign-layouts"
    }

    fn description(&self) -> &'static str {
        "give arrays a tiled layout of the target: the default one, or that of least padding"
    }

    fn ensures(&self) -> &'static [Property] {
        &[Property::LaidOut]
    }

    fn run(&self, unit: &mut Unit<'_>) -> Result<Changed, PassError> {
        let given = layouts_are_given(&unit.module);
        entry_layout::complete(&mut unit.module);
        let plan = match unit.config.transforms.layouts {
            LayoutMode::Default => None,
            LayoutMode::Memory => {
                let config = LayoutConfig {
                    entry: unit.config.transforms.entry,
                    ..LayoutConfig::default()
                };
                layouts::assign(&unit.module, unit.target, &config)
                    .map_err(|e| unit.notes.push(format!("layouts stay as they are: {e}")))
                    .ok()
            }
        };
        let assigned = assign(&mut unit.module, unit.target, !given);
        let settled = !given && forwarded_layouts::settle(&mut unit.module);
        let is_planned = plan.is_some();
        if let Some(plan) = plan {
            assign_layouts::apply(&mut unit.module, &plan);
        }
        let enforced = entry_layout::enforce(&mut unit.module);
        let separated = !given && operand_aliases::give_up_impossible(&mut unit.module);
        Ok(Changed(
            assigned || settled || is_planned || enforced || separated,
        ))
    }
}

/// Whether the module's layouts say where its elements lie, so that they must stay.
pub(crate) fn layouts_are_given(module: &Module) -> bool {
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
    let given = array.layout.as_ref();
    if tile && given.is_none_or(|l| l.tiles.is_empty()) {
        return tiled(array, &array.minor_to_major(), target);
    }
    ArrayShape {
        layout: Some(
            given
                .cloned()
                .unwrap_or_else(|| Layout::row_major(array.rank())),
        ),
        ..array.clone()
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
