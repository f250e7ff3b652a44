//! Exhaustive search with bounds, for small cores.

use super::energy::{Energy, argmin};

/// The cheapest labelling, or nothing if that takes more than `steps` labels tried.
///
/// Depth first in node order. A partial labelling is given up where its cost and the least that
/// each node still open can add reach the best so far; that least counts the node's own cost
/// given its labelled neighbours. Deterministic, and bounded by steps, not by time.
pub(super) fn exhaustive(energy: &Energy, start: &[usize], steps: u64) -> Option<Vec<usize>> {
    let mut search = Search {
        energy,
        edges_to: vec![Vec::new(); energy.len()],
        // Cost of every label given the labelled neighbours, by depth of the search.
        costs: energy.unary.clone(),
        labels: vec![0; energy.len()],
        best: start.to_vec(),
        best_cost: energy.cost(start),
        steps,
    };
    for (e, edge) in energy.edges.iter().enumerate() {
        let (low, first_is_low) = (edge.a.min(edge.b), edge.a < edge.b);
        search.edges_to[low as usize].push((e as u32, first_is_low));
    }
    search.descend(0, 0)?;
    Some(search.best)
}

struct Search<'a> {
    energy: &'a Energy,
    /// Edges from a node to later ones, and whether the node is the first end.
    edges_to: Vec<Vec<(u32, bool)>>,
    costs: Vec<Vec<u64>>,
    labels: Vec<usize>,
    best: Vec<usize>,
    best_cost: u64,
    steps: u64,
}

/// Deeper cores are left to the improvement; it also bounds the stack.
const MAX_NODES: usize = 64;

impl Search<'_> {
    fn descend(&mut self, node: usize, cost: u64) -> Option<()> {
        if self.energy.len() > MAX_NODES {
            return None;
        }
        if node == self.energy.len() {
            if cost < self.best_cost {
                self.best_cost = cost;
                self.best.clone_from(&self.labels);
            }
            return Some(());
        }
        for label in 0..self.energy.unary[node].len() {
            self.steps = self.steps.checked_sub(1)?;
            let here = cost.saturating_add(self.costs[node][label]);
            let saved = self.charge(node, label);
            let rest = self.costs[node + 1..]
                .iter()
                .map(|c| argmin(c.iter().copied()).1)
                .fold(0, u64::saturating_add);
            self.labels[node] = label;
            let done = if here.saturating_add(rest) < self.best_cost {
                self.descend(node + 1, here)
            } else {
                Some(())
            };
            for (later, costs) in saved.into_iter().rev() {
                self.costs[later] = costs;
            }
            done?;
        }
        Some(())
    }

    /// Adds to later nodes what `label` of `node` costs them; returns their costs before.
    fn charge(&mut self, node: usize, label: usize) -> Vec<(usize, Vec<u64>)> {
        let mut saved = Vec::new();
        for &(e, first) in &self.edges_to[node] {
            let edge = &self.energy.edges[e as usize];
            let later = if first { edge.b } else { edge.a } as usize;
            saved.push((later, self.costs[later].clone()));
            for (l, c) in self.costs[later].iter_mut().enumerate() {
                *c = c.saturating_add(if first {
                    edge.costs.at(label, l)
                } else {
                    edge.costs.at(l, label)
                });
            }
        }
        saved
    }
}
