//! Chooses one node for every class that the roots need, for little cost of the whole.
//!
//! Tree cost counts a shared array once for every user and picks wrong terms; this counts every
//! class once. For each class the set of classes that its cheapest known term needs is kept, and
//! improved until nothing gets cheaper (the greedy DAG extraction of the extraction gym).

use std::collections::BTreeMap;

use egg::{Id, Language};
use fixedbitset::FixedBitSet;

use super::lang::{Facts, Graph, Node};

/// The chosen node of every class that is needed, by canonical id.
pub(super) type Choice = BTreeMap<Id, Node>;

/// Most rounds over all classes; each costs time in proportion to the graph.
const MAX_ROUNDS: usize = 12;

/// Chooses nodes for `roots`. Deterministic: nodes of a class are in their own order, ties go to the first.
pub(super) fn extract(
    graph: &Graph,
    roots: &[Id],
    cost: &dyn Fn(&Node, &Facts) -> u64,
) -> Option<Choice> {
    let mut classes: Vec<Id> = graph.classes().map(|c| c.id).collect();
    classes.sort_unstable();
    let number: BTreeMap<Id, usize> = classes.iter().enumerate().map(|(n, &c)| (c, n)).collect();
    let at = |id: Id| number[&graph.find(id)];
    let own: Vec<Vec<(&Node, u64)>> = classes
        .iter()
        .map(|&c| {
            let class = &graph[c];
            let mut nodes: Vec<&Node> = class.nodes.iter().collect();
            nodes.sort();
            nodes
                .into_iter()
                .map(|n| (n, cost(n, &class.data)))
                .collect()
        })
        .collect();
    let mut best: Vec<Option<Term>> = vec![None; classes.len()];
    for _ in 0..MAX_ROUNDS {
        let mut changed = false;
        for (c, nodes) in own.iter().enumerate() {
            for (n, &(node, price)) in nodes.iter().enumerate() {
                let children = node.children().iter().map(|&k| at(k));
                let Some(term) = Term::of(c, n, price, children, &best, &own) else {
                    continue;
                };
                if best[c].as_ref().is_none_or(|b| term.cost < b.cost) {
                    best[c] = Some(term);
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    let chosen = |c: usize| best[c].as_ref().map(|t| own[c][t.node].0);
    follow(graph, roots, &classes, &number, &chosen)
}

/// The cheapest known term of a class.
#[derive(Clone)]
struct Term {
    node: usize,
    cost: u64,
    /// All classes it needs, its own among them.
    needs: FixedBitSet,
}

impl Term {
    /// The term of node `n` of class `c` over the terms of its children, if there is one.
    fn of(
        c: usize,
        n: usize,
        price: u64,
        children: impl Iterator<Item = usize>,
        best: &[Option<Term>],
        own: &[Vec<(&Node, u64)>],
    ) -> Option<Self> {
        let mut needs = FixedBitSet::with_capacity(best.len());
        for k in children {
            needs.union_with(&best[k].as_ref()?.needs);
        }
        if needs.put(c) {
            return None;
        }
        let cost = needs
            .ones()
            .filter(|&k| k != c)
            .filter_map(|k| Some(own[k][best[k].as_ref()?.node].1))
            .fold(price, u64::saturating_add);
        Some(Self {
            node: n,
            cost,
            needs,
        })
    }
}

/// The nodes that the roots reach; nothing if they come round in a circle.
fn follow<'g>(
    graph: &Graph,
    roots: &[Id],
    classes: &[Id],
    number: &BTreeMap<Id, usize>,
    chosen: &dyn Fn(usize) -> Option<&'g Node>,
) -> Option<Choice> {
    let mut choice = Choice::new();
    // (class, whether its children are done)
    let mut stack: Vec<(usize, bool)> = roots
        .iter()
        .map(|&r| (number[&graph.find(r)], false))
        .collect();
    let mut open = FixedBitSet::with_capacity(classes.len());
    while let Some((c, done)) = stack.pop() {
        let node = chosen(c)?;
        if done {
            open.remove(c);
            choice.insert(classes[c], node.clone());
        } else if !choice.contains_key(&classes[c]) {
            if open.put(c) {
                return None;
            }
            stack.push((c, true));
            for &k in node.children() {
                stack.push((number[&graph.find(k)], false));
            }
        }
    }
    Some(choice)
}

/// The cost of all chosen nodes together.
pub(super) fn total(graph: &Graph, choice: &Choice, cost: &dyn Fn(&Node, &Facts) -> u64) -> u64 {
    choice
        .iter()
        .map(|(&c, n)| cost(n, &graph[c].data))
        .fold(0, u64::saturating_add)
}
