//! XLA's own buffer assignments: what `*-buffer-assignment.txt` and `BufferAssignmentProto` say.
//!
//! Both forms are read into one [`Assignment`]; [`to_plan`] makes a plan of it that the checker
//! can judge.

mod proto;
mod text;
mod to_plan;

use std::fmt;

use slabplan_ir::shape::ShapeIndex;

use super::proto::InstructionNames;
use super::{LoadError, Source, looks_binary, read};

pub use to_plan::{JudgedPlan, ToPlanError, XlaTotals, to_plan};

/// A whole assignment, in the order of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// What messages call it.
    pub name: String,
    /// The allocations, thread-local ones and index tables included.
    pub allocations: Vec<Allocation>,
}

/// One allocation: bytes of one memory space that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Number in the assignment.
    pub index: u64,
    /// Bytes.
    pub size: u64,
    /// Memory space: the assignment's colour.
    pub space: u32,
    /// The part of an entry parameter that it holds.
    pub parameter: Option<(u32, ShapeIndex)>,
    /// Holds a constant.
    pub constant: bool,
    /// Belongs to a computation that runs inside one instruction.
    pub thread_local: bool,
    /// May hold a part of the program's result.
    pub live_out: bool,
    /// Holds the index table of a tuple; only the proto says so.
    pub tuple: bool,
    /// What lies in it.
    pub values: Vec<Assigned>,
    /// Where the file says so.
    pub place: Place,
}

impl Allocation {
    /// Whether this is a heap of temporaries.
    pub fn is_heap(&self) -> bool {
        self.parameter.is_none() && !self.constant && !self.thread_local && !self.live_out
    }
}

/// A value in an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// The instruction that defines it.
    pub instr: InstrName,
    /// Part of the instruction's result.
    pub index: ShapeIndex,
    /// First byte in the allocation.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// Its shape with layout, where the file says it.
    pub shape: Option<String>,
    /// Where the file says so.
    pub place: Place,
}

/// How a file names an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstrName {
    /// The computation, where the file says it.
    pub computation: Option<String>,
    /// The instruction.
    pub name: String,
}

/// Where in an assignment something is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    Whole,
    /// A line and a column of the text, from 1.
    Text {
        /// Line.
        line: u32,
        /// Column, in characters.
        column: u32,
    },
    /// An allocation of the proto, by its index.
    Allocation(u64),
}

/// Why an assignment can't be read, or does not belong to the module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}{place}: {message}")]
pub struct AssignmentError {
    /// What the assignment is called.
    pub name: String,
    /// Where.
    pub place: Place,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Text { line, column } => write!(f, ":{line}:{column}"),
            Self::Allocation(index) => write!(f, ": allocation {index}"),
        }
    }
}

/// Why there is no assignment.
#[derive(Debug, thiserror::Error)]
pub enum AssignmentLoadError {
    /// The file can't be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Its content is not a right assignment.
    #[error(transparent)]
    Content(#[from] AssignmentError),
}

/// Reads an assignment from a file, or standard input for `-`: text or proto, also gzipped.
///
/// `ids` names the instructions of the module by the ids that its proto gives them; needed only for
/// a proto that is not beside its module.
pub fn load_assignment(
    path: &str,
    ids: Option<&InstructionNames>,
) -> Result<Assignment, AssignmentLoadError> {
    Ok(parse_assignment(&read(path)?, ids)?)
}

/// Reads an assignment from memory: see [`load_assignment`]. O(bytes · log instructions).
pub fn parse_assignment(
    source: &Source,
    ids: Option<&InstructionNames>,
) -> Result<Assignment, AssignmentError> {
    let whole = |message: &str| AssignmentError {
        name: source.name.clone(),
        place: Place::Whole,
        message: message.to_owned(),
    };
    if source.bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(whole(
            "empty input; expected the text or the proto of a buffer assignment",
        ));
    }
    if looks_binary(&source.bytes) {
        return proto::parse(source, ids);
    }
    match std::str::from_utf8(&source.bytes) {
        Ok(text) => text::parse(&source.name, text),
        Err(e) => Err(whole(&format!(
            "not UTF-8 at byte {}; expected the text or the proto of a buffer assignment",
            e.valid_up_to()
        ))),
    }
}
