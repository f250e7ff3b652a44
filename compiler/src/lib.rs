//! slabplan's driver: from a module to a proved plan, and from a plan to results.

pub mod cli;
pub mod diagnostics;
pub mod exec;
pub mod frontend;
pub mod output;
pub mod target;
