//! The whole chain from a module to a proved plan.

use std::time::Instant;

use slabplan_ir::check::{CheckReport, Violations};
use slabplan_ir::{Bytes, Module, Plan, Target};
use slabplan_planner::Planned;
use slabplan_planner::donation::{Donation, donations};

use crate::config::CompileConfig;
use crate::pass::{Pass, PassError, PassReport, ScheduleTrial, Unit, run_passes};
use crate::passes::{self, MemoryPlanning};

/// Why there is no compiled module.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// A pass failed.
    #[error(transparent)]
    Pass(#[from] PassError),
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
    /// How each pass went.
    pub passes: Vec<PassReport>,
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
    let mut unit = Unit::new(module, target, config);
    let mut steps = passes::PREPARE.to_vec();
    steps.push(&MemoryPlanning);
    let reports = run(&steps, &mut unit)?;
    let Some(planned) = unit.planned else {
        unreachable!("memory-planning ensures a plan")
    };
    let start = Instant::now();
    let check = if config.check {
        Some(check(&unit.module, &planned.plan, target).map_err(CompileError::Check)?)
    } else {
        None
    };
    let seconds = Seconds {
        check: start.elapsed().as_secs_f64(),
        ..stage_seconds(&reports)
    };
    Ok(Compiled {
        donations: donations(&unit.module),
        module: unit.module,
        schedule_bound: unit.schedule_bound,
        schedule_trials: unit.schedule_trials,
        planned,
        check,
        passes: reports,
        seconds,
    })
}

/// Runs the passes before planning only: the module that a plan is for.
pub fn prepare(
    module: Module,
    target: &Target,
    config: &CompileConfig,
) -> Result<Module, CompileError> {
    let mut unit = Unit::new(module, target, config);
    run(passes::PREPARE, &mut unit)?;
    Ok(unit.module)
}

/// Proves `plan` right for the prepared `module`, or lists what is wrong.
pub fn check(module: &Module, plan: &Plan, target: &Target) -> Result<CheckReport, Violations> {
    slabplan_ir::check::check(module, plan, target)
}

fn run(steps: &[&dyn Pass], unit: &mut Unit<'_>) -> Result<Vec<PassReport>, CompileError> {
    Ok(run_passes(steps, unit)?)
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
