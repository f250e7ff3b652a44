//! Packing of buffers into one slab: useful on its own, it knows buffers, intervals and bytes, and nothing of programs.
//!
//! ```
//! use slabplan_planner::pack::{Buffer, Control, PackConfig, Problem, pack, validate};
//! use std::time::{Duration, Instant};
//!
//! // Number, first point of time at which it is live, first at which it is not, bytes.
//! let buffers = vec![Buffer::new(0, 0, 4, 64), Buffer::new(1, 4, 8, 64), Buffer::new(2, 2, 6, 32)];
//! let problem = Problem { buffers, capacity: Some(96), ..Problem::default() };
//!
//! // The packer reads no clock: a deadline is an answer to its question whether to go on.
//! let deadline = Instant::now() + Duration::from_secs(1);
//! let packing = pack(&problem, &PackConfig::default(), &mut |_progress| {
//!     if Instant::now() < deadline { Control::Continue } else { Control::Stop }
//! })
//! .expect("sizes, alignments and fixed offsets that make sense");
//!
//! assert_eq!((packing.height, packing.lower_bound, packing.optimal), (96, 96, true));
//! assert_eq!(validate(&problem, &packing.offsets), Ok(96));
//! ```

mod asked_sort;
mod bound;
mod bound_gaps;
mod bound_stacks;
mod chosen;
mod core;
pub mod csv;
mod draft;
mod eject;
mod hang;
mod heuristics;
mod holes;
pub mod json;
mod large;
mod mend;
mod misfit;
mod model;
mod occupancy;
mod online;
mod packing;
mod problem;
mod radix;
mod run;
mod scale;
mod search;
mod sections;
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
