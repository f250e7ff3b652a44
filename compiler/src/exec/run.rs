//! The loop over steps.

use std::sync::Arc;

use crate::exec::error::ExecError;
use crate::exec::kernels::{ArrayMut, ArrayRef};
use crate::exec::poison;
use crate::exec::program::{
    Access, Body, Cut, Leaf, Move, Op, Program, ResultLeaf, Step, Switch, Way,
};
use crate::exec::recycle::{Lists, Refs};
use crate::exec::slab::Slab;
use crate::exec::watch::Watch;
use slabplan_ir::ElementType;

/// The memory and the position of one device.
#[derive(Debug)]
pub(crate) struct Device {
    slabs: Vec<Slab>,
    /// The next step.
    next: u32,
    /// Where calls return to. Has room for the deepest chain of calls.
    returns: Vec<u32>,
    /// The last predicate tested.
    flag: bool,
    /// Steps taken.
    steps: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    /// At the collective with this number.
    Waiting(u32),
    Finished,
}

/// Memory that all devices use in turn.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// Dense forms of the arrays of the current operation.
    arena: Slab,
    refs: Refs,
    /// For the operations inside a fusion.
    inner: Refs,
    /// Told of every step.
    pub(crate) watch: Option<Arc<Watch>>,
}

impl Workspace {
    /// Room for every operation of `program`.
    pub(crate) fn new(program: &Program) -> Result<Self, ExecError> {
        Ok(Self {
            arena: Slab::new(program.arena, 0, STAGE_ALIGN)?,
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

    /// The slabs, in the order of [`Program::slabs`].
    pub(crate) fn slabs_mut(&mut self) -> &mut Vec<Slab> {
        &mut self.slabs
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
/// Devices run one after another, each until it meets a collective; a collective is carried out
/// once all devices of its group wait there.
pub(crate) fn run(
    program: &Program,
    devices: &mut [Device],
    work: &mut Workspace,
    limits: Limits,
) -> Result<(), ExecError> {
    if let Some(watch) = &work.watch {
        watch.begin(program.steps.len() as u32 - program.entry);
    }
    loop {
        for (number, device) in devices.iter_mut().enumerate() {
            if device.state == State::Running {
                run_device(program, device, number, work, limits)?;
            }
        }
        if devices.iter().all(|d| d.state == State::Finished) {
            return Ok(());
        }
        if !meet(program, devices, work, limits)? {
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
            Step::Move(n) => move_all(program, &program.moves[n as usize].0, device, work, limits),
            Step::Collective(n) => {
                device.state = State::Waiting(n);
                return Ok(());
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
                    device,
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
    let arena = work.arena.bytes_mut();
    for operand in &op.operands {
        if let Access::Arena(at) = operand.access {
            let len = program.info(operand.leaf).map.dense_bytes();
            device.read(program, operand.leaf, &mut arena[at..at + len]);
        }
    }
    let (staged, rest) = arena.split_at_mut(op.results_at);
    let (mut in_arena, rest) = rest.split_at_mut(op.scratch_at - op.results_at);
    let scratch = &mut rest[..op.scratch];
    let mut lists = work.refs.take();
    for result in &op.results {
        let info = program.info(result.leaf);
        let data: &mut [u8] = match result.way {
            Way::Slab => &mut [],
            Way::Raw(_) | Way::Dense(_) => {
                let (mine, tail) = in_arena.split_at_mut(aligned(result.bytes));
                in_arena = tail;
                &mut mine[..result.bytes]
            }
        };
        lists.writes.push(ArrayMut {
            element_type: info.element_type,
            dims: &info.dims,
            data,
        });
    }
    cut(&mut device.slabs, &op.cuts, &mut lists);
    for operand in &op.operands {
        let info = program.info(operand.leaf);
        let len = operand.bytes;
        lists.reads.push(ArrayRef {
            element_type: info.element_type,
            dims: &info.dims,
            data: match operand.access {
                Access::Slab { part, start } => &lists.parts[part][start..start + len],
                Access::Arena(at) => &staged[at..at + len],
                Access::Result => &[],
            },
        });
    }
    match &op.body {
        Body::Kernel(kernel) => kernel.run(&lists.reads, &mut lists.writes, scratch)?,
        Body::Fusion(fusion) => {
            fusion.run(&lists.reads, &mut lists.writes, scratch, &mut work.inner)?;
        }
    }
    work.refs.give_back(lists);
    for result in &op.results {
        put(
            program,
            result,
            op.scratch_at,
            device,
            work.arena.bytes_mut(),
            limits,
        );
    }
    Ok(())
}

/// Cuts the results out of the slabs, and what lies between them into parts.
fn cut<'a>(slabs: &'a mut [Slab], cuts: &[Cut], lists: &mut Lists<'a>) {
    let mut cuts = cuts.iter().peekable();
    for (number, slab) in slabs.iter_mut().enumerate() {
        let (mut rest, mut at) = (slab.bytes_mut(), 0);
        while let Some(cut) = cuts.next_if(|c| c.slab as usize == number) {
            let (before, tail) = rest.split_at_mut(cut.start - at);
            let (mine, tail) = tail.split_at_mut(cut.len);
            lists.parts.push(before);
            lists.writes[cut.result].data = mine;
            at = cut.start + cut.len;
            rest = tail;
        }
        lists.parts.push(rest);
    }
}

/// Brings a result that was computed elsewhere to its place, and poisons its padding if asked for,
/// with room from byte `free` of the arena on.
fn put(
    program: &Program,
    result: &ResultLeaf,
    free: usize,
    device: &mut Device,
    arena: &mut [u8],
    limits: Limits,
) {
    let map = &program.info(result.leaf).map;
    let len = map.dense_bytes();
    match result.way {
        Way::Slab => {}
        Way::Raw(at) => {
            let start = result.leaf.offset;
            let slab = device.slabs[result.leaf.slab as usize].bytes_mut();
            slab[start..start + result.bytes].copy_from_slice(&arena[at..at + result.bytes]);
        }
        Way::Dense(at) => {
            write_result(program, device, result.leaf, &arena[at..at + len], limits);
            return;
        }
    }
    if limits.poison && map.padded_bytes() > len {
        let dense = &mut arena[free..free + len];
        device.read(program, result.leaf, dense);
        write_result(program, device, result.leaf, dense, limits);
    }
}

/// The bytes that a dense array of `len` bytes takes in the arena.
pub(crate) fn aligned(len: usize) -> usize {
    len.next_multiple_of(STAGE_ALIGN)
}

/// Alignment of dense arrays in the arena.
pub(crate) const STAGE_ALIGN: usize = 64;

/// Writes a result, and poison into its padding if asked for.
fn write_result(program: &Program, device: &mut Device, leaf: Leaf, dense: &[u8], limits: Limits) {
    if limits.poison {
        let range = program.bytes_of(leaf);
        let start = range.start;
        poison::fill(
            &mut device.slabs[leaf.slab as usize].bytes_mut()[range],
            start,
        );
    }
    device.write(program, leaf, dense);
}

/// Moves values: all are read before any is written.
fn move_all(
    program: &Program,
    moves: &[Move],
    device: &mut Device,
    work: &mut Workspace,
    limits: Limits,
) {
    let arena = work.arena.bytes_mut();
    for m in moves {
        let range = program.bytes_of(m.from);
        let to = m.to.offset..m.to.offset + range.len();
        match m.stage {
            Some(at) if m.raw => {
                arena[at..at + range.len()].copy_from_slice(device.bytes(program, m.from));
            }
            Some(at) => {
                let len = program.info(m.from).map.dense_bytes();
                device.read(program, m.from, &mut arena[at..at + len]);
            }
            None if m.from.slab == m.to.slab => {
                let slab = device.slabs[m.from.slab as usize].bytes_mut();
                slab.copy_within(range, to.start);
            }
            None => {
                let (from, target) = two_slabs(&mut device.slabs, m.from.slab, m.to.slab);
                target[to].copy_from_slice(&from[range]);
            }
        }
    }
    for m in moves {
        let Some(at) = m.stage else {
            continue;
        };
        if m.raw {
            let len = program.info(m.from).map.padded_bytes();
            let slab = device.slabs[m.to.slab as usize].bytes_mut();
            slab[m.to.offset..m.to.offset + len].copy_from_slice(&arena[at..at + len]);
        } else {
            let len = program.info(m.to).map.dense_bytes();
            write_result(program, device, m.to, &arena[at..at + len], limits);
        }
    }
}

/// The bytes of one slab to read and of another to write.
fn two_slabs(slabs: &mut [Slab], from: u32, to: u32) -> (&[u8], &mut [u8]) {
    let (from, to) = (from as usize, to as usize);
    let (low, high) = slabs.split_at_mut(from.max(to));
    if from < to {
        (low[from].bytes(), high[0].bytes_mut())
    } else {
        (high[0].bytes(), low[to].bytes_mut())
    }
}

/// Carries out the collectives whose groups are complete. Returns whether there was one.
fn meet(
    program: &Program,
    devices: &mut [Device],
    work: &mut Workspace,
    limits: Limits,
) -> Result<bool, ExecError> {
    let mut met = false;
    for first in 0..devices.len() {
        let State::Waiting(n) = devices[first].state else {
            continue;
        };
        let collective = &program.collectives[n as usize];
        let group = collective.groups.of(first);
        if group.iter().any(|&d| devices[d].state != State::Waiting(n)) {
            continue;
        }
        for (member, &d) in group.iter().enumerate() {
            for (k, &leaf) in collective.operands.iter().enumerate() {
                let range = collective.operand_range(member, k);
                devices[d].read(program, leaf, &mut work.arena.bytes_mut()[range]);
            }
        }
        for (member, &d) in group.iter().enumerate() {
            for (k, &leaf) in collective.results.iter().enumerate() {
                collective.run(member, k, work.arena.bytes_mut(), &mut work.inner)?;
                let at = collective.results_at();
                let len = program.info(leaf).map.dense_bytes();
                let result = &work.arena.bytes()[at..at + len];
                write_result(program, &mut devices[d], leaf, result, limits);
            }
            devices[d].state = State::Running;
        }
        met = true;
    }
    Ok(met)
}

fn deadlock(program: &Program, devices: &[Device]) -> ExecError {
    let waiting: Vec<String> = devices
        .iter()
        .enumerate()
        .map(|(n, d)| match d.state {
            State::Finished => format!("device {n} has ended"),
            _ => format!(
                "device {n} waits at %{}",
                program.name(d.next.saturating_sub(1))
            ),
        })
        .collect();
    ExecError::Deadlock {
        waiting: waiting.join(", "),
    }
}
