//! What each operation asks of the layouts of its operands and results.
//!
//! The line between operations that keep an order of dimensions and those that may change it is
//! XLA's (`LayoutAssignment::InstructionCanChangeLayout`): elementwise operations, slices, pads,
//! concatenations, windows, sorts and collectives walk operand and result in step; products,
//! convolutions, reductions, gathers, broadcasts and copies address them one by one.

use slabplan_ir::attr::{AttrName, AttrValue};
use slabplan_ir::shape::ShapeIndex;
use slabplan_ir::{InstrId, Module, Opcode, ShapeId};

/// Custom-calls that only mark an array and keep its layout.
const MARKERS: [&str; 5] = [
    "Sharding",
    "annotate_device_placement",
    "MoveToHost",
    "MoveToDevice",
    "LayoutConstraint",
];

/// How an operation relates the layouts of one operand and one result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// Same order of dimensions, or the operand is copied first.
    InStep {
        /// Operand number.
        operand: usize,
        /// Part of the result.
        result: ShapeIndex,
    },
    /// The result is the operand's elements in another shape: no bytes of its own where the places
    /// agree.
    View {
        /// Which of the two.
        kind: ViewKind,
    },
    /// The operand must lie as it did in the module as given, or is copied first.
    Needs {
        /// Operand number.
        operand: usize,
        /// The shape whose order it must have.
        shape: ShapeId,
    },
    /// All arrays of the result must lie as they did in the module as given.
    Pins,
    /// The arrays of the result that have the same rank must have the same order.
    Together,
}

/// A view of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ViewKind {
    Reshape,
    Transpose,
}

/// The relations of `instr`; without any, every layout is right.
pub(super) fn relations(module: &Module, instr: InstrId) -> Vec<Relation> {
    use Opcode as O;
    let i = &module.instrs[instr];
    match i.opcode {
        O::Reshape => vec![Relation::View {
            kind: ViewKind::Reshape,
        }],
        O::Transpose => vec![Relation::View {
            kind: ViewKind::Transpose,
        }],
        O::Reduce | O::BatchNormTraining | O::BatchNormGrad => vec![Relation::Together],
        O::Sort => {
            let mut all = pairwise(module, instr, i.operands.len());
            all.push(Relation::Together);
            all
        }
        O::ReduceWindow => pairwise(module, instr, i.operands.len() / 2),
        O::DynamicUpdateSlice => in_step(&[0, 1]),
        O::SelectAndScatter => in_step(&[0, 1]),
        O::Slice | O::DynamicSlice | O::Pad | O::Reverse | O::SetDimensionSize => in_step(&[0]),
        O::Scatter => pairwise(module, instr, i.operands.len() / 2),
        O::Concatenate | O::Clamp | O::Map | O::BitcastConvert => {
            in_step(&(0..i.operands.len()).collect::<Vec<_>>())
        }
        O::AllReduce
        | O::AllGather
        | O::ReduceScatter
        | O::AllToAll
        | O::CollectivePermute
        | O::CollectiveBroadcast
        | O::AllReduceStart => pairwise(module, instr, i.operands.len()),
        O::AllGatherStart | O::CollectivePermuteStart => started(module, instr),
        O::CustomCall => custom_call(module, instr),
        op if op.is_elementwise() => in_step(&(0..i.operands.len()).collect::<Vec<_>>()),
        op if addresses_freely(op) => Vec::new(),
        _ => needs_given(module, instr, |o| module.instrs[i.operands[o]].shape),
    }
}

/// Operations that read and write arrays of any layout, or define no bytes at all.
fn addresses_freely(op: Opcode) -> bool {
    use Opcode as O;
    use slabplan_ir::opcode::OpClass;
    matches!(
        op,
        O::BatchNormInference
            | O::Broadcast
            | O::Constant
            | O::Convolution
            | O::Copy
            | O::Dot
            | O::RaggedDot
            | O::ScaledDot
            | O::Gather
            | O::GetDimensionSize
            | O::Iota
            | O::Parameter
            | O::PartitionId
            | O::ReplicaId
            | O::Rng
            | O::RngBitGenerator
            | O::RngGetAndUpdateState
            | O::Tuple
            | O::AfterAll
            | O::CopyStart
            | O::CopyDone
            | O::AllReduceDone
            | O::AllGatherDone
            | O::CollectivePermuteDone
    ) || matches!(op.class(), OpClass::Control)
        || (op.class() == OpClass::Forward && op != O::Bitcast)
}

fn in_step(operands: &[usize]) -> Vec<Relation> {
    operands
        .iter()
        .map(|&operand| Relation::InStep {
            operand,
            result: ShapeIndex::new(),
        })
        .collect()
}

/// Operand `k` and result `k` of the first `n`; a result that is no tuple is that of all.
fn pairwise(module: &Module, instr: InstrId, n: usize) -> Vec<Relation> {
    let is_tuple = module.shapes.tuple(module.instrs[instr].shape).is_some();
    (0..n)
        .map(|k| Relation::InStep {
            operand: k,
            result: if is_tuple {
                [k as u32].into_iter().collect()
            } else {
                ShapeIndex::new()
            },
        })
        .collect()
}

/// `(operands, results, ...)`: results are part 1, or parts of it.
fn started(module: &Module, instr: InstrId) -> Vec<Relation> {
    let i = &module.instrs[instr];
    let results = module.shapes.subshape(i.shape, &[1]);
    let is_tuple = results.is_some_and(|r| module.shapes.tuple(r).is_some());
    (0..i.operands.len())
        .map(|k| Relation::InStep {
            operand: k,
            result: if is_tuple {
                [1, k as u32].into_iter().collect()
            } else {
                [1].into_iter().collect()
            },
        })
        .collect()
}

fn custom_call(module: &Module, instr: InstrId) -> Vec<Relation> {
    let i = &module.instrs[instr];
    if module
        .custom_call_target(instr)
        .is_some_and(|t| MARKERS.contains(&t))
    {
        return in_step(&[0]);
    }
    let constrained = match i.attr(AttrName::OperandLayoutConstraints) {
        Some(AttrValue::Shapes(s)) if s.len() == i.operands.len() => Some(s),
        _ => None,
    };
    needs_given(module, instr, |o| {
        constrained.map_or(module.instrs[i.operands[o]].shape, |s| s[o])
    })
}

fn needs_given(module: &Module, instr: InstrId, shape: impl Fn(usize) -> ShapeId) -> Vec<Relation> {
    let mut all: Vec<Relation> = (0..module.instrs[instr].operands.len())
        .map(|operand| Relation::Needs {
            operand,
            shape: shape(operand),
        })
        .collect();
    all.push(Relation::Pins);
    all
}
