//! Orders the instructions of a module that has no schedule, or a better one for memory.

use rayon::prelude::*;
use slabplan_ir::plan::Plan;
use slabplan_planner::copies::insert_copies;
use slabplan_planner::pack::Effort;
use slabplan_planner::schedule::{
    Schedule, ScheduleConfig, bound_of_all_orders, nested, schedules,
};

use super::planning::plan_config;
use crate::config::ScheduleMode;
use crate::pass::{Changed, Pass, PassError, Property, ScheduleTrial, Unit};

/// Chooses the order of instructions: of several that keep few bytes live, the one whose plan is smallest.
pub struct ScheduleMemory;

impl Pass for ScheduleMemory {
    fn name(&self) -> &'static str {
        "schedule"
    }

    fn description(&self) -> &'static str {
        "order instructions so that few bytes are live at once"
    }

    fn requires(&self) -> &'static [Property] {
        &[Property::FlatCallGraph, Property::LaidOut]
    }

    fn ensures(&self) -> &'static [Property] {
        &[Property::Scheduled]
    }

    fn run(&self, unit: &mut Unit<'_>) -> Result<Changed, PassError> {
        if unit.module.is_scheduled && unit.config.schedule == ScheduleMode::Keep {
            unit.schedule_bound = bound_of_all_orders(&unit.module, unit.target)?;
            return Ok(Changed(false));
        }
        let config = ScheduleConfig {
            effort: unit.config.effort,
            keep_async_distance: unit.config.keep_async_distance,
            ..ScheduleConfig::default()
        };
        let mut found = schedules(&unit.module, unit.target, &config)?;
        let best = if unit.config.effort == Effort::Fast && !unit.module.is_scheduled {
            // There is no order to be compared with: the lowest peak will do.
            0
        } else {
            smallest_slab(unit, &config, &mut found)?
        };
        unit.schedule_bound = found[best].bound();
        found[best].apply(&mut unit.module);
        unit.schedule = unit.config.schedule_name();
        Ok(Changed(true))
    }
}

/// Plans all orders, and where the best one's packing needs far more than what is live, others like it that pack more
/// easily. Gives which has the smallest slab.
fn smallest_slab(
    unit: &mut Unit<'_>,
    config: &ScheduleConfig,
    found: &mut Vec<Schedule>,
) -> Result<usize, PassError> {
    let mut trials: Vec<ScheduleTrial> = found
        .par_iter()
        .map(|s| trial(unit, s))
        .collect::<Result<_, _>>()?;
    let mut best = smallest(&trials);
    let peak = found[best].peak().get();
    if trials[best].slab(0) > peak + peak / LOOSE {
        for like in nested(&unit.module, unit.target, config, &found[best])? {
            trials.push(trial(unit, &like)?);
            found.push(like);
        }
        best = smallest(&trials);
    }
    trials[best].chosen = true;
    unit.schedule_trials = trials;
    Ok(best)
}

/// A packing needs far more than what is live if that is more than one part in so many.
const LOOSE: u64 = 2000;

/// Plans the module in the order of `schedule`.
fn trial(unit: &Unit<'_>, schedule: &Schedule) -> Result<ScheduleTrial, PassError> {
    let mut module = unit.module.clone();
    schedule.apply(&mut module);
    let copies = insert_copies(&mut module, true)?.len();
    let mut config = plan_config(unit.config, module.instrs.len());
    // Searching each packing to its end is for the one that is kept.
    if config.pack.effort == Effort::Max {
        config.pack.effort = Effort::Default;
    }
    let planned = slabplan_planner::plan(&module, unit.target, &config)?;
    Ok(ScheduleTrial {
        from: schedule.origin(),
        peak: schedule.peak(),
        slabs: slabs(&planned.plan),
        copies,
        chosen: false,
    })
}

fn slabs(plan: &Plan) -> Vec<(u32, u64)> {
    plan.spaces
        .iter()
        .map(|s| (s.space, s.slab.get()))
        .collect()
}

/// The trial with the smallest slab of space 0 among those that need no more of any other space than the text's
/// order; of equals the first.
fn smallest(trials: &[ScheduleTrial]) -> usize {
    let text = trials.iter().find(|t| t.from == "text");
    let over = |trial: &ScheduleTrial| {
        let others = trial.slabs.iter().filter(|s| s.0 != 0);
        others
            .map(|&(space, slab)| slab.saturating_sub(text.map_or(0, |t| t.slab(space))))
            .fold(0, u64::saturating_add)
    };
    let cost = |trial: &ScheduleTrial| (over(trial), trial.slab(0), trial.copies);
    (0..trials.len())
        .min_by_key(|&k| cost(&trials[k]))
        .expect("the text's order is a trial")
}
