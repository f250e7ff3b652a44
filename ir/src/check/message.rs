//! Names and places in messages.

use super::flow::Flow;
use super::violation::{Culprit, Reader};
use crate::entity::{BufferId, EntityId, InstrId, PosId};
use crate::plan::{Plan, PlanValue};
use crate::shape::DisplayIndex;
use crate::units::Extent;

impl Flow<'_> {
    /// `%name`.
    pub(super) fn name(&self, instr: InstrId) -> String {
        format!("%{}", self.module.name_of(instr))
    }

    /// `%name{1,0}`.
    pub(super) fn value_name(&self, value: &PlanValue) -> String {
        let Some(instr) = self.module.instrs.get(value.instr) else {
            return value.instr.to_string();
        };
        let name = self.module.str(instr.name);
        if value.index.is_empty() {
            format!("%{name}")
        } else {
            format!("%{name}{}", DisplayIndex(&value.index))
        }
    }

    /// The value at a position.
    pub(super) fn value(&self, pos: PosId) -> PlanValue {
        PlanValue {
            instr: self.positions.instr(pos),
            index: self.positions.index(self.module, pos),
        }
    }
}

/// `buffer 3 (bytes [0, 128) of hbm)`.
pub(super) fn buffer_name(plan: &Plan, id: BufferId) -> String {
    let Some(buffer) = plan.buffers.get(id) else {
        return format!("buffer {}", id.index());
    };
    let start = buffer.offset.get();
    let end = start.saturating_add(buffer.size.get());
    format!(
        "buffer {} (bytes {} of {})",
        id.index(),
        Extent { start, end },
        space_name(plan, buffer.space)
    )
}

/// The plan's name of a memory space, or `S(n)`.
pub(super) fn space_name(plan: &Plan, space: u32) -> String {
    match plan.space(space) {
        Some(s) if !s.name.is_empty() => s.name.clone(),
        _ => format!("S({space})"),
    }
}

/// The clause after "but": what the bytes hold instead.
pub(super) fn culprit_clause(flow: &Flow<'_>, culprit: &Culprit) -> String {
    match culprit {
        Culprit::Nothing => "were never written".to_owned(),
        Culprit::Value(value, at) => {
            format!("hold {} since point {at}", flow.value_name(value))
        }
        Culprit::Branches(conditional) => format!(
            "were overwritten in a branch of {}",
            flow.name(*conditional)
        ),
        Culprit::InFlight(start) => {
            format!("are working bytes of {}", flow.name(*start))
        }
        Culprit::Scratch(instr, at) => {
            format!("were scratch of {} at point {at}", flow.name(*instr))
        }
    }
}

/// The clause before "but": who needs the value.
pub(super) fn reader_clause(flow: &Flow<'_>, reader: Reader, value: &PlanValue) -> String {
    let value = flow.value_name(value);
    match reader {
        Reader::Instr(instr) => format!("{} needs {value}", flow.name(instr)),
        Reader::EndOf(instr) => {
            let op = flow.module.instrs[instr].opcode;
            format!("{op} {} needs {value} in place here", flow.name(instr))
        }
        Reader::Exit => format!("output {value} must be in place when the program ends"),
    }
}
