//! Labels of least total cost: exact where a region is small or simple, good elsewhere.
//!
//! ```text
//! Energy --reduce--> core --components--> exhaustive search | descent and message passing --> labels
//! ```

mod energy;
mod improve;
mod reduce;
mod search;
#[cfg(test)]
mod tests;

pub(super) use energy::{Edge, Energy, Matrix};

use super::config::LayoutConfig;
use reduce::Reduction;

/// Labels, and how they were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Solution {
    pub(super) labels: Vec<usize>,
    /// Whether no labelling is cheaper.
    pub(super) exact: bool,
}

/// A labelling of `energy` that costs at most as much as `start`.
pub(super) fn solve(energy: &Energy, start: &[usize], config: &LayoutConfig) -> Solution {
    let reduction = Reduction::new(energy);
    let core = reduction.core();
    let mut labels = start.to_vec();
    let mut exact = true;
    for part in components(&core.energy) {
        let local_start: Vec<usize> = part
            .nodes
            .iter()
            .map(|&n| start[core.nodes[n as usize] as usize])
            .collect();
        let found = search::exhaustive(&part.energy, &local_start, config.search_steps);
        exact &= found.is_some();
        let found =
            found.unwrap_or_else(|| improve::improve(&part.energy, &local_start, config.rounds));
        for (&n, l) in part.nodes.iter().zip(found) {
            labels[core.nodes[n as usize] as usize] = l;
        }
    }
    reduction.complete(&mut labels);
    if energy.cost(&labels) > energy.cost(start) {
        labels = start.to_vec();
        exact = false;
    }
    Solution { labels, exact }
}

/// The connected parts of a problem, by their first nodes.
fn components(energy: &Energy) -> Vec<reduce::Core> {
    let mut sets = petgraph::unionfind::UnionFind::<u32>::new(energy.len());
    for e in &energy.edges {
        sets.union(e.a, e.b);
    }
    let mut part_of_set = vec![usize::MAX; energy.len()];
    let mut local = vec![0u32; energy.len()];
    let mut parts: Vec<reduce::Core> = Vec::new();
    for n in 0..energy.len() as u32 {
        let part = &mut part_of_set[sets.find(n) as usize];
        if *part == usize::MAX {
            *part = parts.len();
            parts.push(reduce::Core {
                energy: Energy::default(),
                nodes: Vec::new(),
            });
        }
        let part = &mut parts[*part];
        local[n as usize] = part.nodes.len() as u32;
        part.nodes.push(n);
        part.energy.unary.push(energy.unary[n as usize].clone());
    }
    for e in &energy.edges {
        let part = part_of_set[sets.find(e.a) as usize];
        parts[part].energy.edges.push(Edge {
            a: local[e.a as usize],
            b: local[e.b as usize],
            costs: e.costs.clone(),
        });
    }
    parts
}
