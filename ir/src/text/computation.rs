//! Computations: their head, their instructions and their result.

use std::ops::Range;

use indexmap::map::Entry;

use super::cursor::is_ident_byte;
use super::diagnostic::{Fault, Rule, shown};
use super::parser::{MAX_DEPTH, Parser, Symbol, Table};
use crate::ElementType;
use crate::entity::{CompId, EntityId, InstrId, ShapeId};
use crate::instr::Payload;
use crate::module::Computation;
use crate::strings::Str;

/// What is known of a computation while its instructions are parsed.
pub(super) struct Body {
    pub(super) id: CompId,
    pub(super) instrs: Vec<InstrId>,
    root: Option<InstrId>,
    /// Nested instructions, whose names are generated.
    pub(super) anonymous: Vec<InstrId>,
    /// Whether an instruction of it, or of a computation inside it, has an error.
    failed: bool,
}

impl Body {
    pub(super) fn new(id: CompId) -> Self {
        Self {
            id,
            instrs: Vec::new(),
            root: None,
            anonymous: Vec::new(),
            failed: false,
        }
    }
}

/// `(params) -> result` in front of a computation's body.
struct Signature {
    result: ShapeId,
    span: Range<usize>,
}

impl Parser<'_> {
    /// `[ENTRY] name [(params) -> shape] { instructions } [, execution_thread="t"]`.
    pub(super) fn computation(&mut self) -> Rule<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let is_entry = self.cursor.eat_word("ENTRY");
        if is_entry && self.entry.is_some() {
            return Err(
                Fault::new(start..start + "ENTRY".len(), "a second entry computation")
                    .label("only one computation may be ENTRY"),
            );
        }
        let name = self.cursor.name("a computation's name")?;
        let text = self.cursor.slice(name.clone());
        if self.computations.contains_key(text) {
            return Err(Fault::new(
                name,
                format!("a computation named `{}` is already defined", shown(text)),
            )
            .label("defined again"));
        }
        let name = self.str(name);
        let comp = self.signature().and_then(|signature| {
            self.cursor.expect(b'{', "`{` before the instructions")?;
            self.body(name, signature)
        });
        // Uses of a bad computation are not reported again.
        self.computations
            .insert(text, *comp.as_ref().unwrap_or(&None));
        let comp = comp?;
        if is_entry {
            // Any id for a bad one: the module is not returned.
            self.entry = Some(comp.unwrap_or(CompId::from_index(0)));
        }
        self.execution_thread(comp)
    }

    /// An inline computation after its opening brace.
    pub(super) fn inline_computation(&mut self) -> Rule<Option<CompId>> {
        if self.depth == MAX_DEPTH {
            let at = self.cursor.pos();
            return Err(Fault::new(
                at - 1..at,
                format!("inline computations nest deeper than {MAX_DEPTH}"),
            ));
        }
        self.depth += 1;
        let outer = std::mem::take(&mut self.scope);
        let name = self.unnamed_computation("_");
        let result = name.and_then(|name| self.body(name, None));
        if let Ok(Some(comp)) = result {
            self.unnamed.push(comp);
        }
        self.scope = outer;
        self.depth -= 1;
        result
    }

    fn signature(&mut self) -> Rule<Option<Signature>> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        if !self.cursor.eat(b'(') {
            return Ok(None);
        }
        if !self.cursor.eat(b')') {
            loop {
                self.cursor.name("a parameter's name")?;
                self.cursor.expect(b':', "`:` after a parameter's name")?;
                self.shape()?;
                if !self.cursor.eat(b',') {
                    break;
                }
            }
            self.cursor.expect(b')', "`,` or `)` after a parameter")?;
        }
        if !self.cursor.eat_str("->") {
            return Err(self.cursor.unexpected("`->` and the result's shape"));
        }
        let result = self.shape()?;
        Ok(Some(Signature {
            result,
            span: start..self.cursor.pos(),
        }))
    }

    /// Instructions up to and with the closing brace. Absent if one of them has an error.
    fn body(&mut self, name: Str, signature: Option<Signature>) -> Rule<Option<CompId>> {
        let id = self.module.computations.push(Computation {
            name,
            instrs: Vec::new(),
            params: Vec::new(),
            root: InstrId::from_index(0),
            execution_thread: None,
            has_signature: signature.is_some(),
        });
        reset(&mut self.scope);
        let mut body = Body::new(id);
        let open = self.cursor.pos() - 1;
        loop {
            self.cursor.skip_space();
            if self.cursor.eat(b'}') {
                break;
            }
            if self.cursor.at_end() {
                return if body.failed && self.reported_end {
                    Ok(None)
                } else {
                    Err(self
                        .cursor
                        .unexpected("an instruction or `}`")
                        .label("the computation is not closed"))
                };
            }
            let start = self.cursor.pos();
            if let Err(error) = self.instruction(&mut body) {
                let at = error.start();
                self.report(error);
                self.recover_at_instruction(at.max(start + 1));
                body.failed = true;
                if self.gave_up() {
                    return Ok(None);
                }
            }
        }
        if body.failed {
            return Ok(None);
        }
        let span = open..open + 1;
        self.close(body, signature, span).map(Some)
    }

    /// `[ROOT] name = ...`
    fn instruction(&mut self, body: &mut Body) -> Rule<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let is_root = self.cursor.eat_word("ROOT");
        if is_root && body.root.is_some() {
            return Err(
                Fault::new(start..start + "ROOT".len(), "a second ROOT instruction")
                    .label("a computation has one result"),
            );
        }
        let (name, symbol) = self.instruction_name()?;
        let instr = self.instruction_rhs(body, name);
        // Uses of a bad instruction are not reported again.
        self.scope[symbol] = match &instr {
            Ok(Some(id)) => Symbol::Defined(*id),
            _ => Symbol::Bad,
        };
        match instr? {
            Some(id) if is_root => body.root = Some(id),
            Some(_) => {}
            None => body.failed = true,
        }
        Ok(())
    }

    /// A new name and the `=` after it; with the name's place in the scope.
    fn instruction_name(&mut self) -> Rule<(Str, usize)> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let name = self.cursor.name("an instruction's name")?;
        let text = self.cursor.slice(name.clone());
        if self.cursor.peek() == b'=' && start == name.start {
            return Err(Fault::new(
                start..name.end + 1,
                format!("`{}=` reads as an attribute, not as a name", shown(text)),
            )
            .help("put a space before `=` or `%` before the name"));
        }
        self.cursor
            .expect(b'=', "`=` after an instruction's name")?;
        check_name(name.clone(), text)?;
        let entry = self.scope.entry(text);
        let symbol = entry.index();
        if let Entry::Occupied(_) = entry {
            return Err(Fault::new(
                name,
                format!(
                    "an instruction named `{}` is already defined in this computation",
                    shown(text)
                ),
            )
            .label("defined again"));
        }
        entry.or_insert(Symbol::Pending);
        Ok((self.str(name), symbol))
    }

    /// Checks and stores a computation whose instructions are all good.
    fn close(
        &mut self,
        body: Body,
        signature: Option<Signature>,
        span: Range<usize>,
    ) -> Rule<CompId> {
        let Some(&last) = body.instrs.last() else {
            return Err(
                Fault::new(span, "a computation without instructions").label("has no result")
            );
        };
        let root = body.root.unwrap_or(last);
        for &instr in &body.anonymous {
            let name = self.module.name_of(instr);
            if self.scope.contains_key(name) {
                let base = name.to_owned();
                self.module.instrs[instr].name = self.unnamed_instruction(&base)?;
            }
        }
        let params = self.parameters(&body)?;
        if let Some(signature) = signature {
            let shape = self.module.instrs[root].shape;
            if !self.module.shapes.compatible(signature.result, shape) {
                let shapes = &self.module.shapes;
                return Err(Fault::new(
                    signature.span,
                    format!(
                        "the signature's result {} differs from the root `{}`, which is {}",
                        shapes.display_without_layout(signature.result),
                        self.module.name_of(root),
                        shapes.display_without_layout(shape),
                    ),
                )
                .label("result differs from the root's shape"));
            }
        }
        let comp = &mut self.module.computations[body.id];
        comp.instrs = body.instrs;
        comp.params = params;
        comp.root = root;
        Ok(body.id)
    }

    /// The parameters of a computation by number, which must run from 0 without a gap.
    pub(super) fn parameters(&self, body: &Body) -> Rule<Vec<InstrId>> {
        let mut numbered: Vec<(u32, InstrId)> = body
            .instrs
            .iter()
            .filter_map(|&i| match self.module.instrs[i].payload {
                Payload::Parameter(n) => Some((n, i)),
                _ => None,
            })
            .collect();
        numbered.sort_unstable();
        for (expected, &(n, instr)) in numbered.iter().enumerate() {
            if n as usize != expected {
                let name = self.module.instrs[instr].name;
                let start = name.start() as usize;
                let text = self.module.str(name);
                let message = if (n as usize) < expected {
                    format!("parameter number {n} is given twice")
                } else {
                    format!("parameter number {n}, but no parameter has number {expected}")
                };
                return Err(Fault::new(start..start + text.len(), message)
                    .help("number the parameters of a computation 0, 1, 2, ..."));
            }
        }
        Ok(numbered.into_iter().map(|(_, i)| i).collect())
    }

    fn execution_thread(&mut self, comp: Option<CompId>) -> Rule<()> {
        if !self.cursor.eat(b',') {
            return Ok(());
        }
        if !self.cursor.eat_word("execution_thread") {
            return Err(self.cursor.unexpected("`execution_thread`"));
        }
        self.cursor.expect(b'=', "`=` after `execution_thread`")?;
        let thread = self.cursor.string("a thread's name in quotes")?;
        let thread = self.str(thread);
        if let Some(comp) = comp {
            self.module.computations[comp].execution_thread = Some(thread);
        }
        Ok(())
    }

    /// Moves from a bad place to the next line that may begin an instruction or ends the
    /// computation, or to the end of the text.
    fn recover_at_instruction(&mut self, bad: usize) {
        let text = self.cursor.text();
        let mut pos = text.len().min(bad);
        while !text.is_char_boundary(pos) {
            pos += 1;
        }
        while let Some(i) = text[pos..].find('\n') {
            pos += i + 1;
            if begins_instruction(&text[pos..]) {
                return self.cursor.set_pos(pos);
            }
        }
        self.cursor.set_pos(text.len());
    }

    /// A name for a computation that the text gives none.
    pub(super) fn unnamed_computation(&mut self, base: &str) -> Rule<Str> {
        self.generated_name(base, |p, name| p.computations.contains_key(name))
    }
}

/// Empties a table in time that its last use paid for.
fn reset<V>(scope: &mut Table<&str, V>) {
    // Clearing costs its capacity: one huge computation must not slow down many small ones.
    if 1024 < scope.capacity() && scope.len() < scope.capacity() / 8 {
        *scope = Table::default();
    } else {
        scope.clear();
    }
}

/// Whether a line looks like an instruction or the end of a computation.
fn begins_instruction(text: &str) -> bool {
    let line = text.lines().next().unwrap_or("").trim_start();
    let name = line.bytes().take_while(|&b| is_ident_byte(b)).count();
    line.starts_with(['}', '%']) || line.starts_with("ROOT ") || line[name..].starts_with(" = ")
}

/// Refuses names that XLA would change: element types, and what begins with two underscores.
fn check_name(span: Range<usize>, name: &str) -> Rule<()> {
    let reserved = name.starts_with("__") && !name.starts_with("__xla_");
    // No element type has more letters than `f8e4m3b11fnuz`.
    let is_type = name.len() <= 13
        && (ElementType::from_name(name).is_some() || matches!(name, "token" | "opaque"));
    if !reserved && !is_type {
        return Ok(());
    }
    let why = if is_type {
        "is an element type"
    } else {
        "begins with two underscores"
    };
    Err(Fault::new(
        span,
        format!("illegal instruction name: `{}` {why}", shown(name)),
    )
    .label("illegal name"))
}
