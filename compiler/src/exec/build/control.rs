//! Calls, loops and conditionals, and the moves at their borders.

use slabplan_ir::Opcode;
use slabplan_ir::attr::AttrName;
use slabplan_ir::entity::{CompId, InstrId};

use super::Builder;
use crate::exec::ExecError;
use crate::exec::forward::bindings;
use crate::exec::program::{Step, Switch};
use crate::simulate::trip_count;

impl Builder<'_> {
    pub(super) fn call(&mut self, id: InstrId) -> Result<(), ExecError> {
        self.call_bound(id, id)?;
        if let Some(callee) = self.module.instrs[id].comp(AttrName::ToApply) {
            self.move_instr(id, self.module.computations[callee].root, id)?;
        }
        Ok(())
    }

    /// Runs the computation that `caller` calls with its operands.
    pub(super) fn call_bound(&mut self, id: InstrId, caller: InstrId) -> Result<(), ExecError> {
        for (callee, operands) in bindings(self.module, caller) {
            self.move_params(id, callee, &operands)?;
            self.push_call(id, callee)?;
        }
        Ok(())
    }

    /// Moves operands to the parameters they stand for, where those lie elsewhere.
    pub(super) fn move_params(
        &mut self,
        id: InstrId,
        callee: CompId,
        operands: &[InstrId],
    ) -> Result<(), ExecError> {
        let mut pairs = Vec::new();
        for (&param, &operand) in self.module.computations[callee].params.iter().zip(operands) {
            let (from, to) = (self.leaves_of(operand)?, self.leaves_of(param)?);
            pairs.extend(from.into_iter().zip(to));
        }
        self.move_all(id, pairs)
    }

    pub(super) fn push_call(&mut self, id: InstrId, callee: CompId) -> Result<(), ExecError> {
        let start = self.start[callee];
        let start = start.ok_or_else(|| self.unsupported(id, "it calls itself"))?;
        let caller = self.module.instrs[id].computation;
        self.depth[caller] = self.depth[caller].max(self.depth[callee] + 1);
        let times = match self.module.instrs[id].opcode {
            Opcode::While => trip_count(self.module, id),
            _ => Some(1),
        };
        let steps = |n: u64| self.expected[callee].map(|s| s.saturating_mul(n));
        let inside = times.and_then(steps);
        self.expected[caller] = self.expected[caller]
            .zip(inside)
            .map(|(a, b)| a.saturating_add(b));
        self.push(Step::Call(start));
        Ok(())
    }

    pub(super) fn while_loop(&mut self, id: InstrId) -> Result<(), ExecError> {
        let i = &self.module.instrs[id];
        let [Some(condition), Some(body)] =
            [AttrName::Condition, AttrName::Body].map(|n| i.comp(n))
        else {
            return Err(self.unsupported(id, "it has no condition or no body"));
        };
        // The state lies where the result does.
        self.move_instr(id, i.operands[0], id)?;
        let again = self.address();
        self.move_params(id, condition, &[id])?;
        self.push_call(id, condition)?;
        let leave = self.address();
        self.push(Step::JumpUnless(0));
        self.move_params(id, body, &[id])?;
        self.push_call(id, body)?;
        self.move_instr(id, self.module.computations[body].root, id)?;
        self.push(Step::Jump(again));
        self.program.steps[leave as usize] = Step::JumpUnless(self.address());
        Ok(())
    }

    pub(super) fn conditional(&mut self, id: InstrId) -> Result<(), ExecError> {
        let index = self.single_leaf(self.module.instrs[id].operands[0])?;
        let switch = self.program.switches.len();
        self.program.switches.push(Switch {
            index,
            targets: Box::new([]),
        });
        self.push(Step::Switch(switch as u32));
        let mut targets = Vec::new();
        let mut ends = Vec::new();
        for (branch, operands) in bindings(self.module, id) {
            targets.push(self.address());
            self.move_params(id, branch, &operands)?;
            self.push_call(id, branch)?;
            self.move_instr(id, self.module.computations[branch].root, id)?;
            ends.push(self.address());
            self.push(Step::Jump(0));
        }
        let end = self.address();
        for at in ends {
            self.program.steps[at as usize] = Step::Jump(end);
        }
        if targets.is_empty() {
            return Err(self.unsupported(id, "it has no branches"));
        }
        self.program.switches[switch].targets = targets.into();
        Ok(())
    }
}
