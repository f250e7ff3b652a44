//! Which positions have no bytes of their own, and whose they share.

use slabplan_ir::attr::AttrName;
use slabplan_ir::entity::{CompId, InstrId, PosId};
use slabplan_ir::module::Module;
use slabplan_ir::{Opcode, Positions};

/// For every position of `instr`, in preorder, the position whose bytes it has; `None` where it
/// has its own. Parameters are the caller's business: see [`bindings`].
///
/// Of several sources of a phi this is the first: a while's init, a conditional's branch 0.
/// O(positions of `instr`).
pub(crate) fn forwards(
    module: &Module,
    positions: &Positions,
    instr: InstrId,
) -> Vec<Option<PosId>> {
    use Opcode as O;
    let i = &module.instrs[instr];
    let parts = positions.of(instr).len();
    let mut out = vec![None; parts];
    // Parts `to..` of this instruction are the parts of `from` below `index`.
    let mut link = |to: usize, from: InstrId, index: &[u32]| {
        let Some(first) = module
            .shapes
            .node_of_index(module.instrs[from].shape, index)
        else {
            return;
        };
        let shape = positions.shape(positions.node(from, first));
        for n in 0..module.shapes.node_count(shape) as usize {
            if let Some(slot) = out.get_mut(to + n) {
                *slot = Some(positions.node(from, first + n as u32));
            }
        }
    };
    let operand = i.operands.first().copied();
    match (i.opcode, operand) {
        (
            O::Bitcast
            | O::AddDependency
            | O::OptimizationBarrier
            | O::Domain
            | O::While
            | O::AllReduceDone
            | O::AsyncUpdate,
            Some(op),
        ) => link(0, op, &[]),
        (O::GetTupleElement, Some(op)) => {
            link(0, op, &[i.int(AttrName::Index).unwrap_or(0) as u32]);
        }
        (O::Copy, Some(op)) if parts > 1 => link(0, op, &[]),
        (O::Tuple, _) => {
            let mut to = 1;
            for &op in &i.operands {
                link(to, op, &[]);
                to += positions.of(op).len();
            }
        }
        (O::Conditional, _) => {
            if let Some(&branch) = i.branches().first() {
                link(0, module.computations[branch].root, &[]);
            }
        }
        (O::Call, _) => {
            if let Some(callee) = i.comp(AttrName::ToApply) {
                link(0, module.computations[callee].root, &[]);
            }
        }
        (O::AsyncStart, _) => {
            // ((operands...), result, contexts...)
            let mut to = 2;
            for &op in &i.operands {
                link(to, op, &[]);
                to += positions.of(op).len();
            }
            if let (Some(callee), Some(to)) = (
                i.comp(AttrName::Calls),
                module.shapes.node_of_index(i.shape, &[1]),
            ) {
                link(to as usize, module.computations[callee].root, &[]);
            }
        }
        (O::AsyncDone | O::AllGatherDone | O::CollectivePermuteDone, Some(op)) => {
            link(0, op, &[1]);
        }
        (O::CopyStart, Some(op)) => link(2, op, &[]),
        (O::CopyDone, Some(op)) => link(0, op, &[0]),
        (O::AllGatherStart | O::CollectivePermuteStart, Some(op)) => {
            // (operand, result, ..), or ((operands..), (results..), ..)
            let nested = module
                .shapes
                .subshape(i.shape, &[0])
                .is_some_and(|s| module.shapes.tuple(s).is_some());
            if nested {
                let mut to = 2;
                for &op in &i.operands {
                    link(to, op, &[]);
                    to += positions.of(op).len();
                }
            } else {
                link(1, op, &[]);
            }
        }
        (O::Send, Some(op)) => link(1, op, &[]),
        (O::RecvDone, Some(op)) => link(1, op, &[0]),
        _ => {}
    }
    out
}

/// The computations that `instr` calls as part of program order, each with the operands that its
/// parameters stand for.
pub(crate) fn bindings(module: &Module, instr: InstrId) -> Vec<(CompId, Vec<InstrId>)> {
    let i = &module.instrs[instr];
    match i.opcode {
        Opcode::While => [AttrName::Condition, AttrName::Body]
            .into_iter()
            .filter_map(|n| Some((i.comp(n)?, i.operands.to_vec())))
            .collect(),
        Opcode::Conditional => i
            .branches()
            .into_iter()
            .zip(i.operands.iter().skip(1))
            .map(|(branch, &op)| (branch, vec![op]))
            .collect(),
        Opcode::Call => i
            .comp(AttrName::ToApply)
            .map(|c| (c, i.operands.to_vec()))
            .into_iter()
            .collect(),
        Opcode::AsyncStart => i
            .comp(AttrName::Calls)
            .map(|c| (c, i.operands.to_vec()))
            .into_iter()
            .collect(),
        _ => Vec::new(),
    }
}
