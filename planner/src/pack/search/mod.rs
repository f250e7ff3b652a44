//! Exact search: finds packings where heuristics fail, and proves that there is none.
//!
//! A descendant of MiniMalloc's search (M. Moffitt, "MiniMalloc: A Lightweight Memory Allocator for
//! Hardware-Accelerated Machine Learning", ASPLOS 2023), from which it takes the floors of sections, the inference that
//! a floor plus what is left must stay within the capacity, and the splitting in time. What differs: it does not go
//! bottom up, but fills the most constrained valley of the skyline (see [`branch`]), goes where it failed before,
//! remembers refuted situations, and takes steps back instead of copying.

mod branch;
mod engine;
mod improve;
mod ranks;
mod space;
mod state;

pub(super) use engine::{Engine, Outcome};
pub(super) use improve::{Standing, improve};
pub(super) use space::Space;
