//! The messages of `xla/service/hlo.proto` and `xla/xla_data.proto` that modules and buffer
//! assignments are read from and written to.
//!
//! Declared by hand with their field numbers; fields that neither planning nor execution looks at
//! and that HLO text does not show are left out, and skipped on reading.

mod assignment;
mod devices;
mod dimensions;
mod instruction;
mod literal;
mod module;
mod shape;
mod sharding;
mod tracking;

pub(crate) use assignment::*;
pub(crate) use devices::*;
pub(crate) use dimensions::*;
pub(crate) use instruction::*;
pub(crate) use literal::*;
pub(crate) use module::*;
pub(crate) use shape::*;
pub(crate) use sharding::*;
pub(crate) use tracking::*;
