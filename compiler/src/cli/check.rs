//! `slabplan check`.

use serde_json::json;
use slabplan_ir::Module;
use slabplan_ir::check::{CheckReport, Violations};
use slabplan_ir::plan::{self, PlanHeader};

use super::load::{ModuleArg, TargetArgs};
use super::plan::PlanForm;
use super::{Answer, CliError};
use crate::config::CompileConfig;
use crate::{check, frontend, output, prepare};

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
    let (module, origin) = args.module.load()?;
    let wrong_plan = |e: plan::PlanReadError| CliError::new(format!("{}: {e}", args.plan));
    let text = read_plan(&args.plan)?;
    let header = match form {
        PlanForm::Json => plan::json_header(&text),
        PlanForm::Text => plan::text_header(&text),
    }
    .map_err(wrong_plan)?;
    let target = args.target.load_or(&header.target)?;
    let module = prepare(module, &target, &config_of(&header))
        .map_err(|e| CliError::from_compile(e, &origin))?;
    let plan = match form {
        PlanForm::Json => plan::from_json(&module, &text),
        PlanForm::Text => plan::from_text(&module, &text),
    }
    .map_err(wrong_plan)?;
    answer(args, &module, check(&module, &plan, &target))
}

/// The passes that made the module the plan is for.
fn config_of(header: &PlanHeader) -> CompileConfig {
    let mut config = CompileConfig {
        accounting: header.accounting,
        ..CompileConfig::default()
    };
    config.set_schedule(&header.schedule);
    config
}

fn read_plan(path: &str) -> Result<String, CliError> {
    let source = frontend::read(path)?;
    String::from_utf8(source.bytes)
        .map_err(|_| CliError::new(format!("{path}: a plan is text, and this is not UTF-8")))
}

fn answer(
    args: &Args,
    module: &Module,
    result: Result<CheckReport, Violations>,
) -> Result<Answer, CliError> {
    let name = module.str(module.name);
    let (answer, text) = match result {
        Ok(report) if args.json => (
            Answer::Yes,
            json!({ "module": name, "valid": true, "violations": [], "fits": report.fits })
                .to_string(),
        ),
        Ok(report) => (
            Answer::Yes,
            format!(
                "{name}: the plan is right: {} values keep their bytes over {} reads and {} writes",
                report.values, report.reads, report.writes
            ),
        ),
        Err(violations) => {
            let list: Vec<String> = violations.list.iter().map(ToString::to_string).collect();
            let text = if args.json {
                json!({ "module": name, "valid": false, "violations": list, "count": violations.total })
                    .to_string()
            } else {
                format!("{name}: {violations}")
            };
            (Answer::No, text)
        }
    };
    output::write("-", format!("{text}\n").as_bytes())?;
    Ok(answer)
}
