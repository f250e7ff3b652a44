//! Lower bounds on the height of any packing.

use super::model::Model;
use super::problem::Problem;

/// The most bytes live in one section, when nothing is shared. O(sections + parts).
pub(super) fn max_load(model: &Model) -> u64 {
    loads(model).into_iter().max().unwrap_or(0)
}

/// The first section of those with the most bytes live.
pub(super) fn fullest_section(model: &Model) -> u32 {
    let loads = loads(model);
    let most = loads.iter().copied().max().unwrap_or(0);
    loads.iter().position(|&load| load == most).unwrap_or(0) as u32
}

/// Bytes live in each section.
pub(super) fn loads(model: &Model) -> Vec<u64> {
    let mut change = vec![0i128; model.sections as usize + 1];
    for unit in 0..model.units.len() as u32 {
        for part in model.parts(unit) {
            change[part.begin as usize] += i128::from(part.size);
            change[part.end as usize] -= i128::from(part.size);
        }
    }
    change.pop();
    let mut load = 0;
    let sums = change.into_iter().map(|step| {
        load += step;
        load as u64
    });
    sums.collect()
}

/// The tallest unit at its lowest position.
pub(super) fn tallest(model: &Model) -> u64 {
    let ends = model
        .units
        .iter()
        .map(|unit| unit.fixed.unwrap_or_else(|| unit.residue.at_least(0)) + unit.height);
    ends.max().unwrap_or(0)
}

/// The best bound that costs near-linear time: the load of the fullest section, and the tallest unit.
pub(super) fn lower_bound(problem: &Problem, model: &Model) -> u64 {
    let load = if problem.may_share.is_empty() {
        max_load(model)
    } else {
        sharing_load(problem, model)
    };
    load.max(tallest(model))
}

/// The most bytes live in one section when every may-share pair is used as well as it can be.
///
/// Buffers that occupy the same bytes in one section are pairwise may-share, so the distinct places they need are at
/// least as many as the members of any set without such a pair. The sweep keeps such a set, chosen greedily in the
/// order of time (exact for chains), and sums the sizes of its members. O((parts + pairs) log).
fn sharing_load(problem: &Problem, model: &Model) -> u64 {
    let mut sweep = SharingSweep::new(problem, model);
    let mut events: Vec<(u32, bool, u32, u64)> = Vec::new();
    for unit in 0..model.units.len() as u32 {
        for part in model.parts(unit) {
            events.push((part.begin, true, unit, part.size));
            events.push((part.end, false, unit, part.size));
        }
    }
    events.sort_unstable();
    let mut most = 0;
    for section in events.chunk_by(|a, b| a.0 == b.0) {
        for &(_, is_start, unit, size) in section {
            if is_start {
                sweep.start(unit, size);
            } else {
                sweep.end(unit, size);
            }
        }
        for &(_, _, unit, _) in section {
            sweep.count_free(unit);
        }
        most = most.max(sweep.load);
    }
    most as u64
}

/// State of [`sharing_load`]: which of the live units with partners are in the independent set.
struct SharingSweep {
    /// Partners of the same size, flat; those of unit u are `list[starts[u]..starts[u + 1]]`.
    starts: Vec<u32>,
    list: Vec<u32>,
    /// Units named by any pair; the others simply add their size.
    has_pairs: Vec<bool>,
    /// What counting a unit adds: zero for one whose parts differ, as it might share one of them.
    sizes: Vec<u64>,
    live_parts: Vec<u32>,
    counted: Vec<bool>,
    /// Number of counted partners.
    excuses: Vec<u32>,
    load: i128,
}

impl SharingSweep {
    fn new(problem: &Problem, model: &Model) -> Self {
        let count = model.units.len();
        let size = |unit: u32| {
            let height = model.units[unit as usize].height;
            let whole = model
                .parts(unit)
                .iter()
                .all(|part| part.delta == 0 && part.size == height);
            if whole { height } else { 0 }
        };
        let sizes: Vec<u64> = (0..count as u32).map(size).collect();
        let mut has_pairs = vec![false; count];
        let mut edges: Vec<(u32, u32)> = Vec::with_capacity(2 * problem.may_share.len());
        for &(a, b) in &problem.may_share {
            let (a, b) = (model.place_of(a).0, model.place_of(b).0);
            (has_pairs[a as usize], has_pairs[b as usize]) = (true, true);
            if a != b && sizes[a as usize] == sizes[b as usize] {
                edges.extend([(a, b), (b, a)]);
            }
        }
        edges.sort_unstable();
        edges.dedup();
        let mut starts = vec![0; count + 1];
        for &(from, _) in &edges {
            starts[from as usize + 1] += 1;
        }
        for unit in 0..count {
            starts[unit + 1] += starts[unit];
        }
        let list = edges.into_iter().map(|edge| edge.1).collect();
        let (live_parts, counted, excuses) = (vec![0; count], vec![false; count], vec![0; count]);
        Self {
            starts,
            list,
            has_pairs,
            sizes,
            live_parts,
            counted,
            excuses,
            load: 0,
        }
    }

    fn partners(&self, unit: u32) -> std::ops::Range<usize> {
        self.starts[unit as usize] as usize..self.starts[unit as usize + 1] as usize
    }

    fn start(&mut self, unit: u32, size: u64) {
        if self.has_pairs[unit as usize] {
            self.live_parts[unit as usize] += 1;
        } else {
            self.load += i128::from(size);
        }
    }

    fn end(&mut self, unit: u32, size: u64) {
        if !self.has_pairs[unit as usize] {
            self.load -= i128::from(size);
            return;
        }
        self.live_parts[unit as usize] -= 1;
        if self.live_parts[unit as usize] == 0 && self.counted[unit as usize] {
            self.set_counted(unit, false);
        }
    }

    fn set_counted(&mut self, unit: u32, counted: bool) {
        let size = i128::from(self.sizes[unit as usize]);
        self.counted[unit as usize] = counted;
        self.load += if counted { size } else { -size };
        for at in self.partners(unit) {
            let excuses = &mut self.excuses[self.list[at] as usize];
            *excuses = if counted { *excuses + 1 } else { *excuses - 1 };
        }
    }

    /// Counts the partners of the unit and the unit itself, as far as nothing speaks against it.
    fn count_free(&mut self, unit: u32) {
        for at in self.partners(unit) {
            self.count_if_free(self.list[at]);
        }
        self.count_if_free(unit);
    }

    fn count_if_free(&mut self, unit: u32) {
        let it = unit as usize;
        if self.live_parts[it] > 0 && !self.counted[it] && self.excuses[it] == 0 {
            self.set_counted(unit, true);
        }
    }
}
