//! The passes, in the order in which they run.

mod assign_layouts;
mod copies;
mod flatten;
mod fuse;
mod layout;
mod planning;
mod schedule;

pub use copies::InsertCopies;
pub use flatten::{FlattenCallGraph, is_flat};
pub use fuse::FuseElementwise;
pub use layout::AssignLayouts;
pub(crate) use layout::layouts_are_given;
pub use planning::MemoryPlanning;
pub use schedule::ScheduleMemory;

use crate::pass::Pass;

/// What turns a valid module into one that can be planned.
pub const PREPARE: &[&dyn Pass] = &[
    &FlattenCallGraph,
    &AssignLayouts,
    &FuseElementwise,
    &ScheduleMemory,
    &InsertCopies,
];
