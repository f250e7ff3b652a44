//! The peak of live bytes of an order.

use smallvec::SmallVec;

use super::model::Region;

/// Bytes by memory space, in the order of `Model::spaces`.
pub(super) type Peaks = SmallVec<[u64; 4]>;

/// Replays `order` and gives the most bytes live at once in each space.
///
/// Operands and results of an instruction are live together, except a result that takes the bytes
/// of an operand that dies there. A result that must lie on an operand which is still needed costs its
/// bytes again: the copy. O(uses).
pub(super) fn measure(region: &Region, order: &[u32]) -> Peaks {
    let mut replay = Replay::new(region);
    for &instr in order {
        replay.step(instr);
    }
    replay.peaks
}

struct Replay<'a> {
    region: &'a Region,
    /// Instructions that still read a value; one more if it outlives the region.
    readers: Vec<u32>,
    /// Whether a value's bytes now belong to another.
    passed_on: Vec<bool>,
    live: Peaks,
    peaks: Peaks,
}

impl<'a> Replay<'a> {
    fn new(region: &'a Region) -> Self {
        let mut live = region.base.clone();
        for &v in &region.handed_in {
            let v = region.values[v as usize];
            live[v.space as usize] = live[v.space as usize].saturating_add(v.bytes);
        }
        let readers = (0..).zip(&region.values);
        Self {
            readers: readers
                .map(|(n, v)| region.users.row(n).len() as u32 + u32::from(v.outlives))
                .collect(),
            passed_on: vec![false; region.values.len()],
            peaks: live.clone(),
            live,
            region,
        }
    }

    fn step(&mut self, instr: u32) {
        let region = self.region;
        let uses = region.uses.row(instr);
        for &v in region.defines.row(instr) {
            let value = region.values[v as usize];
            let donor = region.donors.row(v).iter().copied().find(|&d| {
                let other = region.values[d as usize];
                self.readers[d as usize] == 1
                    && !self.passed_on[d as usize]
                    && other.space == value.space
                    && other.bytes >= value.bytes
                    && uses.binary_search(&d).is_ok()
            });
            match donor {
                Some(d) => {
                    self.passed_on[d as usize] = true;
                    // The rest of a larger donor is free afterwards.
                    let rest = region.values[d as usize].bytes - value.bytes;
                    self.live[value.space as usize] -= rest;
                }
                None => self.live[value.space as usize] += value.bytes,
            }
        }
        self.note_peak(instr);
        for &v in uses {
            self.readers[v as usize] -= 1;
            self.free_if_dead(v);
        }
        for &v in region.defines.row(instr) {
            self.free_if_dead(v);
        }
    }

    fn note_peak(&mut self, instr: u32) {
        let inner = &self.region.inner;
        let inner = inner
            .binary_search_by_key(&instr, |&(i, _)| i)
            .ok()
            .map(|at| &inner[at].1);
        for (space, (peak, &live)) in self.peaks.iter_mut().zip(&self.live).enumerate() {
            let more = inner.map_or(0, |i| i[space]);
            *peak = (*peak).max(live.saturating_add(more));
        }
    }

    fn free_if_dead(&mut self, v: u32) {
        let value = self.region.values[v as usize];
        if self.readers[v as usize] == 0 && !self.passed_on[v as usize] {
            self.live[value.space as usize] -= value.bytes;
        }
    }
}
