//! `slabplan verify`.

use super::load::ModuleArg;
use super::{Answer, CliError};

/// Arguments of `verify`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    module: ModuleArg,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<Answer, CliError> {
    let loaded = args.module.load()?;
    let errors = slabplan_ir::verify::verify(&loaded.module).err().unwrap_or_default();
    if args.json {
        let list: Vec<_> = errors.iter().map(|e| serde_json::json!({ "message": e.to_string() })).collect();
        println!(
            "{}",
            serde_json::json!({
                "module": loaded.module.str(loaded.module.name),
                "instructions": loaded.module.instrs.len(),
                "computations": loaded.module.computations.len(),
                "valid": list.is_empty(),
                "errors": list,
            })
        );
    }
    if !errors.is_empty() {
        return Err(CliError::Invalid {
            source_name: loaded.name,
            text: loaded.text,
            errors,
        });
    }
    if !args.json {
        println!(
            "{}: module {} is valid: {} instructions in {} computations{}",
            loaded.name,
            loaded.module.str(loaded.module.name),
            loaded.module.instrs.len(),
            loaded.module.computations.len(),
            if loaded.module.is_scheduled { ", scheduled" } else { ", not scheduled" },
        );
    }
    Ok(Answer::Yes)
}
