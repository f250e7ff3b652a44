//! The entry point: heuristics first, then search, until the bound is met or the effort is spent.

use super::bound::lower_bound;
use super::eject;
use super::local::squeak;
use super::model::Model;
use super::order::{Fit, Order, TICK};
use super::packing::{Control, Effort, PackConfig, Packing, Progress};
use super::problem::{Problem, ProblemError};
use super::scale::Scaled;
use super::search::{Space, Standing, improve};
use super::share;
use super::share_options::shared_pairs;
use super::sweep::check_fixed;

/// Packs `problem` as low as the effort allows. `watch` hears of progress every thousand nodes or so and may stop the
/// search; the best packing so far is then returned. The result depends on the problem and the effort alone, and not on
/// the order of the buffers.
pub fn pack(
    problem: &Problem,
    config: &PackConfig,
    watch: &mut dyn FnMut(&Progress) -> Control,
) -> Result<Packing, ProblemError> {
    problem.check()?;
    let Some(scaled) = Scaled::new(problem) else {
        return pack_bytes(problem, config, watch);
    };
    let packing = pack_bytes(&scaled.problem, config, &mut |p| watch(&scaled.progress(p)))?;
    Ok(scaled.packing(packing))
}

/// [`pack`] with offsets that are searched byte by byte, or step by step of a scaled problem.
fn pack_bytes(
    problem: &Problem,
    config: &PackConfig,
    watch: &mut dyn FnMut(&Progress) -> Control,
) -> Result<Packing, ProblemError> {
    let apart = Model::new(problem, &[])?;
    check_fixed(problem, &apart)?;
    let bound = lower_bound(problem, &apart);
    let mut run = Run {
        best: None,
        bound,
        nodes: 0,
        stopped: false,
        watch,
    };
    let sharing = apart.with_options(problem);
    run.heuristics(&sharing, config.effort);
    let pairs = share::choose(problem);
    if !pairs.is_empty() {
        let merged = Model::new(problem, &pairs)?;
        run.heuristics(&merged, config.effort);
    }
    run.eject(&sharing, config.effort);
    let chosen = run.shared_pairs(problem);
    let settled = if chosen.is_empty() {
        sharing
    } else {
        Model::new(problem, &chosen)?
    };
    run.search(problem, &settled, config.effort);
    Ok(run.finish(problem))
}

/// Every order with its rule, the best first. `Fast` stops after one.
const PORTFOLIO: [(&str, Order, Fit); 7] = [
    ("size, first fit", Order::Size, Fit::First),
    ("peak, first fit", Order::Peak, Fit::First),
    ("duration, first fit", Order::Duration, Fit::First),
    ("area, first fit", Order::Area, Fit::First),
    ("size, best fit", Order::Size, Fit::Best),
    ("duration, best fit", Order::Duration, Fit::Best),
    ("area, best fit", Order::Area, Fit::Best),
];

/// Up to so many units, everything is tried; above, only what costs near-linear time and little of it.
const LARGE: usize = 4_000;

/// One call of [`pack`].
struct Run<'a> {
    best: Option<(u64, Vec<u64>, &'static str)>,
    bound: u64,
    nodes: u64,
    stopped: bool,
    watch: &'a mut dyn FnMut(&Progress) -> Control,
}

impl Run<'_> {
    /// Places the units in several orders, and improves the better ones.
    fn heuristics(&mut self, model: &Model, effort: Effort) {
        let is_large = model.units.len() > LARGE;
        let orders = match effort {
            Effort::Fast => 1,
            _ if is_large => 2,
            _ => PORTFOLIO.len(),
        };
        for &(name, order, fit) in &PORTFOLIO[..orders] {
            self.rounds(model, name, order.units(model), fit, 1);
        }
        let rounds = match effort {
            Effort::Fast => 0,
            Effort::Default if is_large => 200_000 / model.units.len(),
            Effort::Default => 20,
            Effort::Max => 200,
        };
        for (name, order) in [
            ("size, squeaky wheel", Order::Size),
            ("peak, squeaky wheel", Order::Peak),
        ] {
            self.rounds(model, name, order.units(model), Fit::First, rounds);
        }
    }

    /// Places the units in an order that is improved from round to round.
    fn rounds(
        &mut self,
        model: &Model,
        name: &'static str,
        mut order: Vec<u32>,
        fit: Fit,
        rounds: usize,
    ) {
        if self.height() <= self.bound || (self.stopped && self.best.is_some()) {
            return;
        }
        let (bound, mut best) = (self.bound, None::<Vec<u64>>);
        let mut progress = Progress {
            height: self.height(),
            lower_bound: bound,
            nodes: self.nodes,
            algorithm: name,
        };
        let mut stopped = self.stopped;
        let watch = &mut *self.watch;
        let mut tick = |progress: &mut Progress| {
            stopped |= watch(progress) == Control::Stop;
            if stopped {
                Control::Stop
            } else {
                Control::Continue
            }
        };
        let height = std::cell::Cell::new(progress.height);
        let nodes = std::cell::Cell::new(0);
        squeak(
            model,
            &mut order,
            fit,
            bound,
            rounds,
            || {
                progress.height = height.get();
                nodes.set(nodes.get() + TICK);
                progress.nodes = self.nodes + nodes.get();
                tick(&mut progress)
            },
            |offsets| {
                let now = model.height(offsets);
                if now < height.get() {
                    height.set(now);
                    best = Some(offsets.to_vec());
                }
                if now <= bound {
                    Control::Stop
                } else {
                    Control::Continue
                }
            },
        );
        self.nodes += nodes.get();
        self.stopped = stopped;
        if let Some(offsets) = best {
            self.best = Some((height.get(), model.buffer_offsets(&offsets), name));
        }
    }

    /// Searches below the best height in one way of sharing; what it finds is valid, and its proofs hold only when no
    /// pair could share otherwise.
    fn search(&mut self, problem: &Problem, model: &Model, effort: Effort) {
        const TABLES: usize = 4 << 20;
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
        let step = 1;
        let mut standing = Standing {
            height: self.height(),
            bound: self.bound,
            offsets: None,
        };
        let before = self.nodes;
        let (watch, stopped, total) = (&mut *self.watch, &mut self.stopped, &mut self.nodes);
        improve(
            &space,
            &mut standing,
            problem.capacity,
            step,
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
                nodes < budget && !*stopped
            },
        );
        if let Some(offsets) = standing.offsets {
            self.best = Some((standing.height, model.buffer_offsets(&offsets), "search"));
        }
        if problem.may_share.is_empty() {
            self.bound = standing.bound;
        }
    }

    /// Lowers the best packing by ejections.
    fn eject(&mut self, model: &Model, effort: Effort) {
        let budget = match effort {
            Effort::Fast => 0,
            Effort::Default => 12_000_000.min(8_000 * model.units.len() as u64),
            Effort::Max => 400_000_000,
        };
        let Some((height, offsets, _)) = self.best.as_ref().filter(|it| it.0 > self.bound) else {
            return;
        };
        if budget == 0 || self.stopped {
            return;
        }
        let (mut progress, bound) = (self.progress("ejections"), self.bound);
        let height = std::cell::Cell::new(*height);
        let mut best = None;
        let (watch, stopped) = (&mut *self.watch, &mut self.stopped);
        let units = model.unit_offsets(offsets);
        let steps = eject::lower(
            model,
            units,
            bound,
            |steps| {
                progress.height = height.get();
                progress.nodes += 1024;
                *stopped |= watch(&progress) == Control::Stop;
                steps < budget && !*stopped
            },
            |now, units| {
                height.set(now);
                best = Some(units.to_vec());
            },
        );
        self.nodes += steps / eject::STEPS_PER_PLACEMENT;
        if let Some(units) = best {
            self.best = Some((height.get(), model.buffer_offsets(&units), "ejections"));
        }
    }

    fn progress(&self, algorithm: &'static str) -> Progress {
        Progress {
            height: self.height(),
            lower_bound: self.bound,
            nodes: self.nodes,
            algorithm,
        }
    }

    /// The pairs that share bytes in the best packing so far.
    fn shared_pairs(&self, problem: &Problem) -> Vec<(u32, u32)> {
        let offsets = self.best.as_ref().map(|best| best.1.as_slice());
        offsets.map_or_else(Vec::new, |offsets| shared_pairs(problem, offsets))
    }

    fn height(&self) -> u64 {
        self.best.as_ref().map_or(u64::MAX, |best| best.0)
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
