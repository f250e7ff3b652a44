//! slabplan's driver: from a module to a proved plan, and from a plan to results.
//!
//! Another compiler calls [`compile`] with its module, or puts
//! [`passes::MemoryPlanning`] at the end of a pipeline of its own:
//!
//! ```
//! use slabplan::{CompileConfig, compile, target};
//!
//! let text = "HloModule m
//! ENTRY e {
//!   x = f32[100,100] parameter(0)
//!   y = f32[100,100] transpose(x), dimensions={1,0}
//!   ROOT z = f32[100,100] exponential(y)
//! }";
//! let module = slabplan_ir::text::parse(text).into_result().unwrap();
//! let target = target::load("cpu").unwrap();
//! let compiled = compile(module, &target, &CompileConfig::default()).unwrap();
//! // The argument, and one place that `y` leaves to `z`: 40,000 bytes each, aligned to 64.
//! assert_eq!(compiled.plan().spaces[0].slab.get(), 80_000);
//! ```

pub mod cli;
pub mod client;
pub mod config;
pub mod diagnostics;
pub mod exec;
pub mod frontend;
pub mod output;
pub mod pass;
pub mod passes;
pub mod portfolio;
pub mod report;
pub mod rewrite;
pub mod simulate;
pub mod target;

mod choose;
mod compile;
mod scratch;

pub use choose::Trial;
pub use compile::{CompileError, Compiled, Seconds, check, compile, prepare};
pub use config::{CompileConfig, FuseMode, LayoutMode, ScheduleMode, Transforms};
