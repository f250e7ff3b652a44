//! Whether every computation's order can be executed.

use super::flow::Flow;
use super::violation::{ViolationKind as K, Violations};
use crate::entity::{InstrId, SecondaryMap};
use crate::opcode::Opcode;

/// Order number of an instruction that its computation does not list.
const UNLISTED: u32 = u32::MAX;

/// Checks permutations, operands and control predecessors, and async pairs. O(edges).
pub(super) fn check(flow: &Flow<'_>, violations: &mut Violations) {
    let module = flow.module;
    let mut order = SecondaryMap::filled(module.instrs.len(), UNLISTED);
    for (comp, computation) in module.computations.iter() {
        let mut is_permutation = true;
        for (n, &instr) in computation.instrs.iter().enumerate() {
            is_permutation &= module.instrs[instr].computation == comp && order[instr] == UNLISTED;
            order[instr] = n as u32;
        }
        if !is_permutation {
            violations.push(K::NotPermutation { computation: comp }, || {
                format!(
                    "the order of %{} lists an instruction twice or one of another computation",
                    module.comp_name(comp)
                )
            });
        }
    }
    for (_, computation) in module.computations.iter() {
        for &id in computation.params.iter().chain([&computation.root]) {
            if order[id] == UNLISTED {
                let computation = module.instrs[id].computation;
                violations.push(K::NotPermutation { computation }, || {
                    format!(
                        "the order of %{} leaves out {}",
                        module.comp_name(computation),
                        flow.name(id)
                    )
                });
            }
        }
    }
    for (id, instr) in module.instrs.iter() {
        // What no computation lists was removed by a pass.
        if order[id] == UNLISTED {
            continue;
        }
        for &needs in instr.operands.iter().chain(instr.control_predecessors()) {
            if order[needs] >= order[id] {
                violations.push(K::OutOfOrder { instr: id, needs }, || {
                    format!(
                        "{} is scheduled before {}, which it needs",
                        flow.name(id),
                        flow.name(needs)
                    )
                });
            }
        }
    }
    async_pairs(flow, &order, violations);
}

/// Every async operation is continued or ended once; one whose tuple is passed on (through a
/// while, say) is followed by data flow alone.
fn async_pairs(flow: &Flow<'_>, order: &SecondaryMap<InstrId, u32>, violations: &mut Violations) {
    let module = flow.module;
    let mut next = SecondaryMap::filled(module.instrs.len(), (0u32, 0u32));
    let listed = || {
        module
            .instrs
            .iter()
            .filter(|(id, _)| order[*id] != UNLISTED)
    };
    for (_, instr) in listed() {
        for &operand in &instr.operands {
            if starts(module.instrs[operand].opcode) {
                let (ends, others) = &mut next[operand];
                if ends_or_continues(instr.opcode) {
                    *ends += 1;
                } else {
                    *others += 1;
                }
            }
        }
    }
    for (id, instr) in listed() {
        let (ends, others) = next[id];
        let is_root = module.computations[instr.computation].root == id;
        if starts(instr.opcode) && (ends > 1 || ends + others == 0 && !is_root) {
            violations.push(K::AsyncUnpaired { start: id }, || {
                format!("{} is ended {ends} times instead of once", flow.name(id))
            });
        }
    }
}

fn starts(op: Opcode) -> bool {
    use Opcode as O;
    matches!(
        op,
        O::AsyncStart
            | O::AsyncUpdate
            | O::CopyStart
            | O::AllGatherStart
            | O::AllReduceStart
            | O::CollectivePermuteStart
            | O::Send
            | O::Recv
    )
}

/// Whether the operation waits for an async one, or carries it on.
pub(super) fn ends_or_continues(op: Opcode) -> bool {
    use Opcode as O;
    matches!(
        op,
        O::AsyncUpdate
            | O::AsyncDone
            | O::CopyDone
            | O::AllGatherDone
            | O::AllReduceDone
            | O::CollectivePermuteDone
            | O::SendDone
            | O::RecvDone
    )
}

/// The `async-start` whose chain of updates `id` continues or ends, if it is found by operands.
pub(super) fn start_of(flow: &Flow<'_>, mut id: InstrId) -> Option<InstrId> {
    // Operands come earlier, so the chain ends; a module that breaks this is cut off.
    for _ in 0..flow.module.instrs.len() {
        let instr = &flow.module.instrs[id];
        if instr.opcode == Opcode::AsyncStart {
            return Some(id);
        }
        if !ends_or_continues(instr.opcode) {
            return None;
        }
        id = *instr.operands.first()?;
    }
    None
}
