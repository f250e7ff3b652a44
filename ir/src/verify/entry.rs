//! The entry computation as the caller sees it.

use super::error::{ErrorKind, Place, Sink};
use crate::entity::ShapeId;
use crate::infer::{ElementMatch, same_shape};

/// `entry_computation_layout` has the shapes of the entry, layouts aside: parameters and results
/// may lie differently outside.
pub(super) fn check(sink: &mut Sink<'_>) {
    let module = sink.module;
    let Some(layout) = &module.entry_layout else {
        return;
    };
    let entry = module.entry();
    if layout.parameters.len() != entry.params.len() {
        sink.error(
            ErrorKind::EntryLayout,
            Place::Module,
            format!(
                "entry_computation_layout has {} parameter(s), but %{} has {}",
                layout.parameters.len(),
                module.str(entry.name),
                entry.params.len()
            ),
            "list one shape for each parameter",
        );
        return;
    }
    let differ = |a: ShapeId, b: ShapeId| !same_shape(&module.shapes, a, b, ElementMatch::Exact);
    for (n, (&outside, &param)) in layout.parameters.iter().zip(&entry.params).enumerate() {
        let inside = module.instrs[param].shape;
        if differ(outside, inside) {
            sink.error(
                ErrorKind::EntryLayout,
                Place::Module,
                format!(
                    "entry_computation_layout has {} for parameter {n}, which is {}",
                    module.shapes.display_without_layout(outside),
                    module.shapes.display_without_layout(inside)
                ),
                "change the header or the parameter",
            );
        }
    }
    let inside = module.instrs[entry.root].shape;
    if differ(layout.result, inside) {
        sink.error(
            ErrorKind::EntryLayout,
            Place::Module,
            format!(
                "entry_computation_layout has the result {}, but the root gives {}",
                module.shapes.display_without_layout(layout.result),
                module.shapes.display_without_layout(inside)
            ),
            "change the header or the root",
        );
    }
}
