//! Which of two instructions comes first? Both answers are tried where one instruction's cut says too little.
//!
//! An order that is not within a limit has a step `i` above it. If the least cut at `i` is within the limit, the order
//! is split there; what then is above the limit is another step `j`, and in every order either `i` comes before `j` or after.
//! With that precedence added, cuts are higher and orders better. If both ways end with a cut above the
//! limit, no order is within it.

use super::graph::{Forwards, Graph};
use super::greedy::{self, Prefer, ranks};
use super::improve::{Work, improve, refine};

/// How a question ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// An order within the limit.
    Order(Vec<u32>),
    /// There is none.
    None,
    /// The work was used up.
    Unknown,
}

/// Whether there is an order of `graph` that needs at most `limit` bytes; `order` is any order.
pub(super) fn within(graph: &Graph, order: &[u32], limit: u64, work: &mut Work) -> Answer {
    // The first branch is searched to its end before the second: a stack of graphs to look at.
    let mut open = vec![(graph.clone(), order.to_vec())];
    while let Some((graph, order)) = open.pop() {
        if work.is_spent() {
            return Answer::Unknown;
        }
        work.branches -= 1;
        let (order, proved) = improve(&graph, order, limit, work);
        let profile = graph.profile(&order);
        let Some(at) = (0..order.len()).max_by_key(|&k| (profile[k].during, std::cmp::Reverse(k)))
        else {
            return Answer::Order(order);
        };
        if profile[at].during <= limit {
            return if graph.start > limit {
                Answer::None
            } else {
                Answer::Order(order)
            };
        }
        if proved {
            continue;
        }
        let refined = refine(&graph, &order, limit, &mut work.rounds);
        let Some((i, j)) = refined.conflict else {
            return Answer::Unknown;
        };
        for (first, second) in [(i, j), (j, i)] {
            let mut next = graph.clone();
            next.add_precedence(first, second);
            let order = greedy::order(Forwards::new(&next), &ranks(&order), Prefer::Place, 0);
            open.push((next, order));
        }
    }
    Answer::None
}
