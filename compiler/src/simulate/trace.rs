//! What a program allocates and frees, in the order in which it runs.

use std::collections::BTreeMap;

use petgraph::unionfind::UnionFind;
use slabplan_ir::attr::AttrName;
use slabplan_ir::entity::{BufferId, CompId, InstrId};
use slabplan_ir::plan::{BufferKind, LiveInterval, Plan};
use slabplan_ir::{Module, Opcode};
use slabplan_planner::order::{ProgramOrder, callees_in_order};

use crate::Compiled;

/// Bytes that are allocated and freed as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Size, padding included.
    pub bytes: u64,
    /// When it is needed, in program order: disjoint, ascending, not touching.
    pub live: Vec<LiveInterval>,
    /// A buffer that lies in it.
    pub buffer: BufferId,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The instruction with this number of program order runs.
    At(u32),
    /// A loop's condition has run: its body follows, or what comes after the loop.
    Test(u32),
    /// The body of a loop has run: back to its condition.
    Back(u32),
}

/// A while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The while.
    pub instr: InstrId,
    /// How often its body runs, where the compiler wrote that down.
    pub trip_count: Option<u64>,
    /// Index of the first event of its condition.
    pub(super) start: usize,
    /// Index of the first event after it.
    pub(super) end: usize,
}

/// A conditional, of which one branch is replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The conditional.
    pub instr: InstrId,
    /// The branch with most bytes live at one moment.
    pub taken: usize,
    /// How many it has.
    pub of: usize,
}

/// The allocations of one memory space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Everything that is ever allocated: arguments first, then constants, then by first use.
    pub blocks: Vec<Block>,
    /// The run, with each loop's condition and body once.
    pub events: Vec<Event>,
    /// Loops, by the numbers that events have.
    pub loops: Vec<Loop>,
    /// Conditionals.
    pub branches: Vec<Branch>,
    /// Most bytes live at one moment.
    pub peak: u64,
}

impl Trace {
    /// What `compiled` allocates in memory space `space`. O(n log n), n instructions and buffers.
    pub fn new(compiled: &Compiled, space: u32) -> Self {
        let module = &compiled.module;
        let order = &compiled.planned.analysis.order;
        let blocks = blocks(compiled.plan(), space);
        let demand = demand(&blocks, order.len());
        let mut walk = Walk {
            module,
            order,
            demand: &demand,
            events: Vec::with_capacity(order.len() as usize),
            loops: Vec::new(),
            branches: Vec::new(),
        };
        walk.run();
        let Walk {
            events,
            loops,
            branches,
            ..
        } = walk;
        Self {
            blocks,
            events,
            loops,
            branches,
            peak: demand.iter().copied().max().unwrap_or(0),
        }
    }
}

/// The buffers of a space; those that have bytes in common while both are live as one block.
fn blocks(plan: &Plan, space: u32) -> Vec<Block> {
    let ids: Vec<BufferId> = plan
        .buffers
        .iter()
        .filter(|(_, b)| b.space == space && b.size.get() > 0 && !b.live.is_empty())
        .map(|(id, _)| id)
        .collect();
    let group = groups(plan, &ids);
    let mut members: BTreeMap<usize, Vec<BufferId>> = BTreeMap::new();
    for (n, &id) in ids.iter().enumerate() {
        members.entry(group[n]).or_default().push(id);
    }
    let mut blocks: Vec<((u32, u32), Block)> = members
        .into_values()
        .map(|members| {
            let of = |id: &BufferId| &plan.buffers[*id];
            let start = members.iter().map(|id| of(id).offset.get()).min();
            let end = members
                .iter()
                .map(|id| of(id).offset.get() + of(id).size.get())
                .max();
            let intervals = members.iter().flat_map(|id| of(id).live.iter().copied());
            let live = united(intervals.collect());
            let rank = members.iter().map(|id| rank(&of(id).kind)).min();
            let block = Block {
                bytes: end.unwrap_or(0) - start.unwrap_or(0),
                buffer: members[0],
                live,
            };
            ((rank.unwrap_or(u32::MAX), block.live[0].start), block)
        })
        .collect();
    blocks.sort_by_key(|(key, block)| (*key, block.buffer));
    blocks.into_iter().map(|(_, block)| block).collect()
}

/// Arguments are there before constants, and those before all else.
fn rank(kind: &BufferKind) -> u32 {
    match kind {
        BufferKind::Parameter { number, .. } => *number,
        BufferKind::Constant => u32::MAX - 1,
        BufferKind::Output | BufferKind::Scratch { .. } | BufferKind::Temp => u32::MAX,
    }
}

fn united(mut intervals: Vec<LiveInterval>) -> Vec<LiveInterval> {
    intervals.sort_unstable();
    let mut out: Vec<LiveInterval> = Vec::with_capacity(intervals.len());
    for i in intervals {
        match out.last_mut() {
            Some(last) if i.start <= last.end => last.end = last.end.max(i.end),
            _ => out.push(i),
        }
    }
    out
}

/// For each of `ids`, a number that it shares with those that overlap it in time and bytes.
///
/// A sweep over time with the extents in use, which are disjoint: an extent that a new buffer
/// overlaps becomes one with it.
fn groups(plan: &Plan, ids: &[BufferId]) -> Vec<usize> {
    struct Extent {
        end: u64,
        group: usize,
        live: usize,
    }
    let mut sets: UnionFind<usize> = UnionFind::new(ids.len());
    let mut moments: Vec<(u32, bool, usize)> = Vec::new();
    for (n, &id) in ids.iter().enumerate() {
        for live in &plan.buffers[id].live {
            moments.push((live.start, true, n));
            moments.push((live.end, false, n));
        }
    }
    // Ends come before starts: live ranges are half-open.
    moments.sort_unstable();
    let mut extents: BTreeMap<u64, Extent> = BTreeMap::new();
    for (_, begins, n) in moments {
        let buffer = &plan.buffers[ids[n]];
        let mut start = buffer.offset.get();
        let mut end = start + buffer.size.get();
        if !begins {
            let (&at, extent) = extents
                .range_mut(..=start)
                .next_back()
                .expect("a buffer that ends lies in an extent");
            extent.live -= 1;
            if extent.live == 0 {
                extents.remove(&at);
            }
            continue;
        }
        let mut live = 1;
        while let Some((&at, extent)) = extents.range(..end).next_back()
            && extent.end > start
        {
            sets.union(n, extent.group);
            live += extent.live;
            start = start.min(at);
            end = end.max(extent.end);
            extents.remove(&at);
        }
        extents.insert(
            start,
            Extent {
                end,
                group: n,
                live,
            },
        );
    }
    (0..ids.len()).map(|n| sets.find(n)).collect()
}

/// Bytes live at every number of program order.
fn demand(blocks: &[Block], len: u32) -> Vec<u64> {
    let mut change = vec![0i64; len as usize + 1];
    for block in blocks {
        for live in &block.live {
            change[live.start.min(len) as usize] += block.bytes as i64;
            change[live.end.min(len) as usize] -= block.bytes as i64;
        }
    }
    let mut now = 0;
    change
        .iter()
        .map(|c| {
            now += c;
            now as u64
        })
        .collect()
}

struct Walk<'a> {
    module: &'a Module,
    order: &'a ProgramOrder,
    demand: &'a [u64],
    events: Vec<Event>,
    loops: Vec<Loop>,
    branches: Vec<Branch>,
}

enum Task {
    Computation(CompId),
    Enter(InstrId),
    Event(Event),
}

impl Walk<'_> {
    fn run(&mut self) {
        let mut tasks = vec![Task::Computation(self.module.entry)];
        while let Some(task) = tasks.pop() {
            match task {
                Task::Computation(comp) => {
                    let instrs = self.module.computations[comp].instrs.iter().rev();
                    tasks.extend(instrs.map(|&i| Task::Enter(i)));
                }
                Task::Enter(instr) => {
                    tasks.push(Task::Event(Event::At(self.order.at(instr))));
                    self.enter(instr, &mut tasks);
                }
                Task::Event(event) => {
                    self.events.push(event);
                    if let Event::Back(n) = event {
                        self.loops[n as usize].end = self.events.len();
                    }
                }
            }
        }
    }

    /// Puts what `instr` calls on the stack, last first.
    fn enter(&mut self, instr: InstrId, tasks: &mut Vec<Task>) {
        let callees = callees_in_order(self.module, instr);
        match (self.module.instrs[instr].opcode, callees.as_slice()) {
            (Opcode::While, &[condition, body]) => {
                let n = self.loops.len() as u32;
                self.loops.push(Loop {
                    instr,
                    trip_count: trip_count(self.module, instr),
                    start: self.events.len(),
                    end: 0,
                });
                tasks.push(Task::Event(Event::Back(n)));
                tasks.push(Task::Computation(body));
                tasks.push(Task::Event(Event::Test(n)));
                tasks.push(Task::Computation(condition));
            }
            (Opcode::Conditional, branches) => {
                let peak = |&comp: &CompId| {
                    let span = self.order.span(comp);
                    let demand = &self.demand[span.start as usize..span.end as usize];
                    demand.iter().copied().max()
                };
                let best = branches.iter().enumerate().max_by_key(|&(n, comp)| {
                    // The first of equals.
                    (peak(comp), std::cmp::Reverse(n))
                });
                if let Some((taken, &comp)) = best {
                    self.branches.push(Branch {
                        instr,
                        taken,
                        of: branches.len(),
                    });
                    tasks.push(Task::Computation(comp));
                }
            }
            (_, callees) => {
                tasks.extend(callees.iter().rev().map(|&c| Task::Computation(c)));
            }
        }
    }
}

/// What XLA wrote into the while's `backend_config`: `"known_trip_count":{"n":"12"}`.
pub(crate) fn trip_count(module: &Module, instr: InstrId) -> Option<u64> {
    let config = module.attr_text(instr, AttrName::BackendConfig)?;
    let rest = config.split_once("\"known_trip_count\"")?.1;
    let rest = rest.split_once("\"n\"")?.1;
    let digits = rest.trim_start_matches([':', ' ', '"']);
    let end = digits.find(|c: char| !c.is_ascii_digit());
    digits[..end.unwrap_or(digits.len())].parse().ok()
}
