//! A computation as the search sees it: memory space 0 only, and of its values only those that take bytes.
//!
//! A set of instructions that holds the predecessors of each of its members is called a *downset*; the level
//! after it (the bytes that are then live) depends on the set alone, not on its order. So an order is a path from
//! the empty downset to the whole, and the peak is the most that any of its steps needs.

use slabplan_ir::CompId;
use smallvec::SmallVec;

use super::region::{Region, RegionValue};
use super::table::Table;

/// Of a value that is handed in: no instruction defines it.
pub(super) const HANDED_IN: u32 = u32::MAX;

/// Sums of sizes stay below twice this.
const MOST_BYTES: u64 = 1 << 60;

/// A value that takes bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct GraphValue {
    pub(super) bytes: u64,
    /// Whether it is live after the last instruction.
    pub(super) outlives: bool,
    /// The instruction that defines it, or [`HANDED_IN`].
    pub(super) definer: u32,
}

/// An instruction that runs computations.
#[derive(Clone, Debug)]
pub(super) struct GraphCall {
    pub(super) instr: u32,
    /// Most bytes that are live inside, with what is handed in.
    pub(super) inner: u64,
    /// The operands' values that `inner` counts, sorted.
    pub(super) inside: Vec<u32>,
}

/// Instructions and values by number.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    /// Who must come before each instruction, and the reverse.
    pub(super) before: Table,
    pub(super) after: Table,
    /// The values each instruction reads; the reverse; the values it defines.
    pub(super) uses: Table,
    pub(super) users: Table,
    pub(super) defines: Table,
    /// For each value, those whose bytes it may take where they die.
    pub(super) donors: Table,
    pub(super) values: Vec<GraphValue>,
    /// What instructions that run computations need, ascending by instruction.
    pub(super) calls: Vec<GraphCall>,
    /// Bytes that are live at once before the first instruction, read or not.
    pub(super) start: u64,
    /// Those of them that something reads.
    level: u64,
}

/// How careful a graph is where a region can't tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// As an order will be carried out: nothing is counted less than it may need, and precedences that spare copies
    /// are kept.
    Plan,
    /// As every order must be: nothing is counted that is not surely needed, and only what must come first does.
    Bound,
}

impl Graph {
    /// `region` in the memory space with number `space` in [`Model::spaces`](super::model::Model::spaces); `inner`
    /// gives the most bytes that are live in a callee.
    pub(super) fn new(
        region: &Region,
        space: u8,
        view: View,
        inner: impl Fn(CompId) -> u64,
    ) -> Self {
        let counts = |v: &RegionValue| {
            v.bytes > 0 && v.space == space && (view == View::Plan || !v.lies_inside)
        };
        let mut number = vec![None; region.values.len()];
        let mut kept = Vec::new();
        for (v, value) in (0..).zip(&region.values) {
            if counts(value) {
                number[v as usize] = Some(kept.len() as u32);
                kept.push(v);
            }
        }
        let renumber =
            |row: &[u32]| -> Vec<u32> { row.iter().filter_map(|&v| number[v as usize]).collect() };
        let table = |rows: &mut dyn Iterator<Item = &[u32]>| {
            let mut table = Table::new();
            for row in rows {
                table.push_set(&mut renumber(row));
            }
            table
        };
        let uses = table(&mut (0..region.len()).map(|i| region.uses.row(i)));
        let defines = table(&mut (0..region.len()).map(|i| region.defines.row(i)));
        // Sums of sizes must not overflow; a program that needs so much fits nowhere.
        let most = MOST_BYTES / (kept.len() as u64 + 1);
        let mut values: Vec<GraphValue> = kept
            .iter()
            .map(|&v| {
                let value = region.values[v as usize];
                let outlives = match view {
                    View::Plan => value.outlives,
                    View::Bound => value.surely_outlives,
                };
                GraphValue {
                    bytes: value.bytes.min(most),
                    outlives,
                    definer: HANDED_IN,
                }
            })
            .collect();
        for (i, v) in defines.pairs() {
            values[v as usize].definer = i;
        }
        let before = match view {
            View::Plan => region.before.clone(),
            View::Bound => region.hard.clone(),
        };
        let calls = region.calls.iter().map(|c| GraphCall {
            instr: c.instr,
            inner: c
                .callees
                .iter()
                .map(|&c| inner(c).min(MOST_BYTES))
                .max()
                .unwrap_or(0),
            inside: renumber(&c.inside),
        });
        let mut donors = Table::new();
        for &v in &kept {
            donors.push_row(&renumber(region.donors.row(v)));
        }
        let users = uses.transposed(values.len() as u32);
        let (mut start, mut level) = (0, 0);
        for v in renumber(&region.handed_in) {
            let value = values[v as usize];
            let lasts = value.outlives || !users.row(v).is_empty();
            start += if lasts || region.handed_in_together {
                value.bytes
            } else {
                0
            };
            level += if lasts { value.bytes } else { 0 };
        }
        Self {
            start,
            level,
            after: before.transposed(region.len()),
            before,
            users,
            uses,
            defines,
            donors,
            calls: calls.collect(),
            values,
        }
    }

    /// Makes `first` come before `second`.
    pub(super) fn add_precedence(&mut self, first: u32, second: u32) {
        let mut before = Table::new();
        let mut row = Vec::new();
        for i in 0..self.len() {
            row.extend_from_slice(self.before.row(i));
            if i == second && !row.contains(&first) {
                row.push(first);
            }
            before.push_row(&row);
            row.clear();
        }
        self.after = before.transposed(self.len());
        self.before = before;
    }

    /// How many instructions there are.
    pub(super) fn len(&self) -> u32 {
        self.before.len()
    }

    pub(super) fn bytes(&self, v: u32) -> u64 {
        self.values[v as usize].bytes
    }

    /// What every step of `order` needs.
    pub(super) fn profile(&self, order: &[u32]) -> Vec<Step> {
        let mut walk = Forwards::new(self);
        order.iter().map(|&i| walk.run(i)).collect()
    }

    /// The most bytes any step of `order` needs.
    pub(super) fn peak(&self, order: &[u32]) -> u64 {
        let steps = self.profile(order);
        steps
            .iter()
            .map(|s| s.during)
            .max()
            .unwrap_or(0)
            .max(self.start)
    }

    /// The computations that `i` runs.
    pub(super) fn call(&self, i: u32) -> Option<&GraphCall> {
        let at = self.calls.binary_search_by_key(&i, |c| c.instr).ok()?;
        Some(&self.calls[at])
    }

    /// Bytes while `i` runs, given the level before it and which of its operands die.
    fn during(&self, i: u32, level: u64, dies: impl Fn(u32) -> bool) -> u64 {
        match self.call(i) {
            Some(call) => self.during_call(call, level, dies),
            None => (i128::from(level) + self.room(i, dies)) as u64,
        }
    }

    /// Operands that die are handed over; those that do not may be counted inside too.
    fn during_call(&self, call: &GraphCall, level: u64, dies: impl Fn(u32) -> bool) -> u64 {
        let (mut around, mut after) = (level, 0);
        for &v in self.uses.row(call.instr) {
            let (dies, inside) = (dies(v), call.inside.binary_search(&v).is_ok());
            if dies || inside {
                around -= self.bytes(v);
            }
            if inside && !dies {
                after += self.bytes(v);
            }
        }
        for &v in self.defines.row(call.instr) {
            after += self.bytes(v);
        }
        around + call.inner.max(after)
    }

    /// Bytes that the results of `i` need beyond its operands', given which of these die; a donor's surplus is
    /// taken off.
    fn room(&self, i: u32, dies: impl Fn(u32) -> bool) -> i128 {
        let mut room = 0i128;
        let mut taken: SmallVec<[u32; 4]> = SmallVec::new();
        let uses = self.uses.row(i);
        for &v in self.defines.row(i) {
            let bytes = self.bytes(v);
            let donor = self.donors.row(v).iter().copied().find(|&d| {
                // The search is the dearest question.
                dies(d)
                    && self.bytes(d) >= bytes
                    && !taken.contains(&d)
                    && uses.binary_search(&d).is_ok()
            });
            room += i128::from(bytes);
            if let Some(d) = donor {
                taken.push(d);
                room -= i128::from(self.bytes(d));
            }
        }
        room
    }
}

/// What one instruction does to the level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Bytes while it runs.
    pub(super) during: u64,
    /// Bytes afterwards, in the direction of the walk.
    pub(super) after: u64,
}

/// Builds an order from one of its ends.
pub(super) trait Walk<'a> {
    /// What running `i` next would do.
    fn step(&self, i: u32) -> Step;
    /// Runs `i` next.
    fn run(&mut self, i: u32) -> Step;
    /// Takes back the last run, which was that of `i` at `level`.
    fn undo(&mut self, i: u32, level: u64);
    /// Bytes live now.
    fn level(&self) -> u64;
    /// Who must have run before each instruction, and the reverse, in this direction.
    fn edges(&self) -> (&'a Table, &'a Table);
    /// The graph.
    fn graph(&self) -> &'a Graph;
    /// Calls `found` for the instructions whose steps a run of `i` may have made better.
    fn touched(&self, i: u32, found: &mut dyn FnMut(u32));
}

/// From the first instruction on.
#[derive(Clone)]
pub(super) struct Forwards<'a> {
    graph: &'a Graph,
    /// Readers of each value that have not run; one more if it outlives.
    readers: Vec<u32>,
    level: u64,
}

impl<'a> Forwards<'a> {
    pub(super) fn new(graph: &'a Graph) -> Self {
        let readers = (0..).zip(&graph.values);
        Self {
            readers: readers
                .map(|(v, value)| graph.users.row(v).len() as u32 + u32::from(value.outlives))
                .collect(),
            level: graph.level,
            graph,
        }
    }
}

impl<'a> Walk<'a> for Forwards<'a> {
    fn step(&self, i: u32) -> Step {
        let g = self.graph;
        let during = g.during(i, self.level, |d| self.readers[d as usize] == 1);
        let mut after = self.level;
        for &v in g.defines.row(i) {
            if self.readers[v as usize] > 0 {
                after += g.bytes(v);
            }
        }
        for &v in g.uses.row(i) {
            if self.readers[v as usize] == 1 {
                after -= g.bytes(v);
            }
        }
        Step { during, after }
    }

    fn run(&mut self, i: u32) -> Step {
        let step = self.step(i);
        for &v in self.graph.uses.row(i) {
            self.readers[v as usize] -= 1;
        }
        self.level = step.after;
        step
    }

    fn undo(&mut self, i: u32, level: u64) {
        for &v in self.graph.uses.row(i) {
            self.readers[v as usize] += 1;
        }
        self.level = level;
    }

    fn level(&self) -> u64 {
        self.level
    }

    fn edges(&self) -> (&'a Table, &'a Table) {
        (&self.graph.before, &self.graph.after)
    }

    fn graph(&self) -> &'a Graph {
        self.graph
    }

    fn touched(&self, i: u32, found: &mut dyn FnMut(u32)) {
        for &v in self.graph.uses.row(i) {
            if self.readers[v as usize] == 1 {
                for &u in self.graph.users.row(v) {
                    found(u);
                }
            }
        }
    }
}

/// From the last instruction back; levels are those before what has been placed.
#[derive(Clone)]
pub(super) struct Backwards<'a> {
    graph: &'a Graph,
    /// Readers of each value that are placed; one more if it outlives.
    readers: Vec<u32>,
    level: u64,
}

impl<'a> Backwards<'a> {
    pub(super) fn new(graph: &'a Graph) -> Self {
        let outliving = graph.values.iter().filter(|v| v.outlives);
        Self {
            readers: graph.values.iter().map(|v| u32::from(v.outlives)).collect(),
            level: outliving.fold(0, |sum, v| sum + v.bytes),
            graph,
        }
    }
}

impl<'a> Walk<'a> for Backwards<'a> {
    fn step(&self, i: u32) -> Step {
        let g = self.graph;
        let mut before = self.level;
        for &v in g.defines.row(i) {
            if self.readers[v as usize] > 0 {
                before -= g.bytes(v);
            }
        }
        for &v in g.uses.row(i) {
            if self.readers[v as usize] == 0 {
                before += g.bytes(v);
            }
        }
        Step {
            during: g.during(i, before, |d| self.readers[d as usize] == 0),
            after: before,
        }
    }

    fn run(&mut self, i: u32) -> Step {
        let step = self.step(i);
        for &v in self.graph.uses.row(i) {
            self.readers[v as usize] += 1;
        }
        self.level = step.after;
        step
    }

    fn undo(&mut self, i: u32, level: u64) {
        for &v in self.graph.uses.row(i) {
            self.readers[v as usize] -= 1;
        }
        self.level = level;
    }

    fn level(&self) -> u64 {
        self.level
    }

    fn edges(&self) -> (&'a Table, &'a Table) {
        (&self.graph.after, &self.graph.before)
    }

    fn graph(&self) -> &'a Graph {
        self.graph
    }

    fn touched(&self, i: u32, found: &mut dyn FnMut(u32)) {
        // A value that is live now costs its other readers nothing more.
        for &v in self.graph.uses.row(i) {
            if self.readers[v as usize] == 1 {
                for &u in self.graph.users.row(v) {
                    found(u);
                }
            }
        }
        for &p in self.graph.before.row(i) {
            found(p);
        }
    }
}
