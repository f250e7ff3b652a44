//! Copies values that would need the same bytes at the same time.

use slabplan_planner::copies::insert_copies;

use crate::pass::{Changed, Pass, PassError, Property, Unit};

/// Inserts the copies without which no plan is right.
pub struct InsertCopies;

impl Pass for InsertCopies {
    fn name(&self) -> &'static str {
        "insert-copies"
    }

    fn description(&self) -> &'static str {
        "copy values that must share bytes with another that is still needed, or order them"
    }

    fn requires(&self) -> &'static [Property] {
        &[
            Property::FlatCallGraph,
            Property::LaidOut,
            Property::Scheduled,
        ]
    }

    fn ensures(&self) -> &'static [Property] {
        &[Property::Scheduled]
    }

    fn run(&self, unit: &mut Unit<'_>) -> Result<Changed, PassError> {
        let is_ours = unit.schedule != "keep";
        let before = unit.module.instrs.len();
        let copies = insert_copies(&mut unit.module, is_ours)?;
        let changed = is_ours || unit.module.instrs.len() > before;
        unit.copies.extend(copies);
        Ok(Changed(changed))
    }
}
