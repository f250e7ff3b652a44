//! Which may-share pairs to use: a pair that is used becomes one unit, live whenever either member is.
//!
//! Sharing lowers the load wherever the two are live together, so every pair is taken that can be, in the order of
//! time, as long as the members of a unit that are live together are all pairs.

use super::problem::{Live, Problem};
use petgraph::unionfind::UnionFind;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Members of one unit by first start: index and end of the hull of the live spans.
type Chain = BTreeMap<(u64, u32), u64>;

/// Chooses pairs to put at one offset, greedily. O(pairs log n), small chains being poured into large ones.
pub(super) fn choose(problem: &Problem) -> Vec<(u32, u32)> {
    let pairs: FxHashSet<(u32, u32)> = problem
        .may_share
        .iter()
        .flat_map(|&(a, b)| [(a, b), (b, a)])
        .collect();
    let mut chains = Chains::new(problem);
    let mut unruly = vec![false; problem.buffers.len()];
    for group in tied_groups(problem) {
        if !chains.gather(&group) {
            for &member in &group {
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

/// The buffers that ties hold together, by lowest index, each list ascending. O(n log n).
fn tied_groups(problem: &Problem) -> Vec<Vec<u32>> {
    if problem.ties.is_empty() {
        return Vec::new();
    }
    let mut sets = UnionFind::<u32>::new(problem.buffers.len());
    for tie in &problem.ties {
        sets.union(tie.base, tie.member);
    }
    let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for buffer in 0..problem.buffers.len() as u32 {
        groups.entry(sets.find(buffer)).or_default().push(buffer);
    }
    let mut groups: Vec<Vec<u32>> = groups.into_values().filter(|g| g.len() > 1).collect();
    groups.sort_unstable();
    groups
}

struct Chains {
    /// Chain of each buffer.
    of: Vec<u32>,
    chains: Vec<Chain>,
    /// Whether a chain holds buffers at fixed distances.
    has_ties: Vec<bool>,
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
            chains,
            has_ties: vec![false; problem.buffers.len()],
        }
    }

    /// Makes one chain of buffers that ties hold together; false where their spans nest, so that no chain
    /// can hold them. They lie side by side, so that those that are live together need be no pairs.
    fn gather(&mut self, group: &[u32]) -> bool {
        let mut chain = Chain::new();
        for &member in group {
            chain.extend(&self.chains[member as usize]);
        }
        if !chain.values().is_sorted() {
            return false;
        }
        for &member in group {
            self.of[member as usize] = group[0];
            self.chains[member as usize].clear();
        }
        self.chains[group[0] as usize] = chain;
        self.has_ties[group[0] as usize] = true;
        true
    }

    /// Joins the chains of two buffers unless some members that are live together are not a pair.
    fn join(&mut self, problem: &Problem, pairs: &FxHashSet<(u32, u32)>, a: u32, b: u32) -> bool {
        let (mut small, mut large) = (self.of[a as usize], self.of[b as usize]);
        if small == large {
            // Members of a tied group lie at distances of their own.
            return !self.has_ties[small as usize];
        }
        if self.chains[small as usize].len() > self.chains[large as usize].len() {
            std::mem::swap(&mut small, &mut large);
        }
        let fits = self.chains[small as usize]
            .iter()
            .all(|(&(start, member), &end)| {
                fits(&self.chains[large as usize], member, start, end, |other| {
                    pairs.contains(&(member, other))
                        || !problem.buffers[member as usize]
                            .overlaps_in_time(&problem.buffers[other as usize])
                })
            });
        if fits {
            for (key, end) in std::mem::take(&mut self.chains[small as usize]) {
                self.of[key.1 as usize] = large;
                self.chains[large as usize].insert(key, end);
            }
            self.has_ties[large as usize] |= self.has_ties[small as usize];
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
