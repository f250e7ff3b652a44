//! The passes, in the order in which they run.

mod copies;
mod entry_layout;
mod flatten;
mod layout;
mod planning;
mod schedule;

pub use copies::InsertCopies;
pub use flatten::{FlattenCallGraph, is_flat};
pub use layout::AssignLayouts;
pub use planning::MemoryPlanning;
pub use schedule::ScheduleMemory;

use crate::pass::Pass;

/// What turns a valid module into one that can be planned.
pub const PREPARE: &[&dyn Pass] = &[
    &FlattenCallGraph,
    &AssignLayouts,
    &ScheduleMemory,
    &InsertCopies,
];
