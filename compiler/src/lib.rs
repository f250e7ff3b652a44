//! The driver.

pub mod exec;
