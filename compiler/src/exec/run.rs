//! The loop over steps.

use std::sync::Arc;

use crate::exec::error::ExecError;
use crate::exec::kernels::{ArrayMut, ArrayRef};
use crate::exec::mail::Mail;
use crate::exec::meet::{deadlock, meet, transfer};
use crate::exec::poison;
use crate::exec::program::{
    Access, Body, ByteRange, Cut, CutOut, Leaf, Op, Program, ResultLeaf, Step, Switch, Way,
};
use crate::exec::recycle::{Lists, Refs};
use crate::exec::slab::Slab;
use crate::exec::transfer::{from_to, move_all, pack, write_result};
use crate::exec::watch::Watch;
use slabplan_ir::ElementType;

/// The memory and the position of one device.
#[derive(Debug)]
pub(crate) struct Device {
    pub(super) slabs: Vec<Slab>,
    /// The next step.
    pub(super) next: u32,
    /// Where calls return to. Has room for the deepest chain of calls.
    returns: Vec<u32>,
    /// The last predicate tested.
    flag: bool,
    /// Steps taken.
    steps: u64,
    pub(super) state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Running,
    /// At the collective with this number.
    Waiting(u32),
    /// At a transfer whose partner is not ready.
    Blocked,
    Finished,
}

/// Memory that all devices use in turn; no part of any device's.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// What devices exchange: what the wires between them carry.
    pub(super) exchange: Slab,
    /// Messages from one device to another.
    pub(super) mail: Mail,
    /// The dense form of an array whose padding is poisoned.
    spare: Slab,
    refs: Refs,
    /// For the operations inside a fusion.
    pub(super) inner: Refs,
    /// Told of every step.
    pub(crate) watch: Option<Arc<Watch>>,
}

impl Workspace {
    /// Room for every operation of `program`.
    pub(crate) fn new(program: &Program) -> Result<Self, ExecError> {
        Ok(Self {
            exchange: Slab::new(program.exchange, 0, STAGE_ALIGN)?,
            mail: Mail::new(program)?,
            spare: Slab::new(program.spare, 0, STAGE_ALIGN)?,
            refs: Refs::with_capacity(program.most_refs),
            inner: Refs::with_capacity(program.most_refs),
            watch: None,
        })
    }
}

impl Device {
    /// A device with its slabs allocated.
    pub(crate) fn new(program: &Program) -> Result<Self, ExecError> {
        let slabs = program
            .slabs
            .iter()
            .map(|s| Slab::new(s.bytes, s.reserve, s.alignment))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            slabs,
            next: program.entry,
            returns: Vec::with_capacity(program.call_depth),
            flag: false,
            steps: 0,
            state: State::Running,
        })
    }

    /// Back to the start of the program.
    pub(crate) fn rewind(&mut self, program: &Program) {
        self.next = program.entry;
        self.returns.clear();
        self.steps = 0;
        self.state = State::Running;
    }

    /// Takes the slabs of the plan away, in its order; the device can't run until it has some again.
    pub(crate) fn take_slabs(&mut self, program: &Program) -> Vec<Slab> {
        let planned = program.slabs.len() - 1;
        self.slabs.drain(..planned.min(self.slabs.len())).collect()
    }

    /// Gives slabs for those of the plan.
    pub(crate) fn put_slabs(&mut self, slabs: Vec<Slab>) {
        self.slabs.splice(0..0, slabs);
    }

    /// The bytes at a place where they are the dense array.
    pub(crate) fn dense(&self, program: &Program, leaf: Leaf) -> Option<&[u8]> {
        let map = &program.info(leaf).map;
        map.is_dense()
            .then(|| &self.bytes(program, leaf)[..map.dense_bytes()])
    }

    /// The same, to write to.
    pub(crate) fn dense_mut(&mut self, program: &Program, leaf: Leaf) -> Option<&mut [u8]> {
        let map = &program.info(leaf).map;
        if !map.is_dense() {
            return None;
        }
        let range = leaf.offset..leaf.offset + map.dense_bytes();
        Some(&mut self.slabs[leaf.slab as usize].bytes_mut()[range])
    }

    /// Fills every byte with the poison pattern.
    pub(crate) fn poison(&mut self) {
        for slab in &mut self.slabs {
            poison::fill(slab.bytes_mut(), 0);
        }
    }

    /// Writes a dense array to its place.
    pub(crate) fn write(&mut self, program: &Program, leaf: Leaf, dense: &[u8]) {
        let range = program.bytes_of(leaf);
        let bytes = &mut self.slabs[leaf.slab as usize].bytes_mut()[range];
        program.info(leaf).map.pack(dense, bytes);
    }

    /// Reads the dense array at a place.
    pub(crate) fn read(&self, program: &Program, leaf: Leaf, dense: &mut [u8]) {
        program
            .info(leaf)
            .map
            .unpack(self.bytes(program, leaf), dense);
    }

    fn bytes(&self, program: &Program, leaf: Leaf) -> &[u8] {
        &self.slabs[leaf.slab as usize].bytes()[program.bytes_of(leaf)]
    }

    /// The first bytes of a scalar.
    fn scalar<const N: usize>(&self, program: &Program, leaf: Leaf) -> [u8; N] {
        let mut dense = [0; 16];
        let bytes = program.info(leaf).map.dense_bytes().min(16);
        self.read(program, leaf, &mut dense[..bytes]);
        std::array::from_fn(|i| dense[i])
    }
}

/// What bounds a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) max_steps: Option<u64>,
    /// Whether padding is poisoned when an array is written.
    pub(crate) poison: bool,
}

/// Runs all devices to the end of the program. Allocates nothing.
///
/// Devices run one after another, each until it meets a collective or waits for a message; a collective is
/// carried out once all devices of its group wait there.
pub(crate) fn run(
    program: &Program,
    devices: &mut [Device],
    work: &mut Workspace,
    limits: Limits,
) -> Result<(), ExecError> {
    if let Some(watch) = &work.watch {
        let entry = program.steps.len() as u32 - program.entry;
        watch.begin(entry, program.expected_steps());
    }
    work.mail.clear();
    loop {
        let mut moved = false;
        for (number, device) in devices.iter_mut().enumerate() {
            if matches!(device.state, State::Running | State::Blocked) {
                device.state = State::Running;
                let before = device.steps;
                run_device(program, device, number, work, limits)?;
                moved |= device.steps > before;
            }
        }
        if devices.iter().all(|d| d.state == State::Finished) {
            return work.mail.check_all_taken(program);
        }
        if !meet(program, devices, work, limits)? && !moved {
            return Err(deadlock(program, devices));
        }
    }
}

/// Runs one device until it waits or ends.
fn run_device(
    program: &Program,
    device: &mut Device,
    number: usize,
    work: &mut Workspace,
    limits: Limits,
) -> Result<(), ExecError> {
    loop {
        let at = device.next;
        if limits.max_steps.is_some_and(|max| device.steps >= max) {
            return Err(ExecError::TooManySteps {
                steps: device.steps,
                instr: program.name(at).to_owned(),
            });
        }
        if let Some(watch) = &work.watch {
            let done = device.returns.is_empty().then(|| at - program.entry);
            if !watch.step(done) {
                return Err(ExecError::Stopped {
                    instr: program.name(at).to_owned(),
                });
            }
        }
        device.steps += 1;
        device.next += 1;
        match program.steps[at as usize] {
            Step::Op(n) => run_op(program, &program.ops[n as usize], device, work, limits)?,
            Step::Move(n) => move_all(
                program,
                &program.moves[n as usize],
                &mut device.slabs,
                limits,
            ),
            Step::Collective(n) => {
                device.state = State::Waiting(n);
                return Ok(());
            }
            Step::Transfer(n) => {
                if !transfer(program, n, device, number, work, limits)? {
                    device.next = at;
                    device.steps -= 1;
                    device.state = State::Blocked;
                    return Ok(());
                }
            }
            Step::DeviceId(n) => {
                let id = &program.device_ids[n as usize];
                let value = if id.replica {
                    number / program.partitions
                } else {
                    number % program.partitions
                };
                write_result(
                    program,
                    &mut device.slabs,
                    id.to,
                    &(value as u32).to_le_bytes(),
                    limits,
                );
            }
            Step::Poison(n) => {
                for r in &program.ended[n as usize] {
                    let bytes = device.slabs[r.slab as usize].bytes_mut();
                    poison::fill(&mut bytes[r.start..r.end], r.start);
                }
            }
            Step::Test(n) => {
                let [value] = device.scalar::<1>(program, program.leaves[n as usize]);
                device.flag = value != 0;
            }
            Step::JumpUnless(to) => {
                if !device.flag {
                    device.next = to;
                }
            }
            Step::Jump(to) => device.next = to,
            Step::Switch(n) => {
                device.next = select_branch(program, &program.switches[n as usize], device);
            }
            Step::Call(to) => {
                device.returns.push(device.next);
                device.next = to;
            }
            Step::Return => {
                let Some(to) = device.returns.pop() else {
                    device.state = State::Finished;
                    return Ok(());
                };
                device.next = to;
            }
        }
    }
}

/// The address of the branch to take: an index out of range takes the last.
fn select_branch(program: &Program, switch: &Switch, device: &Device) -> u32 {
    let last = switch.targets.len() - 1;
    let branch = if program.info(switch.index).element_type == ElementType::Pred {
        let [value] = device.scalar::<1>(program, switch.index);
        usize::from(value == 0)
    } else {
        let value = i32::from_le_bytes(device.scalar(program, switch.index));
        usize::try_from(value).unwrap_or(last)
    };
    switch.targets[branch.min(last)]
}

fn run_op(
    program: &Program,
    op: &Op,
    device: &mut Device,
    work: &mut Workspace,
    limits: Limits,
) -> Result<(), ExecError> {
    let mut lists = work.refs.take();
    for result in &op.results {
        let info = program.info(result.leaf);
        lists.writes.push(ArrayMut {
            element_type: info.element_type,
            dims: &info.dims,
            data: &mut [],
        });
    }
    let scratch = cut(&mut device.slabs, &op.cuts, &mut lists);
    let (staged, rest) = scratch.split_at_mut(op.results_at);
    let (mut apart, body_scratch) = rest.split_at_mut(op.body_at - op.results_at);
    for (result, write) in op.results.iter().zip(&mut lists.writes) {
        if result.way != Way::Slab {
            let (mine, tail) = apart.split_at_mut(aligned(result.bytes));
            apart = tail;
            write.data = &mut mine[..result.bytes];
        }
    }
    for operand in &op.operands {
        if let Access::Staged { at, part, start } = operand.access {
            let map = &program.info(operand.leaf).map;
            let lying = &lists.parts[part][start..start + map.padded_bytes()];
            map.unpack(lying, &mut staged[at..at + operand.bytes]);
        }
    }
    for operand in &op.operands {
        let info = program.info(operand.leaf);
        let len = operand.bytes;
        lists.reads.push(ArrayRef {
            element_type: info.element_type,
            dims: &info.dims,
            data: match operand.access {
                Access::Slab { part, start } => &lists.parts[part][start..start + len],
                Access::Staged { at, .. } => &staged[at..at + len],
                Access::Result => &[],
            },
        });
    }
    match &op.body {
        Body::Kernel(kernel) => kernel.run(&lists.reads, &mut lists.writes, body_scratch)?,
        Body::Fusion(fusion) => {
            fusion.run(
                &lists.reads,
                &mut lists.writes,
                body_scratch,
                &mut work.inner,
            )?;
        }
    }
    work.refs.give_back(lists);
    for result in &op.results {
        put(program, op, result, device, work, limits);
    }
    Ok(())
}

/// Cuts results and scratch out of the slabs, and what lies between them into parts; returns the scratch.
fn cut<'a>(slabs: &'a mut [Slab], cuts: &[Cut], lists: &mut Lists<'a>) -> &'a mut [u8] {
    let mut scratch: &mut [u8] = &mut [];
    let mut cuts = cuts.iter().peekable();
    for (number, slab) in slabs.iter_mut().enumerate() {
        let (mut rest, mut at) = (slab.bytes_mut(), 0);
        while let Some(cut) = cuts.next_if(|c| c.slab as usize == number) {
            let (before, tail) = rest.split_at_mut(cut.start - at);
            let (mine, tail) = tail.split_at_mut(cut.len);
            lists.parts.push(before);
            match cut.to {
                CutOut::Result(n) => lists.writes[n].data = mine,
                CutOut::Scratch => scratch = mine,
            }
            at = cut.start + cut.len;
            rest = tail;
        }
        lists.parts.push(rest);
    }
    scratch
}

/// Brings a result that was computed in the scratch to its place, and poisons its padding if asked for.
fn put(
    program: &Program,
    op: &Op,
    result: &ResultLeaf,
    device: &mut Device,
    work: &mut Workspace,
    limits: Limits,
) {
    let map = &program.info(result.leaf).map;
    let place = program.range_of(result.leaf);
    let computed = |at: usize| ByteRange {
        slab: op.scratch.slab,
        start: op.scratch.start + at,
        end: op.scratch.start + at + result.bytes,
    };
    match result.way {
        Way::Slab => {}
        Way::Raw(at) => {
            let (from, to) = from_to(&mut device.slabs, computed(at), place);
            to[..result.bytes].copy_from_slice(from);
        }
        Way::Dense(at) => {
            let (dense, to) = from_to(&mut device.slabs, computed(at), place);
            pack(map, dense, to, place.start, limits);
            return;
        }
    }
    let len = map.dense_bytes();
    if limits.poison && map.padded_bytes() > len {
        let dense = &mut work.spare.bytes_mut()[..len];
        device.read(program, result.leaf, dense);
        write_result(program, &mut device.slabs, result.leaf, dense, limits);
    }
}

/// The bytes that a dense array of `len` bytes takes in scratch.
pub(crate) fn aligned(len: usize) -> usize {
    len.next_multiple_of(STAGE_ALIGN)
}

/// Alignment of dense arrays in scratch, from its start.
pub(crate) const STAGE_ALIGN: usize = 64;
