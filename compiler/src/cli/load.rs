//! Arguments and steps that several subcommands share.

use slabplan_ir::{Module, Target};

use super::CliError;
use super::size::{parse_capacity, parse_size};
use crate::config::{CompileConfig, FuseMode, LayoutMode, ScheduleMode, Transforms};
use crate::frontend::{self, InstructionNames};
use slabplan_ir::Bytes;
use slabplan_ir::plan::Accounting;
use slabplan_planner::layouts::EntryOrder;
use slabplan_planner::pack::Effort;

/// The module a command works on.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ModuleArg {
    /// HLO text or proto, also gzipped; `-` reads standard input.
    pub(super) module: String,
}

/// Where a module came from.
pub(super) struct Origin {
    /// What messages call it.
    pub(super) name: String,
    /// Its text, where it came as text, for showing places.
    pub(super) text: Option<String>,
    /// How long reading and parsing took.
    pub(super) parse_seconds: f64,
}

impl ModuleArg {
    /// Reads and parses the module.
    pub(super) fn load(&self) -> Result<(Module, Origin), CliError> {
        Self::parse(frontend::read(&self.module)?)
    }

    /// The same, with what the ids of its proto stand for, where it came as one.
    pub(super) fn load_with_ids(
        &self,
    ) -> Result<(Module, Origin, Option<InstructionNames>), CliError> {
        let source = frontend::read(&self.module)?;
        let ids = InstructionNames::of_proto(&source.bytes);
        let (module, origin) = Self::parse(source)?;
        Ok((module, origin, ids))
    }

    fn parse(source: frontend::Source) -> Result<(Module, Origin), CliError> {
        let start = std::time::Instant::now();
        let name = source.name.clone();
        let text = std::str::from_utf8(&source.bytes).ok().map(str::to_owned);
        let module = frontend::parse_module(source)?;
        let origin = Origin {
            name,
            text,
            parse_seconds: start.elapsed().as_secs_f64(),
        };
        Ok((module, origin))
    }
}

/// The machine to plan for.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct TargetArgs {
    /// Built-in target (tpu-v5e, tpu-v4, tpu-v5p, tpu-v6e, cpu) or a .toml file; tpu-v5e by default, and the
    /// plan's own target for `check`.
    #[arg(long, value_name = "NAME|FILE.toml")]
    pub(super) target: Option<String>,
    /// Capacity of HBM (memory space 0).
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(super) limit: Option<Bytes>,
    /// Capacity of a memory space, by name or number; may be repeated.
    #[arg(long, value_name = "SPACE=SIZE", value_parser = parse_capacity)]
    pub(super) capacity: Vec<(String, Bytes)>,
}

impl TargetArgs {
    /// The target with the capacities asked for.
    pub(super) fn load(&self) -> Result<Target, CliError> {
        self.load_or(crate::target::DEFAULT)
    }

    /// The target with the capacities asked for, `default` where none is named.
    pub(super) fn load_or(&self, default: &str) -> Result<Target, CliError> {
        let name = self.target.as_deref().unwrap_or(default);
        let mut target = crate::target::load(name).map_err(anyhow::Error::from)?;
        let limit = self.limit.map(|b| ("0".to_owned(), b));
        for (space, bytes) in limit.iter().chain(&self.capacity) {
            let names: Vec<String> = target.spaces.iter().map(|s| s.name.clone()).collect();
            let found = target
                .spaces
                .iter_mut()
                .find(|s| s.name == *space || s.id.to_string() == *space)
                .ok_or_else(|| {
                    CliError::new(format!(
                        "target {} has no memory space `{space}`; it has {}",
                        target.name,
                        names.join(", ")
                    ))
                })?;
            found.capacity = *bytes;
        }
        Ok(target)
    }
}

/// How to plan.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct PlanningArgs {
    /// `slab`: everything of a space in one slab. `xla`: arguments, outputs and constants apart, as XLA accounts.
    #[arg(long, value_enum, default_value = "slab")]
    pub(super) accounting: AccountingArg,
    /// `keep`: the module's own order if it is scheduled. `memory`: the best order for memory.
    #[arg(long, value_enum, default_value = "keep")]
    pub(super) schedule: ScheduleArg,
    /// With `--schedule memory`: what runs between start and done of an asynchronous operation stays there; `=false`
    /// gives it up for memory.
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true",
          num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    pub(super) keep_async_distance: bool,
    /// How hard to schedule and to pack.
    #[arg(long, value_enum, default_value = "default")]
    pub(super) effort: EffortArg,
    #[command(flatten)]
    pub(super) transforms: TransformArgs,
}

/// What to do to the program before it is planned; kept where the plan gains.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct TransformArgs {
    /// `default`: the module's own layouts, row-major where it has none. `memory`: layouts with few padded bytes.
    #[arg(long, value_enum, default_value = "default")]
    pub(super) layouts: LayoutsArg,
    /// With `--layouts memory`: whether arguments and results lie as the module says, or as the compiler likes.
    #[arg(long, value_enum, default_value = "given")]
    pub(super) entry_layouts: EntryLayoutsArg,
    /// Rewrite views and elementwise operations of a module without layouts.
    #[arg(long)]
    pub(super) rewrite: bool,
    /// Fuse chains of elementwise operations of a module without a schedule.
    #[arg(long)]
    pub(super) fuse: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum LayoutsArg {
    Default,
    Memory,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum EntryLayoutsArg {
    Given,
    Free,
}

impl TransformArgs {
    pub(super) fn transforms(self) -> Transforms {
        Transforms {
            layouts: match self.layouts {
                LayoutsArg::Default => LayoutMode::Default,
                LayoutsArg::Memory => LayoutMode::Memory,
            },
            entry: match self.entry_layouts {
                EntryLayoutsArg::Given => EntryOrder::Given,
                EntryLayoutsArg::Free => EntryOrder::Free,
            },
            rewrite: self.rewrite,
            fuse: if self.fuse {
                FuseMode::Eager
            } else {
                FuseMode::Off
            },
        }
    }
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum AccountingArg {
    Slab,
    Xla,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum ScheduleArg {
    Keep,
    Memory,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum EffortArg {
    Fast,
    Default,
    Max,
}

impl From<EffortArg> for Effort {
    fn from(arg: EffortArg) -> Self {
        match arg {
            EffortArg::Fast => Self::Fast,
            EffortArg::Default => Self::Default,
            EffortArg::Max => Self::Max,
        }
    }
}

impl PlanningArgs {
    pub(super) fn config(&self) -> CompileConfig {
        CompileConfig {
            accounting: match self.accounting {
                AccountingArg::Slab => Accounting::Slab,
                AccountingArg::Xla => Accounting::Xla,
            },
            schedule: match self.schedule {
                ScheduleArg::Keep => ScheduleMode::Keep,
                ScheduleArg::Memory => ScheduleMode::Memory,
            },
            keep_async_distance: self.keep_async_distance,
            transforms: self.transforms.transforms(),
            effort: self.effort.into(),
            scratch: None,
            check: true,
        }
    }
}
