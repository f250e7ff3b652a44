//! Attributes of instructions.

use std::ops::Range;

use smallvec::SmallVec;

use super::async_sugar::Phase;
use super::cursor::Quotes;
use super::diagnostic::{Fault, Rule, nearest, shown};
use super::instruction::Operation;
use super::legal;
use super::parser::Parser;
use crate::attr::{Attr, AttrKind, AttrName, AttrValue, OperandAlias, PaddingDim, SliceDim};
use crate::entity::CompId;
use crate::opcode::Opcode;
use crate::shape::ShapeIndex;

impl Parser<'_> {
    /// `{, name=value}` after the operands of `op`.
    ///
    /// False if a value uses something whose error is reported already.
    pub(super) fn attributes(
        &mut self,
        op: Operation,
        op_span: &Range<usize>,
        attrs: &mut SmallVec<[Attr; 8]>,
    ) -> Rule<bool> {
        let legal = legal::attributes(op.opcode);
        let mut good = true;
        while self.cursor.eat(b',') {
            let Some(span) = self.cursor.ident() else {
                return Err(self.cursor.unexpected("an attribute"));
            };
            let name = self.attr_name(op, &legal, span.clone())?;
            if attrs.iter().any(|a| a.name == name) {
                return Err(Fault::new(
                    span,
                    format!("attribute `{}` is given twice", name.name()),
                )
                .label("given again"));
            }
            self.cursor.expect(b'=', "`=` after an attribute's name")?;
            match self.attr_value(name)? {
                Some(value) => attrs.push(Attr { name, value }),
                None => good = false,
            }
        }
        // An update or a done in the short form need not repeat what its start said.
        if good && matches!(op.phase, None | Some(Phase::Start)) {
            check_required(op, &legal, op_span, attrs)?;
        }
        Ok(good)
    }

    /// The attribute at `span`, which must be one that `op` takes.
    fn attr_name(&self, op: Operation, legal: &legal::Legal, span: Range<usize>) -> Rule<AttrName> {
        let text = self.cursor.slice(span.clone());
        let taken = || {
            let asynchronous: &[AttrName] = if op.phase.is_some() {
                &[AttrName::AsyncExecutionThread, AttrName::Calls]
            } else {
                &[]
            };
            [legal.required, legal.optional, legal::COMMON, asynchronous]
                .into_iter()
                .flatten()
                .copied()
        };
        if let Some(&name) = self.attr_names.get(text)
            && taken().any(|n| n == name)
        {
            return Ok(name);
        }
        let opcode = op.opcode;
        let message = if self.attr_names.contains_key(text) {
            format!("`{opcode}` has no attribute `{text}`")
        } else {
            format!("unknown attribute `{}`", shown(text))
        };
        let mut error = Fault::new(span, message).label(format!("not of `{opcode}`"));
        if let Some(near) = nearest(text, taken().map(AttrName::name)) {
            error = error.help(format!("did you mean `{near}`?"));
        }
        Err(error)
    }

    /// The value of attribute `name`. Absent if it uses something whose error is reported already.
    fn attr_value(&mut self, name: AttrName) -> Rule<Option<AttrValue>> {
        Ok(Some(match name.kind() {
            AttrKind::Int => AttrValue::Int(self.cursor.int("an integer")?),
            AttrKind::Bool => AttrValue::Bool(self.boolean()?),
            AttrKind::Float => AttrValue::Ident(self.number()?),
            AttrKind::Ident => match self.cursor.ident() {
                Some(word) => AttrValue::Ident(self.str(word)),
                None => return Err(self.cursor.unexpected("a word")),
            },
            AttrKind::Idents => {
                let words = self.braced("a word", |p| match p.cursor.ident() {
                    Some(word) => Ok(p.str(word)),
                    None => Err(p.cursor.unexpected("a word")),
                })?;
                AttrValue::Idents(words.into())
            }
            AttrKind::String => {
                let text = self.cursor.string("a quoted string")?;
                AttrValue::Raw(self.str(text))
            }
            AttrKind::Ints => self.ints_or_lists()?,
            AttrKind::Raw => self.raw(name)?,
            AttrKind::Comp => match self.computation_ref()? {
                Some(comp) => AttrValue::Comp(comp),
                None => return Ok(None),
            },
            AttrKind::Comps => {
                let comps = self.braced("a computation", Self::computation_ref)?;
                match comps.into_iter().collect::<Option<Vec<CompId>>>() {
                    Some(comps) => AttrValue::Comps(comps.into()),
                    None => return Ok(None),
                }
            }
            AttrKind::Instrs => {
                let instrs = self.braced("an instruction", Self::instruction_ref)?;
                match instrs.into_iter().collect::<Option<Vec<_>>>() {
                    Some(instrs) => AttrValue::Instrs(instrs.into()),
                    None => return Ok(None),
                }
            }
            AttrKind::Window => AttrValue::Window(self.window()?),
            AttrKind::DimLabels => self.dim_labels()?,
            AttrKind::Padding => AttrValue::Padding(self.padding()?),
            AttrKind::Slice => AttrValue::Slice(self.slice_dims()?),
            AttrKind::Pairs => AttrValue::Pairs(self.braced("a pair", Self::pair)?.into()),
            AttrKind::ReplicaGroups => AttrValue::ReplicaGroups(Box::new(self.replica_groups()?)),
            AttrKind::Shape => AttrValue::Shape(self.shape()?),
            AttrKind::Shapes => AttrValue::Shapes(self.braced("a shape", Self::shape)?.into()),
            AttrKind::Aliasing => {
                AttrValue::Aliasing(self.braced("an alias", Self::operand_alias)?.into())
            }
        }))
    }

    /// `{item, item}`.
    pub(super) fn braced<T>(
        &mut self,
        what: &str,
        mut item: impl FnMut(&mut Self) -> Rule<T>,
    ) -> Rule<Vec<T>> {
        if !self.cursor.eat(b'{') {
            return Err(self.cursor.unexpected("`{`"));
        }
        let mut items = Vec::new();
        if self.cursor.eat(b'}') {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.cursor.eat(b'}') {
                return Ok(items);
            }
            if !self.cursor.eat(b',') {
                return Err(self.cursor.unexpected(&format!("`,` or `}}` after {what}")));
            }
        }
    }

    pub(super) fn boolean(&mut self) -> Rule<bool> {
        if self.cursor.eat_word("true") {
            Ok(true)
        } else if self.cursor.eat_word("false") {
            Ok(false)
        } else {
            Err(self.cursor.unexpected("`true` or `false`"))
        }
    }

    /// A number kept as text.
    pub(super) fn number(&mut self) -> Rule<crate::strings::Str> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        while matches!(self.cursor.peek(), b'0'..=b'9' | b'+' | b'-' | b'.')
            || self.cursor.peek().is_ascii_alphabetic()
        {
            self.cursor.bump();
        }
        let end = self.cursor.pos();
        if self.cursor.slice(start..end).parse::<f64>().is_err() {
            self.cursor.set_pos(start);
            return Err(self.cursor.unexpected("a number"));
        }
        Ok(self.str(start..end))
    }

    /// `{0,1}`; lists in lists (`slice_sizes={{1},{2}}`) are kept as text.
    fn ints_or_lists(&mut self) -> Rule<AttrValue> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        self.cursor.expect(b'{', "`{`")?;
        if self.cursor.eat(b'{') {
            self.cursor.set_pos(start);
            let lists = self.cursor.balanced(Quotes::Both, "list")?;
            return Ok(AttrValue::Raw(self.str(lists)));
        }
        let mut ints: SmallVec<[i64; 4]> = SmallVec::new();
        if self.cursor.eat(b'}') {
            return Ok(AttrValue::Ints(ints));
        }
        loop {
            ints.push(self.cursor.int("an integer")?);
            if self.cursor.eat(b'}') {
                return Ok(AttrValue::Ints(ints));
            }
            if !self.cursor.eat(b',') {
                return Err(self.cursor.unexpected("`,` or `}` after an integer"));
            }
        }
    }

    /// A value that is kept as text.
    fn raw(&mut self, name: AttrName) -> Rule<AttrValue> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        // Values often repeat; comparing is faster than looking for the end.
        if let Some(last) = self.last_raw.get(&name) {
            let last = self.cursor.slice(last.clone());
            if last.ends_with('}') && self.cursor.eat_str(last) {
                return Ok(AttrValue::Raw(self.str(start..self.cursor.pos())));
            }
        }
        if name == AttrName::ResultAccuracy {
            self.result_accuracy()?;
            return Ok(AttrValue::Raw(self.str(start..self.cursor.pos())));
        }
        if name == AttrName::Literal {
            self.literal_with_shape(0)?;
            return Ok(AttrValue::Raw(self.str(start..self.cursor.pos())));
        }
        let json = matches!(name, AttrName::BackendConfig | AttrName::FrontendAttributes);
        let quotes = if json { Quotes::Double } else { Quotes::Both };
        match self.cursor.peek() {
            b'{' | b'(' => {
                self.cursor.balanced(quotes, name.name())?;
            }
            b'"' | b'\'' => {
                self.cursor.string("a string")?;
            }
            _ => {
                let word_start = self.cursor.pos();
                while !matches!(
                    self.cursor.peek(),
                    b',' | b' ' | b'\n' | b'\t' | b'\r' | b'}' | b')' | b'{' | b'(' | b'/' | 0
                ) && self.cursor.peek().is_ascii()
                {
                    self.cursor.bump();
                }
                if self.cursor.pos() == word_start {
                    return Err(self.cursor.unexpected("a value"));
                }
            }
        }
        let span = start..self.cursor.pos();
        self.last_raw.insert(name, span.clone());
        Ok(AttrValue::Raw(self.str(span)))
    }

    /// A computation by name or inline. Absent if its error is reported already.
    fn computation_ref(&mut self) -> Rule<Option<CompId>> {
        if self.cursor.eat(b'{') {
            return self.inline_computation();
        }
        let name = self.cursor.name("a computation's name or `{`")?;
        let text = self.cursor.slice(name.clone());
        if let Some(&comp) = self.computations.get(text) {
            return Ok(comp);
        }
        let mut error = Fault::new(
            name,
            format!(
                "computation `{}` is not defined before its use",
                shown(text)
            ),
        )
        .label("undefined");
        if let Some(near) = nearest(text, self.computations.keys().copied()) {
            error = error.help(format!("did you mean `{near}`?"));
        }
        Err(error)
    }

    fn instruction_ref(&mut self) -> Rule<Option<crate::entity::InstrId>> {
        let name = self.cursor.name("an instruction's name")?;
        let text = self.cursor.slice(name.clone());
        self.lookup(text, name)
    }

    fn pair(&mut self) -> Rule<(i64, i64)> {
        self.cursor.expect(b'{', "`{` before a pair")?;
        let source = self.cursor.int("a device number")?;
        self.cursor.expect(b',', "`,` in a pair")?;
        let target = self.cursor.int("a device number")?;
        self.cursor.expect(b'}', "`}` after a pair")?;
        Ok((source, target))
    }

    /// `{}`, `{1}`, `{1,0}`.
    pub(super) fn shape_index(&mut self) -> Rule<ShapeIndex> {
        let index = self.braced("an index", |p| p.cursor.uint32("an index"))?;
        Ok(index.into())
    }

    /// `{output}: (operand, {index})`.
    fn operand_alias(&mut self) -> Rule<OperandAlias> {
        let output_index = self.shape_index()?;
        self.cursor.expect(b':', "`:` after an output index")?;
        self.cursor.expect(b'(', "`(` before an operand's number")?;
        let operand = self.cursor.uint32("an operand's number")?;
        self.cursor.expect(b',', "`,` after an operand's number")?;
        let operand_index = self.shape_index()?;
        self.cursor.expect(b')', "`)` after an operand's index")?;
        Ok(OperandAlias {
            output_index,
            operand,
            operand_index,
        })
    }

    /// `{[0:4:1], [2:5]}`; the stride is 1 where it is not written.
    fn slice_dims(&mut self) -> Rule<Box<[SliceDim]>> {
        let dims = self.braced("a slice", |p| {
            p.cursor.expect(b'[', "`[` before a slice")?;
            let start = p.cursor.int("a start index")?;
            p.cursor.expect(b':', "`:` after a start index")?;
            let limit = p.cursor.int("a limit index")?;
            let stride = if p.cursor.eat(b':') {
                p.cursor.int("a stride")?
            } else {
                1
            };
            p.cursor.expect(b']', "`:` or `]` after a slice")?;
            Ok(SliceDim {
                start,
                limit,
                stride,
            })
        })?;
        Ok(dims.into())
    }

    /// `0_0_0x1_1`: low, high and, where it is not 0, interior padding.
    fn padding(&mut self) -> Rule<Box<[PaddingDim]>> {
        let mut dims = Vec::new();
        self.cursor.skip_space();
        // A scalar has no dimensions and prints as nothing.
        if matches!(self.cursor.peek(), b',' | b'\n' | b'}' | 0) {
            return Ok(dims.into());
        }
        loop {
            let low = self.cursor.int("padding")?;
            self.separator(b'_', "padding")?;
            let high = self.cursor.int("padding")?;
            let interior = if self.cursor.peek() == b'_' {
                self.cursor.bump();
                self.cursor.int("padding")?
            } else {
                0
            };
            dims.push(PaddingDim {
                low,
                high,
                interior,
            });
            if self.cursor.peek() != b'x' {
                return Ok(dims.into());
            }
            self.cursor.bump();
        }
    }

    /// Moves over `b`, which must stand right at the position.
    pub(super) fn separator(&mut self, b: u8, what: &str) -> Rule<()> {
        if self.cursor.peek() != b {
            return Err(self
                .cursor
                .unexpected(&format!("`{}` in {what}", char::from(b))));
        }
        self.cursor.bump();
        Ok(())
    }
}

fn check_required(
    op: Operation,
    legal: &legal::Legal,
    span: &Range<usize>,
    attrs: &[Attr],
) -> Rule<()> {
    let missing = legal
        .required
        .iter()
        .find(|&&name| !attrs.iter().any(|a| a.name == name));
    if let Some(missing) = missing {
        return Err(Fault::new(
            span.clone(),
            format!("`{}` needs attribute `{}`", op.opcode, missing.name()),
        )
        .help(format!("add `, {}=...`", missing.name())));
    }
    if op.opcode == Opcode::Conditional {
        check_conditional(span, attrs)?;
    }
    Ok(())
}

/// A conditional names either a true and a false computation or a list of branches.
fn check_conditional(span: &Range<usize>, attrs: &[Attr]) -> Rule<()> {
    let has = |name| attrs.iter().any(|a| a.name == name);
    let two = has(AttrName::TrueComputation) && has(AttrName::FalseComputation);
    let any = has(AttrName::TrueComputation) || has(AttrName::FalseComputation);
    let list = has(AttrName::BranchComputations);
    if two != list && any != list {
        return Ok(());
    }
    Err(Fault::new(
        span.clone(),
        "`conditional` needs either `branch_computations` or both `true_computation` and `false_computation`",
    ))
}
