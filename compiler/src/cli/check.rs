//! `slabplan check`.

use std::fmt::Write;

use serde_json::{Value, json};
use slabplan_ir::Module;
use slabplan_ir::check::{CheckReport, InPlace, Promised, Violations, check_with};
use slabplan_ir::plan::{self, Plan, PlanHeader};

use super::judge::judged;
use super::load::{ModuleArg, TargetArgs, TransformArgs};
use super::plan::PlanForm;
use super::{Answer, CliError};
use crate::config::CompileConfig;
use crate::report::value_name;
use crate::{check, frontend, output, prepare};

/// Promises that the text names; `--json` has all.
const PROMISES_SHOWN: usize = 10;

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    module: ModuleArg,
    /// The plan: `.json`, `.txt`, or `.pb` as `plan -o` writes it.
    #[arg(required_unless_present = "xla_assignment")]
    plan: Option<String>,
    /// XLA's own buffer assignment of the module instead of a plan: the dumped text, an HloProto or a
    /// BufferAssignmentProto, also gzipped.
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    xla_assignment: Option<String>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    transforms: TransformArgs,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<Answer, CliError> {
    if let Some(assignment) = &args.xla_assignment {
        return judge(args, assignment, InPlace::Promise);
    }
    let path = args.plan.as_deref().unwrap_or_default();
    let form = PlanForm::of(path)?;
    if form == PlanForm::Proto {
        return judge(args, path, InPlace::Prove);
    }
    let (module, origin) = args.module.load()?;
    let wrong_plan = |e: plan::PlanReadError| CliError::new(format!("{path}: {e}"));
    let text = read_plan(path)?;
    let is_json = form == PlanForm::Json;
    let header = if is_json {
        plan::json_header(&text)
    } else {
        plan::text_header(&text)
    }
    .map_err(wrong_plan)?;
    let target = args.target.load_or(&header.target)?;
    let module = prepare(module, &target, &config_of(&header, args.transforms))
        .map_err(|e| CliError::from_compile(e, &origin))?;
    let plan = if is_json {
        plan::from_json(&module, &text)
    } else {
        plan::from_text(&module, &text)
    }
    .map_err(wrong_plan)?;
    answer(args, &module, &plan, &check(&module, &plan, &target))
}

/// Judges a plan in XLA's form.
fn judge(args: &Args, assignment: &str, in_place: InPlace) -> Result<Answer, CliError> {
    let judged = judged(&args.module, assignment, &args.target)?;
    let module = &judged.module;
    let result = check_with(module, &judged.xla.plan, &judged.target, in_place);
    answer(args, module, &judged.xla.plan, &result)
}

/// The passes that made the module the plan is for.
fn config_of(header: &PlanHeader, transforms: TransformArgs) -> CompileConfig {
    let mut config = CompileConfig {
        accounting: header.accounting,
        transforms: transforms.transforms(),
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
    plan: &Plan,
    result: &Result<CheckReport, Violations>,
) -> Result<Answer, CliError> {
    let answer = match result {
        Ok(report) if report.fits => Answer::Yes,
        _ => Answer::No,
    };
    let text = if args.json {
        format!("{}\n", result_json(module, result))
    } else {
        result_text(module, plan, result)
    };
    output::write("-", text.as_bytes())?;
    Ok(answer)
}

fn result_json(module: &Module, result: &Result<CheckReport, Violations>) -> Value {
    let name = module.str(module.name);
    match result {
        Ok(report) => json!({
            "module": name,
            "valid": true,
            "violations": [],
            "fits": report.fits,
            "promised_count": report.promised.len(),
            "promised": report.promised.iter().map(|p| json!({
                "instruction": module.name_of(p.result.instr),
                "result": value_name(module, &p.result),
                "operand": value_name(module, &p.operand),
                "in_module_text": p.in_text,
            })).collect::<Vec<_>>(),
        }),
        Err(violations) => json!({
            "module": name,
            "valid": false,
            "violations": violations.list.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "count": violations.total,
        }),
    }
}

fn result_text(module: &Module, plan: &Plan, result: &Result<CheckReport, Violations>) -> String {
    let name = module.str(module.name);
    let report = match result {
        Ok(report) => report,
        Err(violations) => return format!("{name}: {violations}"),
    };
    let mut out = format!(
        "{name}: the plan is right: {} values keep their bytes over {} reads and {} writes\n",
        report.values, report.reads, report.writes
    );
    for (space, found) in plan.spaces.iter().zip(&report.spaces) {
        if !found.fits {
            let _ = writeln!(
                out,
                "but it does not fit: {} needs {} and has {}",
                space.name, space.slab, found.capacity
            );
        }
    }
    let promised = &report.promised;
    if promised.is_empty() {
        return out;
    }
    let in_text = promised.iter().filter(|p| p.in_text).count();
    let _ = writeln!(
        out,
        "  in place by the back end's promise, without proof: {} ({in_text} promised in the module's text)",
        promised.len()
    );
    for p in promised.iter().take(PROMISES_SHOWN) {
        let _ = writeln!(out, "    {}", promise_line(module, p));
    }
    if promised.len() > PROMISES_SHOWN {
        let more = promised.len() - PROMISES_SHOWN;
        let _ = writeln!(out, "    ... and {more} more (--json lists all)");
    }
    out
}

fn promise_line(module: &Module, p: &Promised) -> String {
    format!(
        "{} ({}) takes the bytes of {}",
        value_name(module, &p.result),
        module.instrs[p.result.instr].opcode,
        value_name(module, &p.operand)
    )
}
