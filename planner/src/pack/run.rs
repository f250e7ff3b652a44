//! The entry point: heuristics first, then search, until the bound is met or the effort is spent.

use super::bound::lower_bound;
use super::model::Model;
use super::order::{Fit, Order, place};
use super::packing::{Control, Effort, PackConfig, Packing, Progress};
use super::problem::{Problem, ProblemError};
use super::search::{Space, Standing, improve};
use super::share;
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
    let shared = share::choose(problem);
    if !shared.is_empty() {
        let model = Model::new(problem, &shared)?;
        run.heuristics(&model, config.effort);
    }
    run.heuristics(&apart, config.effort);
    run.search(problem, &apart, config.effort);
    Ok(run.finish(problem))
}

const PORTFOLIO: [(&str, Order, Fit); 6] = [
    ("size, first fit", Order::Size, Fit::First),
    ("size, best fit", Order::Size, Fit::Best),
    ("duration, first fit", Order::Duration, Fit::First),
    ("area, first fit", Order::Area, Fit::First),
    ("duration, best fit", Order::Duration, Fit::Best),
    ("area, best fit", Order::Area, Fit::Best),
];

/// One call of [`pack`].
struct Run<'a> {
    best: Option<(u64, Vec<u64>, &'static str)>,
    bound: u64,
    nodes: u64,
    stopped: bool,
    watch: &'a mut dyn FnMut(&Progress) -> Control,
}

impl Run<'_> {
    fn heuristics(&mut self, model: &Model, effort: Effort) {
        let count = if effort == Effort::Fast {
            1
        } else {
            PORTFOLIO.len()
        };
        for &(name, order, fit) in &PORTFOLIO[..count] {
            if self.height() == self.bound || (self.stopped && self.best.is_some()) {
                return;
            }
            let order = order.units(model);
            let mut progress = Progress {
                height: self.height(),
                lower_bound: self.bound,
                nodes: self.nodes,
                algorithm: name,
            };
            let must_finish = self.best.is_none();
            let watch = &mut *self.watch;
            let mut stopped = self.stopped;
            let offsets = place(model, &order, fit, || {
                progress.nodes += 1024;
                stopped |= watch(&progress) == Control::Stop;
                if stopped && !must_finish {
                    Control::Stop
                } else {
                    Control::Continue
                }
            });
            self.stopped = stopped;
            self.nodes += order.len() as u64;
            if let Some(offsets) = offsets {
                let height = model.height(&offsets);
                if height < self.height() {
                    self.best = Some((height, model.buffer_offsets(&offsets), name));
                }
            }
        }
    }

    /// Searches below the best height; what it finds is valid whether or not pairs share, and its proofs hold only
    /// when no pair could.
    fn search(&mut self, problem: &Problem, model: &Model, effort: Effort) {
        const TABLES: usize = 4 << 20;
        // A packing within the capacity is worth more than a lower one.
        let mut misses = problem
            .capacity
            .is_some_and(|capacity| self.height() > capacity);
        let (mut budget, refinement) = match effort {
            Effort::Fast => (0, 0),
            Effort::Default if misses => (400_000, 20_000),
            Effort::Default => (40_000, 40_000),
            Effort::Max => (u64::MAX, u64::MAX),
        };
        if budget == 0 || self.stopped || self.height() <= self.bound {
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
                if nodes % 256 == 0 {
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
