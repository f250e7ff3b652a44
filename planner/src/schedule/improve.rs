//! Lowers the peak of an order step by step.
//!
//! At the peak, the least cut says which downset should have run when that instruction runs; the order is
//! split there (what is in the downset, the instruction, the rest, each in its old order) and settled: frees as early,
//! definitions as late as the new peak allows. Where that does not help, the instructions around the peak are searched
//! anew. If the cut is as high as the peak, no order is better.

use super::cut::{Place, least, places};
use super::graph::{Backwards, Forwards, Graph, Walk};
use super::greedy::{self, Prefer, ranks};
use super::search::{Found, within};

/// Cuts by which one order is split.
const MAX_BARRIERS: usize = 256;

/// What a round of [`improve`] costs, in cuts: one, and four orders that are made and replayed.
const ROUND: usize = 8;

/// What a further split costs, in cuts.
const BARRIER: usize = 3;

/// Places before and after the peak that are searched anew, one after the other.
const REACHES: [usize; 7] = [8, 16, 32, 64, 128, 256, 1024];

/// Downsets that one search may look at, at most.
const MAX_DOWNSETS: usize = 20_000;

/// How much work may be done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Cuts, and replays of an order that go with them.
    pub(super) rounds: usize,
    /// Downsets that searches may look at in all.
    pub(super) downsets: usize,
    /// Graphs that may be looked at with precedences added.
    pub(super) branches: usize,
}

impl Work {
    /// Whether nothing more can be done.
    pub(super) fn is_spent(&self) -> bool {
        self.rounds == 0 || self.branches == 0
    }
}

/// How good an order is, the lower the better: its peak, and how many steps reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Score {
    pub(super) peak: u64,
    pub(super) steps: usize,
}

pub(super) fn score(graph: &Graph, order: &[u32]) -> Score {
    let profile = graph.profile(order);
    let peak = profile
        .iter()
        .map(|s| s.during)
        .max()
        .unwrap_or(0)
        .max(graph.start);
    Score {
        peak,
        steps: profile.iter().filter(|s| s.during == peak).count(),
    }
}

/// Settles `order`: see [`greedy`]. Never raises the peak.
pub(super) fn settle(graph: &Graph, order: &[u32], allowed: u64) -> Vec<u32> {
    let mut back = greedy::order(
        Backwards::new(graph),
        &reversed_ranks(order),
        Prefer::Place,
        allowed,
    );
    back.reverse();
    greedy::order(Forwards::new(graph), &ranks(&back), Prefer::Place, allowed)
}

fn reversed_ranks(order: &[u32]) -> Vec<u32> {
    let n = order.len() as u32;
    ranks(order).into_iter().map(|r| n - 1 - r).collect()
}

/// Improves `order` until it needs no more than `goal`, it is proved best, or the budget is spent; gives whether it is proved.
pub(super) fn improve(
    graph: &Graph,
    order: Vec<u32>,
    goal: u64,
    work: &mut Work,
) -> (Vec<u32>, bool) {
    let mut best = order;
    let mut now = score(graph, &best);
    while now.peak > goal && work.rounds > 0 {
        work.rounds = work.rounds.saturating_sub(ROUND);
        let profile = graph.profile(&best);
        let Some(at) = profile.iter().position(|s| s.during == now.peak) else {
            // Most is live before anything runs.
            return (best, true);
        };
        let i = best[at];
        let cut = least(graph, i, &places(graph, i));
        if cut.bytes >= now.peak {
            return (best, true);
        }
        let limit = now.peak - 1;
        let mut trials: Vec<Vec<u32>> = Vec::new();
        for downset in &cut.downsets {
            let split = split(&best, i, downset);
            trials.push(settle(graph, &split, limit));
            trials.push(split);
        }
        let mut better = better_of(graph, trials, now);
        if better.is_none() {
            better = better_of(
                graph,
                vec![refine(graph, &best, limit, &mut work.rounds).order],
                now,
            );
        }
        if better.is_none() {
            let found = search_around(graph, &best, at, limit, &mut work.downsets);
            better = better_of(graph, found.into_iter().collect(), now);
        }
        let Some((s, order)) = better else { break };
        (now, best) = (s, order);
    }
    (best, false)
}

/// The best of `trials`, if it is better than `now`.
fn better_of(graph: &Graph, trials: Vec<Vec<u32>>, now: Score) -> Option<(Score, Vec<u32>)> {
    let scored = trials
        .into_iter()
        .map(|order| (score(graph, &order), order));
    scored.min_by_key(|t| t.0).filter(|t| t.0 < now)
}

/// `order` with `i` between what is in `downset` and the rest.
fn split(order: &[u32], i: u32, downset: &[bool]) -> Vec<u32> {
    let (mut before, after): (Vec<u32>, Vec<u32>) =
        order.iter().partition(|&&k| downset[k as usize]);
    before.push(i);
    before.extend(after.into_iter().filter(|&k| k != i));
    before
}

/// An order that was split at the cuts of all steps above a limit, as far as that went.
pub(super) struct Refined {
    pub(super) order: Vec<u32>,
    /// Where it ended above the limit: two instructions whose cuts contradict each other and either of which may come
    /// first.
    pub(super) conflict: Option<(u32, u32)>,
}

/// Splits `order` at the least cut of each step above `limit`, one after the other, each within the previous ones.
///
/// Cuts of instructions that must come one after the other can be chosen one inside the other, as they are least. So if one
/// is too high because of earlier splits, some of these were at instructions that need not come in this order.
pub(super) fn refine(graph: &Graph, order: &[u32], limit: u64, rounds: &mut usize) -> Refined {
    let mut order = order.to_vec();
    // Instructions at which the order is split: nothing crosses them any more.
    let mut barriers: Vec<u32> = Vec::new();
    let mut conflict = None;
    for _ in 0..MAX_BARRIERS {
        if *rounds == 0 {
            break;
        }
        *rounds = rounds.saturating_sub(BARRIER);
        let profile = graph.profile(&order);
        let above = (0..order.len())
            .filter(|&k| profile[k].during > limit && !barriers.contains(&order[k]));
        let Some(at) = above.max_by_key(|&k| (profile[k].during, std::cmp::Reverse(k))) else {
            break;
        };
        let i = order[at];
        let free = places(graph, i);
        let low = order[..at].iter().rposition(|k| barriers.contains(k));
        let high = order[at..].iter().position(|k| barriers.contains(k));
        let high = high.map_or(order.len(), |k| k + at);
        let mut places = free.clone();
        for &k in &order[..low.map_or(0, |k| k + 1)] {
            places[k as usize] = Place::Before;
        }
        for &k in &order[high..] {
            places[k as usize] = Place::After;
        }
        let cut = least(graph, i, &places);
        if cut.bytes > limit {
            let near = low.into_iter().chain((high < order.len()).then_some(high));
            let near = near.map(|k| order[k]).chain(barriers.iter().rev().copied());
            let mut either = near.filter(|&b| free[b as usize] == Place::Free);
            conflict = either.next().map(|b| (b, i));
            break;
        }
        let splits = cut.downsets.iter().map(|d| split(&order, i, d));
        let best = splits.min_by_key(|order| score(graph, order));
        order = best.expect("a cut has two downsets");
        barriers.push(i);
    }
    Refined {
        order: settle(graph, &order, limit),
        conflict,
    }
}

/// Searches windows around place `at` for an order within `limit`.
fn search_around(
    graph: &Graph,
    order: &[u32],
    at: usize,
    limit: u64,
    budget: &mut usize,
) -> Option<Vec<u32>> {
    let rank = ranks(order);
    let n = order.len();
    for reach in REACHES {
        let (start, end) = (at.saturating_sub(reach), (at + reach).min(n));
        // The peak of a window that holds other steps above the limit can't be lowered without them.
        let mut walk = Forwards::new(graph);
        for &i in &order[..start] {
            walk.run(i);
        }
        let mut share = (*budget / 4).min(MAX_DOWNSETS);
        *budget -= share;
        let found = within(&mut walk, &order[start..end], &rank, limit, &mut share);
        *budget += share;
        if let Found::Order(window) = found {
            let mut new = order[..start].to_vec();
            new.extend(window);
            new.extend_from_slice(&order[end..]);
            return Some(new);
        }
        if start == 0 && end == n {
            break;
        }
    }
    None
}
