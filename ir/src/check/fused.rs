//! Which outputs of a fusion are updates of a part of a parameter, and so must lie on its bytes.

use super::flow::Flow;
use super::in_place::{Pair, own_pairs};
use crate::attr::AttrName;
use crate::entity::InstrId;
use crate::fused_reads::reads_in_step;
use crate::opcode::Opcode;

/// How deep fusions may nest before a question about them is answered with no.
const MAX_DEPTH: u32 = 32;

/// A part of a fused result.
type Part = (InstrId, u32);

/// Outputs of a fusion that update a part of a parameter in place: for each array the fused root
/// holds, the operation behind it (through tuples and bitcasts), if it has an in-place pair whose
/// operand is (again through tuples and bitcasts) a parameter.
///
/// A fusion that reads the parameter also at other places than it is about to write has no such
/// pair: whether its kernel has read them by then is anyone's guess (XLA:CPU's has not), so its
/// output needs bytes of its own.
///
/// O(n log n) of the fused instructions for each such output.
pub(super) fn implied_pairs(flow: &Flow<'_>, fusion: InstrId) -> Vec<Pair> {
    let mut pairs = pairs_of(flow, fusion, 0);
    pairs.retain(|&p| reads_in_step(flow.module, fusion, p.into()));
    pairs
}

fn pairs_of(flow: &Flow<'_>, fusion: InstrId, depth: u32) -> Vec<Pair> {
    let module = flow.module;
    let instr = &module.instrs[fusion];
    let Some(comp) = instr.comp(AttrName::Calls) else {
        return Vec::new();
    };
    if depth >= MAX_DEPTH {
        return Vec::new();
    }
    let root = module.computations[comp].root;
    (0..module.shapes.node_count(module.instrs[root].shape))
        .filter_map(|output| {
            let (source, node) = behind(flow, (root, output))?;
            let inner = if module.instrs[source].opcode == Opcode::Fusion {
                let mut pairs = own_pairs(flow, source);
                pairs.extend(pairs_of(flow, source, depth + 1));
                pairs
            } else {
                own_pairs(flow, source)
            };
            let pair = inner.iter().find(|p| p.output == node)?;
            let &input = module.instrs[source].operands.get(pair.operand as usize)?;
            let (param, operand_node) = behind(flow, (input, pair.operand_node))?;
            Some(Pair {
                output,
                operand: module.instrs[param].parameter_number()?,
                operand_node,
            })
        })
        .collect()
}

/// The part that `part` is a view of, through tuple, get-tuple-element and bitcast.
fn behind(flow: &Flow<'_>, mut part: Part) -> Option<Part> {
    let module = flow.module;
    // Operands come earlier, so the walk ends; a module that breaks this is cut off.
    for _ in 0..=module.instrs.len() {
        let instr = &module.instrs[part.0];
        let first = instr.operands.first().copied();
        part = match instr.opcode {
            Opcode::Bitcast => (first?, part.1),
            Opcode::GetTupleElement => {
                let index = usize::try_from(instr.int(AttrName::Index)?).ok()?;
                let start = flow.element_start(module.instrs[first?].shape, index)?;
                (first?, start + part.1)
            }
            Opcode::Tuple => {
                let (element, rest) = flow.split(instr.shape, part.1)?;
                (*instr.operands.get(element)?, rest)
            }
            _ => return Some(part),
        };
    }
    None
}
