//! Orders the instructions of a module that has no schedule, or a better one for memory.

use slabplan_planner::schedule::{ScheduleConfig, schedule};

use crate::config::ScheduleMode;
use crate::pass::{Changed, Pass, PassError, Property, Unit};

/// Chooses the order of instructions.
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
            return Ok(Changed(false));
        }
        let schedule = schedule(&unit.module, unit.target, &ScheduleConfig::default())?;
        schedule.apply(&mut unit.module);
        "memory".clone_into(&mut unit.schedule);
        Ok(Changed(true))
    }
}
