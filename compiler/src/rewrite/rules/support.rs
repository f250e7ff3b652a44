//! What rules are written with.

use egg::{Id, Language};
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use crate::rewrite::lang::{Dims, Graph, Node, Op};

/// Dimensions of the arrays of a class.
pub(super) fn dims(g: &Graph, id: Id) -> Dims {
    g[id].data.dims.clone()
}

/// All nodes of a class, each once: until the next rebuild of the graph, a class that was joined holds some of its nodes
/// several times, with old names for their children.
pub(super) fn nodes(g: &Graph, id: Id) -> Vec<Node> {
    let nodes = &g[id].nodes;
    if g.clean {
        return nodes.clone();
    }
    let canonical = |node: &Node| node.clone().map_children(|child| g.find(child));
    let once: IndexSet<Node, FxBuildHasher> = nodes.iter().map(canonical).collect();
    once.into_iter().collect()
}

/// Adds a node; one that is new is noted as made by the rule at work.
pub(super) fn add(g: &mut Graph, op: Op, children: &[Id]) -> Id {
    let node = Node::new(op, children);
    if g.lookup(node.clone()).is_none() {
        let rule = g.analysis.at_work;
        g.analysis.made.push((node.clone(), rule));
    }
    g.add(node)
}

/// Numbers from 0 to `n`, in order.
pub(super) fn identity(n: usize) -> Dims {
    (0..n as u64).collect()
}

/// The broadcasts of scalars in a class: the scalars.
pub(super) fn splat(g: &Graph, id: Id) -> Option<Id> {
    g[id].nodes.iter().find_map(|n| match &n.op {
        Op::Broadcast { map, .. } if map.is_empty() => Some(n.children[0]),
        _ => None,
    })
}

/// The number that every element of the class is, where it is known.
pub(super) fn constant(g: &Graph, id: Id) -> Option<f64> {
    let scalar = splat(g, id).unwrap_or(id);
    g[scalar].nodes.iter().find_map(|n| match n.op {
        Op::Leaf(l) => g.analysis.leaves[l as usize].constant,
        _ => None,
    })
}

/// Whether the operation works element by element, conversions included.
pub(super) fn is_elementwise(op: &Op) -> bool {
    matches!(op, Op::Elementwise(_) | Op::Convert(_))
}

/// `dims` without those of one, with their numbers.
pub(super) fn larger(dims: &[u64]) -> Vec<(usize, u64)> {
    let all = dims.iter().copied().enumerate();
    all.filter(|&(_, n)| n != 1).collect()
}
