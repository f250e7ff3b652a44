//! Which may-share pairs to use: a pair that is used becomes one unit, live whenever either member is.
//!
//! Sharing lowers the load wherever the two are live together, so every pair is taken that can be, in the order of
//! time, as long as the members of a unit that are live together are all pairs.

use super::problem::{Live, Problem};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Members of one unit by first start: index and end of the hull of the live spans.
type Chain = BTreeMap<(u64, u32), u64>;

/// Chooses pairs to put at one offset, greedily. O(pairs log n), small chains being poured into large ones.
pub(super) fn choose(problem: &Problem) -> Vec<(u32, u32)> {
    let size = |buffer: u32| problem.buffers[buffer as usize].size;
    let pairs: FxHashSet<(u32, u32)> = problem
        .may_share
        .iter()
        .filter(|&&(a, b)| size(a) == size(b))
        .flat_map(|&(a, b)| [(a, b), (b, a)])
        .collect();
    let mut chains = Chains::new(problem);
    let mut unruly = vec![false; problem.buffers.len()];
    for group in tied_groups(problem) {
        if !chains.gather(&group) {
            for (member, _) in group {
                unruly[member as usize] = true;
            }
        }
    }
    let mut order: Vec<(u64, u64, u32, u32)> = Vec::with_capacity(problem.may_share.len());
    for &(a, b) in &problem.may_share {
        let (first, second) = (&problem.buffers[a as usize], &problem.buffers[b as usize]);
        let eligible = first.size == second.size
            && first.size > 0
            && !unruly[a as usize]
            && !unruly[b as usize];
        // Two fixed offsets decide by themselves; one fixed offset might carry its partner into another fixed buffer.
        let is_free = first.fixed.is_none() && second.fixed.is_none();
        if a != b && eligible && is_free && first.overlaps_in_time(second) {
            let meeting = start(&first.live).max(start(&second.live));
            order.push((u64::MAX - first.size, meeting, a.min(b), a.max(b)));
        }
    }
    // Large sizes first; among equals the earliest meeting, then the ids, so that row order does not matter.
    order.sort_by_key(|&(size, meeting, a, b)| {
        let ids = (
            problem.buffers[a as usize].id,
            problem.buffers[b as usize].id,
        );
        (size, meeting, ids.0.min(ids.1), ids.0.max(ids.1), a, b)
    });
    order.dedup();
    order.retain(|&(_, _, a, b)| chains.join(problem, &pairs, a, b));
    order.into_iter().map(|(_, _, a, b)| (a, b)).collect()
}

fn start(live: &Live) -> u64 {
    live.first().map_or(0, |span| span.start)
}

/// The buffers that ties hold together, each with its distance from the first, which has the lowest index.
/// O(n + ties log ties).
fn tied_groups(problem: &Problem) -> Vec<Vec<(u32, i64)>> {
    let mut partners: BTreeMap<u32, Vec<(u32, i64)>> = BTreeMap::new();
    for tie in &problem.ties {
        let (base, member) = (tie.base, tie.member);
        partners
            .entry(base)
            .or_default()
            .push((member, tie.distance));
        partners
            .entry(member)
            .or_default()
            .push((base, -tie.distance));
    }
    let mut groups = Vec::new();
    let mut seen = FxHashSet::default();
    for &first in partners.keys() {
        if !seen.insert(first) {
            continue;
        }
        let mut group = vec![(first, 0)];
        let mut next = 0;
        while let Some(&(buffer, at)) = group.get(next) {
            next += 1;
            for &(other, distance) in &partners[&buffer] {
                if seen.insert(other) {
                    group.push((other, at + distance));
                }
            }
        }
        groups.push(group);
    }
    groups
}

struct Chains {
    /// Chain of each buffer.
    of: Vec<u32>,
    /// Distance of each buffer from its chain's offset; ties alone make it other than zero.
    distance: Vec<i64>,
    members: Vec<Chain>,
}

impl Chains {
    fn new(problem: &Problem) -> Self {
        let hull = |(index, live): (u32, &Live)| {
            Chain::from([((start(live), index), live.last().map_or(0, |span| span.end))])
        };
        let chains = (0..)
            .zip(problem.buffers.iter().map(|it| &it.live))
            .map(hull)
            .collect();
        Self {
            of: (0..problem.buffers.len() as u32).collect(),
            distance: vec![0; problem.buffers.len()],
            members: chains,
        }
    }

    /// Makes one chain of buffers that ties hold together; false where their spans nest, so that no chain
    /// can hold them. Where they lie is settled, so that those that are live together need be no pairs.
    fn gather(&mut self, group: &[(u32, i64)]) -> bool {
        let mut chain = Chain::new();
        for &(member, _) in group {
            chain.extend(&self.members[member as usize]);
        }
        if !chain.values().is_sorted() {
            return false;
        }
        let into = group[0].0;
        for &(member, distance) in group {
            self.of[member as usize] = into;
            self.distance[member as usize] = distance;
            self.members[member as usize].clear();
        }
        self.members[into as usize] = chain;
        true
    }

    /// Joins the chains of two buffers, which then have one offset, unless that would bring members together that
    /// are live together, and are no pair or would lie apart.
    fn join(&mut self, problem: &Problem, pairs: &FxHashSet<(u32, u32)>, a: u32, b: u32) -> bool {
        let (mut small, mut large) = (self.of[a as usize], self.of[b as usize]);
        let mut shift = self.distance[b as usize] - self.distance[a as usize];
        if small == large {
            return shift == 0;
        }
        if self.members[small as usize].len() > self.members[large as usize].len() {
            std::mem::swap(&mut small, &mut large);
            shift = -shift;
        }
        let fits = self.members[small as usize]
            .iter()
            .all(|(&(start, member), &end)| {
                fits(&self.members[large as usize], member, start, end, |other| {
                    let at = self.distance[member as usize] + shift;
                    (pairs.contains(&(member, other)) && at == self.distance[other as usize])
                        || !problem.buffers[member as usize]
                            .overlaps_in_time(&problem.buffers[other as usize])
                })
            });
        if fits {
            for (key, end) in std::mem::take(&mut self.members[small as usize]) {
                self.of[key.1 as usize] = large;
                self.distance[key.1 as usize] += shift;
                self.members[large as usize].insert(key, end);
            }
        }
        fits
    }
}

/// True when every member of the chain whose hull overlaps `[start, end)` is agreeable, and starts and ends remain in the
/// same order (hulls that nest are refused: they are rare, and without them the look back is short).
fn fits(chain: &Chain, member: u32, start: u64, end: u64, agreeable: impl Fn(u32) -> bool) -> bool {
    let key = (start, member);
    if chain
        .range(key..)
        .next()
        .is_some_and(|(_, &other_end)| other_end < end)
        || chain
            .range(..key)
            .next_back()
            .is_some_and(|(_, &other_end)| other_end > end)
    {
        return false;
    }
    let before_end = chain.range(..(end, 0)).rev();
    before_end
        .take_while(|&(_, &other_end)| other_end > start)
        .all(|(&(_, other), _)| agreeable(other))
}
