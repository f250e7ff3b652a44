//! `slabplan print`.

use super::load::ModuleArg;
use super::{Answer, CliError};
use crate::output;

/// Arguments of `print`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    module: ModuleArg,
    /// Where to write; standard output by default.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: String,
}

pub(super) fn run(args: &Args) -> Result<Answer, CliError> {
    let (module, _) = args.module.load()?;
    let text = slabplan_ir::text::print(&module);
    output::write(&args.output, text.as_bytes())?;
    Ok(Answer::Yes)
}
