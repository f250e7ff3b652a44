//! List scheduling in either direction, and moves that can't do harm.
//!
//! A step is *safe* if it needs no more than what is allowed and the level after it is no higher. Levels
//! are submodular over downsets (a larger downset makes a step's effect on the level no worse), so that whatever order is
//! best from here, it stays as good if the safe step comes first. Forwards that means: free as soon as
//! possible; backwards: make as late as possible.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::graph::Walk;

/// What a list schedule prefers among the steps that are not safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prefer {
    /// The place in a given order.
    Place,
    /// The lowest level after the step.
    Level,
}

/// Orders the graph from the end that `walk` starts from, safe steps within `allowed` bytes first; reversed if
/// the walk goes backwards. `rank` is the order that is followed, or decides ties.
pub(super) fn order<'a>(
    mut walk: impl Walk<'a>,
    rank: &[u32],
    prefer: Prefer,
    allowed: u64,
) -> Vec<u32> {
    let n = walk.graph().len() as usize;
    let (before, after) = walk.edges();
    let mut waiting: Vec<u32> = (0..n as u32).map(|i| before.row(i).len() as u32).collect();
    let mut done = vec![false; n];
    let mut order = Vec::with_capacity(n);
    // Ready steps by preference, and those to be looked at whether they are safe.
    let mut heap: BinaryHeap<Reverse<(i128, u32, u32)>> = BinaryHeap::new();
    let mut fresh: Vec<u32> = (0..n as u32)
        .filter(|&i| waiting[i as usize] == 0)
        .collect();
    let gain = |walk: &dyn Walk<'a>, i: u32| match prefer {
        Prefer::Place => 0,
        Prefer::Level => i128::from(walk.step(i).after) - i128::from(walk.level()),
    };
    for &i in &fresh {
        heap.push(Reverse((gain(&walk, i), rank[i as usize], i)));
    }
    fresh.sort_unstable_by_key(|&i| Reverse(rank[i as usize]));
    let mut touched = Vec::new();
    while order.len() < n {
        let next = if let Some(i) = fresh.pop() {
            if done[i as usize] || waiting[i as usize] > 0 {
                continue;
            }
            let step = walk.step(i);
            if step.after > walk.level() || step.during > allowed.max(walk.level()) {
                continue;
            }
            i
        } else {
            let Some(Reverse((was, _, i))) = heap.pop() else {
                break;
            };
            if done[i as usize] || was != gain(&walk, i) {
                continue;
            }
            i
        };
        walk.run(next);
        done[next as usize] = true;
        order.push(next);
        touched.clear();
        walk.touched(next, &mut |u| touched.push(u));
        for &s in after.row(next) {
            waiting[s as usize] -= 1;
            touched.push(s);
        }
        touched.sort_unstable_by_key(|&u| (Reverse(rank[u as usize]), u));
        touched.dedup();
        for &u in &touched {
            if !done[u as usize] && waiting[u as usize] == 0 {
                fresh.push(u);
                heap.push(Reverse((gain(&walk, u), rank[u as usize], u)));
            }
        }
    }
    order
}

/// The place of each instruction in `order`.
pub(super) fn ranks(order: &[u32]) -> Vec<u32> {
    let mut rank = vec![0; order.len()];
    for (place, &i) in (0..).zip(order) {
        rank[i as usize] = place;
    }
    rank
}
