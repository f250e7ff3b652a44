//! Good labels for cores too large for exhaustive search.
//!
//! Two starts are improved label by label until nothing gets better: the one handed in, and that
//! of min-sum message passing (loopy belief propagation, damped by half), which sees further than
//! one node. The better one wins.

use super::energy::{Energy, argmin};

/// Neighbour lists of a problem.
struct Neighbours<'a> {
    energy: &'a Energy,
    /// For every node: (edge, whether the node is its first end).
    at: Vec<Vec<(u32, bool)>>,
}

/// A labelling at most as costly as `start`. O(rounds · edges · labels²).
pub(crate) fn improve(energy: &Energy, start: &[usize], rounds: u32) -> Vec<usize> {
    let graph = Neighbours::new(energy);
    let mut best = start.to_vec();
    graph.descend(&mut best, rounds);
    let mut other = graph.propagate(rounds);
    graph.descend(&mut other, rounds);
    if energy.cost(&other) < energy.cost(&best) {
        best = other;
    }
    best
}

impl<'a> Neighbours<'a> {
    fn new(energy: &'a Energy) -> Self {
        let mut at = vec![Vec::new(); energy.len()];
        for (e, edge) in energy.edges.iter().enumerate() {
            at[edge.a as usize].push((e as u32, true));
            at[edge.b as usize].push((e as u32, false));
        }
        Self { energy, at }
    }

    /// Gives every node its best label in turn, until none changes.
    fn descend(&self, labels: &mut [usize], rounds: u32) {
        for _ in 0..rounds {
            let mut changed = false;
            for node in 0..labels.len() {
                let costs =
                    (0..self.energy.unary[node].len()).map(|l| self.cost_of(node, l, labels));
                let (best, cost) = argmin(costs);
                if cost < self.cost_of(node, labels[node], labels) {
                    labels[node] = best;
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    fn cost_of(&self, node: usize, label: usize, labels: &[usize]) -> u64 {
        self.at[node]
            .iter()
            .fold(self.energy.unary[node][label], |sum, &(e, first)| {
                let edge = &self.energy.edges[e as usize];
                sum.saturating_add(if first {
                    edge.costs.at(label, labels[edge.b as usize])
                } else {
                    edge.costs.at(labels[edge.a as usize], label)
                })
            })
    }

    /// Min-sum message passing; labels by the beliefs at the end.
    fn propagate(&self, rounds: u32) -> Vec<usize> {
        let energy = self.energy;
        // Messages to the first and to the second end of every edge.
        let mut to_a: Vec<Vec<f64>> = energy
            .edges
            .iter()
            .map(|e| vec![0.0; e.costs.rows])
            .collect();
        let mut to_b: Vec<Vec<f64>> = energy
            .edges
            .iter()
            .map(|e| vec![0.0; e.costs.columns])
            .collect();
        let mut belief: Vec<Vec<f64>> = energy
            .unary
            .iter()
            .map(|u| u.iter().map(|&c| c as f64).collect())
            .collect();
        let forward = 0..energy.edges.len();
        let sweep: Vec<usize> = forward.clone().chain(forward.rev()).collect();
        for _ in 0..rounds {
            for &e in &sweep {
                let (a, b) = (energy.edges[e].a as usize, energy.edges[e].b as usize);
                let costs = &energy.edges[e].costs;
                let from_a = minus(&belief[a], &to_a[e]);
                send(&from_a, &mut to_b[e], &mut belief[b], |i, j| costs.at(i, j));
                let from_b = minus(&belief[b], &to_b[e]);
                send(&from_b, &mut to_a[e], &mut belief[a], |i, j| costs.at(j, i));
            }
        }
        belief
            .iter()
            .map(|b| {
                let least = b.iter().copied().fold(f64::INFINITY, f64::min);
                b.iter().position(|&c| c <= least).unwrap_or(0)
            })
            .collect()
    }
}

/// What a node believes without what one neighbour told it.
fn minus(belief: &[f64], received: &[f64]) -> Vec<f64> {
    belief.iter().zip(received).map(|(b, r)| b - r).collect()
}

/// Renews the message along one direction of an edge and the receiver's belief.
fn send(
    sender: &[f64],
    message: &mut [f64],
    receiver: &mut [f64],
    cost: impl Fn(usize, usize) -> u64,
) {
    let mut new: Vec<f64> = (0..message.len())
        .map(|j| {
            (0..sender.len())
                .map(|i| sender[i] + cost(i, j) as f64)
                .fold(f64::INFINITY, f64::min)
        })
        .collect();
    let least = new.iter().copied().fold(f64::INFINITY, f64::min);
    for (j, n) in new.iter_mut().enumerate() {
        *n = f64::midpoint(*n - least, message[j]);
        receiver[j] += *n - message[j];
        message[j] = *n;
    }
}
