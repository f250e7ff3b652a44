//! Module to plan: where every value of a scheduled HLO module lies in one slab per memory space.
//!
//! ```text
//! scheduled module
//!   -> program order          order        one number for every instruction, loops and branches included
//!   -> values                 dataflow     which value stands at every position
//!   -> roles                  ports        arguments, donation, results, constants
//!   -> live ranges            liveness     when its bytes are needed, with holes
//!   -> must-alias classes     alias, interference   what must occupy the same bytes, and whether it can
//!   -> buffers                buffers      size, memory space, role
//!   -> options                options      who may share bytes, who lies side by side
//!   -> offsets                problem, pack
//!   -> plan                   plan of slabplan-ir
//! ```
//!
//! The crate is pure: no files, clocks, threads or randomness. The same module, target and
//! configuration give the same plan everywhere.

pub mod alias;
mod analysis;
pub mod buffers;
mod config;
pub mod copies;
mod copy_sites;
pub mod dataflow;
pub mod demand;
pub mod donation;
mod error;
pub mod explain;
pub mod inplace;
pub mod interference;
pub mod layouts;
pub mod liveness;
mod load;
pub mod lodging;
pub mod options;
pub mod order;
pub mod pack;
mod plan;
pub mod ports;
pub mod problem;
#[cfg(test)]
#[path = "../tests/random/mod.rs"]
mod random;
mod reorder;
pub mod schedule;
pub mod scratch;
pub mod share;

pub use analysis::{Analysis, analyse};
pub use config::PlanConfig;
pub use error::PlanError;
pub use plan::{Planned, plan};
