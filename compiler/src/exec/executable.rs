//! The public face of the executor.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use slabplan_ir::module::Module;
use slabplan_ir::plan::Plan;
use slabplan_ir::{Bytes, InstrId};
use slabplan_planner::scratch::ScratchRequest;

use crate::exec::array::{HostArray, type_name};
use crate::exec::build::build;
use crate::exec::error::ExecError;
use crate::exec::io::ArraySpec;
use crate::exec::machine::{check_memory, machine_threads};
use crate::exec::program::{Leaf, Program};
use crate::exec::run::{Device, Limits, Workspace, run};
use crate::exec::slab::Slab;
use crate::exec::watch::Watch;

/// When an asynchronous operation is carried out. A right plan gives the same results for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AsyncMode {
    /// At its start: its result must not be overwritten from there on.
    #[default]
    Start,
    /// At its done: its operands must live until there.
    Done,
    /// At either, chosen for each operation from this seed.
    Random(u64),
}

impl AsyncMode {
    /// Whether the operation that begins with instruction number `start` is carried out there.
    pub(crate) fn at_start(self, start: u32) -> bool {
        match self {
            Self::Start => true,
            Self::Done => false,
            Self::Random(seed) => mix(seed ^ mix(u64::from(start))) & 1 == 0,
        }
    }
}

/// The output function of Steele, Lea and Flood's SplitMix64.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// How a module is run.
#[derive(Clone, Debug)]
pub struct ExecConfig {
    /// Fill every byte that holds no live value, padding included, with a pattern that spoils
    /// results.
    pub poison: bool,
    /// When asynchronous operations are carried out.
    pub async_mode: AsyncMode,
    /// Stop a device after this many steps. A step is an instruction, a jump or a call.
    pub max_steps: Option<u64>,
    /// Most bytes that the slabs of all devices, their arguments and their results may take together; what
    /// the machine has free if none is given.
    pub max_bytes: Option<u64>,
    /// Bytes that each device's slab of space 0 takes at least: a device that preallocates its memory.
    pub reserve_bytes: u64,
    /// Told how far a run is, and asked whether it is to stop.
    pub watch: Option<Arc<Watch>>,
    /// Most threads that one operation may use; as many as the machine runs at once if none is
    /// given. Results do not depend on it.
    pub threads: Option<NonZeroUsize>,
}

impl ExecConfig {
    /// Most threads that one operation may use.
    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(machine_threads).get()
    }

    /// One thread for programs too small for more; whether the plan has scratch does not matter.
    fn limit_threads(&mut self, plan: &Plan) {
        if value_bytes(plan) < PARALLEL_BYTES {
            self.threads = Some(NonZeroUsize::MIN);
        }
    }
}

impl Default for ExecConfig {
    fn default() -> Self {
        Self {
            poison: false,
            async_mode: AsyncMode::Start,
            max_steps: None,
            max_bytes: None,
            reserve_bytes: 0,
            watch: None,
            threads: None,
        }
    }
}

/// A module loaded onto the slabs of a plan, ready to run any number of times.
///
/// Everything is allocated when it is loaded; a run allocates its outputs and nothing else.
#[derive(Debug)]
pub struct Executable {
    program: Program,
    devices: Vec<Device>,
    work: Workspace,
    config: ExecConfig,
    /// Threads for large arrays, if there are any.
    pool: Option<rayon::ThreadPool>,
    /// How long the last run took.
    run_time: Duration,
}

impl Executable {
    /// Loads `module`, which must be verified, onto the places of `plan`.
    ///
    /// # Errors
    /// A plan that does not fit the module; an operation, layout or type that the executor does
    /// not carry out; more memory than `config` allows.
    pub fn new(module: &Module, plan: &Plan, config: ExecConfig) -> Result<Self, ExecError> {
        let mut config = config;
        config.limit_threads(plan);
        let program = build(module, plan, &config)?;
        check_memory(&program, config.max_bytes)?;
        let mut devices = (0..program.devices())
            .map(|_| Device::new(&program))
            .collect::<Result<Vec<_>, _>>()?;
        for device in &mut devices {
            write_constants(&program, device);
        }
        let mut work = Workspace::new(&program)?;
        work.watch.clone_from(&config.watch);
        let pool = (config.threads() > 1)
            .then(|| {
                rayon::ThreadPoolBuilder::new()
                    .num_threads(config.threads())
                    .build()
            })
            .transpose()
            .map_err(|e| ExecError::Threads(e.to_string()))?;
        Ok(Self {
            pool,
            run_time: Duration::ZERO,
            program,
            devices,
            work,
            config,
        })
    }

    /// Seconds that the last run took, without bringing arguments in and results out.
    pub fn run_seconds(&self) -> f64 {
        self.run_time.as_secs_f64()
    }

    /// Bytes beside the slabs of the plan that operations of one device work in, since the plan has no
    /// scratch for them: see [`scratch_requests`]. Allocated once.
    pub fn unplanned_scratch_bytes(&self) -> u64 {
        self.program.unplanned_scratch() as u64
    }

    /// Replicas times partitions.
    pub fn device_count(&self) -> usize {
        self.devices.len()
    }

    /// The arrays that a run takes: `arg0`, ... in the order of the flattened parameters,
    /// `dev0.arg0`, ... device by device where there are several.
    pub fn inputs(&self) -> Vec<ArraySpec> {
        self.specs(&self.program.inputs, "arg")
    }

    /// The arrays that a run gives: `out0`, ..., `dev0.out0`, ...
    pub fn outputs(&self) -> Vec<ArraySpec> {
        self.specs(&self.program.outputs, "out")
    }

    fn specs(&self, leaves: &[Leaf], what: &str) -> Vec<ArraySpec> {
        let several = self.devices.len() > 1;
        let spec = |device: usize, n: usize, leaf: Leaf| {
            let info = self.program.info(leaf);
            ArraySpec {
                name: if several {
                    format!("dev{device}.{what}{n}")
                } else {
                    format!("{what}{n}")
                },
                element_type: info.element_type,
                dims: info.dims.to_vec(),
            }
        };
        (0..self.devices.len())
            .flat_map(|d| leaves.iter().enumerate().map(move |(n, &l)| spec(d, n, l)))
            .collect()
    }

    /// Runs a module of one device on the arrays of its flattened parameters; returns the arrays
    /// of its flattened result.
    pub fn execute(&mut self, inputs: &[HostArray]) -> Result<Vec<HostArray>, ExecError> {
        let outputs = self.execute_devices(&[inputs])?;
        Ok(outputs.into_iter().next().unwrap_or_default())
    }

    /// Runs a module on several devices; one list of arrays for each, device
    /// `replica * partitions + partition` at that place.
    pub fn execute_devices(
        &mut self,
        inputs: &[&[HostArray]],
    ) -> Result<Vec<Vec<HostArray>>, ExecError> {
        self.check_inputs(inputs)?;
        for (device, inputs) in self.devices.iter_mut().zip(inputs) {
            device.rewind(&self.program);
            if self.config.poison {
                device.poison();
                write_constants(&self.program, device);
            }
            for (&leaf, array) in self.program.inputs.iter().zip(*inputs) {
                device.write(&self.program, leaf, &array.data);
            }
        }
        let start = Instant::now();
        self.run()?;
        self.run_time = start.elapsed();
        let read = |device: &Device| -> Vec<HostArray> {
            let outputs = self.program.outputs.iter();
            outputs.map(|&l| self.read_output(device, l)).collect()
        };
        Ok(self.devices.iter().map(read).collect())
    }

    /// The bytes of flattened argument `n` in the slab of device `device`, to write to; `None` where they
    /// are not the dense array, or there is no such argument.
    pub fn argument_bytes(&mut self, device: usize, n: usize) -> Option<&mut [u8]> {
        let leaf = *self.program.inputs.get(n)?;
        self.devices.get_mut(device)?.dense_mut(&self.program, leaf)
    }

    /// The bytes of flattened result `n` in the slab of device `device`, until the next run; `None` as for
    /// [`argument_bytes`](Self::argument_bytes).
    pub fn result_bytes(&self, device: usize, n: usize) -> Option<&[u8]> {
        let leaf = *self.program.outputs.get(n)?;
        self.devices.get(device)?.dense(&self.program, leaf)
    }

    /// Runs on the arguments as they lie in the slabs. Copies nothing in or out and poisons nothing before it
    /// begins; donated arguments are overwritten.
    pub fn run_in_place(&mut self) -> Result<(), ExecError> {
        for device in &mut self.devices {
            device.rewind(&self.program);
        }
        self.run()
    }

    /// The plan's slabs of a device; it can't run until it has some again.
    pub(crate) fn take_slabs(&mut self, device: usize) -> Vec<Slab> {
        self.devices[device].take_slabs(&self.program)
    }

    /// Gives a device these slabs; what is missing or too small is allocated.
    pub(crate) fn put_slabs(
        &mut self,
        device: usize,
        slabs: impl Iterator<Item = Option<Slab>>,
    ) -> Result<(), ExecError> {
        let mut given = Vec::with_capacity(self.program.slabs.len());
        for (info, slab) in self.program.slabs.iter().zip(slabs) {
            let slab = match slab.filter(|s| s.room() >= info.bytes) {
                Some(mut slab) => {
                    slab.set_len(info.bytes);
                    slab
                }
                None => Slab::new(info.bytes, info.reserve, info.alignment)?,
            };
            given.push(slab);
        }
        self.devices[device].put_slabs(given);
        write_constants(&self.program, &mut self.devices[device]);
        Ok(())
    }

    fn run(&mut self) -> Result<(), ExecError> {
        let limits = Limits {
            max_steps: self.config.max_steps,
            poison: self.config.poison,
        };
        let (program, devices, work) = (&self.program, &mut self.devices, &mut self.work);
        match &self.pool {
            Some(pool) => pool.install(|| run(program, devices, work, limits)),
            None => run(program, devices, work, limits),
        }
    }

    fn read_output(&self, device: &Device, leaf: Leaf) -> HostArray {
        let info = self.program.info(leaf);
        let mut data = vec![0; info.map.dense_bytes()];
        device.read(&self.program, leaf, &mut data);
        HostArray {
            element_type: info.element_type,
            dims: info.dims.to_vec(),
            data,
        }
    }

    fn check_inputs(&self, inputs: &[&[HostArray]]) -> Result<(), ExecError> {
        if inputs.len() != self.devices.len() {
            return Err(ExecError::DeviceCount {
                expected: self.devices.len(),
                given: inputs.len(),
            });
        }
        let several = inputs.len() > 1;
        for (d, arrays) in inputs.iter().enumerate() {
            if arrays.len() != self.program.inputs.len() {
                return Err(ExecError::InputCount {
                    expected: self.program.inputs.len(),
                    given: arrays.len(),
                    device: if several {
                        format!(" on device {d}")
                    } else {
                        String::new()
                    },
                });
            }
            for (n, (array, &leaf)) in arrays.iter().zip(&self.program.inputs).enumerate() {
                let info = self.program.info(leaf);
                let fits = array.element_type == info.element_type
                    && *array.dims == *info.dims
                    && array.data.len() == info.map.dense_bytes();
                if !fits {
                    return Err(ExecError::InputType {
                        name: if several {
                            format!("dev{d}.arg{n}")
                        } else {
                            format!("arg{n}")
                        },
                        expected: type_name(info.element_type, &info.dims),
                        given: array.type_name(),
                    });
                }
            }
        }
        Ok(())
    }
}

/// Bytes of all values below which no array is worth several threads.
const PARALLEL_BYTES: u64 = 1 << 20;

/// What the instructions of `module` work in beside their operands and results at the places of `plan`,
/// on at most `threads` threads: packed blocks of matrices, registers of loops, intermediate values of
/// fusions, arrays on their way into another layout. Of the places of `plan` only this matters: which
/// results lie on operands. Scratch that it has already does not.
///
/// # Errors
/// As [`Executable::new`], but for memory.
pub fn scratch_requests(
    module: &Module,
    plan: &Plan,
    threads: NonZeroUsize,
) -> Result<Vec<ScratchRequest>, ExecError> {
    let mut config = ExecConfig {
        threads: Some(threads),
        ..ExecConfig::default()
    };
    config.limit_threads(plan);
    let program = build(module, plan, &config)?;
    let request = |(instr, bytes): (InstrId, usize)| {
        let bytes = bytes as u64;
        let out_of_memory = |_| ExecError::OutOfMemory { bytes };
        Ok(ScratchRequest {
            instr,
            bytes: Bytes::new(bytes).map_err(out_of_memory)?,
        })
    };
    program.requests.into_iter().map(request).collect()
}

/// Bytes of everything that the plan places, scratch apart.
fn value_bytes(plan: &Plan) -> u64 {
    let values = plan.buffers.values().filter(|b| !b.values.is_empty());
    values.map(|b| b.size.get()).fold(0, u64::saturating_add)
}

fn write_constants(program: &Program, device: &mut Device) {
    for constant in &program.constants {
        device.write(program, constant.leaf, &constant.data);
    }
}
