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

/// Where the only instruction called `name` is defined, of those that begin a line. O(text).
fn definition(text: &str, name: &str) -> Option<usize> {
    let mut line_start = 0;
    let mut found = text.split_inclusive('\n').filter_map(|line| {
        let start = line_start;
        line_start += line.len();
        let from_name = line.trim_start().trim_start_matches("ROOT ");
        let from_name = from_name.trim_start().trim_start_matches('%');
        let behind = from_name.strip_prefix(name)?.trim_start();
        behind
            .starts_with('=')
            .then_some(start + line.len() - from_name.len())
    });
    found.next().filter(|_| found.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::definition;

    #[test]
    fn instructions_are_found_where_they_begin_a_line() {
        let text = "HloModule m\nf {\n  p = f32[] parameter(0)\n}\nENTRY e {\n  p = f32[] parameter(0)\n  %add.1 = f32[] add(p, p)\n  ROOT %add = f32[] add(add.1, p)\n}\n";
        let found = |name| definition(text, name).map(|at| &text[at..at + name.len() + 2]);
        assert_eq!(found("add.1"), Some("add.1 ="));
        assert_eq!(found("add"), Some("add ="));
        // Two computations have one.
        assert_eq!(found("p"), None);
        assert_eq!(found("add.2"), None);
    }
}
