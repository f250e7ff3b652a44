//! Which values a while carries round unchanged.
//!
//! A carried value that the body passes through is the same value before, in
//! and after the loop, and so is one in whose place the body hands on another such
//! carry of the same initial value; all others are new in each iteration.

use super::flow::{Flow, Role};
use crate::attr::AttrName;
use crate::entity::{CompId, InstrId, PosId, SecondaryMap};
use crate::opcode::Opcode;

/// For every position of a while's result, the position of that result whose value the body hands on
/// to the next iteration at this place: itself where the loop passes the value through.
///
/// O(positions · log of tuple widths), callees before callers.
pub(super) fn handed_on(flow: &Flow<'_>) -> SecondaryMap<PosId, Option<PosId>> {
    let mut ctx = Ctx {
        flow,
        source: flow.positions.filled(None),
        handed_on: flow.positions.filled(None),
    };
    for comp in flow.module.planned_computations() {
        for &instr in &flow.module.computations[comp].instrs {
            for pos in flow.arrays(instr) {
                ctx.source[pos] = ctx.source_of(instr, pos);
            }
        }
    }
    ctx.handed_on
}

struct Ctx<'f, 'm> {
    flow: &'f Flow<'m>,
    /// The part of a parameter of the same computation that a position forwards, if it does.
    source: SecondaryMap<PosId, Option<PosId>>,
    handed_on: SecondaryMap<PosId, Option<PosId>>,
}

impl Ctx<'_, '_> {
    fn source_of(&mut self, id: InstrId, pos: PosId) -> Option<PosId> {
        let instr = &self.flow.module.instrs[id];
        let node = self.flow.positions.node_of(pos);
        match instr.opcode {
            Opcode::Parameter => Some(pos),
            Opcode::While => {
                let body = instr.comp(AttrName::Body)?;
                let carried = self.root_source(body, node)?;
                let number = self.flow.module.instrs[self.flow.positions.instr(carried)]
                    .parameter_number()?;
                if number != 0 {
                    return None;
                }
                let from = self.flow.positions.node_of(carried);
                self.handed_on[pos] = Some(self.flow.positions.node(id, from));
                (from == node).then(|| self.operand_source(id, 0, node))?
            }
            Opcode::Conditional => {
                let mut agreed = None;
                for (n, branch) in instr.branches().into_iter().enumerate() {
                    let param = self.root_source(branch, node)?;
                    let source =
                        self.operand_source(id, n + 1, self.flow.positions.node_of(param))?;
                    if *agreed.get_or_insert(source) != source {
                        return None;
                    }
                }
                agreed
            }
            Opcode::Call => {
                let callee = instr.comp(AttrName::ToApply)?;
                let param = self.root_source(callee, node)?;
                let number =
                    self.flow.module.instrs[self.flow.positions.instr(param)].parameter_number()?;
                self.operand_source(id, number as usize, self.flow.positions.node_of(param))
            }
            _ => match self.flow.role(pos) {
                Role::Forwards(from) => self.source[from],
                _ => None,
            },
        }
    }

    /// The part of a parameter that part `node` of a computation's root forwards.
    fn root_source(&self, comp: CompId, node: u32) -> Option<PosId> {
        let module = self.flow.module;
        let root = module.computations[comp].root;
        let in_shape = node < module.shapes.node_count(module.instrs[root].shape);
        self.source[in_shape.then(|| self.flow.positions.node(root, node))?]
    }

    fn operand_source(&self, id: InstrId, operand: usize, node: u32) -> Option<PosId> {
        let module = self.flow.module;
        let &o = module.instrs[id].operands.get(operand)?;
        let in_shape = node < module.shapes.node_count(module.instrs[o].shape);
        self.source[in_shape.then(|| self.flow.positions.node(o, node))?]
    }
}
