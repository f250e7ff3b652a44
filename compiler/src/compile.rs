//! The whole chain from a module to a proved plan.

use std::time::Instant;

use slabplan_ir::check::{CheckReport, Violations};
use slabplan_ir::{Bytes, Module, Plan, Target};
use slabplan_planner::Planned;
use slabplan_planner::donation::{Donation, donations};

use crate::choose::{Trial, choose};
use crate::config::{CompileConfig, Transforms};
use crate::pass::{PassError, PassReport, ScheduleTrial, Unit, run_passes};
use crate::passes::{self, plan_config};
use crate::rewrite::RegionReport;
use crate::scratch::plan_scratch;

/// Why there is no compiled module.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// A pass failed.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// Planning with scratch failed.
    #[error(transparent)]
    Plan(#[from] slabplan_planner::PlanError),
    /// Scratch can't be planned, since the executor does not carry the module out.
    #[error(transparent)]
    Scratch(#[from] crate::exec::ExecError),
    /// The checker refuses our own plan: a defect of slabplan.
    #[error("the checker rejects the plan; this is a defect of slabplan, please report it:\n{0}")]
    Check(Violations),
}

/// Wall-clock seconds of the stages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seconds {
    /// Verifying and preparing the module: call graph, layouts, copies.
    pub analyse: f64,
    /// Choosing an order.
    pub schedule: f64,
    /// Aliases, live ranges and packing.
    pub pack: f64,
    /// Proving the plan.
    pub check: f64,
}

/// A module, ready to run, with its plan.
#[derive(Debug)]
pub struct Compiled {
    /// The module after all passes: the one the plan is for.
    pub module: Module,
    /// The plan and what is known of it.
    pub planned: Planned,
    /// Bytes of memory space 0 that every order of the program needs.
    pub schedule_bound: Bytes,
    /// The orders that were planned; none if the module kept its own.
    pub schedule_trials: Vec<ScheduleTrial>,
    /// What becomes of every argument the caller gives away.
    pub donations: Vec<Donation>,
    /// What the checker proved; absent if it was turned off.
    pub check: Option<CheckReport>,
    /// How each pass went, of the program that was kept.
    pub passes: Vec<PassReport>,
    /// The programs that were planned, the one kept among them, where transforms were asked for.
    pub trials: Vec<Trial>,
    /// What was rewritten, region by region, if a rewritten program was kept.
    pub rewritten: Vec<RegionReport>,
    /// What passes could not do, and why.
    pub notes: Vec<String>,
    /// How long the stages took.
    pub seconds: Seconds,
}

impl Compiled {
    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.planned.plan
    }

    /// Whether no order of the instructions, however packed, needs fewer steps of the alignment of memory space 0.
    pub fn is_best_schedule(&self) -> bool {
        let steps = |bytes: Bytes, step: u64| bytes.get().div_ceil(step);
        self.plan().space(0).is_none_or(|s| {
            let step = s.alignment.get();
            steps(s.slab, step) <= steps(self.schedule_bound, step)
        })
    }

    /// Whether every slab fits its memory space.
    pub fn fits(&self) -> bool {
        self.plan().spaces.iter().all(|s| s.slab <= s.capacity)
    }
}

/// Prepares, plans and proves `module` for `target`.
///
/// Deterministic: the same module, target and configuration give the identical plan.
///
/// # Errors
/// If the module is not valid, can't be planned, or (a defect of slabplan) the plan is wrong. A plan
/// that is larger than the target's memory is not an error: see [`Compiled::fits`].
pub fn compile(
    module: Module,
    target: &Target,
    config: &CompileConfig,
) -> Result<Compiled, CompileError> {
    let mut chosen = choose(module, target, config)?;
    if let Some(threads) = config.scratch {
        let planning = plan_config(config, chosen.module.instrs.len());
        chosen.planned = plan_scratch(&chosen.module, target, &planning, chosen.planned, threads)?;
    }
    let start = Instant::now();
    let check = if config.check {
        let plan = &chosen.planned.plan;
        Some(check(&chosen.module, plan, target).map_err(CompileError::Check)?)
    } else {
        None
    };
    let seconds = Seconds {
        check: start.elapsed().as_secs_f64(),
        ..stage_seconds(&chosen.reports)
    };
    Ok(Compiled {
        donations: donations(&chosen.module),
        module: chosen.module,
        schedule_bound: chosen.schedule_bound,
        schedule_trials: chosen.schedule_trials,
        planned: chosen.planned,
        check,
        passes: chosen.reports,
        trials: chosen.trials,
        rewritten: chosen.rewritten,
        notes: chosen.notes,
        seconds,
    })
}

/// Runs the passes before planning only: the module that a plan is for. Where the configuration asks
/// for transforms, which of them are kept depends on the plans, so these are made too.
pub fn prepare(
    module: Module,
    target: &Target,
    config: &CompileConfig,
) -> Result<Module, CompileError> {
    if config.transforms == Transforms::NONE {
        let mut unit = Unit::new(module, target, config);
        run_passes(passes::PREPARE, &mut unit)?;
        return Ok(unit.module);
    }
    Ok(choose(module, target, config)?.module)
}

/// Proves `plan` right for the prepared `module`, or lists what is wrong.
pub fn check(module: &Module, plan: &Plan, target: &Target) -> Result<CheckReport, Violations> {
    slabplan_ir::check::check(module, plan, target)
}

fn stage_seconds(reports: &[PassReport]) -> Seconds {
    let mut seconds = Seconds::default();
    for report in reports {
        let stage = match report.name {
            "schedule" => &mut seconds.schedule,
            "memory-planning" => &mut seconds.pack,
            _ => &mut seconds.analyse,
        };
        *stage += report.time.as_secs_f64();
    }
    seconds
}
