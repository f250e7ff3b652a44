//! What the verifier reports.

use std::fmt;

use crate::entity::{CompId, InstrId};
use crate::instr::Instr;
use crate::module::Module;
use crate::strings::Str;

/// What kind of rule is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// An id is out of range, or a computation does not own what it lists.
    Ids,
    /// A name is empty or not unique.
    Name,
    /// Parameter numbers are not dense and unique, or a payload is on the wrong operation.
    Parameter,
    /// An operand or control predecessor is of another computation or comes later.
    Order,
    /// Instructions wait for each other in a circle.
    Cycle,
    /// A required attribute is missing.
    Attribute,
    /// Computations call each other in a circle, or are called where they may not be.
    Call,
    /// Operands, attributes or called computations do not fit the operation.
    Operands,
    /// The declared shape is not one that the operation gives.
    Shape,
    /// A layout is malformed.
    Layout,
    /// An array has no size of at most 2^63 - 1 bytes.
    Size,
    /// `input_output_alias` or `buffer_donor` is wrong.
    Alias,
    /// `output_to_operand_aliasing` is wrong.
    OperandAlias,
    /// An asynchronous start and its done do not pair up.
    Async,
    /// `entry_computation_layout` is not of the entry computation.
    EntryLayout,
}

/// The entity an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The module's header.
    Module,
    /// An entry of `input_output_alias`, by its number in the list.
    Alias(u32),
    /// An entry of `buffer_donor`, by its number in the list.
    Donor(u32),
    /// A computation.
    Computation(CompId),
    /// An instruction.
    Instr(InstrId),
}

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// Which rule.
    pub kind: ErrorKind,
    /// Where.
    pub place: Place,
    /// Byte position of the entity's name in the text the module was parsed from.
    pub offset: usize,
    /// The entity's name as the text prints it, and what is wrong.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

impl VerifyError {
    /// Line and column, from 1 and in characters, in the text the module was parsed from; `None`
    /// if the entity is not in it (a pass made it). O(offset).
    pub fn line_column(&self, source: &str) -> Option<(usize, usize)> {
        let before = source.get(..self.offset)?;
        if self.offset >= source.len() {
            return None;
        }
        let line_start = before.rfind('\n').map_or(0, |n| n + 1);
        let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
        Some((line, before[line_start..].chars().count() + 1))
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.remedy)
    }
}

/// Everything that is wrong with a module, in the order of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyErrors {
    /// The errors, at least one.
    pub errors: Vec<VerifyError>,
    /// How many more there are than are listed.
    pub suppressed: usize,
}

impl fmt::Display for VerifyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, e) in self.errors.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            e.fmt(f)?;
        }
        if self.suppressed > 0 {
            write!(f, "\nand {} more", self.suppressed)?;
        }
        Ok(())
    }
}

impl std::error::Error for VerifyErrors {}

/// Most errors that one run lists; the rest are counted.
const MAX_ERRORS: usize = 100;

/// Collects errors about one module.
pub(super) struct Sink<'a> {
    pub(super) module: &'a Module,
    errors: Vec<VerifyError>,
    warnings: Vec<VerifyError>,
    suppressed: usize,
}

impl<'a> Sink<'a> {
    pub(super) fn new(module: &'a Module) -> Self {
        Self {
            module,
            errors: Vec::new(),
            warnings: Vec::new(),
            suppressed: 0,
        }
    }

    /// The instructions of all computations; the arena may hold discarded ones besides.
    pub(super) fn instrs(&self) -> impl Iterator<Item = (InstrId, &'a Instr)> + use<'a> {
        let module = self.module;
        let listed = module.computations.values().flat_map(|c| &c.instrs);
        listed.map(|&i| (i, &module.instrs[i]))
    }

    pub(super) fn is_clean(&self) -> bool {
        self.errors.is_empty()
    }

    /// Reports an error; `message` begins where the entity's name ends.
    pub(super) fn error(
        &mut self,
        kind: ErrorKind,
        place: Place,
        message: impl AsRef<str>,
        remedy: impl Into<String>,
    ) {
        if self.errors.len() == MAX_ERRORS {
            self.suppressed += 1;
            return;
        }
        let error = self.describe(kind, place, message.as_ref(), remedy.into());
        self.errors.push(error);
    }

    /// Reports something odd that is allowed.
    pub(super) fn warning(
        &mut self,
        kind: ErrorKind,
        place: Place,
        message: impl AsRef<str>,
        remedy: impl Into<String>,
    ) {
        if self.warnings.len() < MAX_ERRORS {
            let warning = self.describe(kind, place, message.as_ref(), remedy.into());
            self.warnings.push(warning);
        }
    }

    fn describe(
        &self,
        kind: ErrorKind,
        place: Place,
        message: &str,
        remedy: String,
    ) -> VerifyError {
        let module = self.module;
        let (prefix, name) = match place {
            Place::Module | Place::Alias(_) | Place::Donor(_) => ("module ", module.name),
            Place::Computation(c) => ("computation %", module.computations[c].name),
            Place::Instr(i) => ("%", module.instrs[i].name),
        };
        // What was not read from text is found by the module's name.
        let text = match place {
            Place::Alias(n) => module.input_output_alias[n as usize].text,
            Place::Donor(n) => module.buffer_donors[n as usize].text,
            _ => name,
        };
        let at = if text == Str::EMPTY { name } else { text };
        VerifyError {
            kind,
            place,
            offset: at.start() as usize,
            message: format!("{prefix}{}: {message}", module.str(name)),
            remedy,
        }
    }

    /// The errors if there are any, and the warnings, each in the order of the text.
    pub(super) fn finish(mut self) -> (Option<VerifyErrors>, Vec<VerifyError>) {
        self.errors.sort_by_key(|e| (e.offset, e.place));
        self.warnings.sort_by_key(|e| (e.offset, e.place));
        let errors = (!self.errors.is_empty()).then_some(VerifyErrors {
            errors: self.errors,
            suppressed: self.suppressed,
        });
        (errors, self.warnings)
    }
}
