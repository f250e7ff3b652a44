//! What a caller may ask of the compiler.

use slabplan_ir::plan::Accounting;
use slabplan_planner::layouts::EntryOrder;
use slabplan_planner::pack::Effort;

/// Where the order of instructions comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleMode {
    /// The module's own order if it is scheduled, otherwise as [`Memory`](Self::Memory).
    Keep,
    /// The best of several memory-aware orders, the module's own among them.
    Memory,
}

/// Where layouts come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutMode {
    /// The module's own; row-major with the target's tiles where it has none.
    Default,
    /// Chosen for few padded bytes over the whole program, kept if the packed slab gains.
    Memory,
}

/// Which elementwise producers join the fusion of their users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FuseMode {
    /// None.
    Off,
    /// Those that keep no more bytes of dying operands alive than their own result takes.
    Careful,
    /// All whose users are in one fusion.
    Eager,
}

/// What may be done to the program itself before it is planned. Each change is kept only if the
/// packed slab and the padded bytes of all values are not higher with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transforms {
    /// Where layouts come from.
    pub layouts: LayoutMode,
    /// Who says how arguments and results lie, where layouts are chosen.
    pub entry: EntryOrder,
    /// Whether regions of views and elementwise operations are rewritten.
    pub rewrite: bool,
    /// How chains of elementwise operations are fused; [`compile`](crate::compile) tries the
    /// careful way too where the eager one is asked for.
    pub fuse: FuseMode,
}

impl Transforms {
    /// The program as it is.
    pub const NONE: Self = Self {
        layouts: LayoutMode::Default,
        entry: EntryOrder::Given,
        rewrite: false,
        fuse: FuseMode::Off,
    };
}

/// What a caller may ask of [`compile`](crate::compile).
#[derive(Clone, Debug)]
pub struct CompileConfig {
    /// What shares a slab.
    pub accounting: Accounting,
    /// Where the order comes from.
    pub schedule: ScheduleMode,
    /// What may be done to the program first.
    pub transforms: Transforms,
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
            transforms: Transforms::NONE,
            effort: Effort::Default,
            check: true,
        }
    }
}
