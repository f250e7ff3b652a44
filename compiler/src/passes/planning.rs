//! The planner as a pass.

use slabplan_planner::PlanConfig;
use slabplan_planner::pack::{Effort, PackConfig};

use crate::config::CompileConfig;
use crate::pass::{Changed, Pass, PassError, Property, Unit};

/// Gives every buffer its offset. The module stays as it is; the plan is in
/// [`Unit::planned`](crate::pass::Unit::planned).
pub struct MemoryPlanning;

impl Pass for MemoryPlanning {
    fn name(&self) -> &'static str {
        "memory-planning"
    }

    fn description(&self) -> &'static str {
        "decide which values share bytes and give every buffer an offset in its slab"
    }

    fn requires(&self) -> &'static [Property] {
        &[
            Property::FlatCallGraph,
            Property::LaidOut,
            Property::Scheduled,
        ]
    }

    fn ensures(&self) -> &'static [Property] {
        &[Property::Planned]
    }

    fn run(&self, unit: &mut Unit<'_>) -> Result<Changed, PassError> {
        let config = plan_config(unit.config, unit.module.instrs.len());
        let mut planned = slabplan_planner::plan(&unit.module, unit.target, &config)?;
        planned.plan.fingerprint = slabplan_ir::plan::fingerprint(&unit.module);
        planned.plan.schedule.clone_from(&unit.schedule);
        planned.plan.copies.clone_from(&unit.copies);
        unit.planned = Some(planned);
        Ok(Changed(false))
    }
}

/// Nodes without gain after which packing ends, by instruction: planning is to take a small part of a compilation.
const NODES_PER_INSTRUCTION: u64 = 2;

/// The same, at most.
const MOST_PATIENCE: u64 = 60_000;

/// How the planner is to plan a module of so many instructions.
pub(crate) fn plan_config(config: &CompileConfig, instructions: usize) -> PlanConfig {
    let patience = (NODES_PER_INSTRUCTION * instructions as u64).min(MOST_PATIENCE);
    PlanConfig {
        accounting: config.accounting,
        pack: PackConfig {
            effort: config.effort,
            patience: (config.effort == Effort::Default).then_some(patience),
            ..PackConfig::default()
        },
        ..PlanConfig::default()
    }
}
