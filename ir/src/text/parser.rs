//! The state of the parser, and modules as a whole.

use std::ops::Range;

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use super::Parsed;
use super::cursor::Cursor;
use super::diagnostic::{Diagnostic, Fault, Rule, locate, nearest, shown};
use crate::attr::AttrName;
use crate::entity::{CompId, InstrId, PrimaryMap, ShapeId};
use crate::module::Module;
use crate::opcode::Opcode;
use crate::shape::ShapePool;
use crate::strings::{Str, StringPool};

/// How deep shapes, inline computations and nested operands may nest.
pub(super) const MAX_DEPTH: usize = 200;

/// After this many errors the parser gives up.
const MAX_DIAGNOSTICS: usize = 64;

pub(super) type Table<K, V> = IndexMap<K, V, FxBuildHasher>;

/// What a name of an instruction stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    /// The instruction being parsed: not defined yet.
    Pending,
    /// An instruction with an error, which is reported.
    Bad,
    /// An instruction.
    Defined(InstrId),
}

/// Everything the grammar rules share.
pub(super) struct Parser<'s> {
    pub(super) cursor: Cursor<'s>,
    pub(super) module: Module,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Computations by name; without an id if the computation has an error.
    pub(super) computations: Table<&'s str, Option<CompId>>,
    /// Instructions of the computation being parsed by name.
    pub(super) scope: Table<&'s str, Symbol>,
    /// Values kept as text that were found last, by attribute.
    pub(super) last_raw: Table<AttrName, Range<usize>>,
    /// Shapes by their text.
    pub(super) shape_cache: Table<&'s [u8], ShapeId>,
    pub(super) opcodes: Table<&'static str, Opcode>,
    pub(super) attr_names: Table<&'static str, AttrName>,
    /// How deep the current rule nests in instructions.
    pub(super) depth: usize,
    /// `ENTRY` of the text.
    pub(super) entry: Option<CompId>,
    /// How many nested instructions and inline computations got a name, by its start.
    pub(super) generated_names: Table<String, usize>,
    /// Computations whose names were generated.
    pub(super) unnamed: Vec<CompId>,
    /// Parts of all shapes that were inferred.
    pub(super) inferred_parts: u64,
    /// The async-start that every async-start and -update belongs to.
    pub(super) async_start_of: Table<InstrId, InstrId>,
    /// Whether the end of the text was reported as an error.
    pub(super) reported_end: bool,
    /// Whether operands that are not defined become parameters: in the single-instruction form.
    pub(super) reify_parameters: bool,
}

/// Parses a module; see [`super::parse`].
pub(super) fn parse(source: &str) -> Parsed {
    let strings = match StringPool::from_source(source) {
        Ok(strings) => strings,
        Err(full) => {
            let mut error = Fault::new(0..0, full.to_string()).into_diagnostic();
            (error.line, error.column) = (1, 1);
            return Parsed {
                module: None,
                diagnostics: vec![error],
            };
        }
    };
    let mut parser = Parser::new(source, strings);
    if let Err(error) = parser.run() {
        parser.report(error);
    }
    let mut diagnostics = parser.diagnostics;
    locate(source, &mut diagnostics);
    Parsed {
        module: diagnostics.is_empty().then_some(parser.module),
        diagnostics,
    }
}

impl<'s> Parser<'s> {
    fn new(source: &'s str, strings: StringPool) -> Self {
        // An instruction takes some 100 bytes of text; an estimate for the first allocation only.
        let estimate = source.len() / 128;
        Self {
            cursor: Cursor::new(source),
            module: Module {
                name: Str::EMPTY,
                strings,
                shapes: ShapePool::new(),
                instrs: PrimaryMap::with_capacity(estimate),
                computations: PrimaryMap::new(),
                entry: crate::entity::EntityId::from_index(0),
                is_scheduled: false,
                input_output_alias: Vec::new(),
                buffer_donors: Vec::new(),
                entry_layout: None,
                replica_count: 1,
                num_partitions: 1,
                header: Vec::new(),
                preamble: Str::EMPTY,
            },
            diagnostics: Vec::new(),
            computations: Table::default(),
            scope: Table::default(),
            last_raw: Table::default(),
            shape_cache: Table::default(),
            opcodes: Opcode::ALL.iter().map(|&o| (o.name(), o)).collect(),
            attr_names: AttrName::ALL
                .iter()
                .map(|&a| (a.name(), a))
                // Its name in later releases of XLA.
                .chain([("conv_kind", AttrName::ConvolutionKind)])
                .collect(),
            depth: 0,
            entry: None,
            generated_names: Table::default(),
            unnamed: Vec::new(),
            inferred_parts: 0,
            async_start_of: Table::default(),
            reported_end: false,
            reify_parameters: false,
        }
    }

    /// Parses the whole text into `self.module`.
    fn run(&mut self) -> Rule<()> {
        self.cursor.skip_space();
        if self.cursor.at_end() {
            return Err(self
                .cursor
                .unexpected("an HLO module")
                .help("the text is empty"));
        }
        if !self.starts_module() {
            return self.single_instruction();
        }
        let has_header = self.cursor.eat_word("HloModule");
        if has_header {
            self.header()?;
            self.preamble()?;
        }
        self.computations()?;
        if self.diagnostics.is_empty() {
            self.finish(has_header);
        }
        Ok(())
    }

    /// Whether the text is a module, rather than a single instruction.
    fn starts_module(&self) -> bool {
        let mut probe = self.cursor.clone();
        if probe.eat_word("HloModule") || probe.eat_word("ENTRY") {
            return true;
        }
        let percent = probe.peek() == b'%';
        if probe.name("a name").is_err() {
            return false;
        }
        probe.skip_space();
        probe.peek() == b'{' || (percent && probe.peek() == b'(')
    }

    fn computations(&mut self) -> Rule<()> {
        loop {
            self.cursor.skip_space();
            if self.cursor.at_end() {
                return Ok(());
            }
            if let Err(error) = self.computation() {
                self.report(error);
                if !self.recover_at_computation() {
                    return Ok(());
                }
            }
            if self.gave_up() {
                return Ok(());
            }
        }
    }

    /// Moves to the next line that begins a computation. False at the end of the text.
    fn recover_at_computation(&mut self) -> bool {
        let text = self.cursor.text();
        let mut pos = self.cursor.pos();
        while let Some(i) = text[pos..].find('\n') {
            pos += i + 1;
            let line = text[pos..].lines().next().unwrap_or("");
            let begins = line.starts_with("ENTRY")
                || (line.starts_with(|c: char| c == '%' || c.is_ascii_alphabetic())
                    && line.trim_end().ends_with('{'));
            if begins {
                self.cursor.set_pos(pos);
                return true;
            }
        }
        self.cursor.set_pos(text.len());
        false
    }

    /// Checks that need the whole module, and the choice of the entry computation.
    fn finish(&mut self, has_header: bool) {
        let end = self.cursor.text().len();
        let last = self.module.computations.keys().next_back();
        let Some(entry) = self.entry.or(last) else {
            let error = Fault::new(end..end, "the module has no computation")
                .help("the text may be truncated");
            return self.report(error);
        };
        self.module.entry = entry;
        if !has_header {
            let name = format!("module_{}", self.module.comp_name(entry));
            match self.push_str(&name) {
                Ok(name) => self.module.name = name,
                Err(error) => self.report(error),
            }
        }
        if let Err(error) = self.rename_clashing_computations() {
            self.report(error);
        }
        self.check_aliases();
    }

    /// Gives generated names that the text uses for another computation further on another number.
    fn rename_clashing_computations(&mut self) -> Rule<()> {
        for comp in std::mem::take(&mut self.unnamed) {
            let name = self.module.comp_name(comp);
            if self.computations.contains_key(name) {
                let base = name.to_owned();
                let name = self.unnamed_computation(&base)?;
                self.module.computations[comp].name = name;
            }
        }
        Ok(())
    }

    /// The instruction that `name` stands for: absent if it is bad, an error if there is none.
    pub(super) fn lookup(&self, name: &str, span: Range<usize>) -> Rule<Option<InstrId>> {
        match self.scope.get(name) {
            Some(Symbol::Defined(id)) => Ok(Some(*id)),
            Some(Symbol::Bad) => Ok(None),
            Some(Symbol::Pending) => Err(Fault::new(
                span,
                format!("`{}` refers to itself", shown(name)),
            )),
            None => {
                let mut error = Fault::new(
                    span,
                    format!(
                        "`{}` is not defined before its use in this computation",
                        shown(name)
                    ),
                )
                .label("undefined");
                if let Some(near) = nearest(name, self.scope.keys().copied()) {
                    error = error.help(format!("did you mean `{near}`?"));
                }
                Err(error)
            }
        }
    }

    /// Takes note of an error.
    pub(super) fn report(&mut self, error: Fault) {
        self.reported_end |= error.start() == self.cursor.text().len();
        if self.diagnostics.len() == MAX_DIAGNOSTICS {
            let span = error.into_diagnostic().span;
            let last = Fault::new(
                span,
                format!("more than {MAX_DIAGNOSTICS} errors; giving up"),
            );
            self.diagnostics.push(last.into_diagnostic());
        } else if self.diagnostics.len() < MAX_DIAGNOSTICS {
            self.diagnostics.push(error.into_diagnostic());
        }
    }

    /// Whether there were so many errors that the rest is not worth reading.
    pub(super) fn gave_up(&self) -> bool {
        MAX_DIAGNOSTICS < self.diagnostics.len()
    }

    /// The pool's reference to a range of the source.
    pub(super) fn str(&self, range: Range<usize>) -> Str {
        self.module.strings.range(range.start, range.end)
    }

    /// Adds text that is not in the source to the pool.
    pub(super) fn push_str(&mut self, text: &str) -> Rule<Str> {
        let at = self.cursor.pos();
        self.module
            .strings
            .try_push(text)
            .map_err(|full| Fault::new(at..at, full.to_string()))
    }

    /// `base`, or `base.1`, ...: the first that was not generated before and that nothing in the
    /// text so far has (`taken`).
    pub(super) fn generated_name(
        &mut self,
        base: &str,
        taken: impl Fn(&Self, &str) -> bool,
    ) -> Rule<Str> {
        loop {
            let count = self.generated_names.entry(base.to_owned()).or_insert(0);
            let name = match *count {
                0 => base.to_owned(),
                n => format!("{base}.{n}"),
            };
            *count += 1;
            if !taken(self, &name) {
                return self.push_str(&name);
            }
        }
    }
}
