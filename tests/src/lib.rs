//! What the cross-crate tests share: where the data is and how hand-written modules state their expectations.

pub mod cli;
pub mod clock;
pub mod directives;
pub mod faults;
pub mod fuzz;
pub mod generate;
pub mod hunt;
pub mod models;
pub mod paths;
pub mod promises;
pub mod repeat;
pub mod rules;
pub mod schedules;
pub mod stages;
pub mod xla;
pub mod xprof;
