//! Transposes and reshapes.

use egg::Id;

use super::support::{add, dims, identity, larger, nodes};
use crate::rewrite::lang::{Graph, Node, Op};

pub(super) fn transpose_of_nothing(_: &mut Graph, node: &Node) -> Vec<Id> {
    match &node.op {
        Op::Transpose(p) if *p == identity(p.len()) => vec![node.children[0]],
        _ => Vec::new(),
    }
}

pub(super) fn transpose_of_transpose(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Op::Transpose(outer) = &node.op else {
        return Vec::new();
    };
    let mut equal = Vec::new();
    for inner in nodes(g, node.children[0]) {
        if let Op::Transpose(p) = &inner.op {
            let both = outer.iter().map(|&d| p[d as usize]).collect();
            equal.push(add(g, Op::Transpose(both), &inner.children));
        }
    }
    equal
}

pub(super) fn transpose_of_units(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Op::Transpose(p) = &node.op else {
        return Vec::new();
    };
    let from = dims(g, node.children[0]);
    let moved: Vec<u64> = p
        .iter()
        .copied()
        .filter(|&d| from[d as usize] != 1)
        .collect();
    if !moved.is_sorted() {
        return Vec::new();
    }
    let to = p.iter().map(|&d| from[d as usize]).collect();
    vec![add(g, Op::Reshape(to), &node.children)]
}

pub(super) fn reshape_of_nothing(g: &mut Graph, node: &Node) -> Vec<Id> {
    match &node.op {
        Op::Reshape(to) if *to == dims(g, node.children[0]) => vec![node.children[0]],
        _ => Vec::new(),
    }
}

pub(super) fn reshape_of_reshape(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Op::Reshape(to) = &node.op else {
        return Vec::new();
    };
    let mut equal = Vec::new();
    for inner in nodes(g, node.children[0]) {
        if let Op::Reshape(_) = inner.op {
            equal.push(add(g, Op::Reshape(to.clone()), &inner.children));
        }
    }
    equal
}

/// Whether a reshape between these only adds or drops dimensions of one.
pub(super) fn only_units_differ(a: &[u64], b: &[u64]) -> bool {
    larger(a)
        .iter()
        .map(|x| x.1)
        .eq(larger(b).iter().map(|x| x.1))
}
