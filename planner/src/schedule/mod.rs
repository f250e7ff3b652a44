//! Memory-aware scheduling: an order of instructions with a low peak of live bytes.
//!
//! Several heuristics order each computation, callees before callers; each order is
//! replayed (`measure.rs`) and the one with the lowest peak is kept. So the result is
//! never worse than the order of the text, which is always among the candidates. XLA's default
//! `HloMemoryScheduler` works alike; beyond it, orders that let in-place operations come after all
//! other readers of what they overwrite are preferred (`precedence.rs`), results that may take a
//! dying operand's bytes are not counted twice, and the peaks of called computations count.
//!
//! ```text
//! model        values, their sizes, who defines and who reads them, in one computation
//! precedence   who must come before whom
//! measure      peak of an order
//! list, dfs, post_order    heuristics
//! ```

mod dfs;
mod list;
mod measure;
mod model;
mod post_order;
mod precedence;
mod table;
#[cfg(test)]
mod tests;

use slabplan_ir::entity::SecondaryMap;
use slabplan_ir::{Bytes, CompId, InstrId, Module, Target};

use crate::error::PlanError;
use measure::{Peaks, measure};
use model::{Model, Region};

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
}

impl Candidate {
    /// All, in the order of preference between equal peaks.
    pub const ALL: [Candidate; 4] = [
        Candidate::Text,
        Candidate::List,
        Candidate::Dfs,
        Candidate::PostOrder,
    ];

    /// Name for people and for configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Candidate::Text => "text",
            Candidate::List => "list",
            Candidate::Dfs => "dfs",
            Candidate::PostOrder => "post-order",
        }
    }

    fn order(self, region: &Region) -> Vec<u32> {
        match self {
            Candidate::Text => (0..region.len()).collect(),
            Candidate::List => list::order(region),
            Candidate::Dfs => dfs::order(region),
            Candidate::PostOrder => post_order::order(region),
        }
    }
}

/// Settings of [`schedule`].
#[derive(Clone, Debug)]
pub struct ScheduleConfig {
    /// The orders to try; without any, the text's.
    pub candidates: Vec<Candidate>,
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self {
            candidates: Candidate::ALL.to_vec(),
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
    /// How the order was found.
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
}

impl Schedule {
    /// The peak of the whole program in memory space 0.
    pub fn peak(&self) -> Bytes {
        self.computations.last().map_or(Bytes::ZERO, |c| c.peak)
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
}

/// Finds an order of each planned computation of a verified module with a flat call graph.
///
/// Operands, control predecessors and the order of side effects (also those inside called
/// computations) are kept. Deterministic. Near O(E log E) in the uses of values.
///
/// # Errors
/// If a computation is called from several places, or a value has no size.
pub fn schedule(
    module: &Module,
    target: &Target,
    config: &ScheduleConfig,
) -> Result<Schedule, PlanError> {
    let model = Model::new(module)?;
    let mut peaks: SecondaryMap<CompId, Peaks> =
        SecondaryMap::filled(module.computations.len(), Peaks::new());
    let mut computations = Vec::new();
    for comp in module.planned_computations() {
        let region = Region::new(&model, comp, &peaks);
        let (candidate, order, peak) = best(&model, &region, target, config);
        computations.push(ComputationSchedule {
            computation: comp,
            order: order.iter().map(|&i| region.instrs[i as usize]).collect(),
            candidate,
            peak: Bytes::new(peak.first().copied().unwrap_or(0)).unwrap_or(Bytes::ZERO),
        });
        peaks[comp] = peak;
    }
    Ok(Schedule { computations })
}

fn best(
    model: &Model<'_>,
    region: &Region,
    target: &Target,
    config: &ScheduleConfig,
) -> (Candidate, Vec<u32>, Peaks) {
    let candidates = if config.candidates.is_empty() {
        &[Candidate::Text][..]
    } else {
        &config.candidates
    };
    candidates
        .iter()
        .map(|&candidate| {
            let order = candidate.order(region);
            debug_assert_eq!(order.len(), region.len() as usize);
            let peaks = measure(region, &order);
            (candidate, order, peaks)
        })
        .min_by_key(|(_, _, peaks)| cost(model, peaks, target))
        .expect("there is a candidate")
}

/// What is compared: bytes over the capacity of the other spaces, then space 0, then the rest.
///
/// The other spaces are small and were filled by whoever assigned them for one order in
/// particular; HBM is what a schedule is to save.
fn cost(model: &Model<'_>, peaks: &Peaks, target: &Target) -> (u64, u64, u64) {
    let (mut excess, mut rest) = (0u64, 0u64);
    for (&space, &peak) in model.spaces.iter().zip(peaks).skip(1) {
        if let Some(s) = target.space(space) {
            excess = excess.saturating_add(peak.saturating_sub(s.capacity.get()));
        }
        rest = rest.saturating_add(peak);
    }
    (excess, peaks.first().copied().unwrap_or(0), rest)
}
