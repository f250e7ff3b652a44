//! Precedences that spare copies: readers of a value before the instruction that overwrites it.
//!
//! An in-place operation whose operand is read afterwards needs a copy of it. So its other readers
//! are made its predecessors wherever no cycle arises. To know that, a topological order is kept up
//! to date edge by edge (Pearce and Kelly, "A dynamic topological sort algorithm for directed
//! acyclic graphs", 2007): only what lies between the two ends of an edge that goes backwards in it
//! is looked at.

use fixedbitset::FixedBitSet;
use smallvec::SmallVec;

use super::table::Table;

/// An instruction that writes a result over a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rewrite {
    /// The instruction.
    pub(super) instr: u32,
    /// The value it overwrites.
    pub(super) over: u32,
}

/// For each edge of the graph so many instructions may be looked at in all before edges that go
/// backwards are given up (their readers then get a copy, if the order asks for one).
const VISITS_PER_INSTR: usize = 32;

/// `before` with the readers of overwritten values added where that makes no cycle.
///
/// Rows keep their first entries; new ones follow. Instructions must be numbered in an order that
/// keeps `before`. Near-linear: the searches have a budget.
pub(super) fn with_rewrites(
    before: &Table,
    uses: &Table,
    users: &Table,
    rewrites: &[Rewrite],
) -> Table {
    let mut order = Dynamic::new(before);
    let mut rewrites = rewrites.to_vec();
    // Of several that overwrite one value, the last in the text does so in place.
    rewrites.sort_by_key(|r| (r.over, std::cmp::Reverse(r.instr)));
    rewrites.dedup_by_key(|r| r.over);
    rewrites.sort_by_key(|r| r.instr);
    for r in rewrites {
        let readers: Vec<u32> = users
            .row(r.over)
            .iter()
            .copied()
            .filter(|&u| u != r.instr)
            .collect();
        // One reader that can't come first makes a copy anyway: then leave the others their freedom.
        if readers.iter().all(|&u| order.may_precede(u, r.instr)) {
            for u in readers {
                order.add(u, r.instr);
            }
        }
    }
    debug_assert_eq!(uses.len(), before.len());
    order.finish()
}

/// A graph with a topological order that grows with it.
struct Dynamic<'a> {
    before: &'a Table,
    after: Table,
    /// Edges added to those of `before`: predecessors and successors of each instruction.
    more_before: Vec<SmallVec<[u32; 2]>>,
    more_after: Vec<SmallVec<[u32; 2]>>,
    place: Vec<u32>,
    visits_left: usize,
    seen: FixedBitSet,
}

impl<'a> Dynamic<'a> {
    fn new(before: &'a Table) -> Self {
        let n = before.len() as usize;
        Self {
            before,
            after: before.transposed(n as u32),
            more_before: vec![SmallVec::new(); n],
            more_after: vec![SmallVec::new(); n],
            place: (0..n as u32).collect(),
            visits_left: n.saturating_mul(VISITS_PER_INSTR).saturating_add(1024),
            seen: FixedBitSet::with_capacity(n),
        }
    }

    /// Whether `first` may be put before `second`: nothing leads from `second` to `first`.
    fn may_precede(&mut self, first: u32, second: u32) -> bool {
        if self.place[first as usize] < self.place[second as usize] {
            return true;
        }
        let limit = self.place[first as usize];
        match self.reached(second, true, |p| p <= limit) {
            Some(found) => !found.contains(&first),
            None => false,
        }
    }

    /// Puts `first` before `second` if that makes no cycle.
    fn add(&mut self, first: u32, second: u32) {
        let (low, high) = (self.place[second as usize], self.place[first as usize]);
        if low < high {
            let Some(later) = self.reached(second, true, |p| p <= high) else {
                return;
            };
            if later.contains(&first) {
                return;
            }
            let Some(earlier) = self.reached(first, false, |p| p >= low) else {
                return;
            };
            self.reorder(earlier, later);
        }
        self.more_before[second as usize].push(first);
        self.more_after[first as usize].push(second);
    }

    /// What is reached from `from` along (or against) the edges through places that `within` accepts;
    /// `None` if the budget is used up.
    fn reached(
        &mut self,
        from: u32,
        forwards: bool,
        within: impl Fn(u32) -> bool,
    ) -> Option<Vec<u32>> {
        let mut found = vec![from];
        self.seen.insert(from as usize);
        let mut next = 0;
        while let Some(&at) = found.get(next) {
            next += 1;
            let (table, more) = if forwards {
                (&self.after, &self.more_after)
            } else {
                (self.before, &self.more_before)
            };
            for &n in table.row(at).iter().chain(&more[at as usize]) {
                if within(self.place[n as usize]) && !self.seen.put(n as usize) {
                    found.push(n);
                }
            }
            if found.len() > self.visits_left {
                break;
            }
        }
        for &n in &found {
            self.seen.set(n as usize, false);
        }
        let left = self.visits_left.checked_sub(found.len());
        self.visits_left = left.unwrap_or(0);
        left.map(|_| found)
    }

    /// Gives the places of both sets to `earlier`, then to `later`, each in its old order.
    fn reorder(&mut self, mut earlier: Vec<u32>, mut later: Vec<u32>) {
        earlier.sort_unstable_by_key(|&n| self.place[n as usize]);
        later.sort_unstable_by_key(|&n| self.place[n as usize]);
        earlier.extend(later);
        let mut places: Vec<u32> = earlier.iter().map(|&n| self.place[n as usize]).collect();
        places.sort_unstable();
        for (n, place) in earlier.into_iter().zip(places) {
            self.place[n as usize] = place;
        }
    }

    fn finish(self) -> Table {
        let mut table = Table::new();
        let mut row = Vec::new();
        for n in 0..self.before.len() {
            row.extend_from_slice(self.before.row(n));
            for &m in &self.more_before[n as usize] {
                if !row.contains(&m) {
                    row.push(m);
                }
            }
            table.push_row(&row);
            row.clear();
        }
        table
    }
}
