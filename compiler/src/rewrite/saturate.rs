//! Applies rules until nothing new comes, or a limit is met. No clock decides.

use std::time::Duration;

use egg::{Runner, SimpleScheduler, StopReason};

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
        .with_scheduler(SimpleScheduler)
        .with_iter_limit(limits.rounds)
        .with_node_limit(limits.nodes)
        .with_time_limit(Duration::MAX)
        .run(&rewrites);
    let full = runner.egraph.total_size() > limits.nodes;
    let stop = match runner.stop_reason {
        // Rules stop adding at the limit, which may look like having nothing to add.
        _ if full => Stop::Nodes(limits.nodes),
        Some(StopReason::Saturated) => Stop::Saturated,
        Some(StopReason::NodeLimit(_)) => Stop::Nodes(limits.nodes),
        _ => Stop::Rounds(limits.rounds),
    };
    (runner.egraph, stop)
}
