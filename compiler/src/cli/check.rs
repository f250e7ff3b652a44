//! `slabplan check`.

use slabplan_ir::Plan;
use slabplan_ir::plan;

use super::load::{Loaded, ModuleArg, TargetArgs};
use super::plan::PlanForm;
use super::{Answer, CliError};
use crate::config::{CompileConfig, ScheduleMode};
use crate::{frontend, output, prepare};

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    module: ModuleArg,
    /// The plan: `.json` or `.txt`.
    plan: String,
    #[command(flatten)]
    target: TargetArgs,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<Answer, CliError> {
    let form = PlanForm::of(&args.plan)?;
    let target = args.target.load()?;
    let mut loaded = args.module.load()?;
    let text = read_plan(&args.plan)?;
    let head = plan::read_header(&text).map_err(|e| CliError::new(format!("{}: {e}", args.plan)))?;
    let config = CompileConfig {
        schedule: if head.schedule == "keep" { ScheduleMode::Keep } else { ScheduleMode::Memory },
        accounting: head.accounting,
        ..CompileConfig::default()
    };
    let module = loaded.take_module();
    let module = prepare(module, &target, &config).map_err(|e| CliError::from_compile(e, &loaded))?;
    let parsed = match form {
        PlanForm::Json => plan::from_json(&text, &module),
        PlanForm::Text => plan::from_text(&text, &module),
    };
    let plan: Plan = parsed.map_err(|e| CliError::new(format!("{}: {e}", args.plan)))?;
    answer(args, &loaded, &crate::check(&module, &plan, &target))
}
