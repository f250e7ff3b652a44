//! Names of values.

use slabplan_ir::Module;
use slabplan_ir::plan::PlanValue;
use slabplan_ir::shape::DisplayIndex;

/// `%fusion.3{1,0}`, without braces for a whole result.
pub fn value_name(module: &Module, value: &PlanValue) -> String {
    let name = module.name_of(value.instr);
    if value.index.is_empty() {
        return format!("%{name}");
    }
    format!("%{name}{}", DisplayIndex(&value.index))
}
