//! Which bytes are taken when: a segment tree over sections, whose nodes hold merged byte ranges.
//!
//! A placed part covers O(log n) nodes entirely; it is noted there, and in the summary of every node it touches. What
//! is taken during a stretch of sections is then the union of the summaries of the nodes that cover the stretch and of
//! the covers of their ancestors. Tight packings leave few gaps, so the merged ranges stay few; where they would not, as
//! between buffers of unequal alignments, the smallest gaps of a node are given up ([`thin`]). So every step costs
//! O(log sections), whatever is packed.

use super::model::{Model, Part};

/// Most ranges of one node, where nothing else is asked for.
pub(super) const MOST_RANGES: usize = 256;

/// Sorted, disjoint, non-touching byte ranges.
type Ranges = Vec<(u64, u64)>;

/// Bytes taken, by section.
pub(super) struct Occupancy {
    /// Leaves of the tree, a power of two.
    leaves: usize,
    /// What is taken somewhere; the first is nothing, and stands for that wherever nothing is.
    taken: Vec<Ranges>,
    /// By node: what is taken at some section under the node, in `taken`.
    summary: Vec<u32>,
    /// By node: what is taken at every section under the node, and not noted further up, in `taken`.
    cover: Vec<u32>,
    /// Most ranges of one node.
    most: usize,
    /// Some gaps were given up, so that what is noted as taken need not be.
    is_thinned: bool,
    /// Scratch: what of `taken` bears on a query, with the distance and size of the part that asks.
    lists: Vec<(u32, u64, u64)>,
}

impl Occupancy {
    pub(super) fn new(sections: u32) -> Self {
        Self::with_ranges(sections, MOST_RANGES)
    }

    /// [`Self::new`] with another limit to the ranges of one node: fewer cost less time, and more bytes.
    pub(super) fn with_ranges(sections: u32, most: usize) -> Self {
        let leaves = (sections.max(1) as usize).next_power_of_two();
        Self {
            leaves,
            taken: vec![Vec::new()],
            summary: vec![0; 2 * leaves],
            cover: vec![0; 2 * leaves],
            most,
            is_thinned: false,
            lists: Vec::new(),
        }
    }

    /// Marks the bytes of `unit` at `offset` as taken.
    pub(super) fn insert(&mut self, model: &Model, unit: u32, offset: u64) {
        for part in model.parts(unit) {
            let range = (offset + part.delta, offset + part.delta + part.size);
            let (mut low, mut high) = (
                part.begin as usize + self.leaves,
                part.end as usize + self.leaves,
            );
            let (first, last) = (low, high - 1);
            while low < high {
                if low & 1 == 1 {
                    self.take(low, range);
                    low += 1;
                }
                if high & 1 == 1 {
                    high -= 1;
                    self.take(high, range);
                }
                low >>= 1;
                high >>= 1;
            }
            self.note_above(first, (first, last), range);
            self.note_above(last, (first, last), range);
        }
    }

    /// Adds a range to a node that the part covers.
    fn take(&mut self, node: usize, range: (u64, u64)) {
        for slot in [&mut self.cover[node], &mut self.summary[node]] {
            let list = at_slot(&mut self.taken, slot);
            add(list, range);
            self.is_thinned |= thin(list, self.most);
        }
    }

    /// Adds a range to the summaries of those ancestors of a leaf that reach beyond the part's leaves.
    fn note_above(&mut self, leaf: usize, part: (usize, usize), range: (u64, u64)) {
        let (mut node, mut level) = (leaf >> 1, 1);
        while node >= 1 {
            let (first, last) = (node << level, (node << level) + (1 << level) - 1);
            let is_inside = part.0 <= first && last <= part.1;
            if !is_inside {
                let list = at_slot(&mut self.taken, &mut self.summary[node]);
                if !add(list, range) && !self.is_thinned {
                    // Taken before somewhere below this node, and so below every ancestor.
                    break;
                }
                self.is_thinned |= thin(list, self.most);
            }
            node >>= 1;
            level += 1;
        }
    }

    /// The lowest permitted offset, at least `from`, at which `unit` meets nothing that was inserted.
    pub(super) fn first_fit(&mut self, model: &Model, unit: u32, from: u64) -> u64 {
        self.gather(model.parts(unit));
        let residue = model.units[unit as usize].residue;
        let mut offset = residue.at_least(from);
        loop {
            let free = self.push_up(offset);
            if free == offset {
                return offset;
            }
            offset = residue.at_least(free);
        }
    }

    /// Whether nothing that was inserted meets `parts` of a unit at `offset`.
    pub(super) fn is_free(&mut self, parts: &[Part], offset: u64) -> bool {
        self.gather(parts);
        self.push_up(offset) == offset
    }

    /// Moves `offset` up past everything that a unit there would meet.
    fn push_up(&self, mut offset: u64) -> u64 {
        let mut settled = 0;
        let mut at = 0;
        while settled < self.lists.len() {
            let (list, delta, size) = self.lists[at];
            let list = &self.taken[list as usize];
            let start = offset + delta;
            let index = list.partition_point(|range| range.1 <= start);
            let mut free = start;
            for &(low, high) in &list[index..] {
                if low >= free + size {
                    break;
                }
                free = high;
            }
            if free > start {
                offset = free - delta;
                settled = 0;
            }
            settled += 1;
            at = if at + 1 == self.lists.len() {
                0
            } else {
                at + 1
            };
        }
        offset
    }

    /// Bytes from `offset` up to the first one taken, or `u64::MAX` when there is none above. `offset` must be free for
    /// the unit of the last query.
    fn room(&self, offset: u64) -> u64 {
        let mut room = u64::MAX;
        for &(list, delta, _) in &self.lists {
            let list = &self.taken[list as usize];
            let start = offset + delta;
            let index = list.partition_point(|range| range.1 <= start);
            if let Some(&(low, _)) = list.get(index) {
                room = room.min(low - start);
            }
        }
        room
    }

    /// The offset whose gap leaves the least room above the unit; gaps end at `ceiling`.
    pub(super) fn best_fit(&mut self, model: &Model, unit: u32, ceiling: u64) -> u64 {
        let mut offset = self.first_fit(model, unit, 0);
        let (mut best, mut least) = (offset, u64::MAX);
        let residue = model.units[unit as usize].residue;
        let height = model.units[unit as usize].height;
        loop {
            let room = self.room(offset);
            if room == u64::MAX {
                let is_better =
                    least == u64::MAX || (offset + height <= ceiling && ceiling - offset < least);
                return if is_better { offset } else { best };
            }
            if room < least {
                (best, least) = (offset, room);
            }
            let mut next = residue.at_least(offset + room.max(1));
            loop {
                let free = self.push_up(next);
                if free == next {
                    break;
                }
                next = residue.at_least(free);
            }
            offset = next;
        }
    }

    /// Collects the lists that bear on a unit of the given parts.
    fn gather(&mut self, parts: &[Part]) {
        self.lists.clear();
        for part in parts {
            let (mut low, mut high) = (
                part.begin as usize + self.leaves,
                part.end as usize + self.leaves,
            );
            let (first, last) = (low, high - 1);
            let lists = &mut self.lists;
            let mut push = |list: u32| {
                if list != 0 {
                    lists.push((list, part.delta, part.size));
                }
            };
            while low < high {
                if low & 1 == 1 {
                    push(self.summary[low]);
                    low += 1;
                }
                if high & 1 == 1 {
                    high -= 1;
                    push(self.summary[high]);
                }
                low >>= 1;
                high >>= 1;
            }
            let (mut left, mut right) = (first >> 1, last >> 1);
            while right >= 1 {
                if left != right && left >= 1 {
                    push(self.cover[left]);
                }
                push(self.cover[right]);
                left >>= 1;
                right >>= 1;
            }
        }
    }
}

/// The list of a node, which gets one of its own with the first range.
fn at_slot<'a>(taken: &'a mut Vec<Ranges>, slot: &mut u32) -> &'a mut Ranges {
    if *slot == 0 {
        *slot = taken.len() as u32;
        taken.push(Vec::new());
    }
    &mut taken[*slot as usize]
}

/// Adds a range to a list; false when it was there already.
fn add(list: &mut Ranges, (low, high): (u64, u64)) -> bool {
    let first = list.partition_point(|range| range.1 < low);
    let Some(&(other_low, other_high)) = list.get(first).filter(|range| range.0 <= high) else {
        list.insert(first, (low, high));
        return true;
    };
    if other_low <= low && high <= other_high {
        return false;
    }
    let mut last = first + 1;
    while last < list.len() && list[last].0 <= high {
        last += 1;
    }
    list[first] = (low.min(other_low), high.max(list[last - 1].1));
    list.drain(first + 1..last);
    true
}

/// Gives up the smallest gaps of a list of more than `most` ranges, all but half as many; false when it has not so
/// many. O(1) for each range added.
fn thin(list: &mut Ranges, most: usize) -> bool {
    if list.len() <= most {
        return false;
    }
    let kept = most / 2;
    let gap = |pair: &[(u64, u64)]| pair[1].0 - pair[0].1;
    let mut gaps: Vec<u64> = list.windows(2).map(gap).collect();
    let dropped = gaps.len() - kept;
    let (_, &mut least, larger) = gaps.select_nth_unstable(dropped);
    // Of those that are as small as the smallest kept, the lowest stay.
    let mut alike = kept - larger.iter().filter(|&&it| it > least).count();
    list.dedup_by(|next, it| {
        let gap = next.0 - it.1;
        let is_kept = gap > least || (gap == least && alike > 0);
        if is_kept {
            alike -= usize::from(gap == least);
        } else {
            it.1 = next.1;
        }
        !is_kept
    });
    true
}

#[cfg(test)]
mod tests {
    use super::{MOST_RANGES, Occupancy};
    use crate::pack::model::Model;
    use crate::pack::problem::{Buffer, Problem};
    use crate::pack::validate::validate;

    /// Rows within each other, whose alignment leaves a gap above nearly every one.
    #[test]
    fn gaps_stay_few() {
        let rows = 3_000;
        let buffers = (0..rows).map(|id| Buffer {
            alignment: [1, 64, 512][id as usize % 3],
            ..Buffer::new(id, id, 2 * rows - id, 10_001 + id * 7_919 % 5_000)
        });
        let problem = Problem {
            buffers: buffers.collect(),
            ..Problem::default()
        };
        let model = Model::new(&problem, &[]).expect("sound");
        let mut occupancy = Occupancy::new(model.sections);
        let mut offsets = Vec::new();
        for unit in 0..model.units.len() as u32 {
            let offset = occupancy.first_fit(&model, unit, 0);
            occupancy.insert(&model, unit, offset);
            offsets.push(offset);
        }
        let offsets = model.buffer_offsets(&offsets);
        let height = validate(&problem, &offsets).expect("no two meet");
        let load: u64 = problem.buffers.iter().map(|it| it.size).sum();
        assert!(height - load <= load / 50, "{height} of {load}");
        let longest = occupancy.taken.iter().map(Vec::len).max();
        assert!(occupancy.is_thinned && longest <= Some(MOST_RANGES));
    }
}
