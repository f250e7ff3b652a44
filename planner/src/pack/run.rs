//! The entry point: heuristics first, then search, until the bound is met or the effort is spent.

use super::bound::lower_bound;
use super::eject;
use super::heuristics::{Heuristic, Start, squeak};
use super::large;
use super::model::Model;
use super::packing::{Control, Effort, PackConfig, Packing, Progress};
use super::problem::{Problem, ProblemError};
use super::scale::Scaled;
use super::search::{Space, Standing, improve};
use super::share;
use super::share_options::shared_pairs;
use super::sweep::check_fixed;

/// Packs `problem` as low as the effort allows. `watch` hears of progress every thousand nodes or so and may stop the
/// search; the best packing so far is then returned. The result depends on the problem and the configuration alone, and
/// not on the order of the buffers.
pub fn pack(
    problem: &Problem,
    config: &PackConfig,
    watch: &mut dyn FnMut(&Progress) -> Control,
) -> Result<Packing, ProblemError> {
    in_steps(problem, watch, |problem, watch| {
        pack_steps(problem, config, watch)
    })
}

/// Packs `problem` with one heuristic alone, for comparison: the same judge, bound and report as [`pack`].
pub fn pack_with(
    problem: &Problem,
    heuristic: Heuristic,
    watch: &mut dyn FnMut(&Progress) -> Control,
) -> Result<Packing, ProblemError> {
    in_steps(problem, watch, |problem, watch| {
        let model = Model::new(problem, &[])?;
        check_fixed(problem, &model)?;
        let bound = lower_bound(problem, &model, &mut || Control::Continue);
        let mut run = Run::new(bound, watch);
        run.heuristic(&model, heuristic);
        Ok(run.finish(problem))
    })
}

/// Counts in steps of the alignment where there is one for all.
fn in_steps(
    problem: &Problem,
    watch: &mut dyn FnMut(&Progress) -> Control,
    pack: impl Fn(&Problem, &mut dyn FnMut(&Progress) -> Control) -> Result<Packing, ProblemError>,
) -> Result<Packing, ProblemError> {
    problem.check()?;
    let Some(scaled) = Scaled::new(problem) else {
        return pack(problem, watch);
    };
    let packing = pack(&scaled.problem, &mut |p| watch(&scaled.progress(p)))?;
    Ok(scaled.packing(packing))
}

/// [`pack`] with offsets that are searched byte by byte, or step by step of a scaled problem.
fn pack_steps(
    problem: &Problem,
    config: &PackConfig,
    watch: &mut dyn FnMut(&Progress) -> Control,
) -> Result<Packing, ProblemError> {
    let mut run = Run::new(0, watch);
    let Some(apart) = Model::build(problem, &[], &mut || run.tick(0, "reading"))? else {
        return Ok(stack(problem));
    };
    check_fixed(problem, &apart)?;
    run.bound = lower_bound(problem, &apart, &mut || run.tick(0, "bound"));
    if problem.may_share.is_empty() {
        run.first(problem, &apart, config);
        run.eject(problem, &apart, config);
        run.search(problem, &apart, config, u64::MAX);
        run.last(&apart, config.effort);
    } else {
        run.sharing(problem, &apart.with_options(problem), config)?;
    }
    Ok(run.finish(problem))
}

/// Every buffer above the one before: what is left when there was no time for anything. Without ties and fixed offsets.
fn stack(problem: &Problem) -> Packing {
    let mut height = 0u64;
    let offset = |buffer: &super::problem::Buffer| {
        let offset = height.next_multiple_of(buffer.alignment);
        height = offset + buffer.size;
        offset
    };
    let offsets = problem.buffers.iter().map(offset).collect();
    let lower_bound = problem.buffers.iter().map(|it| it.size).max().unwrap_or(0);
    Packing {
        offsets,
        height,
        lower_bound,
        optimal: height == lower_bound,
        feasible: problem.capacity.is_none_or(|capacity| height <= capacity),
        algorithm: "stacked, as there was no time",
        effort_spent: 0,
    }
}

/// Up to so many units, everything is tried; above, only what costs near-linear time and little of it.
const LARGE: usize = 4_000;

/// Units placed in rounds of local search, where the core of a large problem did not reach the bound.
const FURTHER: usize = 40_000;

/// Nodes of the search before and after local search, at least.
const FEW_NODES: u64 = 512;

/// The same nodes times units: where a node costs little, more of them settle more than local search does.
const FEW_NODES_TIMES_UNITS: u64 = 600_000;

fn few_nodes(model: &Model) -> u64 {
    FEW_NODES.max(FEW_NODES_TIMES_UNITS / model.units.len().max(1) as u64)
}

/// Nodes times units that search spends without gain, where patience is limited: a node costs more where there is more
/// to look at.
const NODES_TIMES_UNITS: u64 = 6_000_000;

/// Squares of units for each node that search spends without gain, where patience is limited: one descent takes a node for
/// each unit, and few units need few descents.
const UNITS_SQUARED_PER_NODE: u64 = 20;

/// Nodes that even the smallest problems are worth.
const LEAST_PATIENCE: u64 = 1_000;

/// Nodes without gain after which ejections begin again, where patience is limited.
const EJECTIONS_WITHOUT_GAIN: u64 = 20_000;

/// The patience that applies: a capacity is worth all of the effort.
fn patience(problem: &Problem, config: &PackConfig) -> Option<u64> {
    config.patience.filter(|_| problem.capacity.is_none())
}

/// What [`Run::eject`] calls itself.
const EJECTIONS: &str = "ejections";

/// One call of [`pack`].
pub(super) struct Run<'a> {
    best: Option<(u64, Vec<u64>, &'static str)>,
    pub(super) bound: u64,
    nodes: u64,
    stopped: bool,
    watch: &'a mut dyn FnMut(&Progress) -> Control,
}

impl<'a> Run<'a> {
    fn new(bound: u64, watch: &'a mut dyn FnMut(&Progress) -> Control) -> Self {
        Self {
            best: None,
            bound,
            nodes: 0,
            stopped: false,
            watch,
        }
    }

    /// Height of the best packing so far.
    pub(super) fn height(&self) -> u64 {
        self.best.as_ref().map_or(u64::MAX, |best| best.0)
    }

    /// True when there is nothing left to do: the bound is met, or the caller stopped it and there is a packing.
    pub(super) fn is_over(&self) -> bool {
        self.height() <= self.bound || (self.stopped && self.best.is_some())
    }

    /// Tells the caller of progress and asks whether to go on.
    pub(super) fn tick(&mut self, nodes: u64, algorithm: &'static str) -> Control {
        self.nodes += nodes;
        let progress = Progress {
            height: self.height(),
            lower_bound: self.bound,
            nodes: self.nodes,
            algorithm,
        };
        self.stopped |= (self.watch)(&progress) == Control::Stop;
        if self.stopped {
            Control::Stop
        } else {
            Control::Continue
        }
    }

    /// Keeps a packing if it is the best so far.
    pub(super) fn consider(&mut self, model: &Model, offsets: &[u64], algorithm: &'static str) {
        let height = model.height(offsets);
        if height < self.height() {
            self.best = Some((height, model.buffer_offsets(offsets), algorithm));
        }
    }

    /// Everything before the search over the whole.
    fn first(&mut self, problem: &Problem, model: &Model, config: &PackConfig) {
        if model.units.len() > LARGE {
            let is_exact = problem.may_share.is_empty();
            large::pack(self, model, config, is_exact);
            let rounds = FURTHER / model.units.len();
            if config.effort != Effort::Fast && rounds > 0 {
                self.heuristic(model, Heuristic::SizeFirstFit);
                self.heuristic(model, Heuristic::PeakFirstFit);
                self.rounds(model, Start::Size, rounds);
                self.rounds(model, Start::Peak, rounds);
            }
        } else {
            self.orders(model, config.effort);
            self.improved_orders(model, config.effort);
        }
    }

    /// Places the units in several orders.
    fn orders(&mut self, model: &Model, effort: Effort) {
        let tries = match effort {
            Effort::Fast => 1,
            Effort::Default | Effort::Max => Heuristic::BEFORE_SEARCH,
        };
        for heuristic in &Heuristic::ALL[..tries] {
            self.heuristic(model, *heuristic);
        }
    }

    /// Improves the better orders.
    fn improved_orders(&mut self, model: &Model, effort: Effort) {
        let rounds = match effort {
            Effort::Fast => 0,
            Effort::Default => 20,
            Effort::Max => 200,
        };
        self.rounds(model, Start::Size, rounds);
        self.rounds(model, Start::Peak, rounds);
    }

    /// The orders that are seldom the best, where the search left a gap.
    fn last(&mut self, model: &Model, effort: Effort) {
        if effort != Effort::Fast && model.units.len() <= LARGE {
            for heuristic in &Heuristic::ALL[Heuristic::BEFORE_SEARCH..] {
                self.heuristic(model, *heuristic);
            }
        }
    }

    fn heuristic(&mut self, model: &Model, heuristic: Heuristic) {
        if !self.is_over() {
            let name = heuristic.name();
            if self.tick(0, name) == Control::Stop && self.best.is_some() {
                return;
            }
            let (offsets, _) = heuristic.run(model, &mut |nodes| self.tick(nodes, name));
            self.consider(model, &offsets, name);
        }
    }

    /// Places the units in an order that is improved from round to round.
    fn rounds(&mut self, model: &Model, start: Start, rounds: usize) {
        let name = start.name();
        if self.is_over() {
            return;
        }
        let bound = self.bound;
        let run = std::cell::RefCell::new(self);
        squeak(
            model,
            start.order(model),
            bound,
            rounds,
            &mut |nodes| run.borrow_mut().tick(nodes, name),
            |offsets| {
                let mut run = run.borrow_mut();
                run.consider(model, offsets, name);
                // A small problem is placed between two questions of the placement.
                let control = run.tick(0, name);
                if run.is_over() {
                    Control::Stop
                } else {
                    control
                }
            },
        );
    }

    /// Packs `model`, which has the options of `problem`, with pairs decided on as units are placed, and decided on
    /// beforehand; then searches in the way of sharing of the best packing.
    fn sharing(
        &mut self,
        problem: &Problem,
        model: &Model,
        config: &PackConfig,
    ) -> Result<(), ProblemError> {
        if model.units.len() > LARGE {
            self.first(problem, model, config);
        } else {
            // A few nodes often settle what much local search does not.
            self.orders(model, config.effort);
            self.search_as_shared(problem, model, config, few_nodes(model))?;
            self.improved_orders(model, config.effort);
        }
        let pairs = share::choose(problem);
        if !pairs.is_empty() && !self.is_over() {
            self.first(problem, &Model::new(problem, &pairs)?, config);
        }
        self.search_as_shared(problem, model, config, few_nodes(model))?;
        self.eject(problem, model, config);
        self.search_as_shared(problem, model, config, u64::MAX)
    }

    /// Searches with the pairs that share in the best packing so far, with `most` nodes at most.
    fn search_as_shared(
        &mut self,
        problem: &Problem,
        model: &Model,
        config: &PackConfig,
        most: u64,
    ) -> Result<(), ProblemError> {
        if self.is_over() {
            return Ok(());
        }
        let best = self.best.as_ref().map(|best| best.1.as_slice());
        let chosen = best.map_or_else(Vec::new, |offsets| shared_pairs(problem, offsets));
        if chosen.is_empty() {
            self.search(problem, model, config, most);
        } else {
            let settled = Model::new(problem, &chosen)?;
            self.search(problem, &settled, config, most);
        }
        Ok(())
    }

    /// Lowers the best packing by ejections.
    fn eject(&mut self, problem: &Problem, model: &Model, config: &PackConfig) {
        let most = match config.effort {
            Effort::Fast => 0,
            Effort::Default => 12_000_000,
            Effort::Max => 400_000_000,
        };
        let patience = patience(problem, config);
        let steps_per_unit = if patience.is_some() { 5_000 } else { 8_000 };
        let budget = most.min(steps_per_unit * model.units.len() as u64);
        let Some((_, offsets, _)) = self.best.as_ref().filter(|_| budget > 0) else {
            return;
        };
        if self.is_over() {
            return;
        }
        let (units, bound) = (model.unit_offsets(offsets), self.bound);
        let run = std::cell::RefCell::new(self);
        let mut told = 0;
        eject::lower_again(
            model,
            &units,
            bound,
            config.variation,
            patience.map(|_| EJECTIONS_WITHOUT_GAIN * eject::STEPS_PER_PLACEMENT),
            |steps| {
                let nodes = steps / eject::STEPS_PER_PLACEMENT;
                let control = run.borrow_mut().tick(nodes - told, EJECTIONS);
                told = nodes;
                steps < budget && control == Control::Continue
            },
            |offsets| run.borrow_mut().consider(model, offsets, EJECTIONS),
        );
    }

    /// Searches below the best height in one way of sharing; what it finds is valid, and its proofs hold only when no
    /// pair could share otherwise.
    fn search(&mut self, problem: &Problem, model: &Model, config: &PackConfig, most: u64) {
        const TABLES: usize = 4 << 20;
        let effort = config.effort;
        // A packing within the capacity is worth more than a lower one.
        let mut misses = problem
            .capacity
            .is_some_and(|capacity| self.height() > capacity);
        let (mut budget, refinement) = match effort {
            Effort::Fast => (0, 0),
            Effort::Default if misses => (400_000, 20_000),
            // A node costs more where there is more to look at.
            Effort::Default => {
                let nodes = (20_000_000 / model.units.len().max(1) as u64).min(40_000);
                (nodes, nodes)
            }
            Effort::Max => (u64::MAX, u64::MAX),
        };
        let is_too_large = effort == Effort::Default && model.units.len() > LARGE;
        if budget == 0 || is_too_large || self.stopped || self.height() <= self.bound {
            return;
        }
        let Some(space) = Space::new(model, TABLES) else {
            return;
        };
        let mut standing = Standing {
            height: self.height(),
            bound: self.bound,
            offsets: None,
        };
        budget = budget.min(most);
        let patience = patience(problem, config).map_or(u64::MAX, |nodes| {
            let units = model.units.len().max(1) as u64;
            let few = (units * units / UNITS_SQUARED_PER_NODE).max(LEAST_PATIENCE);
            nodes.min(NODES_TIMES_UNITS / units).min(few)
        });
        let start = (standing.height, standing.bound);
        let mut has_gained = false;
        let before = self.nodes;
        let (watch, stopped, total) = (&mut *self.watch, &mut self.stopped, &mut self.nodes);
        improve(
            &space,
            &mut standing,
            problem.capacity,
            config.variation,
            |now, nodes| {
                *total = before + nodes;
                if nodes.is_multiple_of(64) {
                    let progress = Progress {
                        height: now.height,
                        lower_bound: now.bound,
                        nodes: before + nodes,
                        algorithm: "search",
                    };
                    *stopped |= watch(&progress) == Control::Stop;
                }
                if misses
                    && problem
                        .capacity
                        .is_some_and(|capacity| now.height <= capacity)
                {
                    budget = budget.min(nodes.saturating_add(refinement));
                    misses = false;
                }
                has_gained |= (now.height, now.bound) != start;
                let is_patient = has_gained || nodes < patience;
                nodes < budget && is_patient && !*stopped
            },
        );
        if let Some(offsets) = standing.offsets {
            self.best = Some((standing.height, model.buffer_offsets(&offsets), "search"));
        }
        if problem.may_share.is_empty() {
            self.bound = standing.bound;
        }
    }

    fn finish(self, problem: &Problem) -> Packing {
        let (height, offsets, algorithm) = self.best.unwrap_or((0, Vec::new(), "nothing to place"));
        Packing {
            offsets,
            height,
            lower_bound: self.bound,
            optimal: height == self.bound,
            feasible: problem.capacity.is_none_or(|capacity| height <= capacity),
            algorithm,
            effort_spent: self.nodes,
        }
    }
}
