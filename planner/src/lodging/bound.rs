//! What the heap needs at its fullest moments, whatever is lodged where.
//!
//! At one moment an idle allocation holds no more than the best choice of what is live then and fits: a knapsack, solved
//! exactly where that is cheap. That one guest can't be in two allocations is left out of account, so the bound may be
//! lower than what can be reached.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Host, Lodging, MOMENTS_PER_BLOCK, holds, meetings, overlap};
use crate::interference::ClassId;
use crate::liveness::interval;

/// Moments at which the heap is bounded at least, if that many are full.
const FEW_MOMENTS: usize = 16;

/// Steps spent to bound the heap, before moments are no longer many, nor rooms filled exactly.
const BOUND_BUDGET: usize = 1 << 23;

impl Lodging<'_> {
    /// The most that the heap needs at any of the fullest moments, whatever is lodged where.
    pub(super) fn heap_bound(&self) -> u64 {
        let most = self.load.most().max(0) as u64;
        let (mut bound, mut steps) = (0, 0);
        for (n, (moment, load)) in self.full_moments().into_iter().enumerate() {
            let is_enough = n >= FEW_MOMENTS && steps > BOUND_BUDGET;
            if bound >= most || load <= bound || is_enough {
                break;
            }
            bound = bound.max(self.bound_at(moment, &mut steps));
        }
        bound
    }

    /// The moments of the fullest blocks, with the bytes then in use: the fullest first.
    fn full_moments(&self) -> Vec<(u32, u64)> {
        let block = |n: usize| {
            let start = n as u32 * MOMENTS_PER_BLOCK;
            interval(start, start + MOMENTS_PER_BLOCK)
        };
        let mut blocks: Vec<usize> = (0..self.live_in.len()).collect();
        blocks.sort_by_cached_key(|&n| Reverse(self.load.most_during(&[block(n)])));
        let ends = self.question.temps.iter();
        let ends = ends.filter_map(|&c| self.live(c).last());
        let end = ends.map(|r| r.end).max().unwrap_or(0);
        let moments = blocks.into_iter().take(FEW_MOMENTS);
        let mut moments: Vec<(u32, u64)> = moments
            .flat_map(|n| block(n).start..block(n).end.min(end))
            .map(|moment| (moment, self.load.at(moment).max(0) as u64))
            .collect();
        moments.sort_by_key(|&(moment, load)| (Reverse(load), moment));
        moments
    }

    /// Bytes in use at a moment, less what passes from operands to results then, less what the idle
    /// allocations could hold of what is live.
    fn bound_at(&self, moment: u32, steps: &mut usize) -> u64 {
        let here = |&&c: &&ClassId| self.size(c) > 0 && holds(self.live(c), moment);
        let live: Vec<ClassId> = self.question.temps.iter().filter(here).copied().collect();
        let all: i64 = live.iter().map(|&c| self.padded(c)).sum();
        let fits = |host: &Host, c: ClassId| {
            let size = self.size(c);
            let takes_over = size == host.size && self.is_pair(c, host.class);
            size <= host.size
                && self.is_candidate(c)
                && (takes_over || !overlap(self.live(host.class), self.live(c)))
        };
        // Neither the hosts hold more than fits into each, nor do the guests take more than they need.
        let step = self.question.alignment;
        let (mut rooms, mut is_guest) = (0, vec![false; live.len()]);
        let mut guests: Vec<u64> = Vec::new();
        *steps += self.question.temps.len() + self.hosts.len() * live.len();
        for host in &self.hosts {
            guests.clear();
            for (&c, is_guest) in live.iter().zip(&mut is_guest) {
                if fits(host, c) {
                    guests.push(self.size(c).div_ceil(step));
                    *is_guest = true;
                }
            }
            let room = host.size.div_ceil(step);
            let exact_steps = guests.len() * (room / 64 + 1) as usize;
            let filled = if *steps + exact_steps <= BOUND_BUDGET {
                *steps += exact_steps;
                fullest(&guests, room)
            } else {
                room.min(guests.iter().sum())
            };
            rooms += (filled * step) as i64;
        }
        let guests = live.iter().zip(is_guest).filter(|(_, is)| *is);
        let needed: i64 = guests.map(|(&c, _)| self.padded(c)).sum();
        (all - self.passed_on(&live, moment) - rooms.min(needed)).max(0) as u64
    }

    /// The most that can pass from operands to results at a moment: of each size, as many as there are of either.
    fn passed_on(&self, live: &[ClassId], moment: u32) -> i64 {
        let ends = |c: ClassId| self.live(c).iter().any(|r| r.end == moment + 1);
        let begins = |c: ClassId| self.live(c).iter().any(|r| r.start == moment);
        let partners = |c: ClassId| {
            let first = self.pairs.partition_point(|p| p.0 < c);
            self.pairs[first..]
                .iter()
                .take_while(move |p| p.0 == c)
                .map(|p| p.1)
        };
        let mut dying: BTreeMap<i64, i64> = BTreeMap::new();
        let mut born: BTreeMap<i64, i64> = BTreeMap::new();
        for &c in live {
            let meets =
                |other: ClassId| meetings(self.live(c), self.live(other)).any(|m| m == moment);
            if partners(c).any(|other| live.binary_search(&other).is_ok() && meets(other)) {
                *dying.entry(self.padded(c)).or_default() += i64::from(ends(c));
                *born.entry(self.padded(c)).or_default() += i64::from(begins(c));
            }
        }
        dying
            .iter()
            .map(|(size, &n)| size * n.min(born.get(size).copied().unwrap_or(0)))
            .sum()
    }
}

/// The largest sum of some of `sizes` that is at most `room`. O(sizes · room / 64).
fn fullest(sizes: &[u64], room: u64) -> u64 {
    let all: u64 = sizes.iter().sum();
    if all <= room {
        return all;
    }
    // Bit `n`: `n` is a sum.
    let mut sums = vec![0u64; (room / 64 + 1) as usize];
    sums[0] = 1;
    for &size in sizes.iter().filter(|&&size| size <= room) {
        let (words, bits) = ((size / 64) as usize, size % 64);
        for at in (words..sums.len()).rev() {
            let low = sums[at - words] << bits;
            let carried = at.checked_sub(words + 1).filter(|_| bits > 0);
            sums[at] |= low | carried.map_or(0, |below| sums[below] >> (64 - bits));
        }
    }
    (0..=room)
        .rev()
        .find(|&sum| sums[(sum / 64) as usize] >> (sum % 64) & 1 == 1)
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::fullest;
    use crate::random::Random;

    /// The largest sum of any choice, each tried.
    fn by_trying(sizes: &[u64], room: u64) -> u64 {
        let choices = 0..1u32 << sizes.len();
        let sum = |choice: u32| {
            let chosen = (0..sizes.len()).filter(|n| choice >> n & 1 == 1);
            chosen.map(|n| sizes[n]).sum::<u64>()
        };
        choices.map(sum).filter(|&sum| sum <= room).max().unwrap()
    }

    #[test]
    fn rooms_are_filled_as_far_as_sizes_allow() {
        assert_eq!(fullest(&[], 5), 0);
        assert_eq!(fullest(&[6], 5), 0);
        assert_eq!(fullest(&[1536, 1408, 428, 428, 1], 1620), 1537);
        assert_eq!(fullest(&[64, 64, 64], 128), 128);
        assert_eq!(fullest(&[65, 63], 127), 65);
        let mut random = Random(1);
        for n in 0..300 {
            let sizes: Vec<u64> = (0..=n % 9).map(|_| 1 + random.below(150)).collect();
            let room = n * 2;
            assert_eq!(
                fullest(&sizes, room),
                by_trying(&sizes, room),
                "{sizes:?} in {room}"
            );
        }
    }
}
