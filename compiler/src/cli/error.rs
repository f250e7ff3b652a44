//! What ends a command with status 2, and how it is shown.

use std::io::IsTerminal;

use super::load::Origin;
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
    /// Anything else, already in words for the user.
    #[error("{0:#}")]
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
            other => Self::Compile(other),
        }
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
            other => eprintln!("error: {other}"),
        }
    }
}
