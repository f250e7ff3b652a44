//! `slabplan compare`.

use slabplan_ir::check::{InPlace, check_with};
use slabplan_ir::plan::Accounting;

use super::judge::judged;
use super::load::{EffortArg, ModuleArg, TargetArgs};
use super::{Answer, CliError};
use crate::config::CompileConfig;
use crate::report::{compare, comparison_json, comparison_text};
use crate::{compile, output};

/// Arguments of `compare`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    module: ModuleArg,
    /// XLA's own buffer assignment of the module: the dumped text, an HloProto or a
    /// BufferAssignmentProto, also gzipped.
    #[arg(long, value_name = "FILE")]
    xla_assignment: String,
    #[command(flatten)]
    target: TargetArgs,
    /// How hard to pack.
    #[arg(long, value_enum, default_value = "default")]
    effort: EffortArg,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<Answer, CliError> {
    let judged = judged(&args.module, &args.xla_assignment, &args.target)?;
    // Figures of a plan that is wrong mean nothing.
    let verdict = check_with(
        &judged.module,
        &judged.xla.plan,
        &judged.target,
        InPlace::Promise,
    );
    if let Err(violations) = verdict {
        let name = judged.module.str(judged.module.name);
        let text = format!("{name}: XLA's assignment is not a right plan of it: {violations}\n");
        output::write("-", text.as_bytes())?;
        return Ok(Answer::No);
    }
    let plan = |accounting| {
        let config = CompileConfig {
            accounting,
            effort: args.effort.into(),
            ..CompileConfig::default()
        };
        compile(judged.module.clone(), &judged.target, &config)
            .map_err(|e| CliError::from_compile(e, &judged.origin))
    };
    let ours = plan(Accounting::Xla)?;
    let one_slab = plan(Accounting::Slab)?;
    let comparison = compare(&judged.module, &ours, one_slab.plan(), &judged.xla);
    let text = if args.json {
        format!("{}\n", comparison_json(&comparison))
    } else {
        comparison_text(&comparison)
    };
    output::write("-", text.as_bytes())?;
    Ok(Answer::Yes)
}
