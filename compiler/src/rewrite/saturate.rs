//! Applies rules until nothing new comes, or a limit is met. No clock decides.
//!
//! Where a class holds views of itself, the forms that rules add are old ones, which show as such only after a rebuild.
//! So the graph is rebuilt after every rule, and the limit is on the nodes that are then left.

use std::time::Duration;

use egg::{RewriteScheduler, Runner, SearchMatches, StopReason};

use super::lang::{Graph, Node, Tables};
use super::rules::{Everywhere, Rule};

/// How much may be tried in one region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RewriteLimits {
    /// Most instructions of a region.
    pub region: usize,
    /// Most nodes of its e-graph.
    pub nodes: usize,
    /// Most rounds over all rules.
    pub rounds: usize,
}

impl Default for RewriteLimits {
    fn default() -> Self {
        Self {
            region: 200,
            nodes: 3000,
            rounds: 10,
        }
    }
}

/// Why no more rules were applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// No rule has anything to add: the region is saturated.
    Saturated,
    /// Too many nodes.
    Nodes(usize),
    /// Too many rounds.
    Rounds(usize),
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stop::Saturated => f.write_str("saturated"),
            Stop::Nodes(n) => write!(f, "limit of {n} nodes"),
            Stop::Rounds(n) => write!(f, "limit of {n} rounds"),
        }
    }
}

/// The graph with all equalities that `rules` find within `limits`.
pub(super) fn saturate(graph: Graph, rules: &[Rule], limits: RewriteLimits) -> (Graph, Stop) {
    let rewrites: Vec<egg::Rewrite<Node, Tables>> = rules
        .iter()
        .filter_map(|r| {
            let side = Everywhere {
                name: r.name,
                apply: r.apply,
            };
            egg::Rewrite::new(r.name, side, side).ok()
        })
        .collect();
    let runner = Runner::<Node, Tables>::new(Tables::default())
        .with_egraph(graph)
        .with_scheduler(Rebuilds {
            nodes: limits.nodes,
            round: 0,
        })
        .with_iter_limit(limits.rounds)
        .with_node_limit(limits.nodes * NAMES_PER_NODE)
        .with_time_limit(Duration::MAX)
        .run(&rewrites);
    let stop = match runner.stop_reason {
        // Rules stop adding at the limit, which may look like having nothing to add.
        _ if runner.egraph.analysis.is_cut_short => Stop::Nodes(limits.nodes),
        Some(StopReason::Saturated) => Stop::Saturated,
        Some(StopReason::NodeLimit(_)) => Stop::Nodes(limits.nodes),
        _ => Stop::Rounds(limits.rounds),
    };
    (runner.egraph, stop)
}

/// The graph keeps every name that a node once had; it may have so many of them for each node that is allowed.
const NAMES_PER_NODE: usize = 16;

/// Applies each rule to what it found, and rebuilds.
struct Rebuilds {
    /// Most nodes.
    nodes: usize,
    /// The round of the last rule.
    round: usize,
}

impl RewriteScheduler<Node, Tables> for Rebuilds {
    fn apply_rewrite(
        &mut self,
        round: usize,
        graph: &mut Graph,
        rule: &egg::Rewrite<Node, Tables>,
        matches: Vec<SearchMatches<'_, Node>>,
    ) -> usize {
        if round != self.round {
            self.round = round;
            graph.analysis.is_cut_short = false;
        }
        let left = self.nodes.saturating_sub(graph.total_number_of_nodes());
        graph.analysis.most_names = graph.total_size() + left;
        let joined = rule.apply(graph, &matches).len();
        graph.rebuild();
        joined
    }
}
