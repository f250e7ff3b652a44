//! Reductions.

use egg::Id;

use slabplan_ir::{ElementType, Opcode};

use super::support::{add, constant, dims, identity, larger, nodes};
use super::views::only_units_differ;
use crate::rewrite::lang::{Dims, Graph, Node, Op};

/// The dimensions and the reducer of a reduction.
fn reduce(node: &Node) -> Option<(&Dims, u32)> {
    match &node.op {
        Op::Reduce { dims, by } => Some((dims, *by)),
        _ => None,
    }
}

/// Whether the initial value of the reduction changes nothing.
fn starts_from_identity(g: &Graph, node: &Node, by: u32) -> bool {
    let element = g[node.children[0]].data.element;
    let Some(value) = constant(g, node.children[1]) else {
        return false;
    };
    match g.analysis.reducers[by as usize].opcode {
        Some(Opcode::Add) => value == 0.0,
        Some(Opcode::Multiply) => value == 1.0,
        Some(Opcode::Or) if element == ElementType::Pred => value == 0.0,
        Some(Opcode::And) if element == ElementType::Pred => value == 1.0,
        Some(Opcode::Maximum) if element.is_float() => value == f64::NEG_INFINITY,
        Some(Opcode::Minimum) if element.is_float() => value == f64::INFINITY,
        _ => false,
    }
}

fn kept(all: &[u64], reduced: &[u64]) -> Dims {
    let own = all.iter().enumerate();
    own.filter(|(i, _)| !reduced.contains(&(*i as u64)))
        .map(|(_, &n)| n)
        .collect()
}

pub(super) fn reduce_of_units(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Some((reduced, by)) = reduce(node) else {
        return Vec::new();
    };
    let from = dims(g, node.children[0]);
    let units = reduced.iter().all(|&d| from[d as usize] == 1);
    if !units || !starts_from_identity(g, node, by) {
        return Vec::new();
    }
    let to = kept(&from, reduced);
    vec![add(g, Op::Reshape(to), &node.children[..1])]
}

pub(super) fn reduce_of_reshape(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Some((reduced, by)) = reduce(node) else {
        return Vec::new();
    };
    let to = kept(&dims(g, node.children[0]), reduced);
    let mut equal = Vec::new();
    for inner in nodes(g, node.children[0]) {
        let Op::Reshape(shape) = &inner.op else {
            continue;
        };
        let from = dims(g, inner.children[0]);
        if !only_units_differ(&from, shape) {
            continue;
        }
        // The dimensions of the operand that the reduced larger ones are.
        let pairs = larger(shape).into_iter().zip(larger(&from));
        let own: Dims = pairs
            .filter(|((d, _), _)| reduced.contains(&(*d as u64)))
            .map(|(_, (d, _))| d as u64)
            .collect();
        if own.is_empty() {
            continue;
        }
        let small = add(
            g,
            Op::Reduce { dims: own, by },
            &[inner.children[0], node.children[1]],
        );
        equal.push(if dims(g, small) == to {
            small
        } else {
            add(g, Op::Reshape(to.clone()), &[small])
        });
    }
    equal
}

pub(super) fn reduce_of_transpose(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Some((reduced, by)) = reduce(node) else {
        return Vec::new();
    };
    let mut equal = Vec::new();
    for inner in nodes(g, node.children[0]) {
        let Op::Transpose(p) = &inner.op else {
            continue;
        };
        let mut own: Dims = reduced.iter().map(|&d| p[d as usize]).collect();
        own.sort_unstable();
        // Dimensions of the operand that stay, in the order of the result.
        let stay = kept(p, reduced);
        let mut in_order = stay.clone();
        in_order.sort_unstable();
        let place = |d: &u64| in_order.iter().position(|x| x == d).unwrap_or(0) as u64;
        let order: Dims = stay.iter().map(place).collect();
        let small = add(
            g,
            Op::Reduce { dims: own, by },
            &[inner.children[0], node.children[1]],
        );
        equal.push(if order == identity(order.len()) {
            small
        } else {
            add(g, Op::Transpose(order), &[small])
        });
    }
    equal
}

pub(super) fn reduce_of_broadcast(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Some((reduced, by)) = reduce(node) else {
        return Vec::new();
    };
    let idempotent = matches!(
        g.analysis.reducers[by as usize].opcode,
        Some(Opcode::Maximum | Opcode::Minimum | Opcode::And | Opcode::Or)
    );
    if !idempotent || !starts_from_identity(g, node, by) {
        return Vec::new();
    }
    let mut equal = Vec::new();
    for inner in nodes(g, node.children[0]) {
        let Op::Broadcast { dims: from, map } = &inner.op else {
            continue;
        };
        let empty = reduced.iter().any(|&d| from[d as usize] == 0);
        if empty || reduced.iter().any(|d| map.contains(d)) {
            continue;
        }
        let shift = |d: u64| d - reduced.iter().filter(|&&r| r < d).count() as u64;
        let op = Op::Broadcast {
            dims: kept(from, reduced),
            map: map.iter().map(|&d| shift(d)).collect(),
        };
        equal.push(add(g, op, &inner.children));
    }
    equal
}

pub(super) fn reduce_of_reduce(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Some((outer, by)) = reduce(node) else {
        return Vec::new();
    };
    let integer = g[node.children[0]].data.element.is_integer();
    let exact = match g.analysis.reducers[by as usize].opcode {
        Some(Opcode::Maximum | Opcode::Minimum | Opcode::And | Opcode::Or) => true,
        Some(Opcode::Add | Opcode::Multiply) => integer,
        _ => false,
    };
    let mut equal = Vec::new();
    for inner in nodes(g, node.children[0]) {
        let Some((first, inner_by)) = reduce(&inner) else {
            continue;
        };
        if !exact || inner_by != by || !starts_from_identity(g, &inner, by) {
            continue;
        }
        let stay = kept(&identity(dims(g, inner.children[0]).len()), first);
        let mut both: Dims = outer.iter().map(|&d| stay[d as usize]).collect();
        both.extend(first.iter().copied());
        both.sort_unstable();
        equal.push(add(
            g,
            Op::Reduce { dims: both, by },
            &[inner.children[0], node.children[1]],
        ));
    }
    equal
}
