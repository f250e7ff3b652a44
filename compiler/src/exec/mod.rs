//! Running a planned program on its slabs.

pub mod kernels;
