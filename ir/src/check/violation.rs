//! What can be wrong with a plan.

use std::fmt;

use crate::entity::{BufferId, CompId, InstrId};
use crate::plan::PlanValue;
use crate::units::Extent;

/// Most violations that are kept; the rest is counted.
pub const MAX_VIOLATIONS: usize = 100;

/// What bytes hold instead of what they should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Culprit {
    /// Nothing was ever written there.
    Nothing,
    /// This value, written at this point of program order.
    Value(PlanValue, u32),
    /// What a branch of this conditional left there, which differs from branch to branch.
    Branches(InstrId),
    /// Working bytes of this async operation.
    InFlight(InstrId),
    /// What this instruction left in its scratch, at this point of program order.
    Scratch(InstrId, u32),
}

/// Who finds wrong bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// This instruction, which uses the value.
    Instr(InstrId),
    /// The end of a branch of this conditional, of an iteration of this while, of this call or of
    /// this async operation's computation: the value must be there for it to go on.
    EndOf(InstrId),
    /// The end of the program.
    Exit,
}

/// One kind of thing that can be wrong, with what it happened to.
///
/// Numbers called `at` count program order as [`crate::check`] defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named after what the variant says")]
pub enum ViolationKind {
    // A. Form.
    /// A buffer lies in a memory space that the plan or the target does not have.
    UnknownSpace { buffer: BufferId, space: u32 },
    /// A plan lists one memory space twice.
    DuplicateSpace { space: u32 },
    /// A buffer names a value that the module does not have or that has no bytes of its own.
    UnknownValue { buffer: BufferId, value: PlanValue },
    /// A value that needs bytes is in no buffer.
    MissingSlot { value: PlanValue },
    /// A value is in two buffers.
    DuplicateSlot {
        value: PlanValue,
        first: BufferId,
        second: BufferId,
    },
    /// An offset is not a multiple of the space's alignment.
    Misaligned { buffer: BufferId, alignment: u64 },
    /// A buffer reaches beyond its slab.
    OutsideSlab { buffer: BufferId, slab: u64 },
    /// A slab is larger than the end of its last buffer, rounded up to the alignment.
    LooseSlab { space: u32, slab: u64, end: u64 },
    /// A buffer is smaller than the padded bytes of a value in it.
    TooSmall {
        buffer: BufferId,
        value: PlanValue,
        needed: u64,
    },
    /// A value's shape has no size.
    NoSize { value: PlanValue },
    /// A value's layout says `S(n)` and its bytes lie in another space.
    WrongSpace {
        value: PlanValue,
        layout: u32,
        found: u32,
    },
    /// A value that forwards another is given other bytes than what it forwards.
    ForwardElsewhere { value: PlanValue },
    /// A buffer's kind is not what its values are.
    WrongKind { buffer: BufferId },
    /// Live intervals are empty, out of order, overlapping or beyond the program.
    BadLiveRange { buffer: BufferId },
    /// A number the plan states about itself is wrong.
    WrongStatistic { space: u32, stated: u64, found: u64 },

    // B. Schedule.
    /// A computation's order does not hold each of its instructions once.
    NotPermutation { computation: CompId },
    /// An instruction runs before an operand or a control predecessor.
    OutOfOrder { instr: InstrId, needs: InstrId },
    /// A computation runs from two places.
    SharedComputation {
        computation: CompId,
        caller: InstrId,
    },
    /// An async operation is started and not ended once.
    AsyncUnpaired { start: InstrId },
    /// An instruction is of a form that the checker cannot follow.
    NotUnderstood { instr: InstrId },

    // C. Data flow.
    /// A value is no longer in its bytes when it is needed.
    Lost {
        reader: Reader,
        value: PlanValue,
        bytes: Extent,
        culprit: Culprit,
        at: u32,
    },
    /// A result overlaps an operand of its own instruction without lying on exactly its bytes.
    PartialOverlap {
        result: PlanValue,
        operand: PlanValue,
        bytes: Extent,
        at: u32,
    },
    /// A result lies on exactly the bytes of an operand that the instruction reads out of step.
    UnsafeInPlace {
        result: PlanValue,
        operand: PlanValue,
        bytes: Extent,
        at: u32,
    },
    /// Two results of one instruction overlap.
    ResultsOverlap {
        first: PlanValue,
        second: PlanValue,
        bytes: Extent,
        at: u32,
    },
    /// What an instruction works in overlaps one of its operands or results, or its other scratch
    /// (then the value is the instruction's own).
    ScratchOverlap {
        instr: InstrId,
        value: PlanValue,
        bytes: Extent,
        at: u32,
    },
    /// The bytes of a constant or of a parameter that is not donated are written.
    ReadOnlyWritten {
        value: PlanValue,
        writer: PlanValue,
        bytes: Extent,
        at: u32,
    },
    /// Two values that must be in memory when the program starts overlap.
    StartOverlap {
        first: PlanValue,
        second: PlanValue,
        bytes: Extent,
    },

    // D. Aliases.
    /// A result that is written in place does not lie on its operand's bytes.
    AliasDropped {
        result: PlanValue,
        operand: PlanValue,
    },
    /// A value carried by a while does not end the body where it began it.
    CarryMoved {
        whil: InstrId,
        carry: PlanValue,
        root: PlanValue,
    },
    /// Two branches leave one part of a conditional's result in different places.
    BranchesDisagree {
        conditional: InstrId,
        first: PlanValue,
        other: PlanValue,
    },
    /// The pieces of a `ConcatBitcast` do not lie side by side in its result.
    PiecesApart { result: PlanValue, piece: PlanValue },
    /// An output that takes a parameter's bytes lies elsewhere.
    OutputNotOnParameter {
        output: PlanValue,
        parameter: PlanValue,
    },

    // E. Ends.
    /// Two outputs share bytes.
    OutputsOverlap {
        first: PlanValue,
        second: PlanValue,
        bytes: Extent,
    },
    /// An output lies on a constant or on a parameter that is not donated.
    OutputReadOnly {
        output: PlanValue,
        source: PlanValue,
    },
}

impl ViolationKind {
    /// A stable name for scripts: `misaligned`, `lost`, ...
    pub fn name(&self) -> &'static str {
        use ViolationKind as K;
        match self {
            K::UnknownSpace { .. } => "unknown-space",
            K::DuplicateSpace { .. } => "duplicate-space",
            K::UnknownValue { .. } => "unknown-value",
            K::MissingSlot { .. } => "missing-slot",
            K::DuplicateSlot { .. } => "duplicate-slot",
            K::Misaligned { .. } => "misaligned",
            K::OutsideSlab { .. } => "outside-slab",
            K::LooseSlab { .. } => "loose-slab",
            K::TooSmall { .. } => "too-small",
            K::NoSize { .. } => "no-size",
            K::WrongSpace { .. } => "wrong-space",
            K::ForwardElsewhere { .. } => "forward-elsewhere",
            K::WrongKind { .. } => "wrong-kind",
            K::BadLiveRange { .. } => "bad-live-range",
            K::WrongStatistic { .. } => "wrong-statistic",
            K::NotPermutation { .. } => "not-permutation",
            K::OutOfOrder { .. } => "out-of-order",
            K::SharedComputation { .. } => "shared-computation",
            K::AsyncUnpaired { .. } => "async-unpaired",
            K::NotUnderstood { .. } => "not-understood",
            K::Lost { .. } => "lost",
            K::PartialOverlap { .. } => "partial-overlap",
            K::UnsafeInPlace { .. } => "unsafe-in-place",
            K::ResultsOverlap { .. } => "results-overlap",
            K::ScratchOverlap { .. } => "scratch-overlap",
            K::ReadOnlyWritten { .. } => "read-only-written",
            K::StartOverlap { .. } => "start-overlap",
            K::AliasDropped { .. } => "alias-dropped",
            K::CarryMoved { .. } => "carry-moved",
            K::BranchesDisagree { .. } => "branches-disagree",
            K::PiecesApart { .. } => "pieces-apart",
            K::OutputNotOnParameter { .. } => "output-not-on-parameter",
            K::OutputsOverlap { .. } => "outputs-overlap",
            K::OutputReadOnly { .. } => "output-read-only",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What, with ids.
    pub kind: ViolationKind,
    /// The same in a sentence, with names, bytes and points of program order.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.message, self.kind.name())
    }
}

/// Everything that is wrong with a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations {
    /// The first [`MAX_VIOLATIONS`], in the order of the checker's steps.
    pub list: Vec<Violation>,
    /// How many there are in all.
    pub total: usize,
}

impl Violations {
    /// Whether the next one is kept.
    pub(super) fn has_room(&self) -> bool {
        self.list.len() < MAX_VIOLATIONS
    }

    /// Adds one; `message` is called only if it is kept.
    pub(super) fn push(&mut self, kind: ViolationKind, message: impl FnOnce() -> String) {
        self.total += 1;
        if self.has_room() {
            let message = message();
            self.list.push(Violation { kind, message });
        }
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = if self.total == 1 { "place" } else { "places" };
        writeln!(f, "the plan is wrong in {} {places}:", self.total)?;
        for v in &self.list {
            writeln!(f, "  {v}")?;
        }
        let more = self.total - self.list.len();
        if more > 0 {
            writeln!(f, "  and {more} more")?;
        }
        Ok(())
    }
}

impl std::error::Error for Violations {}
