//! What can go wrong when a module is loaded or run.

use slabplan_ir::Bytes;
use slabplan_ir::padding::SizeError;

use crate::exec::kernels::KernelError;
use crate::exec::tiled::LayoutError;

/// Why a module can't be loaded, or why a run stopped.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The slabs, or the room for staging, are larger than the machine or the limit allows.
    #[error(
        "the machine does not give {} at once: run a smaller module, or take less of the device's memory in advance",
        human(.bytes)
    )]
    OutOfMemory {
        /// What was asked for.
        bytes: u64,
    },
    /// The operating system gave no threads.
    #[error("cannot start threads: {0}")]
    Threads(String),
    /// A run would take more of the machine's memory than the configuration allows.
    #[error(
        "a run takes {} of the machine's memory for slabs and {} for arguments and results, of which it may take {}: \
         free some, raise the limit, or run a smaller module",
        human(.slabs), human(.arrays), human(.limit)
    )]
    OverLimit {
        /// Bytes that the plan needs on all devices.
        slabs: u64,
        /// Bytes of the arguments and results of all devices.
        arrays: u64,
        /// What [`ExecConfig::max_bytes`](super::ExecConfig::max_bytes) allows, or the machine has.
        limit: u64,
    },
    /// The plan does not say where a value lies.
    #[error("the plan gives no place to {value}; was it made for this module?")]
    NoPlace {
        /// The position, as `%name{index}`.
        value: String,
    },
    /// The plan puts a value where it does not fit.
    #[error("the plan puts {value} ({bytes} bytes) {problem}")]
    BadPlace {
        /// The position.
        value: String,
        /// Its padded bytes.
        bytes: u64,
        /// What is wrong.
        problem: String,
    },
    /// An array's layout can't be read or written.
    #[error("%{instr}: {source}")]
    Layout {
        /// The instruction whose result has the layout.
        instr: String,
        /// Why.
        source: LayoutError,
    },
    /// An array has no size.
    #[error("%{instr}: {source}")]
    Size {
        /// The instruction whose result it is.
        instr: String,
        /// Why.
        source: SizeError,
    },
    /// An operation that the executor does not carry out.
    #[error("%{instr}: {what}")]
    Unsupported {
        /// The instruction.
        instr: String,
        /// What is not supported.
        what: String,
    },
    /// An operation refused its operands or attributes.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A constant's literal can't be used.
    #[error("%{instr}: {problem}")]
    Constant {
        /// The constant.
        instr: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The caller passed the wrong number of arrays.
    #[error("the module takes {expected} arrays{device}, {given} were given")]
    InputCount {
        /// Arrays the entry computation takes, flattened.
        expected: usize,
        /// Arrays given.
        given: usize,
        /// ` on device D` where there are several.
        device: String,
    },
    /// The caller passed an array of another type or shape.
    #[error("{name} must be {expected}, but is {given}")]
    InputType {
        /// `arg0`, or `dev1.arg0` where there are several devices.
        name: String,
        /// Type the entry computation takes.
        expected: String,
        /// Type given.
        given: String,
    },
    /// The caller passed arrays for another number of devices.
    #[error("the module runs on {expected} devices, inputs were given for {given}")]
    DeviceCount {
        /// Replicas times partitions.
        expected: usize,
        /// Devices that inputs were given for.
        given: usize,
    },
    /// The module is for no device, or for more than are simulated.
    #[error(
        "the module is for {replicas} replicas of {partitions} partitions; from 1 to {most} devices can be run"
    )]
    Devices {
        /// `replica_count` of the module.
        replicas: u64,
        /// `num_partitions` of the module.
        partitions: u64,
        /// Most devices.
        most: u64,
    },
    /// The run took more steps than the configuration allows.
    #[error(
        "stopped after {steps} steps (at %{instr}): raise the limit if the program is meant to run that long"
    )]
    TooManySteps {
        /// The limit.
        steps: u64,
        /// Where the run was.
        instr: String,
    },
    /// Whoever watches the run stopped it.
    #[error("stopped on request, before %{instr}")]
    Stopped {
        /// What would have run next.
        instr: String,
    },
    /// Devices wait for one another for ever.
    #[error("devices wait for each other: {waiting}")]
    Deadlock {
        /// Where each device is.
        waiting: String,
    },
    /// What is received is not as large as what was sent.
    #[error("%{sender} sends {sent} bytes, %{receiver} receives {received}")]
    Message {
        /// The `send`.
        sender: String,
        /// Its bytes.
        sent: usize,
        /// The `recv`.
        receiver: String,
        /// Its bytes.
        received: usize,
    },
    /// A message was still on its way at the end.
    #[error("device {from} sends at %{instr} what device {to} never receives")]
    NotReceived {
        /// The `send`.
        instr: String,
        /// The device that sent.
        from: usize,
        /// The device that was to receive.
        to: usize,
    },
}

impl ExecError {
    /// The instruction that it is about, if it is about one.
    pub fn instr(&self) -> Option<&str> {
        match self {
            Self::Layout { instr, .. }
            | Self::Size { instr, .. }
            | Self::Unsupported { instr, .. }
            | Self::Constant { instr, .. }
            | Self::TooManySteps { instr, .. }
            | Self::NotReceived { instr, .. } => Some(instr),
            Self::Kernel(KernelError::Instruction { name, .. }) => Some(name),
            Self::Message { receiver, .. } => Some(receiver),
            _ => None,
        }
    }
}

fn human(bytes: &u64) -> String {
    Bytes::new(*bytes).map_or_else(|_| format!("{bytes} bytes"), |b| b.to_string())
}
