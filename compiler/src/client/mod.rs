//! slabplan as a runtime: devices with memory of a fixed size, programs loaded on them, arrays that live
//! there. The shape is PJRT's.
//!
//! ```
//! use slabplan::client::{Client, ClientOptions};
//! use slabplan::exec::HostArray;
//! use slabplan::{CompileConfig, target};
//!
//! let client = Client::new(target::load("cpu")?, ClientOptions::default())?;
//! let text = "HloModule double
//! ENTRY e {
//!   x = f32[3] parameter(0)
//!   ROOT y = f32[3] add(x, x)
//! }";
//! let module = slabplan_ir::text::parse(text).into_result().unwrap();
//! let double = client.compile(module, &CompileConfig::default())?;
//!
//! let x = HostArray::from_f32(&[1.0, 2.0, 3.0], &[3]).unwrap();
//! let x = client.buffer_from_host("x", x, "cpu:0")?;
//! let y = double.execute(&[&x])?;
//! assert_eq!(y[0].to_host()?.to_f32(), Some(vec![2.0, 4.0, 6.0]));
//! // The slab of the program (two arrays of 12 bytes at multiples of 64, and what adding works in), and two
//! // arrays, each rounded up to 64.
//! assert!(client.device("cpu:0")?.memory_stats().in_use > 76 + 64 + 64);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Memory.** A device has the bytes of the target's memory space 0, or a fraction of them. Loaded programs
//! take their slabs of it, buffers their padded bytes. With [`ClientOptions::preallocate`] the device
//! takes all its memory when the client is made; without, as much as is needed. What does not fit is an
//! error that names what fills the device.
//!
//! **Programs.** Each has slabs of its own, or all programs of a device share one slab as large as the
//! largest of them ([`Slabs`]): they run one at a time.
//!
//! **Donation.** What the module donates (`input_output_alias`, `buffer_donor`) is taken from the caller: a
//! later use of that buffer is an error that says which program took it.
//!
//! **Without copies.** [`LoadedExecutable::in_place`] gives the bytes of arguments and results in the slab
//! itself, where their layouts are dense.

mod buffer;
mod device;
mod error;
mod loaded;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use slabplan_ir::{Module, Target};

pub use buffer::Buffer;
pub use device::{Device, MemoryStats};
pub use error::ClientError;
pub use loaded::{InPlace, LoadedExecutable};

use crate::exec::{HostArray, machine_threads};
use crate::{CompileConfig, compile};

/// Where the slabs of loaded programs lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Slabs {
    /// Each program has its own.
    #[default]
    Each,
    /// All programs of a device run on one, the size of the largest.
    Shared,
}

/// What a client is like.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Number of devices.
    pub devices: usize,
    /// Part of the target's memory space 0 that may be used, above 0 and at most 1.
    pub memory_fraction: f64,
    /// Whether devices take all of it at once.
    pub preallocate: bool,
    /// Where the slabs of loaded programs lie.
    pub slabs: Slabs,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            devices: 1,
            memory_fraction: 1.0,
            preallocate: false,
            slabs: Slabs::Each,
        }
    }
}

/// Devices of one kind, and the programs and arrays on them.
#[derive(Debug)]
pub struct Client {
    target: Target,
    options: ClientOptions,
    devices: Vec<Arc<Device>>,
}

impl Client {
    /// Devices `KIND:0`, `KIND:1`, ..., as the target's name begins (`tpu-v5e`: `tpu:0`).
    ///
    /// # Errors
    /// Options without sense; a target without memory space 0.
    pub fn new(mut target: Target, options: ClientOptions) -> Result<Self, ClientError> {
        let fraction = options.memory_fraction;
        if !(fraction > 0.0 && fraction <= 1.0) || options.devices == 0 {
            return Err(ClientError::Options { options });
        }
        let target_name = target.name.clone();
        let space = target.spaces.iter_mut().find(|s| s.id == 0);
        let space = space.ok_or(ClientError::NoMemory {
            target: target_name,
        })?;
        let capacity = (space.capacity.get() as f64 * fraction) as u64;
        space.capacity = slabplan_ir::Bytes::new(capacity).unwrap_or(space.capacity);
        let kind = target.name.split('-').next().unwrap_or("device");
        let devices = (0..options.devices)
            .map(|n| {
                Arc::new(Device::new(
                    format!("{kind}:{n}"),
                    capacity,
                    options.preallocate,
                ))
            })
            .collect();
        Ok(Self {
            target,
            options,
            devices,
        })
    }

    /// All devices.
    pub fn devices(&self) -> &[Arc<Device>] {
        &self.devices
    }

    /// The device called `name`.
    ///
    /// # Errors
    /// [`ClientError::NoDevice`].
    pub fn device(&self, name: &str) -> Result<&Arc<Device>, ClientError> {
        let found = self.devices.iter().find(|d| d.name() == name);
        found.ok_or_else(|| ClientError::NoDevice {
            name: name.to_owned(),
            known: self.devices.iter().map(|d| d.name().to_owned()).collect(),
        })
    }

    /// Puts an array on a device. `name` is what errors call it.
    ///
    /// # Errors
    /// An unknown device, or one that is full.
    pub fn buffer_from_host(
        &self,
        name: &str,
        array: HostArray,
        device: &str,
    ) -> Result<Buffer, ClientError> {
        Buffer::new(name, array, self.device(device)?, &self.target)
    }

    /// Plans `module`, proves the plan, and loads it on the first devices.
    ///
    /// # Errors
    /// As [`compile_on`](Self::compile_on).
    pub fn compile(
        &self,
        module: Module,
        config: &CompileConfig,
    ) -> Result<LoadedExecutable, ClientError> {
        let names: Vec<&str> = self.devices.iter().map(|d| d.name()).collect();
        let needed = module.replica_count.saturating_mul(module.num_partitions);
        let needed = usize::try_from(needed).unwrap_or(usize::MAX);
        self.compile_on(module, config, names.get(..needed).unwrap_or(&names))
    }

    /// Plans `module` and what its operations work in, proves the plan, and loads it on the devices named:
    /// number `replica * partitions + partition` runs that part.
    ///
    /// # Errors
    /// A module that can't be compiled or executed, for another number of devices, or for which the
    /// devices have too little memory left.
    pub fn compile_on(
        &self,
        module: Module,
        config: &CompileConfig,
        devices: &[&str],
    ) -> Result<LoadedExecutable, ClientError> {
        let needed = module.replica_count.saturating_mul(module.num_partitions);
        if needed != devices.len() as u64 {
            return Err(ClientError::DeviceCount {
                module: module.str(module.name).to_owned(),
                needed,
                given: devices.len(),
            });
        }
        let devices = devices
            .iter()
            .map(|name| self.device(name).cloned())
            .collect::<Result<Vec<_>, _>>()?;
        let config = CompileConfig {
            scratch: config.scratch.or_else(|| Some(machine_threads())),
            ..config.clone()
        };
        let compiled = compile(module, &self.target, &config)?;
        LoadedExecutable::load(&compiled, devices, &self.target, self.options.slabs)
    }
}
