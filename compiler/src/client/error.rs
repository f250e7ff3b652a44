//! What can go wrong on a client.

use super::ClientOptions;
use crate::CompileError;
use crate::exec::ExecError;
use slabplan_ir::Bytes;
use slabplan_ir::padding::SizeError;

/// Why a client refuses.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A client needs at least one device, and a fraction of its memory.
    #[error("a client needs a device and a memory fraction above 0, at most 1: {options:?}")]
    Options {
        /// What was given.
        options: ClientOptions,
    },
    /// The target has no memory space 0.
    #[error("target {target} has no memory space 0")]
    NoMemory {
        /// Its name.
        target: String,
    },
    /// There is no such device.
    #[error("there is no device {name}; there are {}", .known.join(", "))]
    NoDevice {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The module is for another number of devices.
    #[error("module {module} runs on {needed} devices, {given} are given")]
    DeviceCount {
        /// Its name.
        module: String,
        /// Replicas times partitions.
        needed: u64,
        /// Devices given.
        given: usize,
    },
    /// A device has too little memory left.
    #[error(
        "device {device} is out of memory: {what} needs {}, {} of {} are free{}",
        human(.bytes), human(.free), human(.capacity), list(.largest)
    )]
    OutOfMemory {
        /// The device.
        device: String,
        /// What the memory was for.
        what: String,
        /// Bytes asked for.
        bytes: u64,
        /// Bytes free.
        free: u64,
        /// Bytes that the device has.
        capacity: u64,
        /// What fills it, largest first.
        largest: Vec<(String, u64)>,
    },
    /// The slab is larger than a memory space.
    #[error(
        "module {module} does not fit: its slab of {space} needs {}, which has {}; largest at the peak:{}",
        human(.bytes), human(.capacity), list(.largest)
    )]
    DoesNotFit {
        /// The module.
        module: String,
        /// The memory space.
        space: String,
        /// Bytes of the slab.
        bytes: u64,
        /// Bytes of the memory space.
        capacity: u64,
        /// Values that fill it at its peak, largest first.
        largest: Vec<(String, u64)>,
    },
    /// A buffer was given away.
    #[error("buffer `{buffer}` was donated to {program} as argument {argument} and is gone")]
    Donated {
        /// Its name.
        buffer: String,
        /// The program that took it.
        program: String,
        /// As which flattened argument.
        argument: usize,
    },
    /// One buffer is given twice in a call that takes it away.
    #[error(
        "buffer `{buffer}` is given as arguments {first} and {second} of {program}, which takes argument {donated} away"
    )]
    DonatedTwice {
        /// Its name.
        buffer: String,
        /// The program.
        program: String,
        /// One argument.
        first: usize,
        /// Another.
        second: usize,
        /// The one that is donated.
        donated: usize,
    },
    /// A buffer lies on another device.
    #[error("buffer `{buffer}` lies on {on}, the program runs on {wanted}")]
    WrongDevice {
        /// Its name.
        buffer: String,
        /// Where it lies.
        on: String,
        /// Where it should.
        wanted: String,
    },
    /// An array has no size.
    #[error("buffer `{buffer}`: {source}")]
    Size {
        /// Its name.
        buffer: String,
        /// Why.
        source: SizeError,
    },
    /// The module can't be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The program can't be loaded or run.
    #[error(transparent)]
    Exec(#[from] ExecError),
}

fn human(bytes: &u64) -> String {
    Bytes::new(*bytes).unwrap_or(Bytes::ZERO).to_string()
}

fn list(largest: &[(String, u64)]) -> String {
    let lines = largest
        .iter()
        .map(|(what, bytes)| format!("\n  {:>10}  {what}", human(bytes)));
    lines.collect()
}
