//! Which results may, and which must, lie on exactly the bytes of an operand.
//!
//! *Must*: operations that write a part of their operand and leave the rest
//! where it is (XLA's in-place input/output pairs). *May*: operations of which
//! it is proved here that every byte is read before the result replaces it,
//! because element `i` of the result reads the operand at element `i` only and
//! both lie at the same bytes.

use super::flow::Flow;
use super::fused;
use crate::entity::{InstrId, PosId};
use crate::fused_reads::{Replaced, is_elementwise, reads_in_step, same_bytes};
use crate::module::Module;
use crate::opcode::Opcode;
use crate::promise::promises;

/// A part of a result and the part of an operand whose bytes it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// Part of the result.
    pub(super) output: u32,
    /// Operand number.
    pub(super) operand: u32,
    /// Part of that operand.
    pub(super) operand_node: u32,
}

impl From<Pair> for Replaced {
    fn from(pair: Pair) -> Self {
        Self {
            output: pair.output,
            operand: pair.operand,
            operand_node: pair.operand_node,
        }
    }
}

/// The pairs that an instruction other than a fusion has by its operation, and those it declares.
///
/// O(parts of the result).
pub(super) fn own_pairs(flow: &Flow<'_>, id: InstrId) -> Vec<Pair> {
    use Opcode as O;
    let module = flow.module;
    let instr = &module.instrs[id];
    let n_operands = instr.operands.len() as u32;
    let pair = |output, operand| Pair {
        output,
        operand,
        operand_node: 0,
    };
    match instr.opcode {
        O::DynamicUpdateSlice | O::SetDimensionSize => vec![pair(0, 0)],
        O::RaggedAllToAll if n_operands > 1 => vec![pair(0, 1)],
        O::Scatter => same_numbered(flow, id, n_operands.saturating_sub(1) / 2),
        O::AllReduceStart => same_numbered(flow, id, n_operands),
        O::CollectivePermute if n_operands == 4 => whole_operand(module, id, 0, 1),
        O::CollectivePermuteStart if n_operands == 4 => {
            let operand_parts = module
                .shapes
                .tuple(instr.shape)
                .and_then(|e| e.first())
                .map_or(1, |&e| module.shapes.node_count(e));
            whole_operand(module, id, 1 + operand_parts, 1)
        }
        O::CustomCall | O::Fusion | O::AsyncStart => declared(module, id),
        _ => Vec::new(),
    }
}

/// All pairs of an instruction: [`own_pairs`], and for a fusion those its computation implies.
pub(super) fn must_pairs(flow: &Flow<'_>, id: InstrId) -> Vec<Pair> {
    let mut pairs = own_pairs(flow, id);
    if flow.module.instrs[id].opcode == Opcode::Fusion {
        pairs.sort_unstable_by_key(|p| p.output);
        let declared = pairs.len();
        for pair in fused::implied_pairs(flow, id) {
            let is_declared = pairs[..declared]
                .binary_search_by_key(&pair.output, |p| p.output)
                .is_ok();
            // What is returned twice takes the operand's bytes once.
            let is_taken = pairs
                .iter()
                .any(|p| (p.operand, p.operand_node) == (pair.operand, pair.operand_node));
            if !is_declared && !is_taken {
                pairs.push(pair);
            }
        }
    }
    pairs
}

/// Whether the part `output` of a result may be written to the very bytes of the part `operand`
/// of operand number `number` of the same instruction, of the same size.
///
/// O(1); for a fusion O(its computation).
pub(super) fn may_replace(flow: &Flow<'_>, output: PosId, number: usize, operand: PosId) -> bool {
    use Opcode as O;
    let id = flow.positions.instr(output);
    let instr = &flow.module.instrs[id];
    let node = flow.positions.node_of(output);
    let operand_node = flow.positions.node_of(operand);
    let pair = Pair {
        output: node,
        operand: number as u32,
        operand_node,
    };
    if own_pairs(flow, id).contains(&pair) {
        return true;
    }
    let (Some(result), Some(source)) = (flow.array(output), flow.array(operand)) else {
        return false;
    };
    if !same_bytes(result, source) {
        return instr.opcode == O::Fusion && reads_in_step(flow.module, id, pair.into());
    }
    match instr.opcode {
        O::Fusion => reads_in_step(flow.module, id, pair.into()),
        // An all-reduce combines element i of all devices, like the all-reduce-start that is
        // in place always.
        O::Sort | O::AllReduce => {
            let element = if instr.operands.len() == 1 {
                Some(0)
            } else {
                flow.element_start(instr.shape, number)
            };
            element == Some(node)
        }
        O::TriangularSolve => number == 1,
        op => is_elementwise(op),
    }
}

/// Whether the back end says in the module (see [`crate::promise`]) that its code keeps the two
/// parts in the same bytes. O(length of the instruction's `backend_config`).
pub(super) fn is_promised(flow: &Flow<'_>, output: PosId, number: usize, operand: PosId) -> bool {
    let id = flow.positions.instr(output);
    let array = flow.arrays(id).position(|p| p == output);
    flow.positions.node_of(operand) == 0
        && promises(flow.module, id)
            .iter()
            .any(|p| p.operand as usize == number && Some(p.result_array as usize) == array)
}

/// Output `i` on operand `i`, for the first `n` operands.
fn same_numbered(flow: &Flow<'_>, id: InstrId, n: u32) -> Vec<Pair> {
    let shape = flow.module.instrs[id].shape;
    if flow.module.shapes.tuple(shape).is_none() {
        return vec![Pair {
            output: 0,
            operand: 0,
            operand_node: 0,
        }];
    }
    (0..n)
        .filter_map(|i| {
            Some(Pair {
                output: flow.element_start(shape, i as usize)?,
                operand: i,
                operand_node: 0,
            })
        })
        .collect()
}

/// All parts of operand `operand`, found from part `output` of the result on.
fn whole_operand(module: &Module, id: InstrId, output: u32, operand: u32) -> Vec<Pair> {
    let instr = &module.instrs[id];
    let parts = instr
        .operands
        .get(operand as usize)
        .map_or(0, |&o| module.shapes.node_count(module.instrs[o].shape));
    (0..parts)
        .map(|node| Pair {
            output: output + node,
            operand,
            operand_node: node,
        })
        .collect()
}

/// `output_to_operand_aliasing`.
fn declared(module: &Module, id: InstrId) -> Vec<Pair> {
    let instr = &module.instrs[id];
    instr
        .operand_aliases()
        .iter()
        .filter_map(|alias| {
            let &operand = instr.operands.get(alias.operand as usize)?;
            Some(Pair {
                output: module
                    .shapes
                    .node_of_index(instr.shape, &alias.output_index)?,
                operand: alias.operand,
                operand_node: module
                    .shapes
                    .node_of_index(module.instrs[operand].shape, &alias.operand_index)?,
            })
        })
        .collect()
}
