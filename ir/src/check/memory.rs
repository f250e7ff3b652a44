//! What every byte holds: an interval map from byte ranges to symbols, with an undo log.

use std::collections::BTreeMap;

use crate::units::Extent;

/// The contents of some bytes: one value at one moment of its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sym(pub(super) u32);

/// A range of bytes of one slab; `space` counts the spaces of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// Which slab.
    pub(super) space: u32,
    /// Which bytes.
    pub(super) extent: Extent,
}

/// Bytes that do not hold what they should.
pub(super) struct Bad {
    /// The bytes.
    pub(super) extent: Extent,
    /// What they hold instead; nothing was ever written there if absent.
    pub(super) found: Option<Sym>,
}

/// The bytes of all slabs.
pub(super) struct Memory {
    /// Per slab: start of a segment -> (end, contents). Segments are disjoint and not empty.
    slabs: Vec<BTreeMap<u64, (u64, Sym)>>,
    log: Vec<LogEntry>,
    /// Segments that log entries replaced, oldest first.
    replaced: Vec<(Extent, Sym)>,
    /// How many open marks there are; nothing is logged at zero.
    marks: u32,
}

struct LogEntry {
    place: Place,
    sym: Sym,
    /// Where its segments begin in `replaced`.
    replaced: usize,
}

/// A state to return to.
pub(super) struct Mark(usize);

impl Memory {
    pub(super) fn new(spaces: usize) -> Self {
        Self {
            slabs: vec![BTreeMap::new(); spaces],
            log: Vec::new(),
            replaced: Vec::new(),
            marks: 0,
        }
    }

    /// Makes all bytes of `place` hold `sym`. Amortised O(log n).
    pub(super) fn write(&mut self, place: Place, sym: Sym) {
        if place.extent.is_empty() {
            return;
        }
        let before = self.replaced.len();
        let log = self.marks > 0;
        let replaced = if log { Some(&mut self.replaced) } else { None };
        clear(
            &mut self.slabs[place.space as usize],
            place.extent,
            replaced,
        );
        self.slabs[place.space as usize].insert(place.extent.start, (place.extent.end, sym));
        if log {
            self.log.push(LogEntry {
                place,
                sym,
                replaced: before,
            });
        }
    }

    /// The first bytes of `place` whose contents `accept` refuses. O(log n + segments before them).
    pub(super) fn first_bad(&self, place: Place, accept: impl Fn(Sym) -> bool) -> Option<Bad> {
        let Extent { start, end } = place.extent;
        if start >= end {
            return None;
        }
        let slab = &self.slabs[place.space as usize];
        let first = slab
            .range(..=start)
            .next_back()
            .map_or(start, |(&s, &(e, _))| if e > start { s } else { start });
        let mut at = start;
        for (&s, &(e, sym)) in slab.range(first..end) {
            if at < s {
                return Some(Bad {
                    extent: Extent { start: at, end: s },
                    found: None,
                });
            }
            if !accept(sym) {
                return Some(Bad {
                    extent: Extent {
                        start: at,
                        end: e.min(end),
                    },
                    found: Some(sym),
                });
            }
            at = e;
        }
        (at < end).then_some(Bad {
            extent: Extent { start: at, end },
            found: None,
        })
    }

    /// Begins to log writes, so that they can be undone or listed.
    pub(super) fn mark(&mut self) -> Mark {
        self.marks += 1;
        Mark(self.log.len())
    }

    /// The places written since `mark` with the last contents, merged where they touch or overlap.
    pub(super) fn written_since(&self, mark: &Mark) -> Vec<(Place, Sym)> {
        let written = self.log[mark.0..].iter().map(|e| (e.place, e.sym));
        merge(written.collect())
    }

    /// Closes `mark` and takes back everything written since.
    pub(super) fn undo(&mut self, mark: &Mark) {
        while self.log.len() > mark.0 {
            let Some(entry) = self.log.pop() else { break };
            let slab = &mut self.slabs[entry.place.space as usize];
            clear(slab, entry.place.extent, None);
            for (extent, sym) in self.replaced.drain(entry.replaced..) {
                slab.insert(extent.start, (extent.end, sym));
            }
        }
        self.close();
    }

    /// Closes `mark` and keeps what was written.
    pub(super) fn keep(&mut self) {
        self.close();
    }

    fn close(&mut self) {
        self.marks -= 1;
        if self.marks == 0 {
            self.log.clear();
            self.replaced.clear();
        }
    }
}

/// Removes `extent` from a slab; what was there goes to `removed`, cut to `extent`.
fn clear(
    slab: &mut BTreeMap<u64, (u64, Sym)>,
    extent: Extent,
    mut removed: Option<&mut Vec<(Extent, Sym)>>,
) {
    let Extent { start, end } = extent;
    let mut note = |s: u64, e: u64, sym: Sym| {
        if let Some(removed) = &mut removed {
            removed.push((Extent { start: s, end: e }, sym));
        }
    };
    // The segment that reaches into the range from the left.
    if let Some((&s, &(e, sym))) = slab.range(..start).next_back()
        && start < e
    {
        slab.insert(s, (start, sym));
        note(start, e.min(end), sym);
        if end < e {
            slab.insert(end, (e, sym));
            return;
        }
    }
    while let Some((&s, &(e, sym))) = slab.range(start..end).next() {
        slab.remove(&s);
        note(s, e.min(end), sym);
        if end < e {
            slab.insert(end, (e, sym));
            return;
        }
    }
}

/// Sorts places and merges those that touch or overlap; one of the merged contents stands for all.
pub(super) fn merge(mut places: Vec<(Place, Sym)>) -> Vec<(Place, Sym)> {
    places.sort_unstable();
    let mut merged: Vec<(Place, Sym)> = Vec::with_capacity(places.len().min(64));
    for (place, sym) in places {
        match merged.last_mut() {
            Some((last, _))
                if last.space == place.space && place.extent.start <= last.extent.end =>
            {
                last.extent.end = last.extent.end.max(place.extent.end);
            }
            _ => merged.push((place, sym)),
        }
    }
    merged
}

/// Whether `place` has a byte in common with one of `merged`, which [`merge`] made. O(log).
pub(super) fn touches(merged: &[(Place, Sym)], place: Place) -> bool {
    let ends_before = |p: &Place| (p.space, p.extent.end) <= (place.space, place.extent.start);
    let next = merged.partition_point(|(p, _)| ends_before(p));
    merged
        .get(next)
        .is_some_and(|(p, _)| p.space == place.space && p.extent.overlaps(place.extent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(start: u64, end: u64) -> Place {
        Place {
            space: 0,
            extent: Extent { start, end },
        }
    }

    fn contents(memory: &Memory) -> Vec<Option<u32>> {
        (0..16)
            .map(|i| {
                let mut found = None;
                for sym in 0..64 {
                    if memory.first_bad(place(i, i + 1), |s| s.0 == sym).is_none() {
                        found = Some(sym);
                    }
                }
                found
            })
            .collect()
    }

    /// Against one byte a cell, with every pair of ranges written over a third, and undone.
    #[test]
    fn agrees_with_one_cell_a_byte() {
        let ranges: Vec<(u64, u64)> = (0..6)
            .flat_map(|s| (s..7).map(move |e| (2 * s, 2 * e)))
            .collect();
        for &a in &ranges {
            for &b in &ranges {
                let mut memory = Memory::new(1);
                let mut cells = vec![None; 16];
                for (sym, (s, e)) in [(1, (3, 9)), (2, a)] {
                    memory.write(place(s, e), Sym(sym));
                    (s..e).for_each(|i| cells[i as usize] = Some(sym));
                }
                assert_eq!(contents(&memory), cells);
                let mark = memory.mark();
                memory.write(place(b.0, b.1), Sym(3));
                memory.write(place(a.0, a.0 + 1), Sym(4));
                let mut after = cells.clone();
                (b.0..b.1).for_each(|i| after[i as usize] = Some(3));
                after[a.0 as usize] = Some(4);
                assert_eq!(contents(&memory), after);
                memory.undo(&mark);
                assert_eq!(contents(&memory), cells, "undo {a:?} {b:?}");
            }
        }
    }

    #[test]
    fn reports_the_first_bad_bytes() {
        let mut memory = Memory::new(1);
        memory.write(place(0, 8), Sym(1));
        memory.write(place(4, 6), Sym(2));
        let bad = memory.first_bad(place(0, 8), |s| s == Sym(1)).unwrap();
        assert_eq!(
            (bad.extent, bad.found),
            (Extent { start: 4, end: 6 }, Some(Sym(2)))
        );
        let bad = memory.first_bad(place(6, 12), |s| s == Sym(1)).unwrap();
        assert_eq!(
            (bad.extent, bad.found),
            (Extent { start: 8, end: 12 }, None)
        );
        assert!(memory.first_bad(place(9, 9), |_| false).is_none());
    }

    #[test]
    fn lists_what_was_written_merged() {
        let mut memory = Memory::new(2);
        let mark = memory.mark();
        memory.write(place(4, 8), Sym(1));
        memory.write(place(0, 4), Sym(2));
        memory.write(place(9, 10), Sym(3));
        let extents: Vec<_> = memory.written_since(&mark).iter().map(|w| w.0).collect();
        assert_eq!(extents, [place(0, 8), place(9, 10)]);
    }
}
