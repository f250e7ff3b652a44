//! Orders instructions so that values that must share bytes follow one another.
//!
//! A carry must not be computed before the last read of the one that it replaces, an operand
//! must not be updated in place before its other readers have read it. Where the schedule is ours to
//! choose, readers are moved before the writer if they do not depend on it, and no copy is needed: the
//! choice that XLA leaves open by inserting its copies before it schedules.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use slabplan_ir::attr::AttrName;
use slabplan_ir::{CompId, InstrId, Module, Opcode};

use crate::dataflow::{Dataflow, ValueId, ValueKind};
use crate::interference::{Clash, Conflict};
use crate::order::ProgramOrder;
use crate::ports::Ports;

/// Times one conflict after the other is given up where they cannot all be settled; then all that are left.
const MAX_TRIES: usize = 16;

/// `before` is to run before `after`, for conflict number `conflict`.
#[derive(Clone, Copy)]
struct Wish {
    before: InstrId,
    after: InstrId,
    conflict: usize,
}

/// Moves readers before writers where that settles a conflict; returns whether any order changed.
///
/// O(n log n) in the computations concerned, for each of a bounded number of tries, plus O(n) for
/// each conflict.
pub(crate) fn reorder(
    module: &mut Module,
    order: &ProgramOrder,
    flow: &Dataflow,
    ports: &Ports,
    conflicts: &[Conflict],
) -> bool {
    let mut wishes: IndexMap<CompId, Vec<Wish>, FxBuildHasher> = IndexMap::default();
    for (comp, group) in by_computation(module, order, flow, ports, conflicts) {
        wishes.insert(comp, wishes_of(module, flow, comp, &group));
    }
    let mut changed = false;
    for (comp, wishes) in wishes {
        if let Some(new) = settle(module, comp, wishes)
            && module.computations[comp].instrs != new
        {
            module.computations[comp].instrs = new;
            changed = true;
        }
    }
    changed
}

/// A value whose readers are to run before an instruction.
struct Race {
    value: ValueId,
    writer: InstrId,
    conflict: usize,
}

/// The conflicts that an order may settle, by the computation of the writer.
fn by_computation(
    module: &Module,
    order: &ProgramOrder,
    flow: &Dataflow,
    ports: &Ports,
    conflicts: &[Conflict],
) -> IndexMap<CompId, Vec<Race>, FxBuildHasher> {
    let mut found: IndexMap<CompId, Vec<Race>, FxBuildHasher> = IndexMap::default();
    for (conflict, c) in conflicts.iter().enumerate() {
        let Clash::BothLive(at) = c.clash else {
            continue;
        };
        let (value, later) = (c.first, flow.values[c.second]);
        let writer = match later.kind {
            ValueKind::LoopCarry(w) => w,
            ValueKind::Defined => order.instr(at),
            ValueKind::BranchResult => continue,
        };
        let comp = module.instrs[writer].computation;
        // A value from further out is needed there, whatever the order in here.
        let home = match flow.values[value].kind {
            ValueKind::LoopCarry(w) => module.instrs[w].comp(AttrName::Body),
            _ => Some(module.instrs[flow.instr_of(value)].computation),
        };
        if home == Some(comp) && !ports.is_pinned(value) {
            found.entry(comp).or_default().push(Race {
                value,
                writer,
                conflict,
            });
        }
    }
    found
}

/// What must run before what, for the races that are not lost from the start.
fn wishes_of(module: &Module, flow: &Dataflow, comp: CompId, races: &[Race]) -> Vec<Wish> {
    let computation = &module.computations[comp];
    let mut readers: IndexMap<ValueId, Vec<InstrId>, FxBuildHasher> =
        races.iter().map(|r| (r.value, Vec::new())).collect();
    for &instr in &computation.instrs {
        if hands_on(module, instr) {
            continue;
        }
        for &operand in &module.instrs[instr].operands {
            for (_, value) in flow.leaves(operand) {
                if let Some(readers) = readers.get_mut(&value)
                    && readers.last() != Some(&instr)
                {
                    readers.push(instr);
                }
            }
        }
    }
    let mut returned: Vec<ValueId> = flow.leaves(computation.root).map(|(_, v)| v).collect();
    returned.sort_unstable();
    races
        .iter()
        .filter(|r| returned.binary_search(&r.value).is_err())
        .flat_map(|r| {
            let readers = readers[&r.value].iter();
            readers
                .filter(|&&reader| reader != r.writer)
                .map(|&reader| Wish {
                    before: reader,
                    after: r.writer,
                    conflict: r.conflict,
                })
        })
        .collect()
}

/// Whether an instruction reads no bytes of its operands.
fn hands_on(module: &Module, instr: InstrId) -> bool {
    let i = &module.instrs[instr];
    matches!(
        i.opcode,
        Opcode::Tuple
            | Opcode::GetTupleElement
            | Opcode::Bitcast
            | Opcode::AddDependency
            | Opcode::OptimizationBarrier
            | Opcode::Domain
    ) || (i.opcode == Opcode::Copy && module.shapes.tuple(i.shape).is_some())
}

/// An order of `comp` with as many conflicts settled as possible, otherwise as it was.
fn settle(module: &Module, comp: CompId, mut wishes: Vec<Wish>) -> Option<Vec<InstrId>> {
    for tries in 0.. {
        if wishes.is_empty() {
            return None;
        }
        let (order, stuck) = sorted(module, comp, &wishes);
        let Some(first_stuck) = stuck else {
            return Some(order);
        };
        if tries >= MAX_TRIES {
            let done: Vec<InstrId> = sorted_ids(order);
            wishes.retain(|w| done.binary_search(&w.after).is_ok());
        } else {
            wishes.retain(|w| w.conflict != first_stuck);
        }
    }
    None
}

fn sorted_ids(mut order: Vec<InstrId>) -> Vec<InstrId> {
    order.sort_unstable();
    order
}

/// The order that keeps to operands, control predecessors and `wishes` and is otherwise the old one,
/// as far as it goes; with a conflict to give up if it ends early.
fn sorted(module: &Module, comp: CompId, wishes: &[Wish]) -> (Vec<InstrId>, Option<usize>) {
    let old = &module.computations[comp].instrs;
    let place: IndexMap<InstrId, usize, FxBuildHasher> =
        old.iter().enumerate().map(|(k, &i)| (i, k)).collect();
    let mut edges: Vec<(usize, usize)> = Vec::new();
    for (k, &instr) in old.iter().enumerate() {
        let i = &module.instrs[instr];
        let before = i.operands.iter().chain(i.control_predecessors());
        edges.extend(before.map(|b| (place[b], k)));
    }
    edges.extend(wishes.iter().map(|w| (place[&w.before], place[&w.after])));
    edges.sort_unstable();
    edges.dedup();
    let mut waits_for = vec![0_usize; old.len()];
    for &(_, to) in &edges {
        waits_for[to] += 1;
    }
    let mut ready: BinaryHeap<Reverse<usize>> = (0..old.len())
        .filter(|&k| waits_for[k] == 0)
        .map(Reverse)
        .collect();
    let mut new = Vec::with_capacity(old.len());
    while let Some(Reverse(k)) = ready.pop() {
        new.push(old[k]);
        let from = edges.partition_point(|e| e.0 < k);
        for &(_, to) in edges[from..].iter().take_while(|e| e.0 == k) {
            waits_for[to] -= 1;
            if waits_for[to] == 0 {
                ready.push(Reverse(to));
            }
        }
    }
    let stuck = wishes
        .iter()
        .filter(|w| waits_for[place[&w.after]] > 0)
        .min_by_key(|w| place[&w.after])
        .map(|w| w.conflict);
    (new, stuck)
}
