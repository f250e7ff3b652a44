//! Joins values that must alias into classes, one constraint after another, as long as no two values
//! of a class are needed at the same time.
//!
//! A constraint that would put two values that are both needed into the same bytes is not joined but
//! returned as a conflict; a copy at the place the constraint comes from resolves it.

use std::collections::BTreeMap;

use petgraph::unionfind::UnionFind;

use slabplan_ir::Module;
use slabplan_ir::entity::{EntityId, PrimaryMap, SecondaryMap};

use crate::alias::MustAlias;
use crate::buffers::space_of;
use crate::dataflow::{Dataflow, ValueId};
use crate::liveness::{Liveness, Tail};
use crate::order::ProgramOrder;
use crate::share::ShareRules;

slabplan_ir::entity! {
    /// A must-alias class: values that occupy the same bytes one after another.
    ClassId = "class";
}

/// The must-alias classes of a module.
#[derive(Clone, Debug)]
pub struct Classes {
    of: SecondaryMap<ValueId, ClassId>,
    members: PrimaryMap<ClassId, Vec<ValueId>>,
}

impl Classes {
    /// The class of a value.
    pub fn of(&self, value: ValueId) -> ClassId {
        self.of[value]
    }

    /// The values of every class, in value order.
    pub fn members(&self) -> &PrimaryMap<ClassId, Vec<ValueId>> {
        &self.members
    }
}

/// Why two values can't occupy the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clash {
    /// Both are needed at this moment of program order.
    BothLive(u32),
    /// They lie in different memory spaces.
    Spaces(u32, u32),
}

/// Two values that a constraint puts into the same bytes although they can't be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The constraint.
    pub constraint: MustAlias,
    /// One value.
    pub first: ValueId,
    /// The other.
    pub second: ValueId,
    /// Why not.
    pub clash: Clash,
}

impl Conflict {
    /// One sentence for people: which values, why the same bytes, and what stands against it.
    pub fn describe(&self, module: &Module, order: &ProgramOrder, flow: &Dataflow) -> String {
        let why = self.constraint.why.describe(module);
        let first = flow.display(module, self.first);
        let second = flow.display(module, self.second);
        match self.clash {
            Clash::BothLive(at) => format!(
                "{first} and {second} would need the same bytes ({why}) while both are needed at %{}",
                module.name_of(order.instr(at))
            ),
            Clash::Spaces(a, b) => format!(
                "{first} in memory space {a} and {second} in memory space {b} would need the same bytes ({why})"
            ),
        }
    }
}

/// Joins all `constraints`, in the given order, that leave no interference inside a class.
///
/// O(n log² n) in the live intervals of the values concerned: the smaller class is always checked
/// against the larger.
pub fn coalesce(
    module: &Module,
    flow: &Dataflow,
    live: &Liveness,
    rules: &ShareRules<'_>,
    constraints: &[MustAlias],
) -> (Classes, Vec<Conflict>) {
    let mut joiner = Joiner {
        sets: UnionFind::new(flow.values.len()),
        open: (0..flow.values.len()).map(|_| None).collect(),
        live,
        rules,
    };
    let conflicts = constraints
        .iter()
        .filter_map(|&c| {
            let shape = |v: ValueId| flow.positions.shape(flow.values[v].def);
            let space = |v: ValueId| space_of(&module.shapes, shape(v));
            // Joined classes lie in one space, so any value stands for its class.
            let (place, value) = (space(c.place), space(c.value));
            let (first, second, clash) = if place == value {
                joiner.join(c.place, c.value).err()?
            } else {
                (c.place, c.value, Clash::Spaces(place, value))
            };
            Some(Conflict {
                constraint: c,
                first,
                second,
                clash,
            })
        })
        .collect();
    (joiner.into_classes(), conflicts)
}

/// Live intervals of a class by their start: (end, value).
type Spans = BTreeMap<u32, (u32, ValueId)>;

/// When the values of a class are live.
#[derive(Default)]
struct Times {
    /// Apart from tails.
    spans: Spans,
    /// What asynchronous operations add, with a value that each is added to.
    tails: Vec<(Tail, ValueId)>,
}

struct Joiner<'a> {
    sets: UnionFind<usize>,
    /// Kept at the representative of classes that have been looked at.
    open: Vec<Option<Box<Times>>>,
    live: &'a Liveness,
    rules: &'a ShareRules<'a>,
}

impl Joiner<'_> {
    fn join(&mut self, a: ValueId, b: ValueId) -> Result<(), (ValueId, ValueId, Clash)> {
        let (a, b) = (self.sets.find(a.index()), self.sets.find(b.index()));
        if a == b {
            return Ok(());
        }
        let (mut large, mut small) = (self.take(a), self.take(b));
        if large.spans.len() < small.spans.len() {
            std::mem::swap(&mut large, &mut small);
        }
        let mut spans = small.spans.iter();
        let clash = spans
            .find_map(|(&start, &(end, value))| self.clash(&large.spans, start, end, value))
            .or_else(|| self.tail_clash(&large, &small))
            .or_else(|| self.tail_clash(&small, &large));
        if let Some(clash) = clash {
            // Which of the two a map belongs to follows from any value in it.
            for times in [large, small] {
                if let Some(&(_, value)) = times.spans.values().next() {
                    let root = self.sets.find(value.index());
                    self.open[root] = Some(Box::new(times));
                }
            }
            let (first, second, at) = clash;
            return Err((first, second, Clash::BothLive(at)));
        }
        large.spans.extend(small.spans);
        for (tail, value) in small.tails {
            if large.tails.iter().all(|(t, _)| *t != tail) {
                large.tails.push((tail, value));
            }
        }
        self.sets.union(a, b);
        let root = self.sets.find(a);
        self.open[root] = Some(Box::new(large));
        Ok(())
    }

    fn take(&mut self, root: usize) -> Times {
        if let Some(times) = self.open[root].take() {
            return *times;
        }
        let value = ValueId::from_index(root);
        let intervals = self.live.in_sequence(value).iter();
        let tails = self.live.tails(value).iter();
        Times {
            spans: intervals.map(|r| (r.start, (r.end, value))).collect(),
            tails: tails.map(|&t| (t, value)).collect(),
        }
    }

    /// The first value of `others` that is needed while an asynchronous operation may still write
    /// bytes of `held`. Values inside the same operation follow one another and are no matter.
    fn tail_clash(&self, held: &Times, others: &Times) -> Option<(ValueId, ValueId, u32)> {
        held.tails.iter().find_map(|&(tail, holder)| {
            let (start, end) = (tail.interval.start, tail.interval.end);
            let before = others.spans.range(..=start).next_back();
            let after = others.spans.range(start + 1..end.max(start + 1));
            let span = before.into_iter().chain(after).find(|&(_, &(e, value))| {
                let tails = self.live.tails(value);
                e > start && tails.iter().all(|t| t.operation != tail.operation)
            });
            let tails = others.tails.iter().map(|(t, _)| t.operation);
            let same = tails.clone().any(|o| o == tail.operation);
            let mut tails = others.tails.iter();
            let other =
                tails.find(|(t, _)| !same && t.interval.start < end && start < t.interval.end);
            span.map(|(&s, &(_, value))| (holder, value, s.max(start)))
                .or(other.map(|&(t, value)| (holder, value, t.interval.start.max(start))))
        })
    }

    /// The first interval of `spans` that can't lie in the same bytes as `[start, end)` of `value`.
    ///
    /// Intervals in `spans` overlap by one moment at most, and only with a neighbour.
    fn clash(
        &self,
        spans: &Spans,
        start: u32,
        end: u32,
        value: ValueId,
    ) -> Option<(ValueId, ValueId, u32)> {
        let before = spans.range(..=start).next_back();
        let after = spans.range(start + 1..end.max(start + 1));
        before
            .into_iter()
            .chain(after)
            .filter(|&(_, &(other_end, _))| other_end > start)
            .find_map(|(&other_start, &(other_end, other))| {
                let (first, second, second_start) = if other_start < start {
                    (other, value, start)
                } else {
                    (value, other, other_start)
                };
                let passes = other_start != start
                    && end.min(other_end) == second_start + 1
                    && self.rules.may_pass(first, second, second_start);
                (!passes).then_some((first, second, second_start))
            })
    }

    fn into_classes(self) -> Classes {
        let labels = self.sets.into_labeling();
        let mut class_of_root: Vec<Option<ClassId>> = vec![None; labels.len()];
        let mut members: PrimaryMap<ClassId, Vec<ValueId>> = PrimaryMap::new();
        let mut of = SecondaryMap::filled(labels.len(), ClassId::from_index(0));
        for (index, &root) in labels.iter().enumerate() {
            let class = *class_of_root[root].get_or_insert_with(|| members.push(Vec::new()));
            let value = ValueId::from_index(index);
            members[class].push(value);
            of[value] = class;
        }
        Classes { of, members }
    }
}
