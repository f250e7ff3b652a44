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
        "copy values that must share bytes with another that is still needed"
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
        let copies = insert_copies(&mut unit.module)?;
        let changed = !copies.is_empty();
        unit.copies.extend(copies);
        Ok(Changed(changed))
    }
}
