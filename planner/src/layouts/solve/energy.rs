//! A labelling problem: one label for each node, costs of labels and of pairs of neighbours.

use std::rc::Rc;

/// Costs of a pair of labels: `rows` labels of the first node, `columns` of the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matrix {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) costs: Vec<u64>,
}

impl Matrix {
    /// The matrix whose entries are `cost(row, column)`.
    pub(crate) fn new(
        rows: usize,
        columns: usize,
        mut cost: impl FnMut(usize, usize) -> u64,
    ) -> Self {
        let costs = (0..rows * columns)
            .map(|i| cost(i / columns, i % columns))
            .collect();
        Self {
            rows,
            columns,
            costs,
        }
    }

    pub(crate) fn at(&self, row: usize, column: usize) -> u64 {
        self.costs[row * self.columns + column]
    }

    pub(crate) fn transposed(&self) -> Self {
        Self::new(self.columns, self.rows, |r, c| self.at(c, r))
    }

    /// Whether one of the labels alone decides the cost, so that the edge says nothing.
    pub(crate) fn is_zero(&self) -> bool {
        self.costs.iter().all(|&c| c == 0)
    }
}

/// An edge between two different nodes.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub(crate) a: u32,
    pub(crate) b: u32,
    pub(crate) costs: Rc<Matrix>,
}

/// A labelling problem. Every node has at least one label; costs saturate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Energy {
    /// Cost of each label of each node.
    pub(crate) unary: Vec<Vec<u64>>,
    pub(crate) edges: Vec<Edge>,
}

impl Energy {
    /// The cost of a labelling. O(nodes + edges).
    pub(crate) fn cost(&self, labels: &[usize]) -> u64 {
        let nodes = self.unary.iter().zip(labels).map(|(u, &l)| u[l]);
        let pairs = self
            .edges
            .iter()
            .map(|e| e.costs.at(labels[e.a as usize], labels[e.b as usize]));
        nodes.chain(pairs).fold(0, u64::saturating_add)
    }

    /// Number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.unary.len()
    }
}

/// The first of the smallest costs.
pub(crate) fn argmin(costs: impl IntoIterator<Item = u64>) -> (usize, u64) {
    let mut best = (0, u64::MAX);
    for (i, c) in costs.into_iter().enumerate() {
        if c < best.1 {
            best = (i, c);
        }
    }
    best
}
