//! The fewest bytes that can be live while one instruction runs, over all orders, and a downset that attains it.
//!
//! Before instruction `i` runs, some downset has run that holds what must come before `i`, and neither `i` nor what
//! must come after. A value is live then if its definition is in the downset and a reader is not. The least sum over all such
//! downsets is a minimum cut: the side of the source is the downset, a value is an arc from its definition to a node
//! of its own with endless arcs on to its readers, and every instruction has endless arcs to its predecessors.

use super::flow::{INFINITE, Network, SINK, SOURCE};
use super::graph::{Graph, GraphCall, HANDED_IN};

/// Where an instruction is when `i` runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It has run.
    Before,
    /// It runs now or later.
    After,
    /// Either.
    Free,
}

/// A minimum.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    /// The fewest bytes.
    pub(super) bytes: u64,
    /// The smallest and the largest downset that attain it.
    pub(super) downsets: [Vec<bool>; 2],
}

/// The places of all instructions when `i` runs, as far as precedences say.
pub(super) fn places(graph: &Graph, i: u32) -> Vec<Place> {
    let mut places = vec![Place::Free; graph.len() as usize];
    for (table, place) in [(&graph.before, Place::Before), (&graph.after, Place::After)] {
        let mut stack = vec![i];
        while let Some(at) = stack.pop() {
            for &next in table.row(at) {
                if places[next as usize] == Place::Free {
                    places[next as usize] = place;
                    stack.push(next);
                }
            }
        }
    }
    places[i as usize] = Place::After;
    places
}

/// The least cut at `i`, given `places`.
///
/// It may be lower than what any order attains in one respect: of several results that may lie on several operands,
/// more are counted as doing so than may.
pub(super) fn least(graph: &Graph, i: u32, places: &[Place]) -> Cut {
    let mut donors = Builder::new(graph, i, places).only_donors();
    if donors.len() < 2 {
        return Builder::new(graph, i, places).solve(None);
    }
    // The one result lies on one of these operands: one cut for each.
    donors.truncate(MAX_DONORS);
    let cuts = donors
        .iter()
        .map(|&d| Builder::new(graph, i, places).solve(Some(d)));
    cuts.min_by_key(|c| c.bytes).expect("there are donors")
}

/// Operands on which a single result may lie, above which they are not told apart.
const MAX_DONORS: usize = 4;

struct Builder<'a> {
    graph: &'a Graph,
    i: u32,
    places: &'a [Place],
    network: Network,
    node: Vec<u32>,
    fixed: u64,
}

impl<'a> Builder<'a> {
    fn new(graph: &'a Graph, i: u32, places: &'a [Place]) -> Self {
        let mut network = Network::new();
        let node: Vec<u32> = places
            .iter()
            .map(|p| match p {
                Place::Before => SOURCE,
                Place::After => SINK,
                Place::Free => network.add_node(),
            })
            .collect();
        for (k, &own) in node.iter().enumerate() {
            if own == SOURCE || own == SINK {
                continue;
            }
            for &p in graph.before.row(k as u32) {
                // A predecessor is never surely after what is free.
                if node[p as usize] != SOURCE {
                    network.add_arc(own, node[p as usize], INFINITE);
                }
            }
        }
        Self {
            graph,
            i,
            places,
            network,
            node,
            fixed: 0,
        }
    }

    /// The operands on which the one result of `i` may lie; none if there are more results, or too many operands.
    fn only_donors(&self) -> Vec<u32> {
        let results = self.graph.defines.row(self.i);
        if results.len() != 1 || self.graph.call(self.i).is_some() {
            return Vec::new();
        }
        let donors = self.graph.donors.row(results[0]).iter().copied();
        let donors: Vec<u32> = donors.filter(|&d| self.may_die(d)).collect();
        if donors.len() > MAX_DONORS {
            Vec::new()
        } else {
            donors
        }
    }

    /// With `donor`, the result lies on no other operand.
    fn solve(mut self, donor: Option<u32>) -> Cut {
        match self.graph.call(self.i) {
            None => self.add_operation(donor),
            Some(call) => self.add_call(call),
        }
        self.add_values();
        self.finish()
    }

    /// Results of `i`, less what may lie on operands that die there.
    fn add_operation(&mut self, donor: Option<u32>) {
        let (graph, i) = (self.graph, self.i);
        let mut results = 0u64;
        let mut caps: Vec<(u32, u64)> = Vec::new();
        for &v in graph.defines.row(i) {
            self.fixed += graph.bytes(v);
            let mut largest = 0;
            for &d in graph.donors.row(v) {
                if donor.is_none_or(|only| only == d) && self.may_die(d) {
                    let cap = graph.bytes(d).min(graph.bytes(v));
                    largest = largest.max(cap);
                    match caps.iter_mut().find(|c| c.0 == d) {
                        Some(c) => c.1 = c.1.max(cap),
                        None => caps.push((d, cap)),
                    }
                }
            }
            results += largest;
        }
        let donors: u64 = caps.iter().map(|c| c.1).sum();
        self.fixed -= results.min(donors);
        if donors <= results {
            // Each is spared only if the other readers of the donor have run.
            for (d, cap) in caps {
                self.add_value(HANDED_IN, &self.other_readers(d), cap);
            }
        }
    }

    fn other_readers(&self, v: u32) -> Vec<u32> {
        let users = self.graph.users.row(v).iter().copied();
        users.filter(|&u| u != self.i).collect()
    }

    /// Whether `d` may die at `i`: no reader surely comes later.
    fn may_die(&self, d: u32) -> bool {
        let value = self.graph.values[d as usize];
        !value.outlives
            && self
                .graph
                .users
                .row(d)
                .iter()
                .all(|&u| u == self.i || self.places[u as usize] != Place::After)
            && self.graph.uses.row(self.i).binary_search(&d).is_ok()
    }

    /// Operands that the callees know are counted inside, those that last also afterwards.
    fn add_call(&mut self, call: &GraphCall) {
        let graph = self.graph;
        let lasting = call
            .inside
            .iter()
            .filter(|&&v| graph.values[v as usize].outlives);
        let results = graph.defines.row(self.i).iter();
        let after: u64 = lasting.chain(results).map(|&v| graph.bytes(v)).sum();
        self.fixed += call.inner.max(after);
    }

    fn add_values(&mut self) {
        let graph = self.graph;
        let call = graph.call(self.i);
        for (v, value) in (0..).zip(&graph.values) {
            let later =
                value.definer != HANDED_IN && self.places[value.definer as usize] == Place::After;
            // A result of `i` is after it too.
            if later || call.is_some_and(|c| c.inside.binary_search(&v).is_ok()) {
                continue;
            }
            if value.outlives {
                self.add_arc(value.definer, SINK, value.bytes);
            } else if call.is_some() && graph.users.row(v).binary_search(&self.i).is_ok() {
                // Handed over, it lives on only for others.
                self.add_value(value.definer, &self.other_readers(v), value.bytes);
            } else {
                self.add_value(value.definer, graph.users.row(v), value.bytes);
            }
        }
    }

    /// A value that is live if its definition has run and one of `readers` has not.
    fn add_value(&mut self, definer: u32, readers: &[u32], bytes: u64) {
        let nodes = readers.iter().map(|&u| self.node[u as usize]);
        let mut open: Vec<u32> = nodes.filter(|&n| n != SOURCE).collect();
        if open.contains(&SINK) {
            return self.add_arc(definer, SINK, bytes);
        }
        open.sort_unstable();
        open.dedup();
        match open[..] {
            [] => {}
            [one] => self.add_arc(definer, one, bytes),
            _ => {
                let node = self.network.add_node();
                self.add_arc(definer, node, bytes);
                for reader in open {
                    self.network.add_arc(node, reader, INFINITE);
                }
            }
        }
    }

    fn add_arc(&mut self, definer: u32, to: u32, bytes: u64) {
        let from = if definer == HANDED_IN {
            SOURCE
        } else {
            self.node[definer as usize]
        };
        if (from, to) == (SOURCE, SINK) {
            self.fixed = self.fixed.saturating_add(bytes);
        } else if from != SINK {
            self.network.add_arc(from, to, bytes);
        }
    }

    fn finish(mut self) -> Cut {
        let flow = self.network.fill();
        let sides = [self.network.near_source(), self.network.away_from_sink()];
        let downsets = sides.map(|side| {
            let node = self.node.iter();
            node.map(|&n| n == SOURCE || (n != SINK && side[n as usize]))
                .collect()
        });
        Cut {
            bytes: self.fixed.saturating_add(flow),
            downsets,
        }
    }
}
