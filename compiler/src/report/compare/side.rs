//! One plan of one memory space, measured the same way whoever made it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use slabplan_ir::plan::{Plan, PlanBuffer};
use slabplan_ir::{BufferId, Module};
use slabplan_planner::Analysis;
use slabplan_planner::buffers::logical_size;
use slabplan_planner::interference::ClassId;

use crate::Compiled;
use crate::frontend::assignment::{JudgedPlan, XlaTotals};
use crate::report::handover::Begun;

/// Most sharings that are kept: the largest.
const MAX_SHARES: usize = 10_000;

/// One plan of one memory space. All sizes in bytes, padded unless they say otherwise.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Arguments, outputs, constants and temporaries, what is two of these counted once.
    pub total: u64,
    /// Arguments.
    pub argument: u64,
    /// Outputs, those that are arguments included.
    pub output: u64,
    /// Arguments that are outputs.
    pub alias: u64,
    /// Constants.
    pub constant: u64,
    /// The heap of temporaries.
    pub temp: u64,
    /// Of `temp`, index tables of tuples; slabplan has none.
    pub tables: u64,
    /// Most bytes of temporaries in the heap that are in use at once, with this plan's sharing: no
    /// packing of them is smaller.
    pub in_use_at_peak: u64,
    /// Of those, bytes of elements.
    pub logical_at_peak: u64,
    /// The instruction at which that is.
    pub peak_instruction: String,
    /// What is in use then, largest first.
    pub at_peak: Vec<Held>,
    /// Results on the bytes of an operand, largest first.
    pub shares: Vec<Share>,
    /// Temporaries that lie in an argument or output instead of the heap, largest first.
    pub lodged: Vec<Held>,
}

impl Side {
    /// Bytes of the heap that are neither in use at the peak nor tables.
    pub fn fragmentation(&self) -> u64 {
        self.temp.saturating_sub(self.in_use_at_peak + self.tables)
    }

    /// Bytes in use at the peak that hold no element.
    pub fn padding_at_peak(&self) -> u64 {
        self.in_use_at_peak.saturating_sub(self.logical_at_peak)
    }
}

/// A buffer in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its first value: the same name in both plans.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Bytes of elements.
    pub logical: u64,
    /// Shape of that value, with layout.
    pub shape: String,
    /// The source operation, where the module says it.
    pub op_name: String,
}

/// A result on the bytes of an operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The buffer that takes the bytes.
    pub result: String,
    /// The buffer that gives them up.
    pub operand: String,
    /// Bytes.
    pub size: u64,
    /// Name of the instruction.
    pub at: String,
}

impl Share {
    /// What tells one sharing from another, in both plans alike.
    pub fn pair(&self) -> (&str, &str) {
        (&self.result, &self.operand)
    }
}

/// Our plan of one space.
pub(super) fn ours(compiled: &Compiled, space: u32) -> Side {
    let plan = compiled.plan();
    let mut class_of = vec![None; plan.buffers.len()];
    for (class, &buffer) in compiled.planned.buffer_of.iter() {
        class_of[slabplan_ir::EntityId::index(buffer)] = Some(class);
    }
    let measure = Measure {
        module: &compiled.module,
        plan,
        analysis: &compiled.planned.analysis,
        class_of: &|id| class_of[slabplan_ir::EntityId::index(id)],
        space,
    };
    let mut side = measure.side();
    if let Some(s) = plan.space(space) {
        side.total = s.slab.get();
        side.argument = s.stats.argument.get();
        side.output = s.stats.output.get();
        side.alias = s.stats.alias.get();
        side.constant = s.stats.constant.get();
        side.temp = s.stats.temp.get();
    }
    side
}

/// XLA's plan of one space.
pub(super) fn xla(module: &Module, judged: &JudgedPlan, space: u32, totals: XlaTotals) -> Side {
    let measure = Measure {
        module,
        plan: &judged.plan,
        analysis: &judged.analysis,
        class_of: &|id| judged.class_of[id],
        space,
    };
    Side {
        total: totals.total(),
        argument: totals.argument,
        output: totals.output,
        alias: totals.alias,
        constant: totals.constant,
        temp: totals.temp,
        tables: totals.tables,
        ..measure.side()
    }
}

struct Measure<'a> {
    module: &'a Module,
    plan: &'a Plan,
    analysis: &'a Analysis,
    class_of: &'a dyn Fn(BufferId) -> Option<ClassId>,
    space: u32,
}

impl Measure<'_> {
    /// Everything but the totals. O(n log n) in live intervals.
    fn side(&self) -> Side {
        let (heap, lodged) = self.temporaries();
        let (peak, in_use) = self.peak(&heap);
        let mut side = Side {
            in_use_at_peak: in_use,
            shares: self.shares(),
            lodged: self.held(&lodged),
            ..Side::default()
        };
        if let Some(peak) = peak {
            side.peak_instruction = self.name_at(peak);
            let live: Vec<BufferId> = heap
                .into_iter()
                .filter(|&id| self.counts_at(id, peak))
                .collect();
            side.at_peak = self.held(&self.one_for_each_place(live));
            side.logical_at_peak = side.at_peak.iter().map(|h| h.logical).sum();
        }
        side
    }

    fn name_at(&self, point: u32) -> String {
        let instr = self.analysis.order.instr(point);
        self.module.name_of(instr).to_owned()
    }

    fn of_space(&self) -> impl Iterator<Item = (BufferId, &PlanBuffer)> {
        let buffers = self.plan.buffers.iter();
        buffers.filter(|(_, b)| b.space == self.space && !b.size.is_zero())
    }

    /// Temporaries in the heap, and those that lie in an argument or output.
    fn temporaries(&self) -> (Vec<BufferId>, Vec<BufferId>) {
        let mut hosts: Vec<(u64, u64)> = self
            .of_space()
            .filter(|(_, b)| !b.kind.is_temporary())
            .map(|(_, b)| (b.offset.get(), b.offset.get() + b.size.get()))
            .collect();
        hosts.sort_unstable();
        let is_lodged = |b: &PlanBuffer| {
            let start = b.offset.get();
            let n = hosts.partition_point(|h| h.0 <= start);
            hosts[..n].last().is_some_and(|h| start < h.1)
        };
        self.of_space()
            .filter(|(_, b)| b.kind.is_temporary())
            .map(|(id, _)| id)
            .partition(|&id| !is_lodged(&self.plan.buffers[id]))
    }

    /// When most bytes of `buffers` are in use, and how many. What an operand passes to a result of the
    /// same instruction counts once.
    fn peak(&self, buffers: &[BufferId]) -> (Option<u32>, u64) {
        let begun = self.begun(buffers);
        let mut changes: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for &id in buffers {
            let b = &self.plan.buffers[id];
            for (start, end) in counted(b, &begun) {
                changes.entry(start).or_default().0 += b.size.get();
                changes.entry(end).or_default().1 += b.size.get();
            }
        }
        let (mut now, mut most, mut peak) = (0u64, 0u64, None);
        for (point, (more, less)) in changes {
            now = now.saturating_sub(less) + more;
            if now > most {
                (most, peak) = (now, Some(point));
            }
        }
        (peak, most)
    }

    fn begun(&self, buffers: &[BufferId]) -> BTreeMap<u32, Begun> {
        let mut begun: BTreeMap<u32, Begun> = BTreeMap::new();
        for &id in buffers {
            let b = &self.plan.buffers[id];
            for live in &b.live {
                begun.entry(live.start).or_default().add(b);
            }
        }
        begun
    }

    fn counts_at(&self, id: BufferId, point: u32) -> bool {
        let live = &self.plan.buffers[id].live;
        live.iter().any(|l| l.start <= point && point < l.end)
    }

    /// The last to come of those at one place; pieces that lie in a whole give way to it.
    fn one_for_each_place(&self, mut live: Vec<BufferId>) -> Vec<BufferId> {
        let place = |id: &BufferId| {
            let b = &self.plan.buffers[*id];
            (b.offset, Reverse(b.size))
        };
        live.sort_by_key(place);
        let mut end = 0;
        live.retain(|id| {
            let b = &self.plan.buffers[*id];
            let keep = end <= b.offset.get();
            end = end.max(b.offset.get() + b.size.get());
            keep
        });
        live
    }

    fn held(&self, buffers: &[BufferId]) -> Vec<Held> {
        let mut held: Vec<Held> = buffers.iter().map(|&id| self.describe(id)).collect();
        held.sort_by(|a, b| (Reverse(a.size), &a.name).cmp(&(Reverse(b.size), &b.name)));
        held
    }

    fn describe(&self, id: BufferId) -> Held {
        let size = self.plan.buffers[id].size.get();
        let Some(class) = (self.class_of)(id) else {
            return Held {
                name: format!("buffer {}", slabplan_ir::EntityId::index(id)),
                size,
                logical: size,
                shape: String::new(),
                op_name: String::new(),
            };
        };
        let flow = &self.analysis.flow;
        let value = self.analysis.buffers[class].values[0];
        let shape = flow.positions.shape(flow.values[value].def);
        let instr = flow.positions.instr(flow.values[value].def);
        Held {
            name: flow.display(self.module, value),
            size,
            logical: logical_size(&self.module.shapes, shape).get().min(size),
            shape: self.module.shapes.display(shape).to_string(),
            op_name: self.module.op_name(instr).unwrap_or_default().to_owned(),
        }
    }

    /// Buffers at the same place, of which one is used last where the other comes into use.
    fn shares(&self) -> Vec<Share> {
        let mut intervals: Vec<(u64, u64, u32, u32, BufferId)> = self
            .of_space()
            .flat_map(|(id, b)| {
                let place = (b.offset.get(), b.size.get());
                b.live
                    .iter()
                    .map(move |l| (place.0, place.1, l.start, l.end, id))
            })
            .collect();
        intervals.sort_unstable();
        let mut shares = Vec::new();
        for pair in intervals.windows(2) {
            let ((o1, s1, _, end, first), (o2, s2, start, _, second)) = (pair[0], pair[1]);
            if (o1, s1) == (o2, s2) && first != second && start < end {
                shares.push((s1, first, second, start));
            }
        }
        shares.sort_unstable_by_key(|&(size, first, second, _)| (Reverse(size), first, second));
        shares.truncate(MAX_SHARES);
        let name = |id| self.describe(id).name;
        shares
            .into_iter()
            .map(|(size, first, second, at)| Share {
                result: name(second),
                operand: name(first),
                size,
                at: self.name_at(at),
            })
            .collect()
    }
}

/// The live intervals of a buffer as they count: its last point belongs to a result that takes its
/// bytes there.
fn counted<'a>(
    buffer: &'a PlanBuffer,
    begun: &'a BTreeMap<u32, Begun>,
) -> impl Iterator<Item = (u32, u32)> + 'a {
    buffer.live.iter().filter_map(move |l| {
        let last = l.end - 1;
        let passed = l.start < last && begun.get(&last).is_some_and(|b| b.takes_from(buffer));
        let end = if passed { last } else { l.end };
        (l.start < end).then_some((l.start, end))
    })
}
