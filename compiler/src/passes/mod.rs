//! The passes, in the order in which they run.

mod flatten;
mod layout;
mod planning;

pub use flatten::{FlattenCallGraph, is_flat};
pub use layout::AssignLayouts;
pub use planning::MemoryPlanning;

use crate::pass::Pass;

/// What turns a valid module into one that can be planned.
pub const PREPARE: &[&dyn Pass] = &[&FlattenCallGraph, &AssignLayouts];
