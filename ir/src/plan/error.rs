//! Why a plan can't be read.

use std::fmt;

use super::PLAN_VERSION;

/// Where in a plan's text or JSON something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanPlace {
    /// Line and column, both from 1.
    Line(usize, usize),
    /// Path of a JSON value: `buffers[3].values[0]`.
    Path(String),
}

impl fmt::Display for PlanPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanPlace::Line(line, column) => write!(f, "line {line}, column {column}"),
            PlanPlace::Path(path) => f.write_str(path),
        }
    }
}

/// Why a plan can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanReadError {
    /// The text is not a plan, or a part of it is not what it should be.
    #[error("{at}: {message}")]
    Malformed {
        /// Where.
        at: PlanPlace,
        /// What is wrong and what is expected.
        message: String,
    },
    /// The plan was written by another version of the format.
    #[error(
        "the plan has version {given}, this program reads version {PLAN_VERSION}: make the plan again"
    )]
    Version {
        /// The plan's version.
        given: u64,
    },
    /// The plan is for another module, or for this one before or after other passes.
    #[error(
        "the plan is for module `{planned}` with fingerprint {planned_fingerprint:016x}, not for \
         this one, `{module}` with {fingerprint:016x}: make the plan again"
    )]
    OtherModule {
        /// Name of the plan's module.
        planned: String,
        /// The plan's fingerprint.
        planned_fingerprint: u64,
        /// Name of the module it was read for.
        module: String,
        /// That module's fingerprint.
        fingerprint: u64,
    },
}

impl PlanReadError {
    pub(super) fn malformed(at: PlanPlace, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Malformed { at, message }
    }
}
