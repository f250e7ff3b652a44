//! Runs a module on preallocated slabs, one for each memory space, at the places of a plan.
//!
//! ```text
//! Module + Plan --places, build--> Program --run--> outputs
//! ```
//!
//! Arrays lie in the slabs in their padded tiled layouts ([`tiled`]). An operation ([`kernels`])
//! reads and writes them there if it can take the layout as it is; else they are brought into dense
//! form in the instruction's scratch and back. A result may be computed over an operand that dies there,
//! if each element is read before it is written; otherwise it goes through scratch too. What only
//! forwards costs nothing. [`reference_plan`] gives each value memory of its own.
//!
//! Scratch is part of the plan: [`scratch_requests`] says what each instruction works in, and the planner
//! gives it a buffer while it runs. Scratch of a plan without such buffers lies in a slab of its own.
//! Outside are only what devices exchange (the wires' memory, no device's) and, where poison is asked
//! for, room to poison padding.
//!
//! How an array is taken depends on its layout and the operation alone, never on places, so that
//! every plan computes the same bits.

pub mod array;
mod build;
mod collective;
pub mod compare;
mod constant;
mod device_groups;
mod error;
mod executable;
mod flat;
mod forward;
mod fusion;
pub mod io;
pub mod kernels;
mod machine;
mod mail;
mod meet;
mod mesh_groups;
mod order;
mod places;
mod poison;
mod program;
mod recycle;
mod reference;
mod run;
mod slab;
pub mod tiled;
mod transfer;
mod watch;

pub use array::HostArray;
pub(crate) use build::device_count;
pub use error::ExecError;
pub use executable::{AsyncMode, ExecConfig, Executable, scratch_requests};
pub use machine::{machine_memory, machine_threads};
pub use reference::reference_plan;
pub(crate) use slab::Slab;
pub use watch::{RunProgress, Watch};

/// The custom-call targets that the executor carries out, each with what it is.
pub fn custom_call_targets() -> Vec<(String, &'static str)> {
    kernels::custom_call_targets()
}
