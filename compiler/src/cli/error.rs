//! What ends a command with status 2, and how it is shown.

use std::io::IsTerminal;

use super::load::Origin;
use crate::exec::ExecError;
use crate::frontend::LoadError;
use crate::pass::PassError;
use crate::{CompileError, diagnostics};

/// A wrong input or call.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The module can't be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The module is read but not valid; the source text shows where.
    #[error("{} is not a valid module", .source_name)]
    Invalid {
        /// What messages call the module.
        source_name: String,
        /// Its text where it came as text.
        text: Option<String>,
        /// What is wrong.
        errors: slabplan_ir::verify::VerifyErrors,
    },
    /// The module can't be compiled.
    #[error(transparent)]
    Compile(CompileError),
    /// An instruction is to blame, and the source text shows where it is.
    #[error("{message}")]
    Instruction {
        /// What messages call the module.
        source_name: String,
        /// Its text.
        text: String,
        /// Where the name of the instruction begins.
        offset: usize,
        /// What is wrong, and what to do.
        message: String,
    },
    /// Anything else, already in words for the user: what caused it is in them.
    #[error("{0}")]
    Other(#[from] anyhow::Error),
}

impl CliError {
    /// An error in words.
    pub fn new(message: impl Into<String>) -> Self {
        Self::Other(anyhow::Error::msg(message.into()))
    }

    /// What `compile` says, with the text that lets the verifier's places be shown.
    pub(super) fn from_compile(error: CompileError, origin: &Origin) -> Self {
        match error {
            CompileError::Pass(PassError::Invalid(errors)) => Self::Invalid {
                source_name: origin.name.clone(),
                text: origin.text.clone(),
                errors,
            },
            CompileError::Pass(PassError::NeedsPartitioner { ref instr, .. }) => {
                Self::at_instruction(instr, error.to_string(), origin)
                    .unwrap_or(Self::Compile(error))
            }
            CompileError::Scratch(error) => Self::from_exec(error, origin),
            other => Self::Compile(other),
        }
    }

    /// What the executor says, with the instruction's place in the text.
    pub(super) fn from_exec(error: ExecError, origin: &Origin) -> Self {
        error
            .instr()
            .and_then(|instr| Self::at_instruction(instr, error.to_string(), origin))
            .unwrap_or_else(|| Self::Other(error.into()))
    }

    fn at_instruction(instr: &str, message: String, origin: &Origin) -> Option<Self> {
        let text = origin.text.as_ref()?;
        Some(Self::Instruction {
            source_name: origin.name.clone(),
            offset: definition(text, instr)?,
            text: text.clone(),
            message,
        })
    }

    /// Whether the reader of our output went away, which is no mistake of the user's.
    pub fn is_broken_pipe(&self) -> bool {
        let Self::Other(e) = self else { return false };
        e.downcast_ref::<std::io::Error>()
            .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
    }

    /// Prints the error to standard error, with source lines and carets where there are places.
    pub fn report(&self) {
        let colour = std::io::stderr().is_terminal();
        match self {
            Self::Load(LoadError::Text { input, diagnostics }) => {
                let text = String::from_utf8_lossy(&input.bytes);
                for d in diagnostics {
                    eprintln!("{}", diagnostics::render(&input.name, &text, d, colour));
                }
            }
            Self::Invalid {
                source_name,
                text,
                errors,
            } => {
                for e in &errors.errors {
                    let rendered =
                        diagnostics::render_verify(source_name, text.as_deref(), e, colour);
                    eprintln!("{rendered}");
                }
            }
            Self::Instruction {
                source_name,
                text,
                offset,
                message,
            } => {
                let said = (message.as_str(), "");
                let rendered = diagnostics::render_at(source_name, text, *offset, said, colour);
                eprintln!("{rendered}");
            }
            other => eprintln!("error: {other}"),
        }
    }
}

/// Where the only instruction called `name` is defined. O(text).
fn definition(text: &str, name: &str) -> Option<usize> {
    let is_definition = |at: usize| {
        let line = text[..at].rfind('\n').map_or(0, |n| n + 1);
        let before = text[line..at].trim_start().trim_start_matches("ROOT ");
        matches!(before.trim_start(), "" | "%")
            && text[at + name.len()..].trim_start().starts_with('=')
    };
    let mut found = text
        .match_indices(name)
        .map(|(at, _)| at)
        .filter(|&at| is_definition(at));
    found.next().filter(|_| found.next().is_none())
}
