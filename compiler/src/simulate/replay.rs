//! Runs a trace through an allocator.

use std::collections::VecDeque;
use std::ops::Range;

use slabplan_ir::entity::InstrId;
use slabplan_ir::plan::LiveInterval;

use super::trace::{Event, Trace};
use super::{Address, Allocator};

/// Most instructions that are replayed; beyond, loops end at their next test.
const MAX_INSTRUCTIONS: u64 = 50_000_000;
/// Most iterations of one entry into a loop that are replayed while its state does not repeat.
const MAX_ITERATIONS: u64 = 1000;
/// Iterations that are replayed, while the state does not repeat, of a loop that may run any number.
const SETTLING: u64 = 16;
/// How many states before the latest iterations are remembered.
const REMEMBERED: usize = 16;

/// What an allocator made of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// Most bytes asked for and not yet freed.
    pub peak_used: u64,
    /// The same with what the allocator rounded up.
    pub peak_in_use: u64,
    /// Most bytes that the allocator held of the device.
    pub peak_reserved: u64,
    /// Calls that allocate, all iterations of all loops counted.
    pub allocations: u64,
    /// Calls that free.
    pub frees: u64,
    /// How often the allocator turned to the device.
    pub device_calls: u64,
    /// How each loop was replayed.
    pub loops: Vec<LoopReplay>,
    /// Where memory ran out, if it did: everything else is what was reached until there.
    pub failure: Option<Failure>,
}

/// How a loop was replayed.
///
/// Allocators are deterministic. If the allocator is at the start of an iteration in the very state
/// in which it was at the start of an earlier one, all further iterations go through the same states,
/// so that the peaks are those of any number of iterations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopReplay {
    /// The while.
    pub instr: InstrId,
    /// Iterations that calls are counted for; an assumption where the program does not say.
    pub trip_count: u64,
    /// Whether that is known.
    pub known: bool,
    /// Most iterations that were replayed at one entry.
    pub replayed: u64,
    /// Whether the state repeated at every entry, or all iterations were replayed.
    pub settled: bool,
}

/// Memory ran out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The instruction that runs.
    pub instr: u32,
    /// The block that found no place: index into the trace's blocks.
    pub block: usize,
    /// Its bytes.
    pub bytes: u64,
    /// Bytes then held of the device.
    pub reserved: u64,
    /// Bytes then in use.
    pub in_use: u64,
    /// The largest free block.
    pub largest_free: u64,
}

/// Runs `trace`. Calls of loops whose trip count is not known are counted for `assumed` iterations; the
/// peaks are those of any number of them, where the allocator's state comes to repeat.
///
/// Near-linear in the instructions replayed; each loop is replayed until the allocator's state repeats.
pub fn replay(trace: &Trace, allocator: &mut dyn Allocator, assumed: u64) -> Replay {
    let mut run = Run {
        trace,
        allocator,
        begins: Calendar::new(trace, |l| l.start),
        ends: Calendar::new(trace, |l| l.end),
        held: vec![None; trace.blocks.len()],
        now: None,
        used: 0,
        instructions: 0,
        out: Replay::default(),
    };
    run.out.loops = trace
        .loops
        .iter()
        .map(|l| LoopReplay {
            instr: l.instr,
            trip_count: l.trip_count.unwrap_or(assumed),
            known: l.trip_count.is_some(),
            replayed: 0,
            settled: true,
        })
        .collect();
    run.out.failure = run.all().err();
    run.out.device_calls = run.allocator.device_calls();
    run.out
}

/// Blocks by the number of program order at which they begin, or cease, to be live.
struct Calendar {
    entries: Vec<(u32, usize)>,
}

impl Calendar {
    fn new(trace: &Trace, time: impl Fn(&LiveInterval) -> u32) -> Self {
        let blocks = trace.blocks.iter().enumerate();
        let mut entries: Vec<(u32, usize)> = blocks
            .flat_map(|(n, block)| block.live.iter().map(move |l| (l, n)))
            .map(|(live, n)| (time(live), n))
            .collect();
        entries.sort_unstable();
        Self { entries }
    }

    /// Where the entries of `time` are.
    fn at(&self, time: u32) -> Range<usize> {
        let start = self.entries.partition_point(|e| e.0 < time);
        let len = self.entries[start..].partition_point(|e| e.0 == time);
        start..start + len
    }
}

/// A loop that is running.
struct Frame {
    number: u32,
    iterations: u64,
    /// States before the latest iterations.
    states: VecDeque<Vec<u64>>,
    /// Calls (allocations, frees) before the latest iteration.
    before: (u64, u64),
}

struct Run<'a> {
    trace: &'a Trace,
    allocator: &'a mut dyn Allocator,
    begins: Calendar,
    ends: Calendar,
    held: Vec<Option<Address>>,
    now: Option<u32>,
    used: u64,
    instructions: u64,
    out: Replay,
}

impl Run<'_> {
    fn all(&mut self) -> Result<(), Failure> {
        let mut frames: Vec<Frame> = Vec::new();
        let mut at = 0;
        while let Some(&event) = self.trace.events.get(at) {
            at += 1;
            match event {
                Event::At(n) => self.step(n)?,
                Event::Back(n) => at = self.trace.loops[n as usize].start,
                Event::Test(n) => {
                    if frames.last().is_none_or(|f| f.number != n) {
                        frames.push(Frame {
                            number: n,
                            iterations: 0,
                            states: VecDeque::new(),
                            before: self.calls(),
                        });
                    }
                    let frame = frames.last_mut().expect("just pushed");
                    if !self.again(frame) {
                        frames.pop();
                        at = self.trace.loops[n as usize].end;
                    }
                }
            }
        }
        Ok(())
    }

    fn calls(&self) -> (u64, u64) {
        (self.out.allocations, self.out.frees)
    }

    /// Whether the body is replayed once more; if not, counts the calls of the iterations that
    /// remain.
    fn again(&mut self, frame: &mut Frame) -> bool {
        let number = frame.number as usize;
        let total = self.out.loops[number].trip_count;
        let most = if self.out.loops[number].known {
            total
        } else {
            total.max(SETTLING)
        };
        let mut state = Vec::new();
        self.allocator.state(&mut state);
        state.extend(self.held.iter().map(|h| h.map_or(u64::MAX, |a| a)));
        let repeats = frame.states.contains(&state);
        let exhausted = frame.iterations >= MAX_ITERATIONS || self.instructions >= MAX_INSTRUCTIONS;
        if frame.iterations < most && !repeats && !exhausted {
            frame.states.push_back(state);
            if frame.states.len() > REMEMBERED {
                frame.states.pop_front();
            }
            frame.iterations += 1;
            frame.before = self.calls();
            return true;
        }
        let record = &mut self.out.loops[number];
        record.replayed = record.replayed.max(frame.iterations);
        record.settled &= repeats || (record.known && frame.iterations == total);
        if frame.iterations > 0 {
            // Every iteration makes the same calls, wherever the blocks then lie.
            let (allocations, frees) = self.calls();
            let counted = |now: u64, before: u64| {
                // Less only where the instructions to replay ran out in the midst of it.
                let each = now.saturating_sub(before);
                let replayed = each.saturating_mul(frame.iterations);
                now.saturating_sub(replayed)
                    .saturating_add(each.saturating_mul(total))
            };
            self.out.allocations = counted(allocations, frame.before.0);
            self.out.frees = counted(frees, frame.before.1);
        }
        false
    }

    /// Goes to instruction `n`: frees what is no longer needed, then allocates what is needed now.
    fn step(&mut self, n: u32) -> Result<(), Failure> {
        self.instructions += 1;
        let follows = self.now.is_some_and(|now| now + 1 == n);
        self.now = Some(n);
        if follows {
            for i in self.ends.at(n) {
                self.free(self.ends.entries[i].1);
            }
            for i in self.begins.at(n) {
                self.allocate(self.begins.entries[i].1, n)?;
            }
            return Ok(());
        }
        for block in 0..self.held.len() {
            if !self.is_live(block, n) {
                self.free(block);
            }
        }
        for block in 0..self.held.len() {
            if self.is_live(block, n) {
                self.allocate(block, n)?;
            }
        }
        Ok(())
    }

    fn is_live(&self, block: usize, n: u32) -> bool {
        let live = &self.trace.blocks[block].live;
        let at = live.partition_point(|l| l.end <= n);
        live.get(at).is_some_and(|l| l.start <= n)
    }

    fn free(&mut self, block: usize) {
        if let Some(address) = self.held[block].take() {
            self.allocator.free(address);
            self.used -= self.trace.blocks[block].bytes;
            self.out.frees += 1;
        }
    }

    fn allocate(&mut self, block: usize, instr: u32) -> Result<(), Failure> {
        if self.held[block].is_some() {
            return Ok(());
        }
        let bytes = self.trace.blocks[block].bytes;
        let Some(address) = self.allocator.allocate(bytes) else {
            return Err(Failure {
                instr,
                block,
                bytes,
                reserved: self.allocator.reserved(),
                in_use: self.allocator.in_use(),
                largest_free: self.allocator.largest_free(),
            });
        };
        self.held[block] = Some(address);
        self.used += bytes;
        self.out.allocations += 1;
        self.out.peak_used = self.out.peak_used.max(self.used);
        self.out.peak_in_use = self.out.peak_in_use.max(self.allocator.in_use());
        self.out.peak_reserved = self.out.peak_reserved.max(self.allocator.reserved());
        Ok(())
    }
}
