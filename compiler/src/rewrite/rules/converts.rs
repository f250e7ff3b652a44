//! Conversions, and operations that change nothing.

use egg::Id;

use slabplan_ir::{ElementType, Opcode};

use super::support::{add, constant, nodes};
use crate::rewrite::lang::{Graph, Node, Op};

pub(super) fn convert_of_nothing(g: &mut Graph, node: &Node) -> Vec<Id> {
    match node.op {
        Op::Convert(to) if to == g[node.children[0]].data.element => vec![node.children[0]],
        _ => Vec::new(),
    }
}

pub(super) fn convert_of_convert(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Op::Convert(to) = node.op else {
        return Vec::new();
    };
    let mut equal = Vec::new();
    for inner in nodes(g, node.children[0]) {
        let Op::Convert(between) = inner.op else {
            continue;
        };
        let from = g[inner.children[0]].data.element;
        if is_exact(from, between) {
            equal.push(if from == to {
                inner.children[0]
            } else {
                add(g, Op::Convert(to), &inner.children)
            });
        }
    }
    equal
}

/// Whether every value of one type is one of the other.
fn is_exact(from: ElementType, to: ElementType) -> bool {
    use ElementType as E;
    let integer = |t: ElementType| {
        (t.is_integer() && !t.is_sub_byte()).then(|| (t.is_signed_integer(), t.bits()))
    };
    if let (Some((s, m)), Some((t, n))) = (integer(from), integer(to)) {
        return if s == t { m <= n } else { t && m < n };
    }
    matches!(
        (from, to),
        (E::Bf16 | E::F16, E::F32 | E::F64) | (E::F32, E::F64)
    )
}

pub(super) fn involution(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Op::Elementwise(n) = node.op else {
        return Vec::new();
    };
    let opcode = g.analysis.elementwise[n as usize].opcode;
    if !matches!(opcode, Opcode::Negate | Opcode::Not) {
        return Vec::new();
    }
    let inner = nodes(g, node.children[0]);
    inner
        .iter()
        .filter(|i| i.op == node.op)
        .map(|i| i.children[0])
        .collect()
}

pub(super) fn multiply_by_one(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Op::Elementwise(n) = node.op else {
        return Vec::new();
    };
    let is_one = |g: &Graph, id: Id| constant(g, id) == Some(1.0);
    let (&[a, b], opcode) = (
        &node.children[..],
        g.analysis.elementwise[n as usize].opcode,
    ) else {
        return Vec::new();
    };
    let mut equal = Vec::new();
    if matches!(opcode, Opcode::Multiply | Opcode::Divide) && is_one(g, b) {
        equal.push(a);
    }
    if opcode == Opcode::Multiply && is_one(g, a) {
        equal.push(b);
    }
    equal
}

pub(super) fn select_of_same(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Op::Elementwise(n) = node.op else {
        return Vec::new();
    };
    match node.children[..] {
        [_, a, b]
            if g.analysis.elementwise[n as usize].opcode == Opcode::Select
                && g.find(a) == g.find(b) =>
        {
            vec![a]
        }
        _ => Vec::new(),
    }
}
