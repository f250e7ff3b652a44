//! Scratch as part of the plan: what the executor's operations work in gets buffers.

use std::num::NonZeroUsize;

use slabplan_ir::{Module, Target};
use slabplan_planner::scratch::ScratchRequest;
use slabplan_planner::{PlanConfig, Planned};

use crate::compile::CompileError;
use crate::exec::scratch_requests;

/// Plans `module` again with scratch for everything that needs some on `threads` threads.
///
/// What an instruction works in depends on whether a result of it lies on an operand, which a new plan
/// may change. So what was ever asked for is kept and planned again until nothing is missing; every
/// instruction has few such choices, and mostly the first plan is the last.
pub(crate) fn plan_scratch(
    module: &Module,
    target: &Target,
    config: &PlanConfig,
    first: Planned,
    threads: NonZeroUsize,
) -> Result<Planned, CompileError> {
    let mut planned = first;
    let mut known: Vec<ScratchRequest> = Vec::new();
    loop {
        let wanted = scratch_requests(module, &planned.plan, threads)?;
        if !take_over(&mut known, &wanted) {
            return Ok(planned);
        }
        let config = PlanConfig {
            scratch: known.clone(),
            ..config.clone()
        };
        let mut next = slabplan_planner::plan(module, target, &config)?;
        next.plan.fingerprint = planned.plan.fingerprint;
        next.plan.schedule = planned.plan.schedule;
        next.plan.copies = planned.plan.copies;
        planned = next;
    }
}

/// Raises what is known to what is wanted; both are by instruction. Returns whether that changed anything.
fn take_over(known: &mut Vec<ScratchRequest>, wanted: &[ScratchRequest]) -> bool {
    let mut changed = false;
    for &request in wanted {
        match known.binary_search_by_key(&request.instr, |r| r.instr) {
            Ok(n) if known[n].bytes >= request.bytes => {}
            Ok(n) => {
                known[n].bytes = request.bytes;
                changed = true;
            }
            Err(n) => {
                known.insert(n, request);
                changed = true;
            }
        }
    }
    changed
}
