//! Elementwise operations of any number in one pass over memory.
//!
//! The loop runs over the indices of its result in the order in which they lie in memory, a block
//! at a time: what the block needs of each operand is read where it lies or brought into a register
//! (an array of as many elements as the block), each operation goes over its registers, and the
//! last one writes to memory. A block and its registers stay in the first cache.

mod join;
mod plan;
mod run;

use smallvec::SmallVec;

use super::elementwise::Elementwise;

pub(crate) use join::Arithmetic;
pub(crate) use plan::FusedLoop;

/// The places of elements: of the first one, and how far apart they lie along each dimension of
/// the loop, in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) start: isize,
    pub(crate) steps: SmallVec<[isize; 6]>,
}

/// Elements that the loop reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    /// Number of the operand; none for the places themselves, as 64-bit integers.
    pub(crate) input: Option<usize>,
    /// Bytes of an element.
    pub(crate) width: usize,
    pub(crate) access: Access,
}

/// What an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// A read.
    Read(usize),
    /// The result of an earlier step.
    Step(usize),
}

/// One elementwise operation.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) op: Elementwise,
    pub(crate) args: SmallVec<[Operand; 3]>,
    /// Bytes of an element of its result.
    pub(crate) width: usize,
}

/// Elements that the loop writes.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) value: Operand,
    pub(crate) width: usize,
    pub(crate) access: Access,
}

/// A loop as it is asked for.
#[derive(Clone, Debug)]
pub(crate) struct LoopSpec {
    /// Sizes of its dimensions, outermost first.
    pub(crate) dims: SmallVec<[usize; 6]>,
    pub(crate) reads: Vec<Read>,
    /// Each takes the results of earlier ones.
    pub(crate) steps: Vec<Step>,
    pub(crate) write: Write,
}
