//! Module to plan.
pub mod pack;
