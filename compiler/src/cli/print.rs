//! `slabplan print`.

use slabplan_ir::Module;

use super::load::ModuleArg;
use super::{Answer, CliError};
use crate::{frontend, output};

/// Arguments of `print`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    module: ModuleArg,
    /// Where to write; standard output by default. A name that ends in `.pb` gets an `HloModuleProto`.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: String,
}

pub(super) fn run(args: &Args) -> Result<Answer, CliError> {
    let (module, _) = args.module.load()?;
    let is_proto = std::path::Path::new(&args.output)
        .extension()
        .is_some_and(|e| e == "pb");
    let bytes = if is_proto {
        proto(&module)?
    } else {
        slabplan_ir::text::print(&module).into_bytes()
    };
    output::write(&args.output, &bytes)?;
    Ok(Answer::Yes)
}

fn proto(module: &Module) -> Result<Vec<u8>, CliError> {
    let proto = frontend::module_proto(module)
        .map_err(|e| CliError::new(format!("the module can't be written as a proto: {e}")))?;
    super::note_left_out(&proto.left_out);
    Ok(proto.bytes)
}
