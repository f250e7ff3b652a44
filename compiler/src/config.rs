//! What a caller may ask of the compiler.

use std::num::NonZeroUsize;

use slabplan_ir::plan::Accounting;
use slabplan_planner::layouts::EntryOrder;
use slabplan_planner::pack::Effort;

/// Where the order of instructions comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleMode {
    /// The module's own order if it is scheduled, otherwise as [`Memory`](Self::Memory).
    Keep,
    /// Of several memory-aware orders, the module's own among them, the one with the smallest plan.
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
    /// Whether a new order must leave between start and done of an asynchronous operation what was there.
    pub keep_async_distance: bool,
    /// What may be done to the program first.
    pub transforms: Transforms,
    /// How hard to schedule and to pack.
    pub effort: Effort,
    /// Whether what the executor's operations work in is planned too, as scratch, and for how many threads.
    pub scratch: Option<NonZeroUsize>,
    /// Whether to prove the plan. On unless the caller proves it otherwise.
    pub check: bool,
}

impl Default for CompileConfig {
    fn default() -> Self {
        Self {
            accounting: Accounting::Slab,
            schedule: ScheduleMode::Keep,
            keep_async_distance: true,
            transforms: Transforms::NONE,
            effort: Effort::Default,
            scratch: None,
            check: true,
        }
    }
}

impl CompileConfig {
    /// What a plan's header calls the way its memory-aware order was found, with whatever another run needs to find it
    /// again: `memory`, `memory-max`, `memory-free-async`, ...
    pub(crate) fn schedule_name(&self) -> String {
        let effort = match self.effort {
            Effort::Fast => "-fast",
            Effort::Default => "",
            Effort::Max => "-max",
        };
        let distance = if self.keep_async_distance {
            ""
        } else {
            FREE_ASYNC
        };
        format!("memory{effort}{distance}")
    }

    /// Takes over what [`schedule_name`](Self::schedule_name) says, or `keep`.
    pub(crate) fn set_schedule(&mut self, name: &str) {
        let Some(settings) = name.strip_prefix("memory") else {
            self.schedule = ScheduleMode::Keep;
            return;
        };
        self.schedule = ScheduleMode::Memory;
        self.keep_async_distance = !settings.ends_with(FREE_ASYNC);
        self.effort = match settings.trim_end_matches(FREE_ASYNC) {
            "-fast" => Effort::Fast,
            "-max" => Effort::Max,
            _ => Effort::Default,
        };
    }
}

const FREE_ASYNC: &str = "-free-async";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_brings_the_settings_back() {
        for effort in [Effort::Fast, Effort::Default, Effort::Max] {
            for keep_async_distance in [true, false] {
                let config = CompileConfig {
                    schedule: ScheduleMode::Memory,
                    effort,
                    keep_async_distance,
                    ..CompileConfig::default()
                };
                let mut read = CompileConfig::default();
                read.set_schedule(&config.schedule_name());
                assert_eq!(read.schedule, ScheduleMode::Memory);
                assert_eq!(read.effort, effort);
                assert_eq!(read.keep_async_distance, keep_async_distance);
            }
        }
        let mut read = CompileConfig::default();
        read.set_schedule("keep");
        assert_eq!(read.schedule, ScheduleMode::Keep);
    }
}
