//! A plan: where every value of a module lies, as plain data.
//!
//! A plan names *defining* positions: those that get bytes of their own. What
//! merely forwards (tuple, get-tuple-element, bitcast, the parameters and the
//! result of a while, copy-done, ...) has the place of what it forwards. A plan
//! may name such a position too; then it must agree.

mod error;
mod fingerprint;
mod json;
mod line;
mod names;
mod text;

pub use error::{PlanPlace, PlanReadError};
pub use fingerprint::fingerprint;
pub use json::{from_json, json_header, to_json};
pub use text::{from_text, text_header, to_text};

use serde::{Deserialize, Serialize};

use crate::entity::{BufferId, InstrId, PrimaryMap};
use crate::shape::ShapeIndex;
use crate::units::{Alignment, Bytes, Offset};

/// Version of the plan's text and JSON forms.
pub const PLAN_VERSION: u32 = 1;

/// What is put in one slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accounting {
    /// Everything of a space shares one slab; temporaries may use an output's bytes before it is
    /// written and a donated argument's after its last read.
    Slab,
    /// As XLA accounts: every argument, output and constant has bytes of its own, temporaries
    /// share one heap, but for those that fit an idle donated argument or output whole.
    Xla,
}

/// What a buffer is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BufferKind {
    /// Bytes of an entry parameter.
    Parameter {
        /// Entry parameter number.
        number: u32,
        /// Part of the parameter.
        index: ShapeIndex,
        /// Whether an output takes these bytes or the caller gave them away.
        donated: bool,
    },
    /// Read-only data of the program.
    Constant,
    /// Holds (part of) the entry computation's result and no parameter.
    Output,
    /// What an instruction works in while it runs: no value, live during that instruction alone
    /// (of an asynchronous one until its done).
    Scratch {
        /// The instruction.
        instr: InstrId,
    },
    /// Everything else.
    Temp,
}

impl BufferKind {
    /// A word for people.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Parameter { .. } => "argument",
            Self::Constant => "constant",
            Self::Output => "output",
            Self::Scratch { .. } => "scratch",
            Self::Temp => "temporary",
        }
    }

    /// Whether it is the program's own: no argument, constant or result of the entry.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Temp | Self::Scratch { .. })
    }
}

/// A defining position.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanValue {
    /// The instruction that defines it.
    pub instr: InstrId,
    /// Part of the instruction's shape.
    pub index: ShapeIndex,
}

/// Half-open interval of program order, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LiveInterval {
    /// Number of the first instruction during which the bytes are in use.
    pub start: u32,
    /// One past the last.
    pub end: u32,
}

/// One buffer: a place and the values that occupy it one after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanBuffer {
    /// Memory space.
    pub space: u32,
    /// Place in the slab of that space.
    pub offset: Offset,
    /// Bytes.
    pub size: Bytes,
    /// What it is for.
    pub kind: BufferKind,
    /// Its values: the must-alias class; none of scratch.
    pub values: Vec<PlanValue>,
    /// When its bytes are in use, disjoint and ascending.
    pub live: Vec<LiveInterval>,
}

/// One memory space of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanSpace {
    /// The `n` of `S(n)`.
    pub space: u32,
    /// Name for people.
    pub name: String,
    /// Bytes the target has.
    pub capacity: Bytes,
    /// Every offset is a multiple of this.
    pub alignment: Alignment,
    /// Bytes of the slab.
    pub slab: Bytes,
    /// No packing of these buffers can be smaller.
    pub lower_bound: Bytes,
    /// Whether no packing of these buffers needs fewer steps of the alignment.
    pub optimal: bool,
    /// How the bytes divide.
    pub stats: PlanStats,
}

/// How the bytes of one memory space divide. Sizes are sums of [`PlanBuffer::size`].
///
/// `argument + output - alias + constant + temp` is what XLA would need with an allocation each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStats {
    /// Bytes of the temporaries: under [`Accounting::Xla`] the size of their heap, under
    /// [`Accounting::Slab`] what the slab holds beyond arguments, outputs that are not arguments,
    /// and constants (zero where temporaries fit in those).
    #[serde(default, rename = "temp_bytes")]
    pub temp: Bytes,
    /// Bytes of the entry parameters.
    #[serde(default, rename = "argument_bytes")]
    pub argument: Bytes,
    /// Bytes of the buffers that hold parts of the entry's result, donated parameters included.
    #[serde(default, rename = "output_bytes")]
    pub output: Bytes,
    /// Bytes of the buffers that are both argument and output.
    #[serde(default, rename = "alias_bytes")]
    pub alias: Bytes,
    /// Bytes of the constants.
    #[serde(default, rename = "constant_bytes")]
    pub constant: Bytes,
    /// Bytes of the largest scratch buffer; zero where scratch is not planned. Under
    /// [`Accounting::Slab`] what scratch adds to the slab is counted in [`temp`](Self::temp).
    #[serde(default, rename = "scratch_bytes", skip_serializing_if = "is_zero")]
    pub scratch: Bytes,
    /// Bytes of the elements alone of what is live at the peak.
    #[serde(default, rename = "logical_bytes_at_peak")]
    pub logical_at_peak: Bytes,
    /// Bytes with padding of what is live at the peak.
    #[serde(default, rename = "padded_bytes_at_peak")]
    pub padded_at_peak: Bytes,
    /// Name of the instruction at which most bytes are live, without `%`; empty if there is none.
    #[serde(default)]
    pub peak_instruction: String,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(bytes: &Bytes) -> bool {
    bytes.is_zero()
}

/// A copy that planning inserted, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsertedCopy {
    /// The copy.
    pub instr: InstrId,
    /// Which two values would have needed the same bytes at the same time.
    pub cause: String,
}

/// How a plan was made: what is needed to make the module that it is for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PlanHeader {
    /// Name of the target.
    pub target: String,
    /// What shares a slab.
    pub accounting: Accounting,
    /// How the order was found: `keep` or `memory`.
    pub schedule: String,
}

/// A complete plan of one module for one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Name of the module.
    pub module: String,
    /// Digest of the printed module that the plan is for (after passes).
    pub fingerprint: u64,
    /// Name of the target.
    pub target: String,
    /// What shares a slab.
    pub accounting: Accounting,
    /// How the order was found: `keep` or `memory`.
    pub schedule: String,
    /// Memory spaces, by number.
    pub spaces: Vec<PlanSpace>,
    /// Buffers, by space and offset.
    pub buffers: PrimaryMap<BufferId, PlanBuffer>,
    /// Copies that planning inserted.
    pub copies: Vec<InsertedCopy>,
}

impl Plan {
    /// The space with this number.
    pub fn space(&self, space: u32) -> Option<&PlanSpace> {
        self.spaces.iter().find(|s| s.space == space)
    }
}
