//! `slabplan plan`.

use slabplan_ir::plan;

use super::load::{ModuleArg, PlanningArgs, TargetArgs};
use super::size::parse_threads;
use super::{Answer, CliError};
use crate::{CompileConfig, Compiled, compile, output, report};

/// Arguments of `plan`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    module: ModuleArg,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    planning: PlanningArgs,
    /// Where to write the plan: `.json`, `.txt`, or `.pb` for an HloProto with XLA's buffer assignment.
    #[arg(short, long, value_name = "PLAN")]
    output: Option<String>,
    /// Where to write the module the plan is for (after passes), as HLO text.
    #[arg(long, value_name = "FILE")]
    emit_module: Option<String>,
    /// One JSON object on standard output instead of the summary.
    #[arg(long)]
    json: bool,
    /// With `--rewrite`: what was rewritten, by which rules, what it saved, and why each region stopped.
    #[arg(long, requires = "rewrite")]
    explain_rewrites: bool,
    /// What would cut the padding at the peak: other orders of dimensions, merged dimensions, narrower types.
    #[arg(long)]
    advice: bool,
    /// Plan also what the executor's operations work in on so many threads, as scratch.
    #[arg(long, value_name = "THREADS", num_args = 0..=1, default_missing_value = "1", require_equals = true, value_parser = parse_threads)]
    scratch: Option<std::num::NonZeroUsize>,
    /// Time of every pass on standard error.
    #[arg(long)]
    timings: bool,
}

pub(super) fn run(args: &Args) -> Result<Answer, CliError> {
    let form = args.output.as_deref().map(PlanForm::of).transpose()?;
    if args.output.is_some() && args.output == args.emit_module {
        return Err(CliError::new(
            "-o and --emit-module name the same file; the plan and the module need one each",
        ));
    }
    let target = args.target.load()?;
    let (module, origin) = args.module.load()?;
    let config = CompileConfig {
        scratch: args.scratch,
        ..args.planning.config()
    };
    let compiled =
        compile(module, &target, &config).map_err(|e| CliError::from_compile(e, &origin))?;
    if let (Some(form), Some(path)) = (form, &args.output) {
        let bytes = match form {
            PlanForm::Json => plan::to_json(&compiled.module, compiled.plan()).into_bytes(),
            PlanForm::Text => plan::to_text(&compiled.module, compiled.plan()).into_bytes(),
            PlanForm::Proto => proto(&compiled)?,
        };
        output::write(path, &bytes)?;
    }
    if let Some(path) = &args.emit_module {
        output::write(path, slabplan_ir::text::print(&compiled.module).as_bytes())?;
    }
    if args.timings {
        for p in &compiled.passes {
            let mark = if p.changed { "changed" } else { "" };
            eprintln!(
                "{:>24}  {:>10.3} ms  {mark}",
                p.name,
                1e3 * p.time.as_secs_f64()
            );
        }
    }
    let text = if args.json {
        let mut json = report::plan_json(&compiled, origin.parse_seconds);
        if args.advice {
            json["advice"] = report::advice(&compiled, &target)
                .iter()
                .map(report::Advice::to_json)
                .collect();
        }
        format!("{json}\n")
    } else {
        let mut text = report::plan_summary(&compiled);
        if args.advice {
            text.push_str(&report::advice_text(&compiled, &target));
        }
        if args.explain_rewrites {
            text.push_str(&report::rewrites(&compiled));
        }
        text
    };
    output::write("-", text.as_bytes())?;
    Ok(if compiled.fits() {
        Answer::Yes
    } else {
        Answer::No
    })
}

/// The plan as an HloProto; what of the module has no place there is said on standard error.
fn proto(compiled: &Compiled) -> Result<Vec<u8>, CliError> {
    let proto = report::plan_proto(&compiled.module, &compiled.planned)
        .map_err(|e| CliError::new(format!("the module can't be written as a proto: {e}")))?;
    super::note_left_out(&proto.left_out);
    Ok(proto.bytes)
}

/// The form a plan file has, by its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlanForm {
    Json,
    Text,
    Proto,
}

impl PlanForm {
    /// The form of `path`.
    pub(super) fn of(path: &str) -> Result<Self, CliError> {
        match path.rsplit_once('.').map(|(_, e)| e) {
            Some("json") => Ok(Self::Json),
            Some("txt") => Ok(Self::Text),
            Some("pb") => Ok(Self::Proto),
            _ => Err(CliError::new(format!(
                "the form of plan {path} is not known from its name; end it in .json, .txt or .pb"
            ))),
        }
    }
}
