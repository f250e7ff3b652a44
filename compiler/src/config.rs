//! What a caller may ask of the compiler.

use slabplan_ir::plan::Accounting;
use slabplan_planner::pack::Effort;

/// Where the order of instructions comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleMode {
    /// The module's own order if it is scheduled, otherwise as [`Memory`](Self::Memory).
    Keep,
    /// The best of several memory-aware orders, the module's own among them.
    Memory,
}

/// What a caller may ask of [`compile`](crate::compile).
#[derive(Clone, Debug)]
pub struct CompileConfig {
    /// What shares a slab.
    pub accounting: Accounting,
    /// Where the order comes from.
    pub schedule: ScheduleMode,
    /// How hard to pack.
    pub effort: Effort,
    /// Whether to prove the plan. On unless the caller proves it otherwise.
    pub check: bool,
}

impl Default for CompileConfig {
    fn default() -> Self {
        Self {
            accounting: Accounting::Slab,
            schedule: ScheduleMode::Keep,
            effort: Effort::Default,
            check: true,
        }
    }
}
