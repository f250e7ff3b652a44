//! The heap simulator trace of a plan: what is taken and given back, in program order.
//!
//! XProf's memory viewer replays it with reference counts: `ALLOC` adds the bytes of a logical buffer;
//! `SHARE_WITH` adds one reference to a canonical buffer, and its bytes if nobody held it; `FREE` takes a
//! reference back, and the bytes with the last one. So the first buffer in time of those that take each
//! other's bytes is canonical, an operand whose bytes a result takes is freed before the result shares
//! them, and everything else is freed after the instruction's results have been taken.

use std::collections::BTreeMap;

use slabplan_ir::entity::SecondaryMap;
use slabplan_ir::plan::PlanBuffer;
use slabplan_ir::{BufferId, Module};
use slabplan_planner::Planned;

use crate::frontend::proto::messages::{HeapEvent, HeapEventKind, HeapTrace};
use crate::report::handover::Begun;

/// The trace of `buffers`, all of one allocation. `logical` is the logical buffer of each one's first
/// value. O(n log n) in live intervals and values.
pub(super) fn heap_trace(
    module: &Module,
    planned: &Planned,
    logical: &SecondaryMap<BufferId, i64>,
    buffers: &[BufferId],
) -> HeapTrace {
    let mut writer = Writer {
        module,
        planned,
        logical,
        canonical: canonical(planned, buffers),
        events: Vec::new(),
    };
    let mut steps: BTreeMap<u32, Step> = BTreeMap::new();
    for &buffer in buffers {
        if !planned.plan.buffers[buffer].size.is_zero() {
            writer.plan_steps(buffer, &mut steps);
        }
    }
    for (point, step) in &steps {
        writer.step(*point, step);
    }
    HeapTrace {
        events: writer.events,
        whole_module_simulation: true,
        buffer_allocation_index: 0,
    }
}

/// What happens at one point of program order.
#[derive(Default)]
struct Step {
    /// Buffers whose bytes come into use.
    begin: Vec<BufferId>,
    /// Further values that are written into bytes already in use: buffer and number of the value.
    join: Vec<(BufferId, usize)>,
    /// Buffers whose bytes are used last, with all values that hold a reference.
    end: Vec<Ending>,
}

struct Ending {
    buffer: BufferId,
    /// Numbers of the values.
    values: Vec<usize>,
    /// Whether its bytes came into use at this very point.
    brief: bool,
}

struct Writer<'a> {
    module: &'a Module,
    planned: &'a Planned,
    logical: &'a SecondaryMap<BufferId, i64>,
    /// The buffer whose first value is canonical.
    canonical: BTreeMap<BufferId, BufferId>,
    events: Vec<HeapEvent>,
}

impl Writer<'_> {
    fn buffer(&self, id: BufferId) -> &PlanBuffer {
        &self.planned.plan.buffers[id]
    }

    fn plan_steps(&self, id: BufferId, steps: &mut BTreeMap<u32, Step>) {
        let buffer = self.buffer(id);
        let order = &self.planned.analysis.order;
        let mut holders: Vec<Vec<usize>> = vec![vec![0]; buffer.live.len()];
        for (n, value) in buffer.values.iter().enumerate().skip(1) {
            let Some(point) = order.number(value.instr) else {
                continue;
            };
            let interval = buffer.live.partition_point(|l| l.end <= point);
            if buffer.live.get(interval).is_some_and(|l| l.start <= point) {
                steps.entry(point).or_default().join.push((id, n));
                holders[interval].push(n);
            }
        }
        for (live, values) in buffer.live.iter().zip(holders) {
            steps.entry(live.start).or_default().begin.push(id);
            let last = live.end - 1;
            steps.entry(last).or_default().end.push(Ending {
                buffer: id,
                values,
                brief: last == live.start,
            });
        }
    }

    fn step(&mut self, point: u32, step: &Step) {
        let mut begun = Begun::default();
        step.begin.iter().for_each(|&id| begun.add(self.buffer(id)));
        let (early, late): (Vec<_>, Vec<_>) = step
            .end
            .iter()
            .partition(|e| !e.brief && begun.takes_from(self.buffer(e.buffer)));
        early.iter().for_each(|e| self.free(point, e));
        for &id in &step.begin {
            self.take(point, id, 0);
        }
        for &(id, n) in &step.join {
            self.take(point, id, n);
        }
        late.iter().for_each(|e| self.free(point, e));
    }

    /// Value number `n` of a buffer is written; the first stands for the buffer as a whole.
    fn take(&mut self, point: u32, id: BufferId, n: usize) {
        let canonical = self.canonical[&id];
        let shared = self.logical[canonical];
        if canonical == id && n == 0 {
            self.event(point, HeapEventKind::Alloc, shared, 0);
        } else {
            let own = self.logical[id] + n as i64;
            self.event(point, HeapEventKind::ShareWith, own, shared);
        }
    }

    fn free(&mut self, point: u32, ending: &Ending) {
        for &n in &ending.values {
            let own = self.logical[ending.buffer] + n as i64;
            self.event(point, HeapEventKind::Free, own, 0);
        }
    }

    fn event(&mut self, point: u32, kind: HeapEventKind, buffer: i64, canonical: i64) {
        let instr = self.planned.analysis.order.instr(point);
        let computation = self.module.instrs[instr].computation;
        self.events.push(HeapEvent {
            kind: kind as i32,
            buffer_id: buffer,
            computation_name: self.module.comp_name(computation).to_owned(),
            instruction_name: self.module.name_of(instr).to_owned(),
            share_with_canonical_id: canonical,
        });
    }
}

/// For every buffer, the first in time of those that take each other's bytes.
fn canonical(planned: &Planned, buffers: &[BufferId]) -> BTreeMap<BufferId, BufferId> {
    let plan = &planned.plan;
    let mut intervals: Vec<(u64, u64, u32, u32, BufferId)> = Vec::new();
    for &id in buffers {
        let b = &plan.buffers[id];
        for live in &b.live {
            intervals.push((b.offset.get(), b.size.get(), live.start, live.end, id));
        }
    }
    intervals.sort_unstable();
    let mut groups = Groups::default();
    let mut before: Option<(u64, u64, u32, BufferId)> = None;
    for (offset, size, start, end, id) in intervals {
        match before {
            Some((o, s, reaches, first)) if (o, s) == (offset, size) && start < reaches => {
                groups.join(first, id);
                before = Some((o, s, reaches.max(end), first));
            }
            _ => before = Some((offset, size, end, id)),
        }
    }
    let mut first: BTreeMap<BufferId, (u32, BufferId)> = BTreeMap::new();
    let begins = |id: BufferId| plan.buffers[id].live.first().map_or(u32::MAX, |l| l.start);
    for &id in buffers {
        let candidate = (begins(id), id);
        let known = first.entry(groups.find(id)).or_insert(candidate);
        *known = (*known).min(candidate);
    }
    let canonical = |&id: &BufferId| (id, first[&groups.find(id)].1);
    buffers.iter().map(canonical).collect()
}

/// Sets of buffers.
#[derive(Default)]
struct Groups {
    parent: BTreeMap<BufferId, BufferId>,
}

impl Groups {
    fn find(&self, mut id: BufferId) -> BufferId {
        while let Some(&parent) = self.parent.get(&id) {
            id = parent;
        }
        id
    }

    /// Joins two sets; the smaller id leads.
    fn join(&mut self, a: BufferId, b: BufferId) {
        let (a, b) = (self.find(a), self.find(b));
        if a != b {
            self.parent.insert(a.max(b), a.min(b));
        }
    }
}
