//! Arguments and steps that several subcommands share.

use slabplan_ir::Module;

use super::CliError;
use crate::frontend;

/// The module a command works on.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ModuleArg {
    /// HLO text or proto, also gzipped; `-` reads standard input.
    pub(super) module: String,
}

/// A module and, where it came as text, its text for showing places.
pub(super) struct Loaded {
    pub(super) name: String,
    pub(super) module: Module,
    pub(super) text: Option<String>,
    /// How long reading and parsing took.
    pub(super) parse_seconds: f64,
}

impl ModuleArg {
    /// Reads and parses the module.
    pub(super) fn load(&self) -> Result<Loaded, CliError> {
        let start = std::time::Instant::now();
        let source = frontend::read(&self.module)?;
        let name = source.name.clone();
        let text = std::str::from_utf8(&source.bytes).ok().map(str::to_owned);
        let module = frontend::parse_module(source)?;
        Ok(Loaded {
            name,
            module,
            text,
            parse_seconds: start.elapsed().as_secs_f64(),
        })
    }
}
