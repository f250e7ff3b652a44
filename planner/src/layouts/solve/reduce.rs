//! Exact reduction: nodes with at most two neighbours are minimised out, one after another.
//!
//! A node with one neighbour adds the best it can do to each label of that neighbour; one with
//! two leaves an edge between them. What is a tree or series-parallel is solved by that alone;
//! of anything else a core remains in which every node has three neighbours or more. This is
//! non-serial dynamic programming (Bertele and Brioschi) with tables of at most two nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::energy::{Edge, Energy, Matrix, argmin};

/// Neighbours of a node, with the costs shared with each.
type Neighbours = Vec<(u32, Rc<Matrix>)>;

/// A problem of which nodes are being minimised out.
pub(crate) struct Reduction {
    unary: Vec<Vec<u64>>,
    /// Costs of each node with each remaining neighbour, rows by its own labels.
    neighbours: Vec<BTreeMap<u32, Rc<Matrix>>>,
    /// Nodes minimised out, in order, with the neighbours they had then.
    removed: Vec<(u32, Neighbours)>,
    gone: Vec<bool>,
}

/// What remains: a smaller problem, and which node of the whole each of its nodes is.
pub(crate) struct Core {
    pub(crate) energy: Energy,
    pub(crate) nodes: Vec<u32>,
}

impl Reduction {
    /// Minimises out all that can be. O((nodes + edges) log nodes) table operations.
    pub(crate) fn new(energy: &Energy) -> Self {
        let mut this = Self {
            unary: energy.unary.clone(),
            neighbours: vec![BTreeMap::new(); energy.len()],
            removed: Vec::new(),
            gone: vec![false; energy.len()],
        };
        for edge in &energy.edges {
            this.join(edge.a, edge.b, edge.costs.clone());
        }
        let mut small: BTreeSet<u32> = (0..energy.len() as u32)
            .filter(|&n| this.neighbours[n as usize].len() <= 2)
            .collect();
        while let Some(node) = small.pop_first() {
            if this.gone[node as usize] {
                continue;
            }
            this.remove(node);
            let (_, had) = &this.removed[this.removed.len() - 1];
            small.extend(
                had.iter()
                    .map(|&(n, _)| n)
                    .filter(|&n| this.neighbours[n as usize].len() <= 2),
            );
        }
        this
    }

    /// The problem that remains.
    pub(crate) fn core(&self) -> Core {
        let nodes: Vec<u32> = (0..self.unary.len() as u32)
            .filter(|&n| !self.gone[n as usize])
            .collect();
        let mut number = vec![u32::MAX; self.unary.len()];
        for (i, &n) in nodes.iter().enumerate() {
            number[n as usize] = i as u32;
        }
        let mut energy = Energy::default();
        for &n in &nodes {
            energy.unary.push(self.unary[n as usize].clone());
            for (&m, costs) in self.neighbours[n as usize].range(n + 1..) {
                energy.edges.push(Edge {
                    a: number[n as usize],
                    b: number[m as usize],
                    costs: costs.clone(),
                });
            }
        }
        Core { energy, nodes }
    }

    /// The best labels of all nodes, given those of the core in `labels`.
    pub(crate) fn complete(&self, labels: &mut [usize]) {
        for (node, had) in self.removed.iter().rev() {
            let unary = &self.unary[*node as usize];
            let cost = |l: usize| {
                had.iter().fold(unary[l], |sum, (n, m)| {
                    sum.saturating_add(m.at(l, labels[*n as usize]))
                })
            };
            labels[*node as usize] = argmin((0..unary.len()).map(cost)).0;
        }
    }

    fn join(&mut self, a: u32, b: u32, costs: Rc<Matrix>) {
        if costs.is_zero() {
            return;
        }
        let sum = match self.neighbours[a as usize].get(&b) {
            None => costs,
            Some(old) => Rc::new(Matrix::new(costs.rows, costs.columns, |r, c| {
                old.at(r, c).saturating_add(costs.at(r, c))
            })),
        };
        self.neighbours[b as usize].insert(a, Rc::new(sum.transposed()));
        self.neighbours[a as usize].insert(b, sum);
    }

    fn remove(&mut self, node: u32) {
        let had: Vec<(u32, Rc<Matrix>)> = std::mem::take(&mut self.neighbours[node as usize])
            .into_iter()
            .collect();
        for (n, _) in &had {
            self.neighbours[*n as usize].remove(&node);
        }
        let unary = self.unary[node as usize].clone();
        let labels = || 0..unary.len();
        match &had[..] {
            [] => {}
            [(n, m)] => {
                for (l, cost) in self.unary[*n as usize].iter_mut().enumerate() {
                    let best = argmin(labels().map(|k| unary[k].saturating_add(m.at(k, l)))).1;
                    *cost = cost.saturating_add(best);
                }
            }
            [(n, m), (p, q), ..] => {
                let joined = Matrix::new(m.columns, q.columns, |l, r| {
                    argmin(labels().map(|k| {
                        unary[k]
                            .saturating_add(m.at(k, l))
                            .saturating_add(q.at(k, r))
                    }))
                    .1
                });
                self.join(*n, *p, Rc::new(joined));
            }
        }
        self.gone[node as usize] = true;
        self.removed.push((node, had));
    }
}
