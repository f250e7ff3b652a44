//! What instructions work in beside their operands and results, as buffers of the plan.
//!
//! Whoever runs the program says how much; nothing is known of it here but how long it is needed:
//! while its instruction runs, and of an asynchronous one whenever that may run.

use slabplan_ir::plan::BufferKind;
use slabplan_ir::{Bytes, InstrId, Module, Opcode};

use crate::buffers::{Buffer, Buffers};
use crate::error::PlanError;
use crate::liveness::{Liveness, interval, normalise};
use crate::order::ProgramOrder;

/// Memory space in which scratch lies.
pub const SCRATCH_SPACE: u32 = 0;

/// Bytes that an instruction works in, in [`SCRATCH_SPACE`], aligned as everything there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScratchRequest {
    /// The instruction.
    pub instr: InstrId,
    /// Bytes.
    pub bytes: Bytes,
}

/// Adds a buffer for each request.
///
/// # Errors
/// A request of an instruction that does not run by itself. O(requests · depth of asynchronous operations).
pub(crate) fn add_scratch(
    module: &Module,
    order: &ProgramOrder,
    live: &Liveness,
    requests: &[ScratchRequest],
    buffers: &mut Buffers,
) -> Result<(), PlanError> {
    if requests.is_empty() {
        return Ok(());
    }
    let done = copy_dones(module, order);
    for &ScratchRequest { instr, bytes } in requests {
        let at = order.number(instr).ok_or_else(|| PlanError::Scratch {
            instr: module.name_of(instr).to_owned(),
        })?;
        let mut ranges = live.running(module.instrs[instr].computation, at);
        let end = done.binary_search_by_key(&instr, |d| d.0);
        ranges.extend(end.ok().map(|n| interval(at, done[n].1 + 1)));
        normalise(&mut ranges);
        buffers.push(Buffer {
            values: Vec::new(),
            space: SCRATCH_SPACE,
            size: bytes,
            kind: BufferKind::Scratch { instr },
            live: ranges,
        });
    }
    Ok(())
}

/// Every copy-start with the number of its copy-done, sorted.
fn copy_dones(module: &Module, order: &ProgramOrder) -> Vec<(InstrId, u32)> {
    let sequence = (0..).zip(order.sequence());
    let mut done: Vec<(InstrId, u32)> = sequence
        .filter(|&(_, &i)| module.instrs[i].opcode == Opcode::CopyDone)
        .filter_map(|(at, &i)| Some((*module.instrs[i].operands.first()?, at)))
        .collect();
    done.sort_unstable();
    done
}
