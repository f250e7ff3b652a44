//! The same program under a dynamic allocator, for comparison with its static plan.
//!
//! ```text
//! Compiled --Trace::new--> what is allocated and freed, loops and branches kept
//!          --replay-->     peak reserved, peak used, calls          for each [`Allocator`]
//! ```
//!
//! The trace is the plan's own: a block for each buffer, of the buffer's padded size, allocated at the
//! first instruction during which the buffer is live and freed after the last. Buffers that share
//! bytes while both are live (a result written over a dying operand, pieces of a concatenation) are
//! one block, as they are for a runtime that forwards its inputs. So the allocators differ from the
//! plan, and from each other, in nothing but where they put things.

mod bfc;
mod bump;
mod caching;
mod heap;
mod replay;
mod report;
mod trace;

#[cfg(test)]
mod tests;

pub use bfc::{Bfc, Growth};
pub use bump::Bump;
pub use caching::Caching;
pub use replay::{Failure, LoopReplay, Replay, replay};
pub use report::{Simulation, simulate};
pub(crate) use trace::trip_count;
pub use trace::{Block, Event, Trace};

/// Where a block begins. What addresses mean is the allocator's own affair.
pub type Address = u64;

/// A dynamic allocator of one memory space.
pub trait Allocator {
    /// Gives `bytes` bytes, or `None` when memory has run out. Zero bytes need no memory.
    fn allocate(&mut self, bytes: u64) -> Option<Address>;

    /// Takes back the block at `address`.
    fn free(&mut self, address: Address);

    /// Bytes that it holds of the device, in use or not.
    fn reserved(&self) -> u64;

    /// Bytes of the blocks that are in use, with what it rounded them up by.
    fn in_use(&self) -> u64;

    /// How often it asked the device for memory or gave some back.
    fn device_calls(&self) -> u64;

    /// The largest block that it could give without asking the device for more.
    fn largest_free(&self) -> u64;

    /// Appends everything that decides how it will answer from now on: two equal states answer equal
    /// calls equally. Counters that only report are left out.
    fn state(&self, out: &mut Vec<u64>);
}

/// The allocators that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TensorFlow's and XLA:GPU's: [`Bfc`].
    Bfc,
    /// In the manner of PyTorch's: [`Caching`].
    Caching,
    /// A pointer that rises: [`Bump`].
    Bump,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Bfc, Self::Caching, Self::Bump];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bfc => "bfc",
            Self::Caching => "caching",
            Self::Bump => "bump",
        }
    }

    /// A new one with nothing allocated, for a device of `capacity` bytes.
    pub fn allocator(self, capacity: u64, growth: Growth) -> Box<dyn Allocator> {
        match self {
            Self::Bfc => Box::new(Bfc::new(capacity, growth)),
            Self::Caching => Box::new(Caching::new(capacity)),
            Self::Bump => Box::new(Bump::new(capacity)),
        }
    }
}
