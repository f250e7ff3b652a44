//! Elementwise operations before or after what only moves elements.

use egg::Id;
use smallvec::SmallVec;

use super::support::{add, dims, is_elementwise, nodes, splat};
use crate::rewrite::lang::{Dims, Graph, Node, Op};

pub(super) fn elementwise_of_transposes(g: &mut Graph, node: &Node) -> Vec<Id> {
    if !is_elementwise(&node.op) || node.children.is_empty() {
        return Vec::new();
    }
    let mut permutations: Vec<Dims> = node
        .children
        .iter()
        .flat_map(|&c| g[c].nodes.iter())
        .filter_map(|n| match &n.op {
            Op::Transpose(p) => Some(p.clone()),
            _ => None,
        })
        .collect();
    permutations.sort();
    permutations.dedup();
    let mut equal = Vec::new();
    for p in permutations {
        let to = dims(g, node.children[0]);
        let mut from: Dims = to.clone();
        for (i, &d) in p.iter().enumerate() {
            from[d as usize] = to[i];
        }
        let op = Op::Transpose(p);
        if let Some(before) = all_before(g, node, &op, &from) {
            let computed = add(g, node.op.clone(), &before);
            equal.push(add(g, op, &[computed]));
        }
    }
    equal
}

pub(super) fn elementwise_of_reshapes(g: &mut Graph, node: &Node) -> Vec<Id> {
    if !is_elementwise(&node.op) || node.children.is_empty() {
        return Vec::new();
    }
    let op = Op::Reshape(dims(g, node.children[0]));
    let mut shapes: Vec<Dims> = node
        .children
        .iter()
        .flat_map(|&c| g[c].nodes.iter())
        .filter(|n| n.op == op)
        .map(|n| g[n.children[0]].data.dims.clone())
        .collect();
    shapes.sort();
    shapes.dedup();
    let mut equal = Vec::new();
    for from in shapes {
        if let Some(before) = all_before(g, node, &op, &from) {
            let computed = add(g, node.op.clone(), &before);
            equal.push(add(g, op.clone(), &[computed]));
        }
    }
    equal
}

/// For every operand the array of dimensions `from` that `op` makes it from.
fn all_before(g: &mut Graph, node: &Node, op: &Op, from: &Dims) -> Option<SmallVec<[Id; 2]>> {
    node.children
        .iter()
        .map(|&c| {
            let moved = g[c].nodes.iter().find_map(|n| {
                (n.op == *op && g[n.children[0]].data.dims == *from).then(|| n.children[0])
            });
            if moved.is_some() {
                return moved;
            }
            let scalar = splat(g, c)?;
            let op = Op::Broadcast {
                dims: from.clone(),
                map: Dims::new(),
            };
            Some(add(g, op, &[scalar]))
        })
        .collect()
}

pub(super) fn transpose_of_elementwise(g: &mut Graph, node: &Node) -> Vec<Id> {
    match node.op {
        Op::Transpose(_) => move_inside(g, node, usize::MAX),
        _ => Vec::new(),
    }
}

pub(super) fn reshape_of_elementwise(g: &mut Graph, node: &Node) -> Vec<Id> {
    match node.op {
        Op::Reshape(_) => move_inside(g, node, 1),
        _ => Vec::new(),
    }
}

pub(super) fn broadcast_of_convert(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Op::Broadcast { .. } = node.op else {
        return Vec::new();
    };
    let mut equal = Vec::new();
    for inner in nodes(g, node.children[0]) {
        if let Op::Convert(_) = inner.op {
            let moved = add(g, node.op.clone(), &inner.children);
            equal.push(add(g, inner.op, &[moved]));
        }
    }
    equal
}

/// `move(f(x, y))` as `f(move(x), move(y))`, for operations of at most `most` operands.
fn move_inside(g: &mut Graph, node: &Node, most: usize) -> Vec<Id> {
    let mut equal = Vec::new();
    for inner in nodes(g, node.children[0]) {
        if !is_elementwise(&inner.op) || inner.children.len() > most {
            continue;
        }
        let moved: Vec<Id> = inner
            .children
            .iter()
            .map(|&c| add(g, node.op.clone(), &[c]))
            .collect();
        equal.push(add(g, inner.op, &moved));
    }
    equal
}
