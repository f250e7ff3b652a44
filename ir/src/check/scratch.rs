//! What instructions work in besides their operands and results.

use std::collections::BTreeMap;

use super::execute::{Machine, SymbolKind, overlap, plan_space};
use super::flow::Flow;
use super::memory::Place;
use super::violation::ViolationKind as K;
use crate::entity::{BufferId, InstrId};
use crate::opcode::Opcode;
use crate::plan::{BufferKind, Plan, PlanValue};
use crate::shape::ShapeIndex;
use crate::units::Extent;

/// The scratch buffers of each instruction that runs by itself. O(buffers log buffers).
pub(super) fn by_instruction(flow: &Flow<'_>, plan: &Plan) -> BTreeMap<InstrId, Vec<BufferId>> {
    let mut scratch: BTreeMap<InstrId, Vec<BufferId>> = BTreeMap::new();
    for (id, buffer) in plan.buffers.iter() {
        if let BufferKind::Scratch { instr } = buffer.kind
            && flow.module.instrs.get(instr).is_some()
            && flow.is_planned(instr)
        {
            scratch.entry(instr).or_default().push(id);
        }
    }
    scratch
}

impl Machine<'_, '_> {
    /// Spoils the scratch of `id`, and of a copy that it ends, which may run here as well. Its operands
    /// have been read and its results are not yet written: all must lie apart, for no order among
    /// them is promised.
    pub(super) fn use_scratch(&mut self, id: InstrId) {
        if self.scratch.is_empty() {
            return;
        }
        self.spoil(id, id);
        let instr = &self.module().instrs[id];
        if let (Opcode::CopyDone, Some(&start)) = (instr.opcode, instr.operands.first()) {
            self.spoil(id, start);
        }
    }

    /// The scratch of `owner` is used while `id` runs.
    fn spoil(&mut self, id: InstrId, owner: InstrId) {
        let Some(buffers) = self.scratch.get(&owner).cloned() else {
            return;
        };
        let mut taken = self.places_of(id);
        for buffer in buffers {
            let Some(place) = self.slots.whole(self.plan, buffer) else {
                continue;
            };
            for (value, other) in &taken {
                if let Some(bytes) = overlap(place, *other) {
                    self.report_overlap(owner, value, place, bytes);
                }
            }
            self.check_not_read_only(owner, place);
            let own = PlanValue {
                instr: owner,
                index: ShapeIndex::new(),
            };
            taken.push((own, place));
            let spoilt = self.new_symbol(SymbolKind::Scratch(owner));
            self.memory.write(place, spoilt);
        }
    }

    /// The operands and results of `id` and where they lie.
    fn places_of(&self, id: InstrId) -> Vec<(PlanValue, Place)> {
        let mut places = Vec::new();
        for &operand in &self.module().instrs[id].operands {
            for pos in self.arrays(operand) {
                places.extend(self.seen_place(pos).map(|p| (self.flow.value(pos), p)));
            }
        }
        for pos in self.arrays(id) {
            let own = self.own_place(pos).map(|(_, p)| p);
            places.extend(own.map(|p| (self.flow.value(pos), p)));
        }
        places
    }

    fn report_overlap(&mut self, instr: InstrId, value: &PlanValue, place: Place, bytes: Extent) {
        let at = self.point;
        let kind = K::ScratchOverlap {
            instr,
            value: value.clone(),
            bytes,
            at,
        };
        self.report(kind, |this| {
            format!(
                "the scratch of {} (at {at}) shares bytes {bytes} of {} with {}",
                this.flow.name(instr),
                plan_space(this.plan, place),
                this.flow.value_name(value)
            )
        });
    }

    fn check_not_read_only(&mut self, instr: InstrId, place: Place) {
        let Some((bytes, owner)) = self.run.read_only_in(place) else {
            return;
        };
        let at = self.point;
        let value = self.flow.value(owner);
        let writer = PlanValue {
            instr,
            index: ShapeIndex::new(),
        };
        let kind = K::ReadOnlyWritten {
            value: value.clone(),
            writer,
            bytes,
            at,
        };
        self.report(kind, |this| {
            format!(
                "the scratch of {} (at {at}) takes bytes {bytes} of {}, which nothing may overwrite",
                this.flow.name(instr),
                this.flow.value_name(&value)
            )
        });
    }
}
