//! Packing of buffers into one slab: useful on its own, it knows buffers, intervals and bytes, and nothing of programs.
//!
//! ```
//! use slabplan_planner::pack::{Buffer, Control, PackConfig, Problem, pack, validate};
//!
//! // Live during [0, 3), [3, 9), [0, 9) and [9, 21): 4 bytes each.
//! let lives = [(0, 3), (3, 9), (0, 9), (9, 21)];
//! let buffers = (0..).zip(lives).map(|(id, (start, end))| Buffer::new(id, start, end, 4)).collect();
//! let problem = Problem { buffers, ..Problem::default() };
//! let packing = pack(&problem, &PackConfig::default(), &mut |_| Control::Continue)?;
//! assert_eq!((packing.height, packing.optimal), (8, true));
//! assert_eq!(validate(&problem, &packing.offsets), Ok(8));
//! # Ok::<(), slabplan_planner::pack::ProblemError>(())
//! ```

mod bound;
mod core;
pub mod csv;
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
