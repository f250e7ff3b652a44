//! Layout assignment: the order of dimensions and the tiles of every array, for few padded bytes.
//!
//! Padding is decided by the two minor dimensions: the tiles round them up to 8 rows of 128 lanes. The
//! assignment minimises the padded bytes of all values of the program, with the copies that a
//! choice causes and without the transposes and reshapes that it turns into bitcasts.
//!
//! ```text
//! values --aliases--> classes          values that must lie alike: loops, in-place operations, donation   classes
//!        --relations--> steps, views   who walks in step with whom, who is a view of whom                  relations
//!        --orders--> labels            a few orders of dimensions for each group of classes                orders
//!        --solve--> orders             exact on trees, series-parallel parts and small cores               solve
//!        --> LayoutPlan                layouts, copies, bitcasts
//! ```
//!
//! XLA's `LayoutAssignment` propagates constraints greedily from the entry and from operations that
//! prefer a layout, without counting bytes.

mod classes;
mod config;
mod error;
mod model;
mod orders;
mod places;
mod relations;
mod solve;
#[cfg(test)]
pub(crate) mod tests;
mod tiles;

pub use config::{EntryOrder, LayoutConfig};
pub use error::LayoutError;
pub use orders::{best_order, least_bytes};
pub use places::{reshape_is_bitcast, transpose_is_bitcast};
pub use tiles::{Order, row_major, tiled, tiled_bytes};

use slabplan_ir::padding::shape_bytes;
use slabplan_ir::{ArrayShape, InstrId, Module, PosId, Target};

use crate::dataflow::{Dataflow, ValueKind};
use crate::error::PlanError;
use crate::order::ProgramOrder;
use model::Model;
use tiles::bytes_or_max;

/// A copy that brings an operand into the order that its user needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutCopy {
    /// The user.
    pub user: InstrId,
    /// Which of its operands is to be copied.
    pub operand: usize,
    /// Shape of the copy.
    pub array: ArrayShape,
}

/// Layouts for the arrays of the planned computations of a module.
#[derive(Clone, Debug)]
pub struct LayoutPlan {
    /// The array at each position that has bytes, as it is to lie.
    pub arrays: Vec<(PosId, ArrayShape)>,
    /// Operands to copy first.
    pub copies: Vec<LayoutCopy>,
    /// Reshapes and transposes whose result is their operand's bytes: to become bitcasts.
    pub bitcasts: Vec<InstrId>,
    /// Whether no choice among the orders tried has fewer padded bytes.
    pub exact: bool,
}

/// Chooses a layout for every array of the planned computations of a verified `module` with a
/// flat call graph.
///
/// Arrays outside HBM, those of fusions, custom-calls and bitcasts, and (unless the configuration
/// frees them) arguments and results keep the order they have. Near-linear in the size of the
/// module; the configuration bounds the search. Deterministic.
///
/// # Errors
/// If arrays that must lie in the same bytes are given different orders, or the module is not flat.
pub fn assign(
    module: &Module,
    target: &Target,
    config: &LayoutConfig,
) -> Result<LayoutPlan, LayoutError> {
    let order = ProgramOrder::new(module)?;
    let flow = Dataflow::new(module, &order);
    let classes = classes::classes(module, &order, &flow, config.entry)?;
    let model = Model::new(module, target, &order, &flow, &classes, config);
    let solution = model.solve(config);
    let labels = &solution.labels;
    let positions = order.sequence().iter().flat_map(|&i| flow.positions.of(i));
    let copy = |user: InstrId, operand: usize, order: &Order| {
        let shape = module.instrs[module.instrs[user].operands[operand]].shape;
        Some(LayoutCopy {
            user,
            operand,
            array: tiled(module.shapes.array(shape)?, order, target),
        })
    };
    let for_steps = model
        .steps
        .iter()
        .filter_map(|s| copy(s.user, s.operand, model.step_copies(s, labels)?));
    let for_needs = model
        .needs
        .iter()
        .filter(|n| model.need_copies(n, labels))
        .filter_map(|n| copy(n.user, n.operand, &n.order));
    Ok(LayoutPlan {
        arrays: positions
            .filter_map(|p| Some((p, model.laid_out(p, labels)?)))
            .collect(),
        copies: for_steps.chain(for_needs).collect(),
        bitcasts: model
            .views
            .iter()
            .filter(|v| model.is_bitcast(v, labels))
            .map(|v| v.instr)
            .collect(),
        exact: solution.exact,
    })
}

/// Padded bytes of all values of the program: every array that an instruction of a planned
/// computation defines, each once, whatever it shares bytes with.
///
/// # Errors
/// If the call graph is not flat. Saturates.
pub fn value_bytes(module: &Module) -> Result<u64, PlanError> {
    let order = ProgramOrder::new(module)?;
    let flow = Dataflow::new(module, &order);
    let defined = flow
        .values
        .values()
        .filter(|v| v.kind == ValueKind::Defined);
    Ok(defined.fold(0, |sum: u64, v| {
        let size = shape_bytes(&module.shapes, flow.positions.shape(v.def));
        sum.saturating_add(bytes_or_max(size))
    }))
}
