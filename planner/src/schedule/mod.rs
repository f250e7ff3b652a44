//! Memory-aware scheduling: an order of instructions with a low peak of live bytes, and a bound for all orders.
//!
//! Simple heuristics order each computation, callees before callers, and the orders are improved: at the peak, a
//! minimum cut says what should have run by then. The result is never worse than the order of the text, which is
//! always among the candidates. XLA's default `HloMemoryScheduler` has the simple heuristics; beyond it, orders that let
//! in-place operations come after all other readers of what they overwrite are preferred, results that may
//! take a dying operand's bytes are not counted twice, and the peaks of called computations count.
//!
//! ```text
//! model, region            values, their sizes, who defines and who reads them, in the module and in one computation
//! precedence, distance     who must come before whom
//! graph                    one memory space of a region; what each step of an order needs
//! list, dfs, post_order    simple heuristics
//! greedy                   list scheduling from both ends, and settling
//! cut, flow                the least that can be live at an instruction
//! improve, search, branch  lower the peak
//! bound                    the certificate
//! nest                     the same peak, easier to pack
//! ```

mod bound;
mod branch;
mod cut;
mod dfs;
mod distance;
mod flow;
mod graph;
mod greedy;
mod improve;
mod list;
mod model;
mod nest;
mod post_order;
mod precedence;
mod region;
mod search;
mod table;
#[cfg(test)]
mod tests;

use slabplan_ir::entity::SecondaryMap;
use slabplan_ir::{Bytes, CompId, InstrId, Module, Target};
use smallvec::SmallVec;

use crate::error::PlanError;
use crate::pack::Effort;
use bound::Aim;
use branch::Answer;
use graph::{Backwards, Forwards, Graph, View};
use greedy::Prefer;
use improve::{Work, improve, settle};
use model::Model;
use region::Region;

/// Bytes by memory space, in the order of `Model::spaces`.
type Peaks = SmallVec<[u64; 4]>;

/// How an order is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// The order of the text: of a scheduled module its schedule.
    Text,
    /// Greedy: next whatever frees most bytes, net of those it defines.
    List,
    /// Depth first from the results, the operand with most users and bytes behind it first.
    Dfs,
    /// Depth first from the results, operands in their order.
    PostOrder,
    /// Greedy from the first instruction on: next whatever leaves the fewest bytes.
    Forward,
    /// Greedy from the last instruction back: before it whatever then leaves the fewest bytes.
    Backward,
}

impl Candidate {
    /// All, in the order of preference between equal peaks.
    pub const ALL: [Candidate; 6] = [
        Candidate::Text,
        Candidate::List,
        Candidate::Dfs,
        Candidate::PostOrder,
        Candidate::Forward,
        Candidate::Backward,
    ];

    /// Name for people and for configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Candidate::Text => "text",
            Candidate::List => "list",
            Candidate::Dfs => "dfs",
            Candidate::PostOrder => "post-order",
            Candidate::Forward => "forward",
            Candidate::Backward => "backward",
        }
    }

    fn order(self, region: &Region, graph: &Graph) -> Vec<u32> {
        let text = 0..region.len();
        match self {
            Candidate::Text => text.collect(),
            Candidate::List => list::order(region),
            Candidate::Dfs => dfs::order(region),
            Candidate::PostOrder => post_order::order(region),
            Candidate::Forward => {
                let rank: Vec<u32> = text.collect();
                greedy::order(Forwards::new(graph), &rank, Prefer::Level, 0)
            }
            Candidate::Backward => {
                let rank: Vec<u32> = text.rev().collect();
                let mut order = greedy::order(Backwards::new(graph), &rank, Prefer::Level, 0);
                order.reverse();
                order
            }
        }
    }
}

/// Settings of [`schedules`].
#[derive(Clone, Debug)]
pub struct ScheduleConfig {
    /// The orders to start from; without any, the text's.
    pub candidates: Vec<Candidate>,
    /// Whether to improve them.
    pub improve: bool,
    /// How much work to put in.
    pub effort: Effort,
    /// Whether everything that runs between start and done of an asynchronous operation in the text must stay there,
    /// so that the operation overlaps with as much as before. More may move in between.
    pub keep_async_distance: bool,
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self {
            candidates: Candidate::ALL.to_vec(),
            improve: true,
            effort: Effort::Default,
            keep_async_distance: true,
        }
    }
}

impl ScheduleConfig {
    /// The text's order, not improved: only measured, and bounded.
    pub fn keep() -> Self {
        Self {
            candidates: vec![Candidate::Text],
            improve: false,
            effort: Effort::Fast,
            ..Self::default()
        }
    }

    /// The work for a computation of so many instructions.
    fn work(&self, instrs: u32) -> Work {
        let (steps, downsets, branches) = match self.effort {
            // Only the bound.
            _ if !self.improve => (1 << 17, 1_000, 10),
            Effort::Fast => (1 << 19, 20_000, 20),
            Effort::Default => (4 << 20, 100_000, 200),
            Effort::Max => (256 << 20, 4_000_000, 5_000),
        };
        Work {
            rounds: steps / (instrs as usize + 64),
            downsets,
            branches,
        }
    }
}

/// The order chosen for one computation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComputationSchedule {
    /// The computation.
    pub computation: CompId,
    /// Its instructions, each once.
    pub order: Vec<InstrId>,
    /// What the order was found from.
    pub candidate: Candidate,
    /// Most bytes of memory space 0 that are live at once while it runs, with its parameters, its
    /// result and what it calls; of the entry, with constants. Fragmentation is not counted.
    pub peak: Bytes,
}

/// Orders of all planned computations of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Callees before callers; the last is the entry.
    pub computations: Vec<ComputationSchedule>,
    bound: Bytes,
    /// Whether all orders are the text's.
    is_text: bool,
    /// Whether it comes from [`nested`].
    is_nested: bool,
}

impl Schedule {
    /// The peak of the whole program in memory space 0.
    pub fn peak(&self) -> Bytes {
        self.computations.last().map_or(Bytes::ZERO, |c| c.peak)
    }

    /// What the entry's order was found from: `text` if all orders are the text's own.
    pub fn origin(&self) -> &'static str {
        if self.is_nested {
            return "nested arguments";
        }
        if self.is_text {
            return Candidate::Text.name();
        }
        let candidate = self.computations.last().map(|c| c.candidate);
        match candidate {
            Some(Candidate::Text) | None => "text, improved",
            Some(other) => other.name(),
        }
    }

    /// The certificate: no order of this program, and no packing of it, needs fewer bytes of memory space 0.
    ///
    /// Sizes count in steps of the space's alignment, but for the last step of the slab.
    pub fn bound(&self) -> Bytes {
        self.bound
    }

    /// Makes these orders the module's schedule. Computations that run inside one instruction keep theirs.
    pub fn apply(&self, module: &mut Module) {
        for c in &self.computations {
            module.computations[c.computation]
                .instrs
                .clone_from(&c.order);
        }
        module.is_scheduled = true;
    }

    fn same_orders(&self, other: &Self) -> bool {
        let orders = self.computations.iter().zip(&other.computations);
        orders.into_iter().all(|(a, b)| a.order == b.order)
    }
}

/// Finds an order of each planned computation of a verified module with a flat call graph: the first of
/// [`schedules`].
///
/// # Errors
/// If a computation is called from several places, or a value has no size.
pub fn schedule(
    module: &Module,
    target: &Target,
    config: &ScheduleConfig,
) -> Result<Schedule, PlanError> {
    let mut all = schedules(module, target, config)?;
    Ok(all.swap_remove(0))
}

/// Finds orders of the planned computations of a verified module with a flat call graph, lowest peak first,
/// each different from the others. The text's is among them.
///
/// Packing has the last word: which of them needs the smallest slab is not known here.
///
/// Operands, control predecessors and the order of side effects (also those inside called
/// computations) are kept. Deterministic. Near O(E log E) in the uses of values for the simple heuristics;
/// what improving them may take is bounded by the effort.
///
/// # Errors
/// If a computation is called from several places, or a value has no size.
pub fn schedules(
    module: &Module,
    target: &Target,
    config: &ScheduleConfig,
) -> Result<Vec<Schedule>, PlanError> {
    let model = Model::new(module, target)?;
    let rules = model.share_rules();
    let mut plans: Vec<Plan> = Plan::wanted(config)
        .into_iter()
        .map(|from| Plan::new(module, from))
        .collect();
    let mut bounds = SecondaryMap::filled(module.computations.len(), 0u64);
    for comp in module.planned_computations() {
        let region = Region::new(&model, &rules, comp, config.keep_async_distance);
        for plan in &mut plans {
            plan.add(&model, &region, comp, config);
        }
        let best = plans.iter().min_by_key(|p| p.peaks[comp][0]);
        let order = &best.expect("the text is a plan").last;
        add_bound(&mut bounds, module, &region, comp, order, config);
    }
    let bound = in_bytes(bounds[module.entry], target, model.least_tail);
    let mut found: Vec<Schedule> = Vec::new();
    plans.sort_by_key(|p| p.cost(&model, module.entry));
    for plan in plans {
        let schedule = Schedule {
            is_text: !plan.improve && plan.starts == [Candidate::Text],
            is_nested: false,
            computations: plan.computations,
            bound,
        };
        if !found.iter().any(|f| f.same_orders(&schedule)) {
            found.push(schedule);
        }
    }
    Ok(found)
}

/// Orders like `schedule` with no higher peak in which the donated arguments' bytes are free at times
/// that lie one inside the other; see `nest`. None where they do so already.
///
/// O(E log E) in the uses of values.
///
/// # Errors
/// As [`schedules`].
pub fn nested(
    module: &Module,
    target: &Target,
    config: &ScheduleConfig,
    schedule: &Schedule,
) -> Result<Vec<Schedule>, PlanError> {
    let model = Model::new(module, target)?;
    let Some((entry, callees)) = schedule.computations.split_last() else {
        return Ok(Vec::new());
    };
    let rules = model.share_rules();
    let distance = config.keep_async_distance;
    let region = Region::new(&model, &rules, entry.computation, distance);
    let mut number = SecondaryMap::filled(module.instrs.len(), 0u32);
    for (k, &i) in (0..).zip(&region.instrs) {
        number[i] = k;
    }
    let order: Vec<u32> = entry.order.iter().map(|&i| number[i]).collect();
    let inner = |c: CompId| {
        let callee = callees.iter().find(|s| s.computation == c);
        callee.map_or(0, |s| s.peak.get())
    };
    let graph = Graph::new(&region, 0, View::Plan, inner);
    let found = nest::nested(&region, &graph, &order).into_iter();
    let like = |order: Vec<u32>| {
        let mut like = schedule.clone();
        let entry = like.computations.last_mut().expect("the entry is last");
        entry.order = order.iter().map(|&i| region.instrs[i as usize]).collect();
        like.is_nested = true;
        like
    };
    Ok(found.map(like).collect())
}

/// The certificate alone ([`Schedule::bound`]), for a module that keeps its order.
///
/// Near O(E log E) in the uses of values.
///
/// # Errors
/// As [`schedules`].
pub fn bound_of_all_orders(module: &Module, target: &Target) -> Result<Bytes, PlanError> {
    let config = ScheduleConfig::keep();
    let model = Model::new(module, target)?;
    let rules = model.share_rules();
    let mut bounds = SecondaryMap::filled(module.computations.len(), 0u64);
    for comp in module.planned_computations() {
        let region = Region::new(&model, &rules, comp, config.keep_async_distance);
        let text: Vec<u32> = (0..region.len()).collect();
        add_bound(&mut bounds, module, &region, comp, &text, &config);
    }
    Ok(in_bytes(bounds[module.entry], target, model.least_tail))
}

/// Bounds `region`, whose callees are done; `order` is the best that is known.
fn add_bound(
    bounds: &mut SecondaryMap<CompId, u64>,
    module: &Module,
    region: &Region,
    comp: CompId,
    order: &[u32],
    config: &ScheduleConfig,
) {
    let graph = Graph::new(region, 0, View::Bound, |c| bounds[c]);
    let mut work = config.work(region.len());
    if !config.improve && module.instrs.len() > LARGEST_WITH_CUTS {
        work.rounds = 0;
    }
    let aim = if config.improve {
        Aim::Highest
    } else {
        Aim::IsBest
    };
    bounds[comp] = bound::bound(&graph, region.handed_in_together, order, aim, work);
    if comp == module.entry {
        bounds[comp] = bounds[comp].saturating_add(region.base[0]);
    }
}

/// Instructions of a module, above which its own order is bounded without minimum cuts: near-linear, and little of it.
const LARGEST_WITH_CUTS: usize = 1 << 17;

/// A bound in whole steps of the alignment as one in bytes: whatever ends highest fills part of its last step.
fn in_bytes(steps: u64, target: &Target, least_tail: u64) -> Bytes {
    let step = target.space(0).map_or(1, |s| s.alignment.get());
    let bytes = if steps == 0 {
        0
    } else {
        steps - step + least_tail.min(step)
    };
    Bytes::new(bytes).unwrap_or(Bytes::ZERO)
}

/// A schedule of the whole module in the making: its computations' orders come from the same starts.
struct Plan {
    starts: Vec<Candidate>,
    improve: bool,
    peaks: SecondaryMap<CompId, Peaks>,
    computations: Vec<ComputationSchedule>,
    /// The order of the last computation by the region's numbers.
    last: Vec<u32>,
}

impl Plan {
    /// The text; the best of all; with more than little work the best of what does not start from the text, which packs
    /// differently.
    fn wanted(config: &ScheduleConfig) -> Vec<(Vec<Candidate>, bool)> {
        let all = config.candidates.clone();
        let others: Vec<Candidate> = all
            .iter()
            .copied()
            .filter(|&c| c != Candidate::Text)
            .collect();
        let mut wanted = vec![(vec![Candidate::Text], false)];
        if config.improve || !others.is_empty() {
            wanted.push((all, config.improve));
        }
        if config.improve && !others.is_empty() && config.effort != Effort::Fast {
            wanted.push((others, true));
        }
        wanted
    }

    fn new(module: &Module, (starts, improve): (Vec<Candidate>, bool)) -> Self {
        Self {
            starts,
            improve,
            peaks: SecondaryMap::filled(module.computations.len(), Peaks::new()),
            computations: Vec::new(),
            last: Vec::new(),
        }
    }

    /// Orders `region`; its callees are done.
    fn add(&mut self, model: &Model<'_>, region: &Region, comp: CompId, config: &ScheduleConfig) {
        let space = |k: usize| {
            let inner = |c: CompId| self.peaks[c].get(k).copied().unwrap_or(0);
            Graph::new(region, k as u8, View::Plan, inner)
        };
        let spaces: Vec<Graph> = (0..model.spaces.len()).map(space).collect();
        let (candidate, order) = self.best(region, &spaces, config);
        let base = region.base.iter();
        let peaks: Peaks = spaces
            .iter()
            .zip(base)
            .map(|(g, &base)| g.peak(&order).saturating_add(base))
            .collect();
        self.computations.push(ComputationSchedule {
            computation: comp,
            order: order.iter().map(|&i| region.instrs[i as usize]).collect(),
            candidate,
            peak: Bytes::new(peaks[0]).unwrap_or(Bytes::ZERO),
        });
        self.peaks[comp] = peaks;
        self.last = order;
    }

    fn best(
        &self,
        region: &Region,
        spaces: &[Graph],
        config: &ScheduleConfig,
    ) -> (Candidate, Vec<u32>) {
        let graph = &spaces[0];
        let cost = |order: &[u32]| excess(spaces, order);
        let mut orders: Vec<(Candidate, Vec<u32>)> = Vec::new();
        for &start in &self.starts {
            let order = start.order(region, graph);
            debug_assert_eq!(order.len(), region.len() as usize);
            if self.improve {
                orders.push((start, settle(graph, &order, graph.peak(&order))));
            }
            orders.push((start, order));
        }
        // The lowest first; improving them is dear.
        orders.sort_by_cached_key(|(_, order)| graph.peak(order));
        if self.improve {
            let mut work = config.work(region.len());
            let mut improved: Vec<(Candidate, Vec<u32>)> = Vec::new();
            let mut settled = false;
            for (start, order) in &orders {
                let (order, proved) = improve(graph, order.clone(), 0, &mut work);
                improved.push((*start, order));
                settled = proved;
                if proved {
                    break;
                }
            }
            if !settled {
                let best = improved.iter().min_by_key(|(_, order)| graph.peak(order));
                let best = best.expect("there is a start").clone();
                improved.push((best.0, decide(graph, best.1, &mut work)));
            }
            orders.extend(improved);
        }
        let best = orders
            .into_iter()
            .min_by_key(|(start, order)| (cost(order), *start != Candidate::Text));
        best.expect("there is a start")
    }

    /// What is compared between whole schedules.
    fn cost(&self, model: &Model<'_>, entry: CompId) -> (u64, u64, bool) {
        let peaks = &self.peaks[entry];
        debug_assert_eq!(peaks.len(), model.spaces.len());
        let others = peaks[1..]
            .iter()
            .fold(0u64, |sum, &p| sum.saturating_add(p));
        (peaks[0], others, self.improve)
    }
}

/// Improves `order` by asking which of two instructions comes first.
fn decide(graph: &Graph, mut order: Vec<u32>, work: &mut Work) -> Vec<u32> {
    loop {
        let limit = graph.peak(&order).saturating_sub(1);
        match branch::within(graph, &order, limit, work) {
            Answer::Order(better) => order = better,
            Answer::None | Answer::Unknown => return order,
        }
    }
}

/// What is compared between orders of a computation: bytes of the other spaces over what the text needs there, then
/// the peak in space 0, then the rest.
///
/// The other spaces are small and were filled by whoever assigned them for one order in particular; HBM is what a
/// schedule is to save.
fn excess(spaces: &[Graph], order: &[u32]) -> (u64, u64, u64) {
    let text: Vec<u32> = (0..order.len() as u32).collect();
    let (mut excess, mut rest) = (0u64, 0u64);
    for graph in &spaces[1..] {
        if graph.values.is_empty() {
            continue;
        }
        let peak = graph.peak(order);
        excess = excess.saturating_add(peak.saturating_sub(graph.peak(&text)));
        rest = rest.saturating_add(peak);
    }
    (excess, spaces[0].peak(order), rest)
}
