//! The passes, in the order in which they run.

mod assign_layouts;
mod bind_async;
mod copies;
mod entry_layout;
mod flatten;
mod forwarded_layouts;
mod fuse;
mod layout;
mod operand_aliases;
mod planning;
mod schedule;
mod shard_map;

pub use bind_async::BindAsync;
pub use copies::InsertCopies;
pub use flatten::{FlattenCallGraph, is_flat};
pub use fuse::FuseElementwise;
pub use layout::AssignLayouts;
pub(crate) use layout::{default_layout, layouts_are_given};
pub use planning::MemoryPlanning;
pub(crate) use planning::plan_config;
pub use schedule::ScheduleMemory;
pub use shard_map::{ImportShardMap, import_shard_map};

use crate::pass::Pass;

/// What turns a valid module into one that can be planned.
pub const PREPARE: &[&dyn Pass] = &[
    &ImportShardMap,
    &BindAsync,
    &FlattenCallGraph,
    &AssignLayouts,
    &FuseElementwise,
    &ScheduleMemory,
    &InsertCopies,
];
