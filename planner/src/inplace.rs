//! Operations that write their result over an operand: XLA's in-place pairs.
//!
//! `HloDataflowAnalysis::GetInPlaceInputOutputPairs` names, for each result array, the operand array
//! that must occupy the same bytes. Of a fusion the pair is found by walking back from the fused
//! root through tuple, get-tuple-element and bitcast to an operation with a pair of its own, and
//! from there to a fusion parameter. Beyond XLA, a fusion that reads that parameter also at other
//! places than it is about to write has no pair: its kernel may write before it has read.

use smallvec::SmallVec;

use slabplan_ir::attr::AttrName;
use slabplan_ir::fused_reads::{Replaced, reads_in_step};
use slabplan_ir::shape::ShapeIndex;
use slabplan_ir::{InstrId, Module, Opcode};

/// The operand array that a result array is written over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InPlaceOperand {
    /// Operand number.
    pub operand: u32,
    /// Part of the operand.
    pub index: ShapeIndex,
}

/// Fusions nested deeper than this are taken to have no in-place pair.
const MAX_FUSION_DEPTH: u32 = 16;

/// The operand that part `index` of the result of `instr` must share bytes with, if there is one.
///
/// O(length of the forwarding chain at the fused root); where that finds one, O(n log n) of the
/// fused instructions.
pub fn in_place_operand(module: &Module, instr: InstrId, index: &[u32]) -> Option<InPlaceOperand> {
    find(module, instr, index, MAX_FUSION_DEPTH).filter(|over| is_safe(module, instr, index, over))
}

/// Whether part `index` of the result of `instr` must share bytes with this very operand.
pub(crate) fn is_in_place(
    module: &Module,
    instr: InstrId,
    index: &[u32],
    over: &InPlaceOperand,
) -> bool {
    find(module, instr, index, MAX_FUSION_DEPTH).as_ref() == Some(over)
        && is_safe(module, instr, index, over)
}

/// Whether `instr` has read of the operand what it overwrites: true of all that declare a pair and
/// of all operations but a fusion, which may read its parameter several times.
fn is_safe(module: &Module, instr: InstrId, index: &[u32], over: &InPlaceOperand) -> bool {
    let i = &module.instrs[instr];
    if i.opcode != Opcode::Fusion || declared(module, instr, index).is_some() {
        return true;
    }
    let operand = i.operands.get(over.operand as usize);
    let output = module.shapes.node_of_index(i.shape, index);
    let operand_node = operand.and_then(|&o| {
        module
            .shapes
            .node_of_index(module.instrs[o].shape, &over.index)
    });
    output
        .zip(operand_node)
        .is_some_and(|(output, operand_node)| {
            let pair = Replaced {
                output,
                operand: over.operand,
                operand_node,
            };
            reads_in_step(module, instr, pair)
        })
}

fn find(module: &Module, instr: InstrId, index: &[u32], depth: u32) -> Option<InPlaceOperand> {
    use Opcode as O;
    let i = &module.instrs[instr];
    let whole = |operand: u32| InPlaceOperand {
        operand,
        index: index.into(),
    };
    match i.opcode {
        O::DynamicUpdateSlice | O::SetDimensionSize => Some(whole(0)),
        O::Scatter => nth_of(index, i.operands.len() / 2),
        O::AllReduceStart if !uses_nvshmem(module, instr) => nth_of(index, i.operands.len()),
        O::CollectivePermute if i.operands.len() == 4 => Some(whole(1)),
        O::CollectivePermuteStart if i.operands.len() == 4 => match index {
            [1, rest @ ..] => Some(InPlaceOperand {
                operand: 1,
                index: rest.into(),
            }),
            _ => None,
        },
        O::RaggedAllToAll => Some(whole(1)),
        O::CustomCall | O::AsyncStart => declared(module, instr, index),
        O::Fusion => {
            declared(module, instr, index).or_else(|| of_fusion(module, instr, index, depth))
        }
        _ => None,
    }
}

/// Result `k` is written over operand `k`; a single result is no tuple.
fn nth_of(index: &[u32], results: usize) -> Option<InPlaceOperand> {
    let operand = match index {
        [] if results == 1 => 0,
        [k] if results > 1 => *k,
        _ => return None,
    };
    Some(InPlaceOperand {
        operand,
        index: ShapeIndex::new(),
    })
}

fn uses_nvshmem(module: &Module, instr: InstrId) -> bool {
    module
        .attr_text(instr, AttrName::BackendConfig)
        .is_some_and(|c| c.contains("nvshmem"))
}

fn declared(module: &Module, instr: InstrId, index: &[u32]) -> Option<InPlaceOperand> {
    module.instrs[instr]
        .operand_aliases()
        .iter()
        .find(|a| a.output_index.as_slice() == index)
        .map(|a| InPlaceOperand {
            operand: a.operand,
            index: a.operand_index.clone(),
        })
}

fn of_fusion(module: &Module, instr: InstrId, index: &[u32], depth: u32) -> Option<InPlaceOperand> {
    let depth = depth.checked_sub(1)?;
    let fused = module.instrs[instr].comp(AttrName::Calls)?;
    let (writer, part) = source(module, module.computations[fused].root, index.into());
    let over = find(module, writer, &part, depth)?;
    let operand = *module.instrs[writer].operands.get(over.operand as usize)?;
    let (mut from, mut part) = source(module, operand, over.index);
    if module.instrs[from].opcode == Opcode::Fusion {
        let nested = find(module, from, &part, depth)?;
        from = *module.instrs[from].operands.get(nested.operand as usize)?;
        part = nested.index;
    }
    let operand = module.instrs[from].parameter_number()?;
    Some(InPlaceOperand {
        operand,
        index: part,
    })
}

/// The instruction whose bytes part `index` of `instr` has, found back through forwarding instructions.
fn source(module: &Module, mut instr: InstrId, mut index: ShapeIndex) -> (InstrId, ShapeIndex) {
    loop {
        let i = &module.instrs[instr];
        match i.opcode {
            Opcode::Tuple if !index.is_empty() => {
                let Some(&operand) = i.operands.get(index[0] as usize) else {
                    return (instr, index);
                };
                index.remove(0);
                instr = operand;
            }
            Opcode::GetTupleElement => {
                index.insert(0, i.int(AttrName::Index).unwrap_or(0) as u32);
                instr = i.operands[0];
            }
            Opcode::Bitcast => instr = i.operands[0],
            _ => return (instr, index),
        }
    }
}

/// All in-place pairs of `instr`: (part of the result, operand).
///
/// A fusion that returns what it writes in place twice keeps the bytes for the first of the two.
pub fn in_place_pairs(
    module: &Module,
    instr: InstrId,
) -> SmallVec<[(ShapeIndex, InPlaceOperand); 2]> {
    if !may_be_in_place(module.instrs[instr].opcode) {
        return SmallVec::new();
    }
    let shape = module.instrs[instr].shape;
    let mut pairs: SmallVec<[(ShapeIndex, InPlaceOperand); 2]> = SmallVec::new();
    for node in 0..module.shapes.node_count(shape) {
        let index = module.shapes.index_of_node(shape, node);
        let array = module.shapes.subshape(shape, &index);
        if array.is_none_or(|a| module.shapes.array(a).is_none()) {
            continue;
        }
        if let Some(over) = in_place_operand(module, instr, &index)
            && (declared(module, instr, &index).is_some() || pairs.iter().all(|p| p.1 != over))
        {
            pairs.push((index, over));
        }
    }
    pairs
}

fn may_be_in_place(opcode: Opcode) -> bool {
    use Opcode as O;
    matches!(
        opcode,
        O::DynamicUpdateSlice
            | O::SetDimensionSize
            | O::Scatter
            | O::AllReduceStart
            | O::CollectivePermute
            | O::CollectivePermuteStart
            | O::RaggedAllToAll
            | O::CustomCall
            | O::AsyncStart
            | O::Fusion
    )
}
