//! `slabplan verify`.

use serde_json::{Value, json};
use slabplan_ir::verify::{VerifyError, verify};

use super::load::ModuleArg;
use super::{Answer, CliError};
use crate::output;

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
    let (module, origin) = args.module.load()?;
    let (warnings, errors) = match verify(&module) {
        Ok(verified) => (verified.warnings().to_vec(), None),
        Err(errors) => (Vec::new(), Some(errors)),
    };
    if args.json {
        let list = |errors: &[VerifyError]| -> Vec<_> {
            errors
                .iter()
                .map(|e| error_json(e, origin.text.as_deref()))
                .collect()
        };
        let report = json!({
            "module": module.str(module.name),
            "instructions": module.instrs.len(),
            "computations": module.computations.len(),
            "scheduled": module.is_scheduled,
            "valid": errors.is_none(),
            "errors": list(errors.as_ref().map_or(&[], |e| &e.errors)),
            "warnings": list(&warnings),
        });
        output::write("-", format!("{report}\n").as_bytes())?;
    }
    if let Some(errors) = errors {
        return Err(CliError::Invalid {
            source_name: origin.name,
            text: origin.text,
            errors,
        });
    }
    for w in &warnings {
        eprintln!("warning: {}: {w}", origin.name);
    }
    if !args.json {
        let text = format!(
            "{}: module {} is valid: {} instructions in {} computations, {}\n",
            origin.name,
            module.str(module.name),
            module.instrs.len(),
            module.computations.len(),
            if module.is_scheduled {
                "scheduled"
            } else {
                "not scheduled"
            },
        );
        output::write("-", text.as_bytes())?;
    }
    Ok(Answer::Yes)
}

fn error_json(e: &VerifyError, text: Option<&str>) -> Value {
    let place = text.and_then(|t| e.line_column(t));
    json!({
        "message": e.message,
        "remedy": e.remedy,
        "line": place.map(|p| p.0),
        "column": place.map(|p| p.1),
    })
}
