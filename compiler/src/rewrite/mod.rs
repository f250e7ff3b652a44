//! Rewrites by equality saturation.
//!
//! Regions of views, moves, elementwise operations and reductions become e-graphs; rules add
//! equal forms; a form of each region is extracted for few padded bytes. Peak memory is not a sum
//! over nodes, so what is extracted only proposes: each candidate program is planned, and the plan
//! decides (`choose.rs`).
//!
//! ```text
//! computation --region--> regions --lower--> e-graph --saturate(rules)--> e-graph
//!     --extract(cost)--> chosen nodes --raise--> computation
//! ```
//!
//! Everything else (products, convolutions, loops, side effects) is an opaque leaf. Nothing of egg is
//! visible outside this module.

mod cost;
mod extract;
mod lang;
mod raise;
mod region;
mod rules;
mod saturate;
#[cfg(test)]
mod tests;

pub use cost::CostView;
pub use saturate::{RewriteLimits, Stop};

use std::collections::BTreeMap;

use rayon::prelude::*;
use slabplan_ir::edit::Names;
use slabplan_ir::verify::verify;
use slabplan_ir::{CompId, Module, Target};

use cost::Prices;
use extract::{Choice, extract, total};
use raise::{Chosen, raise};
use region::{Lowered, Region, lower, regions};
use rules::{RULES, Rule};
use saturate::saturate;

/// What became of one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionReport {
    /// Its computation.
    pub computation: String,
    /// The first instruction whose value it gives to others, and where that comes from.
    pub root: String,
    /// `op_name` of that instruction: the path in the user's program.
    pub op_name: Option<String>,
    /// Instructions before.
    pub instructions: usize,
    /// Nodes of the e-graph in the end.
    pub nodes: usize,
    /// Why no more rules were applied.
    pub stop: Stop,
    /// Rules that made a node of the chosen form or showed two values of the region equal.
    pub rules: Vec<&'static str>,
    /// Padded bytes of its values before and after, by the candidate's view; equal where it stays.
    pub before: u64,
    /// See `before`.
    pub after: u64,
}

/// A program with rewritten regions.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// How values were counted.
    pub view: CostView,
    /// The program.
    pub module: Module,
    /// All regions.
    pub regions: Vec<RegionReport>,
}

/// One row of the rule table, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleDescription {
    /// Name.
    pub name: &'static str,
    /// When it applies.
    pub condition: &'static str,
    /// Why both sides are equal.
    pub soundness: &'static str,
}

/// All rules.
pub fn rules() -> impl Iterator<Item = RuleDescription> {
    RULES.iter().map(|r| RuleDescription {
        name: r.name,
        condition: r.condition,
        soundness: r.soundness,
    })
}

/// What saturation found.
#[derive(Clone, Debug)]
pub struct Proposals {
    /// All regions as they are, each with what was tried and why no more was.
    pub regions: Vec<RegionReport>,
    /// Programs equal to the one given; the message of one that was dropped says why.
    pub candidates: Vec<Result<Candidate, String>>,
}

/// Programs equal to `module`, which must be verified, unscheduled and without given layouts.
///
/// One for each way to count values; a candidate in which nothing changed is left out, and one that can't be put in order
/// or does not verify is dropped with a message. Bounded by `limits` in each region, so linear in the number of
/// regions. Deterministic.
pub fn candidates(module: &Module, target: &Target, limits: RewriteLimits) -> Proposals {
    let saturated = saturate_all(module, RULES, limits);
    let prices = Prices::new(target);
    let price = |n: &lang::Node, f: &lang::Facts| prices.of(CostView::Values, n, f);
    let unchanged = |s: &Saturated| {
        let bytes = s.region_cost(&price);
        s.report(module, Vec::new(), bytes, bytes)
    };
    let candidates = CostView::ALL.into_iter();
    Proposals {
        regions: saturated.iter().map(unchanged).collect(),
        candidates: candidates
            .filter_map(|view| candidate(module, &saturated, &prices, view).transpose())
            .collect(),
    }
}

/// A region with all its equal forms.
struct Saturated {
    comp: CompId,
    region: Region,
    lowered: Lowered,
    stop: Stop,
    /// The form it had.
    original: Choice,
}

/// Regions side by side, which know nothing of each other.
fn saturate_all(module: &Module, rules: &[Rule], limits: RewriteLimits) -> Vec<Saturated> {
    let of_computation = |comp| {
        let regions = regions(module, comp, limits.region).into_iter();
        regions.map(move |region| (comp, region))
    };
    let all: Vec<(CompId, Region)> = module
        .planned_computations()
        .into_iter()
        .flat_map(of_computation)
        .collect();
    let saturated = all.into_par_iter().map(|(comp, region)| {
        let mut lowered = lower(module, &region);
        let (graph, stop) = saturate(lowered.graph, rules, limits);
        lowered.graph = graph;
        let original = lowered.original(&region);
        Saturated {
            comp,
            region,
            lowered,
            stop,
            original,
        }
    });
    saturated.collect()
}

fn candidate(
    module: &Module,
    saturated: &[Saturated],
    prices: &Prices<'_>,
    view: CostView,
) -> Result<Option<Candidate>, String> {
    let price = |n: &lang::Node, f: &lang::Facts| prices.of(view, n, f);
    let mut reports = Vec::new();
    let mut choices = Choices::new();
    for (n, s) in saturated.iter().enumerate() {
        let graph = &s.lowered.graph;
        let roots: Vec<egg::Id> = s
            .region
            .roots
            .iter()
            .map(|r| s.lowered.class_of[r])
            .collect();
        let before = s.region_cost(&price);
        let found = extract(graph, &roots, &price)
            .map(|c| (total(graph, &c, &price), c))
            .filter(|(after, _)| *after < before);
        let after = found.as_ref().map_or(before, |(after, _)| *after);
        let rules = found.as_ref().map_or_else(Vec::new, |(_, c)| s.rules(c));
        reports.push(s.report(module, rules, before, after));
        if let Some((_, choice)) = found {
            choices.entry(s.comp).or_default().push((n, choice));
        }
    }
    if choices.is_empty() {
        return Ok(None);
    }
    let module = written(module, saturated, &choices)
        .map_err(|e| format!("rewrite ({}), left as it is: {e}", view.name()))?;
    Ok(Some(Candidate {
        view,
        module,
        regions: reports,
    }))
}

/// The forms chosen for regions, by computation: number of the region, and its nodes.
type Choices = BTreeMap<CompId, Vec<(usize, Choice)>>;

/// `module` with the chosen forms, verified.
fn written(module: &Module, saturated: &[Saturated], choices: &Choices) -> Result<Module, String> {
    let mut rewritten = module.clone();
    let mut names = Names::new(module);
    for (comp, chosen) in choices {
        let chosen: Vec<Chosen<'_>> = chosen
            .iter()
            .map(|(n, choice)| Chosen {
                region: &saturated[*n].region,
                lowered: &saturated[*n].lowered,
                choice,
            })
            .collect();
        if !raise(&mut rewritten, *comp, &chosen, &mut names) {
            let name = module.comp_name(*comp);
            return Err(format!("%{name} can't be put in order"));
        }
    }
    rewritten.remove_unlisted();
    match verify(&rewritten) {
        Ok(_) => Ok(rewritten),
        Err(e) => Err(format!("the result is not valid: {e}")),
    }
}

impl Saturated {
    /// Cost of the region as it was: each instruction, those with equal values included.
    fn region_cost(&self, price: &dyn Fn(&lang::Node, &lang::Facts) -> u64) -> u64 {
        self.region
            .instrs
            .iter()
            .map(|i| {
                let (op, children) = &self.lowered.nodes_before[i];
                let class = self.lowered.class_of[i];
                let node = lang::Node::new(op.clone(), children);
                price(&node, &self.lowered.graph[class].data)
            })
            .fold(0, u64::saturating_add)
    }

    /// The rules behind a choice.
    fn rules(&self, choice: &Choice) -> Vec<&'static str> {
        let graph = &self.lowered.graph;
        let canonical = |node: &lang::Node| {
            let mut node = node.clone();
            for c in &mut node.children {
                *c = graph.find(*c);
            }
            node
        };
        let chosen: std::collections::BTreeSet<lang::Node> =
            choice.values().map(canonical).collect();
        let made = graph.analysis.made.iter();
        let made = made
            .filter(|(n, _)| chosen.contains(&canonical(n)))
            .map(|(_, rule)| *rule);
        let region: std::collections::BTreeSet<egg::Id> = self
            .lowered
            .class_of
            .values()
            .map(|&c| graph.find(c))
            .collect();
        let joined = graph.analysis.joined.iter();
        let joined = joined
            .filter(|(c, _)| {
                let class = graph.find(*c);
                region.contains(&class) && choice.get(&class) != self.original.get(&class)
            })
            .map(|(_, rule)| *rule);
        let mut rules: Vec<&'static str> = made.chain(joined).collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }

    fn report(
        &self,
        module: &Module,
        rules: Vec<&'static str>,
        before: u64,
        after: u64,
    ) -> RegionReport {
        let root = self.region.roots[0];
        RegionReport {
            computation: module.comp_name(self.comp).to_owned(),
            root: module.name_of(root).to_owned(),
            op_name: module.op_name(root).map(str::to_owned),
            instructions: self.region.instrs.len(),
            nodes: self.lowered.graph.total_number_of_nodes(),
            stop: self.stop.clone(),
            rules,
            before,
            after,
        }
    }
}
