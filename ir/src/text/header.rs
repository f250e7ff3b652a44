//! The module's header, its preamble tables, and a single instruction as a module.

use std::ops::Range;

use super::cursor::Quotes;
use super::diagnostic::{Fault, Rule, nearest, shown};
use super::parser::Parser;
use crate::module::{AliasKind, BufferDonor, EntryLayout, InputOutputAlias};
use crate::strings::Str;

/// All header attributes that XLA knows.
const HEADER: &[&str] = &[
    "is_scheduled",
    "replica_count",
    "num_partitions",
    "input_output_alias",
    "buffer_donor",
    "alias_passthrough_params",
    "entry_computation_layout",
    "frontend_attributes",
    "allow_spmd_sharding_propagation_to_parameters",
    "allow_spmd_sharding_propagation_to_output",
    "origin_recovery_table",
];

/// The sections between header and computations, with the keys of their entries.
const PREAMBLE: [(&str, &[&str]); 4] = [
    ("FileNames", &[]),
    ("FunctionNames", &[]),
    (
        "FileLocations",
        &[
            "file_name_id",
            "function_name_id",
            "line",
            "end_line",
            "column",
            "end_column",
        ],
    ),
    ("StackFrames", &["file_location_id", "parent_frame_id"]),
];

impl Parser<'_> {
    /// `name {, attribute}` after `HloModule`.
    pub(super) fn header(&mut self) -> Rule<()> {
        let name = self.cursor.name("the module's name")?;
        self.module.name = self.str(name);
        // XLA's lexer takes `name:` for a name too.
        if self.cursor.peek() == b':' {
            self.cursor.bump();
        }
        while self.cursor.eat(b',') {
            let Some(span) = self.cursor.ident() else {
                return Err(self.cursor.unexpected("an attribute of the module"));
            };
            let name = self.cursor.slice(span.clone());
            if !HEADER.contains(&name) {
                let mut error = Fault::new(
                    span,
                    format!("unknown attribute `{}` of the module", shown(name)),
                );
                if let Some(near) = nearest(name, HEADER.iter().copied()) {
                    error = error.help(format!("did you mean `{near}`?"));
                }
                return Err(error);
            }
            let given = |&(n, _): &(Str, Str)| self.module.str(n) == name;
            if self.module.header.iter().any(given) {
                return Err(Fault::new(
                    span,
                    format!("attribute `{name}` of the module is given twice"),
                ));
            }
            self.cursor.expect(b'=', "`=` after an attribute's name")?;
            let value = self.header_value(name)?;
            let name = self.str(span);
            self.module.header.push((name, value));
        }
        Ok(())
    }

    /// The value of a header attribute: empty if it is kept in a field of the module.
    fn header_value(&mut self, name: &str) -> Rule<Str> {
        match name {
            "is_scheduled" => self.module.is_scheduled = self.boolean()?,
            "replica_count" => self.module.replica_count = self.cursor.uint("a count")?,
            "num_partitions" => self.module.num_partitions = self.cursor.uint("a count")?,
            "input_output_alias" => {
                self.module.input_output_alias =
                    self.braced("an alias", Self::input_output_alias)?;
            }
            "buffer_donor" => {
                self.module.buffer_donors = self.braced("a donor", Self::buffer_donor)?;
            }
            "entry_computation_layout" => {
                self.module.entry_layout = Some(self.entry_layout()?);
            }
            _ => return self.header_text(name),
        }
        Ok(Str::EMPTY)
    }

    /// A header attribute kept as text.
    fn header_text(&mut self, name: &str) -> Rule<Str> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        if self.cursor.peek() == b'{' {
            let quotes = if name == "frontend_attributes" {
                Quotes::Double
            } else {
                Quotes::Both
            };
            self.cursor.balanced(quotes, name)?;
        } else {
            self.boolean()?;
        }
        Ok(self.str(start..self.cursor.pos()))
    }

    /// `{0}: (1, {}, may-alias)`.
    fn input_output_alias(&mut self) -> Rule<InputOutputAlias> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let output_index = self.shape_index()?;
        self.cursor.expect(b':', "`:` after an output index")?;
        self.cursor
            .expect(b'(', "`(` before a parameter's number")?;
        let parameter = self.cursor.uint32("a parameter's number")?;
        self.cursor.expect(b',', "`,` after a parameter's number")?;
        let parameter_index = self.shape_index()?;
        let mut kind = AliasKind::May;
        if self.cursor.eat(b',') {
            if self.cursor.eat_word("must-alias") {
                kind = AliasKind::Must;
            } else if !self.cursor.eat_word("may-alias") {
                return Err(self.cursor.unexpected("`may-alias` or `must-alias`"));
            }
        }
        self.cursor.expect(b')', "`)` after an alias")?;
        let text = self.str(start..self.cursor.pos());
        Ok(InputOutputAlias {
            output_index,
            parameter,
            parameter_index,
            kind,
            text,
        })
    }

    /// `(0, {})`.
    fn buffer_donor(&mut self) -> Rule<BufferDonor> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        self.cursor
            .expect(b'(', "`(` before a parameter's number")?;
        let parameter = self.cursor.uint32("a parameter's number")?;
        self.cursor.expect(b',', "`,` after a parameter's number")?;
        let parameter_index = self.shape_index()?;
        self.cursor.expect(b')', "`)` after a donor")?;
        let text = self.str(start..self.cursor.pos());
        Ok(BufferDonor {
            parameter,
            parameter_index,
            text,
        })
    }

    /// `{(shape, ...)->shape}`.
    fn entry_layout(&mut self) -> Rule<EntryLayout> {
        self.cursor.expect(b'{', "`{` before the entry's layout")?;
        self.cursor
            .expect(b'(', "`(` before the parameters' shapes")?;
        let mut parameters = Vec::new();
        if !self.cursor.eat(b')') {
            loop {
                parameters.push(self.shape()?);
                if !self.cursor.eat(b',') {
                    break;
                }
            }
            self.cursor
                .expect(b')', "`,` or `)` after a parameter's shape")?;
        }
        if !self.cursor.eat_str("->") {
            return Err(self.cursor.unexpected("`->` and the result's shape"));
        }
        let result = self.shape()?;
        self.cursor.expect(b'}', "`}` after the entry's layout")?;
        Ok(EntryLayout { parameters, result })
    }

    /// The four source tables, if the first of them stands here; kept as one text.
    pub(super) fn preamble(&mut self) -> Rule<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let mut probe = self.cursor.clone();
        if !probe.eat_word(PREAMBLE[0].0) {
            return Ok(());
        }
        let mut end = start;
        for (section, keys) in PREAMBLE {
            if !self.cursor.eat_word(section) {
                return Err(self.cursor.unexpected(&format!("section `{section}`")));
            }
            end = self.cursor.pos();
            loop {
                self.cursor.skip_space();
                if !self.cursor.peek().is_ascii_digit() {
                    break;
                }
                self.cursor.uint("an id")?;
                if keys.is_empty() {
                    self.cursor.string("a name in quotes")?;
                } else {
                    self.preamble_entry(keys)?;
                }
                end = self.cursor.pos();
            }
        }
        self.module.preamble = self.str(start..end);
        Ok(())
    }

    /// `{key=1 key=2}`, commas optional.
    fn preamble_entry(&mut self, keys: &[&str]) -> Rule<()> {
        self.cursor.expect(b'{', "`{` before an entry")?;
        while !self.cursor.eat(b'}') {
            let Some(key) = self.cursor.ident() else {
                return Err(self.cursor.unexpected("a key or `}`"));
            };
            let text = self.cursor.slice(key.clone());
            if !keys.contains(&text) {
                return Err(Fault::new(key, format!("unknown key `{}`", shown(text)))
                    .help(format!("the keys are {}", keys.join(", "))));
            }
            self.cursor.expect(b'=', "`=` after a key")?;
            self.cursor.int("a number")?;
            self.cursor.eat(b',');
        }
        Ok(())
    }

    /// Checks aliases and donors against the entry computation.
    pub(super) fn check_aliases(&mut self) {
        let entry = self.module.entry();
        let result = self.module.instrs[entry.root].shape;
        let parameter_part = |number: u32, index: &[u32]| {
            let Some(&param) = entry.params.get(number as usize) else {
                return Err(format!(
                    "the entry computation has no parameter {number}, only {}",
                    entry.params.len()
                ));
            };
            let shape = self.module.instrs[param].shape;
            match self.module.shapes.subshape(shape, index) {
                Some(_) => Ok(()),
                None => Err(format!(
                    "parameter {number} has no part {}",
                    crate::shape::DisplayIndex(index)
                )),
            }
        };
        let mut errors: Vec<(Range<usize>, String)> = Vec::new();
        let mut outputs = std::collections::BTreeSet::new();
        let span_of = |text: Str| {
            let start = text.start() as usize;
            start..start + self.module.str(text).len()
        };
        for alias in &self.module.input_output_alias {
            let span = span_of(alias.text);
            let output = crate::shape::DisplayIndex(&alias.output_index);
            if self
                .module
                .shapes
                .subshape(result, &alias.output_index)
                .is_none()
            {
                errors.push((span.clone(), format!("the result has no part {output}")));
            } else if !outputs.insert(&alias.output_index) {
                errors.push((span.clone(), format!("output {output} is aliased twice")));
            }
            if let Err(message) = parameter_part(alias.parameter, &alias.parameter_index) {
                errors.push((span.clone(), message));
            }
        }
        for donor in &self.module.buffer_donors {
            let span = span_of(donor.text);
            if let Err(message) = parameter_part(donor.parameter, &donor.parameter_index) {
                errors.push((span.clone(), message));
            }
        }
        for (span, message) in errors {
            self.report(Fault::new(span, message));
        }
    }
}
