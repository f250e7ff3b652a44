//! Copies, computations, collectives and transfers that are carried out at their start or at their done.

use slabplan_ir::Opcode;
use slabplan_ir::attr::AttrName;
use slabplan_ir::entity::{CompId, EntityId, InstrId};

use super::Builder;
use crate::exec::collective::Collective;
use crate::exec::mail::{Direction, Transfer};
use crate::exec::order::callees;
use crate::exec::program::{ArrayInfo, Leaf, Step};
use crate::exec::{ExecError, flat};

impl Builder<'_> {
    pub(super) fn async_copy(&mut self, id: InstrId) -> Result<(), ExecError> {
        let Some(start) = self.start_to_run_here(id, Opcode::CopyStart) else {
            return Ok(());
        };
        let operand = self.module.instrs[start].operands[0];
        let to = self.leaf_at(start, &[0])?;
        let from = self.single_leaf(operand)?;
        self.move_all(start, vec![(from, to)])
    }

    /// The start of an asynchronous operation that is carried out at `id`, if it is: at its
    /// start or at its end, as configured.
    pub(super) fn start_to_run_here(&self, id: InstrId, start: Opcode) -> Option<InstrId> {
        let at_start = self.module.instrs[id].opcode == start;
        let start = if at_start { id } else { self.start_of(id)? };
        (self.runs_at_start(start) == at_start).then_some(start)
    }

    /// Whether the asynchronous operation that begins with `start` is carried out there.
    pub(super) fn runs_at_start(&self, start: InstrId) -> bool {
        self.config.async_mode.at_start(start.index() as u32)
    }

    /// The start of the chain of asynchronous operations that ends in `id`.
    pub(super) fn start_of(&self, id: InstrId) -> Option<InstrId> {
        let mut at = id;
        loop {
            at = *self.module.instrs[at].operands.first()?;
            let opcode = self.module.instrs[at].opcode;
            if !matches!(opcode, Opcode::AsyncUpdate | Opcode::GetTupleElement) {
                return Some(at);
            }
        }
    }

    pub(super) fn async_start(&mut self, id: InstrId) -> Result<(), ExecError> {
        let i = &self.module.instrs[id];
        let late = self
            .module
            .shapes
            .subshape(i.shape, &[1])
            .is_none_or(|s| self.module.shapes.tuple(s).is_some_and(<[_]>::is_empty));
        let callee = i.comp(AttrName::Calls);
        let params = callee.map_or(0, |c| self.module.computations[c].params.len());
        if params != i.operands.len() || (late && !self.has_empty_root(callee)) {
            return Err(self.unsupported(
                id,
                "the executor does not support operands or results bound after the start",
            ));
        }
        if self.runs_at_start(id) {
            return self.call_bound(id, id);
        }
        // The live ranges inside end as if the operation ran here.
        let last = self.order.number[id].unwrap_or(0);
        let inside = callees(self.module, id)
            .iter()
            .filter_map(|&c| self.module.computations[c].instrs.first())
            .filter_map(|&i| self.order.number[i])
            .min();
        for number in inside.unwrap_or(last)..last {
            self.poison_at(number);
        }
        Ok(())
    }

    pub(super) fn has_empty_root(&self, callee: Option<CompId>) -> bool {
        callee.is_some_and(|c| {
            let root = self.module.computations[c].root;
            flat::arrays(&self.module.shapes, self.module.instrs[root].shape).is_empty()
        })
    }

    pub(super) fn async_done(&mut self, id: InstrId) -> Result<(), ExecError> {
        match self.start_to_run_here(id, Opcode::AsyncStart) {
            Some(start) => self.call_bound(id, start),
            None => Ok(()),
        }
    }

    pub(super) fn async_collective(&mut self, id: InstrId) -> Result<(), ExecError> {
        let opcode = self.module.instrs[id].opcode;
        let is_start = matches!(
            opcode,
            Opcode::AllReduceStart | Opcode::AllGatherStart | Opcode::CollectivePermuteStart
        );
        let start_opcode = if is_start {
            opcode
        } else {
            match self.start_of(id) {
                Some(start) => self.module.instrs[start].opcode,
                None => return Ok(()),
            }
        };
        match self.start_to_run_here(id, start_opcode) {
            Some(start) => self.collective(start),
            None => Ok(()),
        }
    }

    /// `id` is the collective, or the start of an asynchronous one.
    pub(super) fn collective(&mut self, id: InstrId) -> Result<(), ExecError> {
        let i = &self.module.instrs[id];
        let operands = self.leaves_of_all(&i.operands)?;
        let results = match i.opcode {
            Opcode::AllGatherStart | Opcode::CollectivePermuteStart => {
                let node = self.module.shapes.node_of_index(i.shape, &[1]);
                self.leaves_below(id, node.unwrap_or(0))?
            }
            _ => self.leaves_of(id)?,
        };
        let infos = |leaves: &[Leaf]| -> Vec<&ArrayInfo> {
            leaves.iter().map(|&l| self.program.info(l)).collect()
        };
        let (operand_infos, result_infos) = (infos(&operands), infos(&results));
        let collective = Collective::prepare(
            self.module,
            id,
            (&operands, &operand_infos),
            (&results, &result_infos),
        )?;
        self.program.exchange = self.program.exchange.max(collective.exchange_bytes());
        self.program.most_refs = self.program.most_refs.max(2);
        self.program.collectives.push(collective);
        self.push(Step::Collective(self.program.collectives.len() as u32 - 1));
        Ok(())
    }

    /// A `send` or `recv`, or the end of one.
    pub(super) fn transfer(&mut self, id: InstrId) -> Result<(), ExecError> {
        let (direction, start) = match self.module.instrs[id].opcode {
            Opcode::Send | Opcode::SendDone => (Direction::Send, Opcode::Send),
            _ => (Direction::Receive, Opcode::Recv),
        };
        let Some(start) = self.start_to_run_here(id, start) else {
            return Ok(());
        };
        let leaf = match direction {
            Direction::Send => self.single_leaf(self.module.instrs[start].operands[0])?,
            Direction::Receive => self.leaf_at(start, &[0])?,
        };
        let bytes = self.program.info(leaf).map.dense_bytes();
        let slots = self
            .program
            .mail
            .of_devices(self.module, start, direction, bytes)?;
        self.program.transfers.push(Transfer {
            instr: self.module.name_of(start).into(),
            leaf,
            direction,
            bytes,
            slots,
        });
        self.push(Step::Transfer(self.program.transfers.len() as u32 - 1));
        Ok(())
    }
}
