//! A program on devices.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use slabplan_ir::{InstrId, Module, Shape, Target};

use super::device::Reservation;
use super::{Buffer, ClientError, Device, Slabs};
use crate::Compiled;
use crate::exec::io::ArraySpec;
use crate::exec::{ExecConfig, Executable, HostArray};

/// Values that an error about a module too large names.
const NAMED: usize = 8;

/// A planned program, loaded on the slabs of its devices.
#[derive(Debug)]
pub struct LoadedExecutable {
    name: String,
    devices: Vec<Arc<Device>>,
    target: Target,
    executable: Mutex<Executable>,
    /// Memory space of each slab.
    spaces: Vec<u32>,
    /// Whether each flattened argument is taken away from the caller.
    donated: Vec<bool>,
    slabs: Slabs,
    /// The devices' bytes that its slabs take, where they are its own.
    _memory: Vec<Reservation>,
}

impl LoadedExecutable {
    pub(super) fn load(
        compiled: &Compiled,
        devices: Vec<Arc<Device>>,
        target: &Target,
        slabs: Slabs,
    ) -> Result<Self, ClientError> {
        check_fit(compiled)?;
        let plan = compiled.plan();
        let name = plan.module.clone();
        let bytes = plan.space(0).map_or(0, |s| s.slab.get());
        let what = format!("slab of {name}");
        let memory = match slabs {
            Slabs::Each => devices
                .iter()
                .map(|d| d.reserve(&what, bytes))
                .collect::<Result<_, _>>()?,
            Slabs::Shared => Vec::new(),
        };
        let config = ExecConfig {
            max_bytes: Some(u64::MAX),
            ..ExecConfig::default()
        };
        let mut executable = Executable::new(&compiled.module, plan, config)?;
        let spaces: Vec<u32> = plan.spaces.iter().map(|s| s.space).collect();
        if slabs == Slabs::Shared {
            for (n, device) in devices.iter().enumerate() {
                share(&mut executable, n, device, &spaces, bytes)?;
            }
        }
        Ok(Self {
            donated: donated_arguments(&compiled.module),
            name,
            devices,
            target: target.clone(),
            executable: Mutex::new(executable),
            spaces,
            slabs,
            _memory: memory,
        })
    }

    /// The module's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The devices it runs on.
    pub fn devices(&self) -> &[Arc<Device>] {
        &self.devices
    }

    /// The arrays that it takes on all devices: `arg0`, or `dev0.arg0` where there are several.
    pub fn arguments(&self) -> Vec<ArraySpec> {
        self.executable().inputs()
    }

    /// The arrays that it gives on all devices.
    pub fn results(&self) -> Vec<ArraySpec> {
        self.executable().outputs()
    }

    /// Whether each flattened argument is taken away from the caller.
    pub fn donated(&self) -> &[bool] {
        &self.donated
    }

    /// Runs a program of one device on its flattened arguments.
    ///
    /// # Errors
    /// As [`execute_sharded`](Self::execute_sharded).
    pub fn execute(&self, arguments: &[&Buffer]) -> Result<Vec<Buffer>, ClientError> {
        let results = self.execute_sharded(&[arguments])?;
        Ok(results.into_iter().next().unwrap_or_default())
    }

    /// Runs the program on all devices, each with its list of flattened arguments. Donated buffers are gone
    /// if it returns results.
    ///
    /// # Errors
    /// Buffers of another number, shape or device, or donated before; a run that fails; results for which
    /// a device has no memory.
    pub fn execute_sharded(
        &self,
        arguments: &[&[&Buffer]],
    ) -> Result<Vec<Vec<Buffer>>, ClientError> {
        self.check(arguments)?;
        let lists = arguments
            .iter()
            .map(|list| list.iter().map(|b| b.to_host()).collect())
            .collect::<Result<Vec<Vec<HostArray>>, _>>()?;
        let lists: Vec<&[HostArray]> = lists.iter().map(Vec::as_slice).collect();
        let outputs = self.run(|executable| executable.execute_devices(&lists))?;
        for list in arguments {
            for (n, buffer) in list.iter().enumerate() {
                if self.donated[n] {
                    buffer.donate(&self.name, n);
                }
            }
        }
        let results = outputs.into_iter().zip(&self.devices);
        results
            .map(|(outputs, device)| {
                let named = outputs.into_iter().enumerate();
                named
                    .map(|(n, array)| {
                        let name = format!("{}.out{n}", self.name);
                        Buffer::new(&name, array, device, &self.target)
                    })
                    .collect::<Result<Vec<_>, _>>()
            })
            .collect()
    }

    /// Calls `f` with the program's arguments and results as they lie in its slabs: nothing is copied.
    pub fn in_place<T>(&self, f: impl FnOnce(&mut InPlace<'_>) -> T) -> Result<T, ClientError> {
        self.run(|executable| Ok(f(&mut InPlace { executable })))
    }

    fn executable(&self) -> MutexGuard<'_, Executable> {
        self.executable
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `f` while the program has its slabs.
    fn run<T>(
        &self,
        f: impl FnOnce(&mut Executable) -> Result<T, crate::exec::ExecError>,
    ) -> Result<T, ClientError> {
        let mut executable = self.executable();
        if self.slabs == Slabs::Each {
            return Ok(f(&mut executable)?);
        }
        // In the order of the devices' names, so that two programs never wait for each other's.
        let mut order: Vec<usize> = (0..self.devices.len()).collect();
        order.sort_by_key(|&n| self.devices[n].name());
        let mut shared: Vec<_> = order
            .iter()
            .map(|&n| {
                let slabs = self.devices[n].shared.lock();
                (n, slabs.unwrap_or_else(PoisonError::into_inner))
            })
            .collect();
        for (n, pool) in &mut shared {
            let taken = self.spaces.iter().map(|s| pool.slabs.remove(s));
            executable.put_slabs(*n, taken)?;
        }
        let result = f(&mut executable);
        for (n, pool) in &mut shared {
            let slabs = executable.take_slabs(*n).into_iter();
            pool.slabs.extend(self.spaces.iter().copied().zip(slabs));
        }
        Ok(result?)
    }

    fn check(&self, arguments: &[&[&Buffer]]) -> Result<(), ClientError> {
        if arguments.len() != self.devices.len() {
            return Err(ClientError::DeviceCount {
                module: self.name.clone(),
                needed: self.devices.len() as u64,
                given: arguments.len(),
            });
        }
        for (list, device) in arguments.iter().zip(&self.devices) {
            for (n, buffer) in list.iter().enumerate() {
                if !Arc::ptr_eq(buffer.device(), device) {
                    return Err(ClientError::WrongDevice {
                        buffer: buffer.name().to_owned(),
                        on: buffer.device().name().to_owned(),
                        wanted: device.name().to_owned(),
                    });
                }
                let is_donated = |n: usize| self.donated.get(n).copied().unwrap_or(false);
                let again = list[..n].iter().position(|other| other.is(buffer));
                if let Some(first) = again
                    && let Some(&donated) = [first, n].iter().find(|&&n| is_donated(n))
                {
                    return Err(ClientError::DonatedTwice {
                        buffer: buffer.name().to_owned(),
                        program: self.name.clone(),
                        first,
                        second: n,
                        donated,
                    });
                }
            }
        }
        Ok(())
    }
}

/// A loaded program's arguments and results in its slabs.
#[derive(Debug)]
pub struct InPlace<'a> {
    executable: &'a mut Executable,
}

impl InPlace<'_> {
    /// The bytes of flattened argument `n` on device number `device`, to write to; `None` where it does not
    /// lie densely, in row-major order.
    pub fn argument(&mut self, device: usize, n: usize) -> Option<&mut [u8]> {
        self.executable.argument_bytes(device, n)
    }

    /// Runs the program on what was written. A donated argument must be written anew before each run.
    pub fn run(&mut self) -> Result<(), crate::exec::ExecError> {
        self.executable.run_in_place()
    }

    /// The bytes of flattened result `n` on device number `device`, until the next run; `None` as for
    /// [`argument`](Self::argument).
    pub fn result(&self, device: usize, n: usize) -> Option<&[u8]> {
        self.executable.result_bytes(device, n)
    }
}

fn check_fit(compiled: &Compiled) -> Result<(), ClientError> {
    let plan = compiled.plan();
    let Some(space) = plan.spaces.iter().find(|s| s.slab > s.capacity) else {
        return Ok(());
    };
    let flow = &compiled.planned.analysis.flow;
    let demand = compiled.planned.demands.iter().find(|d| d.0 == space.space);
    let at_peak = demand.map_or(&[][..], |(_, demand)| &demand.at_peak);
    let largest = at_peak.iter().take(NAMED).map(|live| {
        let position = flow.values[live.value].def;
        let value = flow.positions.display(&compiled.module, position);
        let shape = compiled
            .module
            .shapes
            .display(flow.positions.shape(position));
        (format!("{value} {shape}"), live.padded)
    });
    Err(ClientError::DoesNotFit {
        module: plan.module.clone(),
        space: space.name.clone(),
        bytes: space.slab.get(),
        capacity: space.capacity.get(),
        largest: largest.collect(),
    })
}

/// Makes the slabs of device `n` of a program those that all programs of `device` share, larger if need be.
fn share(
    executable: &mut Executable,
    n: usize,
    device: &Arc<Device>,
    spaces: &[u32],
    bytes: u64,
) -> Result<(), ClientError> {
    let mut pool = device.shared.lock().unwrap_or_else(PoisonError::into_inner);
    let now = pool.reservation.as_ref().map_or(0, Reservation::bytes);
    if bytes > now {
        // The old slab is given back first: both need not be there at once.
        pool.reservation = None;
        let what = "slab shared by all programs";
        let larger = device.reserve(what, bytes);
        match larger {
            Ok(reservation) => pool.reservation = Some(reservation),
            Err(error) => {
                pool.reservation = Some(device.reserve(what, now)?);
                return Err(error);
            }
        }
    }
    for (space, own) in spaces.iter().zip(executable.take_slabs(n)) {
        let larger = pool.slabs.get(space).is_none_or(|s| s.room() < own.room());
        if larger {
            pool.slabs.insert(*space, own);
        }
    }
    Ok(())
}

/// Whether the module takes each of its flattened arguments away.
fn donated_arguments(module: &Module) -> Vec<bool> {
    let given: Vec<(u32, &[u32])> = module
        .input_output_alias
        .iter()
        .map(|a| (a.parameter, &a.parameter_index[..]))
        .chain(
            module
                .buffer_donors
                .iter()
                .map(|d| (d.parameter, &d.parameter_index[..])),
        )
        .collect();
    let mut donated = Vec::new();
    for (number, &param) in module.entry().params.iter().enumerate() {
        leaves(module, param, |index| {
            donated.push(given.contains(&(number as u32, index)));
        });
    }
    donated
}

/// Calls `f` with the index of every array of an instruction's shape, in preorder.
fn leaves(module: &Module, instr: InstrId, mut f: impl FnMut(&[u32])) {
    let shape = module.instrs[instr].shape;
    for node in 0..module.shapes.node_count(shape) {
        let index = module.shapes.index_of_node(shape, node);
        let part = module.shapes.subshape(shape, &index);
        if part.is_some_and(|s| matches!(module.shapes.get(s), Shape::Array(_))) {
            f(&index);
        }
    }
}
