//! Packing of buffers into one slab: useful on its own, it knows buffers, intervals and bytes, and nothing of programs.
//!
//! ```
//! use slabplan_planner::pack::{Buffer, Control, PackConfig, Problem, pack, validate};
//!
//! let buffers = vec![Buffer::new(0, 0, 4, 64), Buffer::new(1, 2, 6, 32), Buffer::new(2, 4, 8, 64)];
//! let problem = Problem { buffers, ..Problem::default() };
//! let packing = pack(&problem, &PackConfig::default(), &mut |_| Control::Continue)?;
//! assert_eq!((packing.height, packing.optimal), (96, true));
//! assert_eq!(validate(&problem, &packing.offsets), Ok(96));
//! # Ok::<(), slabplan_planner::pack::ProblemError>(())
//! ```

mod bound;
mod core;
pub mod csv;
mod eject;
mod hang;
mod heuristics;
mod holes;
pub mod json;
mod large;
mod misfit;
mod model;
mod occupancy;
mod packing;
mod problem;
mod radix;
mod run;
mod scale;
mod search;
mod share;
mod share_load;
mod share_options;
mod sweep;
mod ties;
mod tops;
mod validate;

pub use heuristics::Heuristic;
pub use misfit::{Misfit, Reason, explain_misfit};
pub use packing::{Control, Effort, PackConfig, Packing, Progress};
pub use problem::{Buffer, Interval, Live, MAX_BYTES, Problem, ProblemError, Tie};
pub use run::{pack, pack_with};
pub use sweep::validate_fast;
pub use validate::{Invalid, validate};
