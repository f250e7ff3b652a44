//! Proof that a plan is right, by abstract execution over byte ranges.
//!
//! [`check`] runs the scheduled module once without data. It keeps, for every
//! byte of every slab, which value the byte holds, and asks at each use
//! whether the value is still there. It uses no live range, alias class or
//! size of the planner: only the module, the offsets of the plan and its own
//! rules of what each operation reads, writes and forwards.
//!
//! # What is verified
//!
//! **Form.** Each value that needs bytes is in one buffer and nothing else is;
//! spaces exist; offsets are aligned; buffers end within their slab and the
//! slab ends with them; sizes hold the padded bytes, computed anew; `S(n)` of
//! every layout, forwarded ones included, is the space of the bytes; kinds and
//! byte sums are what the module says. What a plan says besides is held to what
//! can be seen: a buffer with live ranges is live whenever a value in it is
//! written or read, and a slab that is called least is no larger, in steps of
//! the alignment, than its lower bound. (That the bound itself is one is the
//! packer's word.)
//!
//! **Schedule.** Each computation's order is a permutation in which operands
//! and control predecessors come first; each planned computation has one
//! caller; every async operation is ended once.
//!
//! **Data flow.** Before an instruction, all bytes of each operand hold the
//! operand's value; otherwise the first wrong bytes are reported, with what
//! overwrote them and when. Then its results are written, over whatever was
//! there. A result may touch an operand of its own instruction only on exactly
//! the same bytes, and only where the instruction is proved to read every
//! element before it replaces it. Scratch of an instruction touches none of its
//! operands and results and spoils whatever was there, when it runs and, of an
//! asynchronous one, until its done. Constants and parameters that are not
//! donated are never written. Results of one instruction are disjoint.
//!
//! **Control flow.** A while is run once, from a state in which each carried
//! place that changes holds "the carried value of some iteration". HLO has no
//! free variables, so a body reads nothing else from outside; what condition
//! or body overwrite is lost after the loop, and every carried place must hold
//! the body's result (or, where it passes through, still the carried value)
//! when condition and body end. That is the fixpoint, reached in one pass, so
//! nested loops cost no more than their instructions. The branches of a
//! conditional are run one by one from the same state; afterwards bytes that
//! any branch wrote are lost except the result, which must be in one place.
//! Calls are entered. An async operation's `-done` finds source, destination
//! and contexts as the start left them, which forbids all writes in between.
//!
//! **Aliases and ends.** In-place operations lie on their operand; a while's
//! values stay at one place; outputs named by `input_output_alias` lie on their
//! parameter; at the end each output holds its value, no two outputs share a
//! byte and none lies on read-only bytes.
//!
//! Whether the slabs fit the target is not a matter of right and wrong: see
//! [`CheckReport::fits`].
//!
//! # Program order
//!
//! Points are numbered as XLA's `HloLiveRange` flattens a module: condition,
//! body, then the while; branches in order, then the conditional; a callee
//! before its call; a wrapped computation before its `async-start`.
//!
//! Cost: O((reads + writes) · log n), and each conditional or async operation
//! visits once more what was written inside it. Memory is linear; nesting
//! uses no stack.

mod control;
mod ends;
mod execute;
mod flow;
mod form;
mod fused;
mod in_flight;
mod in_place;
mod invariant;
mod memory;
mod message;
mod overlap;
mod schedule;
mod scratch;
mod violation;

pub use violation::{Culprit, MAX_VIOLATIONS, Reader, Violation, ViolationKind, Violations};

use crate::module::Module;
use crate::plan::{Plan, PlanValue};
use crate::target::Target;
use crate::units::Bytes;

/// What the checker does about a result on exactly the bytes of an operand when it can't prove
/// that the instruction reads in step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPlace {
    /// It is a violation, unless the module's own text carries the back end's promise
    /// ([`crate::promise`]); [`CheckReport::promised`] lists those.
    Prove,
    /// The back end that made the plan is taken at its word; [`CheckReport::promised`] lists these too.
    Promise,
}

/// A result and the operand whose bytes it takes on the back end's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promised {
    /// The result.
    pub result: PlanValue,
    /// The operand.
    pub operand: PlanValue,
    /// Whether the module's own text carries the promise ([`crate::promise`]); otherwise the plan
    /// alone does.
    pub in_text: bool,
}

/// Use of one memory space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceReport {
    /// The `n` of `S(n)`.
    pub space: u32,
    /// End of the last buffer.
    pub used: Bytes,
    /// Bytes the target has.
    pub capacity: Bytes,
    /// Whether the slab is no larger than that.
    pub fits: bool,
}

/// What a right plan was found to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// Points of program order.
    pub instructions: u32,
    /// Values with bytes of their own.
    pub values: usize,
    /// Uses of values that were proved to find them.
    pub reads: u64,
    /// Values written.
    pub writes: u64,
    /// Memory spaces, in the plan's order.
    pub spaces: Vec<SpaceReport>,
    /// Whether every slab fits its space.
    pub fits: bool,
    /// Results taken to be safe in place on the back end's word, without proof.
    pub promised: Vec<Promised>,
}

/// Proves that running `module` in its schedule at the places of `plan` computes what the module
/// says, or lists everything that is wrong.
///
/// `module` has passed [`crate::verify`]; the plan may be anything.
pub fn check(module: &Module, plan: &Plan, target: &Target) -> Result<CheckReport, Violations> {
    check_with(module, plan, target, InPlace::Prove)
}

/// [`check`] with a choice of what to do about in-place results without proof.
pub fn check_with(
    module: &Module,
    plan: &Plan,
    target: &Target,
    in_place: InPlace,
) -> Result<CheckReport, Violations> {
    let flow = flow::Flow::new(module);
    let mut violations = Violations::default();
    schedule::check(&flow, &mut violations);
    let slots = form::check(&flow, plan, target, &mut violations);
    let run = execute::run(&flow, plan, &slots, in_place, &mut violations);
    ends::check(&flow, plan, &slots, &run, &mut violations);
    if violations.total > 0 {
        return Err(violations);
    }
    let spaces = form::space_reports(plan, target);
    Ok(CheckReport {
        instructions: run.points,
        values: run.writes as usize,
        reads: run.reads,
        writes: run.writes,
        fits: spaces.iter().all(|s| s.fits),
        spaces,
        promised: run.promised,
    })
}
