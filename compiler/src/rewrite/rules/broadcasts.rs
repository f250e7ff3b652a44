//! Broadcasts.

use egg::Id;

use super::support::{add, dims, identity, is_elementwise, larger, nodes, splat};
use super::views::only_units_differ;
use crate::rewrite::lang::{Dims, Graph, Node, Op};

/// The dimensions and the map of a broadcast.
fn broadcast(node: &Node) -> Option<(&Dims, &Dims)> {
    match &node.op {
        Op::Broadcast { dims, map } => Some((dims, map)),
        _ => None,
    }
}

fn add_broadcast(g: &mut Graph, dims: Dims, map: Dims, of: Id) -> Id {
    add(g, Op::Broadcast { dims, map }, &[of])
}

pub(super) fn broadcast_of_nothing(g: &mut Graph, node: &Node) -> Vec<Id> {
    match broadcast(node) {
        Some((to, map)) if *map == identity(to.len()) && *to == dims(g, node.children[0]) => {
            vec![node.children[0]]
        }
        _ => Vec::new(),
    }
}

pub(super) fn broadcast_of_broadcast(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Some((to, outer)) = broadcast(node) else {
        return Vec::new();
    };
    let mut equal = Vec::new();
    for inner in nodes(g, node.children[0]) {
        if let Some((_, map)) = broadcast(&inner) {
            let both = map.iter().map(|&d| outer[d as usize]).collect();
            equal.push(add_broadcast(g, to.clone(), both, inner.children[0]));
        }
    }
    equal
}

pub(super) fn broadcast_of_reshape(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Some((to, map)) = broadcast(node) else {
        return Vec::new();
    };
    let mut equal = Vec::new();
    for inner in nodes(g, node.children[0]) {
        let Op::Reshape(reshaped) = &inner.op else {
            continue;
        };
        let from = dims(g, inner.children[0]);
        // Dimensions of one of the operand would have no place of their own in the result.
        if !only_units_differ(&from, reshaped) || larger(&from).len() != from.len() {
            continue;
        }
        let own = larger(reshaped).iter().map(|&(d, _)| map[d]).collect();
        equal.push(add_broadcast(g, to.clone(), own, inner.children[0]));
    }
    equal
}

pub(super) fn broadcast_to_reshape(g: &mut Graph, node: &Node) -> Vec<Id> {
    match broadcast(node) {
        Some((to, map)) if map.is_sorted() && only_units_differ(&dims(g, node.children[0]), to) => {
            vec![add(g, Op::Reshape(to.clone()), &node.children)]
        }
        _ => Vec::new(),
    }
}

pub(super) fn transpose_of_broadcast(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Op::Transpose(p) = &node.op else {
        return Vec::new();
    };
    let mut equal = Vec::new();
    for inner in nodes(g, node.children[0]) {
        let Some((from, map)) = broadcast(&inner) else {
            continue;
        };
        let to = p.iter().map(|&d| from[d as usize]).collect();
        let place = |d: u64| p.iter().position(|&q| q == d).unwrap_or(0) as u64;
        let moved: Dims = map.iter().map(|&d| place(d)).collect();
        equal.push(add_broadcast(g, to, moved, inner.children[0]));
    }
    equal
}

pub(super) fn reshape_of_broadcast(g: &mut Graph, node: &Node) -> Vec<Id> {
    match (
        &node.op,
        splat(g, node.children.first().copied().unwrap_or_default()),
    ) {
        (Op::Reshape(to), Some(scalar)) => {
            vec![add_broadcast(g, to.clone(), Dims::new(), scalar)]
        }
        _ => Vec::new(),
    }
}

pub(super) fn slice_of_broadcast(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Op::Slice(bounds) = &node.op else {
        return Vec::new();
    };
    let to: Dims = bounds
        .iter()
        .map(|&(start, limit, stride)| (limit - start).div_ceil(stride))
        .collect();
    let mut equal = Vec::new();
    for inner in nodes(g, node.children[0]) {
        let Some((_, map)) = broadcast(&inner) else {
            continue;
        };
        let own = map.iter().map(|&d| bounds[d as usize]).collect();
        let sliced = if map.is_empty() {
            inner.children[0]
        } else {
            add(g, Op::Slice(own), &inner.children)
        };
        equal.push(add_broadcast(g, to.clone(), map.clone(), sliced));
    }
    equal
}

pub(super) fn concatenate_of_broadcasts(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Op::Concatenate(d) = node.op else {
        return Vec::new();
    };
    let mut to = dims(g, node.children[0]);
    to[d as usize] = node.children.iter().map(|&c| dims(g, c)[d as usize]).sum();
    let mut equal = Vec::new();
    for first in nodes(g, node.children[0]) {
        let Some((_, map)) = broadcast(&first) else {
            continue;
        };
        let (map, of) = (map.clone(), first.children[0]);
        let alike = |n: &Node| {
            broadcast(n).is_some_and(|(_, m)| *m == map) && g.find(n.children[0]) == g.find(of)
        };
        let all = node.children.iter().all(|&c| g[c].nodes.iter().any(alike));
        if all && !map.contains(&d) {
            equal.push(add_broadcast(g, to.clone(), map, of));
        }
    }
    equal
}

pub(super) fn elementwise_of_broadcasts(g: &mut Graph, node: &Node) -> Vec<Id> {
    if !is_elementwise(&node.op) {
        return Vec::new();
    }
    let Some(&first) = node.children.first() else {
        return Vec::new();
    };
    let to = dims(g, first);
    // The maps to try: of all broadcasts among the operands, the widest first.
    let mut maps: Vec<Dims> = node
        .children
        .iter()
        .flat_map(|&c| g[c].nodes.iter())
        .filter_map(|n| Some(broadcast(n)?.1.clone()))
        .collect();
    maps.sort();
    maps.dedup();
    let mut equal = Vec::new();
    for map in maps {
        if map.len() == to.len() {
            continue;
        }
        let small: Dims = map.iter().map(|&d| to[d as usize]).collect();
        let before: Option<Vec<Id>> = node
            .children
            .iter()
            .map(|&c| before_broadcast(g, c, &map, &small))
            .collect();
        if let Some(before) = before {
            let computed = add(g, node.op.clone(), &before);
            equal.push(add_broadcast(g, to.clone(), map, computed));
        }
    }
    equal
}

/// The array whose broadcast with `map` the class is: a scalar is repeated to its dimensions.
fn before_broadcast(g: &mut Graph, id: Id, map: &Dims, small: &Dims) -> Option<Id> {
    let same = g[id].nodes.iter().find_map(|n| {
        let (_, m) = broadcast(n)?;
        (m == map).then_some(n.children[0])
    });
    if same.is_some() {
        return same;
    }
    let scalar = splat(g, id)?;
    Some(add_broadcast(g, small.clone(), Dims::new(), scalar))
}
