//! Why a module can't be planned.

use slabplan_ir::padding::SizeError;
use slabplan_ir::units::UnitError;

use crate::pack::ProblemError;

/// Why a module can't be planned. Each variant says what to change in the input or the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The module has no schedule: run a scheduler first.
    #[error("module is not scheduled; schedule it first")]
    NotScheduled,
    /// A computation is called from two places; give each call its own clone.
    #[error(
        "computation %{computation} has more than one caller (%{caller} is the second); flatten the call graph first"
    )]
    SharedComputation {
        /// The computation.
        computation: String,
        /// The second caller.
        caller: String,
    },
    /// A value's size can't be computed.
    #[error("%{value}: {error}")]
    Size {
        /// Position as printed.
        value: String,
        /// What is wrong with its shape.
        error: SizeError,
    },
    /// The sizes of a whole memory space overflow.
    #[error("memory space {space}: {error}")]
    SpaceSize {
        /// Memory space.
        space: u32,
        /// The overflow.
        error: UnitError,
    },
    /// A layout names a memory space that the target does not have.
    #[error("{value} lies in memory space {space}, which target {target} does not have")]
    UnknownSpace {
        /// Position as printed.
        value: String,
        /// Memory space.
        space: u32,
        /// Target name.
        target: String,
    },
    /// Values that must occupy the same bytes lie in different memory spaces.
    #[error(
        "%{first} in memory space {first_space} and %{second} in memory space {second_space} must occupy the same bytes; a copy between the spaces is missing"
    )]
    SpaceMismatch {
        /// One value.
        first: String,
        /// Its space.
        first_space: u32,
        /// The other value.
        second: String,
        /// Its space.
        second_space: u32,
    },
    /// Values that must occupy the same bytes can't: copies must be inserted before planning.
    #[error("{conflict}; insert copies first")]
    Interference {
        /// Which values, why the same bytes, and what stands against it.
        conflict: String,
    },
    /// The caller relies on a donation that can't be used.
    #[error("must-alias of {donation}")]
    Donation {
        /// Which, and why not.
        donation: String,
    },
    /// Copies were inserted again and again without reaching a module that needs none.
    #[error(
        "copy insertion did not settle after {rounds} rounds; first remaining conflict: {conflict}"
    )]
    CopiesDidNotSettle {
        /// How many rounds were tried.
        rounds: u32,
        /// The conflict that remains.
        conflict: String,
    },
    /// Scratch is asked for by an instruction that runs inside another one.
    #[error("%{instr} runs inside another instruction, which must ask for its scratch")]
    Scratch {
        /// The instruction.
        instr: String,
    },
    /// The packing problem of a space is malformed.
    #[error("memory space {space}: {error}")]
    Pack {
        /// Memory space.
        space: u32,
        /// What the packer refuses.
        error: ProblemError,
    },
}
