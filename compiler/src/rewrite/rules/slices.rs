//! Slices, concatenations and pads.

use egg::Id;
use smallvec::SmallVec;

use super::support::{add, dims, is_elementwise, nodes};
use crate::rewrite::lang::{Graph, Node, Op};

type Bounds = SmallVec<[(u64, u64, u64); 4]>;

fn bounds(node: &Node) -> Option<&Bounds> {
    match &node.op {
        Op::Slice(b) => Some(b),
        _ => None,
    }
}

fn size(&(start, limit, stride): &(u64, u64, u64)) -> u64 {
    (limit - start).div_ceil(stride)
}

pub(super) fn slice_of_nothing(g: &mut Graph, node: &Node) -> Vec<Id> {
    let whole = |(b, &n): (&(u64, u64, u64), &u64)| *b == (0, n, 1);
    match bounds(node) {
        Some(b) if b.iter().zip(&dims(g, node.children[0])).all(whole) => vec![node.children[0]],
        _ => Vec::new(),
    }
}

pub(super) fn slice_of_slice(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Some(outer) = bounds(node) else {
        return Vec::new();
    };
    let mut equal = Vec::new();
    for inner in nodes(g, node.children[0]) {
        let Some(b) = bounds(&inner) else {
            continue;
        };
        if outer.iter().any(|o| size(o) == 0) {
            continue;
        }
        let both: Bounds = outer
            .iter()
            .zip(b)
            .map(|(o, i)| {
                let (start, steps) = (i.0 + o.0 * i.2, size(o) - 1);
                // Up to the last element read; one alone needs no stride, and several lie inside the operand.
                let stride = if steps == 0 { 1 } else { o.2 * i.2 };
                (start, start + steps * stride + 1, stride)
            })
            .collect();
        equal.push(add(g, Op::Slice(both), &inner.children));
    }
    equal
}

pub(super) fn slice_of_elementwise(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Some(b) = bounds(node).cloned() else {
        return Vec::new();
    };
    let mut equal = Vec::new();
    for inner in nodes(g, node.children[0]) {
        if is_elementwise(&inner.op) {
            let sliced: Vec<Id> = inner
                .children
                .iter()
                .map(|&c| add(g, Op::Slice(b.clone()), &[c]))
                .collect();
            equal.push(add(g, inner.op, &sliced));
        }
    }
    equal
}

pub(super) fn slice_of_transpose(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Some(b) = bounds(node).cloned() else {
        return Vec::new();
    };
    let mut equal = Vec::new();
    for inner in nodes(g, node.children[0]) {
        if let Op::Transpose(p) = &inner.op {
            let mut moved = b.clone();
            for (i, &d) in p.iter().enumerate() {
                moved[d as usize] = b[i];
            }
            let sliced = add(g, Op::Slice(moved), &inner.children);
            equal.push(add(g, inner.op.clone(), &[sliced]));
        }
    }
    equal
}

pub(super) fn slice_of_concatenate(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Some(b) = bounds(node).cloned() else {
        return Vec::new();
    };
    let mut equal = Vec::new();
    for inner in nodes(g, node.children[0]) {
        let Op::Concatenate(along) = inner.op else {
            continue;
        };
        let (start, limit, stride) = b[along as usize];
        let mut parts: Vec<(Id, u64, u64)> = Vec::new();
        let mut from = 0;
        for &c in &inner.children {
            let to = from + dims(g, c)[along as usize];
            let (first, last) = (start.max(from), limit.min(to));
            if first < last {
                parts.push((c, first - from, last - from));
            }
            from = to;
        }
        let cut = |g: &mut Graph, (c, first, last): (Id, u64, u64)| {
            let mut own = b.clone();
            own[along as usize] = (first, last, stride);
            add(g, Op::Slice(own), &[c])
        };
        match parts[..] {
            [] => {}
            [part] => equal.push(cut(g, part)),
            _ if stride == 1 && parts.len() < inner.children.len() => {
                let parts: Vec<Id> = parts.into_iter().map(|p| cut(g, p)).collect();
                equal.push(add(g, inner.op, &parts));
            }
            _ => {}
        }
    }
    equal
}

pub(super) fn slice_of_pad(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Some(b) = bounds(node).cloned() else {
        return Vec::new();
    };
    let mut equal = Vec::new();
    for inner in nodes(g, node.children[0]) {
        let Op::Pad(padding) = &inner.op else {
            continue;
        };
        let from = dims(g, inner.children[0]);
        let own: Option<Bounds> = b
            .iter()
            .zip(padding)
            .zip(&from)
            .map(|((&(start, limit, stride), &(low, _, interior)), &n)| {
                let place = |i: u64| u64::try_from(i64::try_from(i).ok()? - low).ok();
                let (first, end) = (place(start)?, place(limit)?);
                (interior == 0 && end <= n).then_some((first, end, stride))
            })
            .collect();
        if let Some(own) = own {
            equal.push(add(g, Op::Slice(own), &inner.children[..1]));
        }
    }
    equal
}

pub(super) fn concatenate_of_one(_: &mut Graph, node: &Node) -> Vec<Id> {
    match (&node.op, &node.children[..]) {
        (Op::Concatenate(_), &[only]) => vec![only],
        _ => Vec::new(),
    }
}

pub(super) fn concatenate_of_concatenates(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Op::Concatenate(_) = node.op else {
        return Vec::new();
    };
    let mut flat: Vec<Id> = Vec::new();
    for &c in &node.children {
        match g[c].nodes.iter().find(|n| n.op == node.op) {
            // One that holds itself (a joined empty array) stays.
            Some(inner) if inner.children.iter().all(|&i| g.find(i) != g.find(c)) => {
                flat.extend(&inner.children);
            }
            _ => flat.push(c),
        }
    }
    if flat.len() == node.children.len() {
        return Vec::new();
    }
    vec![add(g, node.op.clone(), &flat)]
}

pub(super) fn concatenate_of_slices(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Op::Concatenate(along) = node.op else {
        return Vec::new();
    };
    for at in 1..node.children.len() {
        let (left, right) = (node.children[at - 1], node.children[at]);
        for a in nodes(g, left) {
            for b in nodes(g, right) {
                let Some(joined) = meet(g, &a, &b, along as usize) else {
                    continue;
                };
                let joined = add(g, Op::Slice(joined), &a.children);
                let mut parts = node.children[..at - 1].to_vec();
                parts.push(joined);
                parts.extend(&node.children[at + 1..]);
                let whole = match parts[..] {
                    [only] => only,
                    _ => add(g, node.op.clone(), &parts),
                };
                return vec![whole];
            }
        }
    }
    Vec::new()
}

/// The slice that two slices make one after the other.
fn meet(g: &Graph, a: &Node, b: &Node, along: usize) -> Option<Bounds> {
    let (left, right) = (bounds(a)?, bounds(b)?);
    if g.find(a.children[0]) != g.find(b.children[0]) {
        return None;
    }
    let mut joined = left.clone();
    for (d, (l, r)) in left.iter().zip(right).enumerate() {
        if d == along {
            if l.1 != r.0 || l.2 != 1 || r.2 != 1 {
                return None;
            }
            joined[d] = (l.0, r.1, 1);
        } else if l != r {
            return None;
        }
    }
    Some(joined)
}

pub(super) fn pad_of_nothing(_: &mut Graph, node: &Node) -> Vec<Id> {
    match &node.op {
        Op::Pad(p) if p.iter().all(|&d| d == (0, 0, 0)) => vec![node.children[0]],
        _ => Vec::new(),
    }
}

pub(super) fn pad_of_pad(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Op::Pad(outer) = &node.op else {
        return Vec::new();
    };
    let mut equal = Vec::new();
    for inner in nodes(g, node.children[0]) {
        let Op::Pad(p) = &inner.op else {
            continue;
        };
        let plain = |d: &(i64, i64, i64)| d.0 >= 0 && d.1 >= 0 && d.2 == 0;
        let same_value = g.find(inner.children[1]) == g.find(node.children[1]);
        if same_value && outer.iter().all(plain) && p.iter().all(plain) {
            let both = outer
                .iter()
                .zip(p)
                .map(|(o, i)| (o.0 + i.0, o.1 + i.1, 0))
                .collect();
            equal.push(add(g, Op::Pad(both), &inner.children));
        }
    }
    equal
}
