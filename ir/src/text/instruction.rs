//! Instructions: shape, opcode, operands.

use std::ops::Range;

use smallvec::SmallVec;

use super::async_sugar::Phase;
use super::computation::Body;
use super::cursor::Quotes;
use super::diagnostic::{Fault, Rule, nearest, shown};
use super::parser::{MAX_DEPTH, Parser};
use crate::attr::Attr;
use crate::entity::{EntityId, InstrId, ShapeId};
use crate::infer::{Context, infer};
use crate::instr::{Instr, Payload};
use crate::opcode::{Arity, Opcode};
use crate::strings::Str;

/// Most parts that the inferred shapes of a module may have together.
const MAX_INFERRED_PARTS: u64 = 1 << 24;

pub(super) type Operands = SmallVec<[InstrId; 3]>;

/// An operation as the text names it: `slice-start` is `slice` with a phase.
#[derive(Clone, Copy)]
pub(super) struct Operation {
    pub(super) opcode: Opcode,
    /// For the short form of asynchronous operations.
    pub(super) phase: Option<Phase>,
}

impl Parser<'_> {
    /// `[shape] opcode(operands) {, attr}` of the instruction `name`.
    ///
    /// Absent if it uses something whose error is reported already.
    pub(super) fn instruction_rhs(&mut self, body: &mut Body, name: Str) -> Rule<Option<InstrId>> {
        let start = self.cursor.pos();
        let shape = self.at_shape().then(|| self.shape()).transpose()?;
        let (op, op_span) = self.operation()?;
        self.rhs_after_opcode(body, name, start, shape, op, op_span, true)
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "one call site each for whole and nested forms"
    )]
    fn rhs_after_opcode(
        &mut self,
        body: &mut Body,
        name: Str,
        start: usize,
        shape: Option<ShapeId>,
        op: Operation,
        op_span: Range<usize>,
        attributes: bool,
    ) -> Rule<Option<InstrId>> {
        self.cursor.expect(b'(', "`(` after the opcode")?;
        let mut good = true;
        let mut operands = Operands::new();
        let payload = match op.opcode {
            Opcode::Parameter => Payload::Parameter(self.cursor.uint32("a parameter number")?),
            Opcode::Constant => {
                let text = self.literal_text()?;
                Payload::Literal(self.str(text))
            }
            _ => {
                good &= self.operands(body, &mut operands)?;
                Payload::None
            }
        };
        self.cursor.expect(b')', "`,` or `)` after an operand")?;
        let mut attrs: SmallVec<[Attr; 8]> = SmallVec::new();
        if attributes {
            good &= self.attributes(op, &op_span, &mut attrs)?;
        }
        let attrs = Vec::from_iter(attrs);
        if !good {
            return Ok(None);
        }
        self.check_agreement(op, &op_span, shape, &operands, &attrs)?;
        if let Some(phase) = op.phase {
            let span = self.cursor.span_from(start);
            return self.async_sugar(body, name, shape, op.opcode, phase, operands, attrs, span);
        }
        check_arity(&op_span, op.opcode, operands.len())?;
        let mut instr = Instr {
            name,
            opcode: op.opcode,
            // Stands for a shape that is not known yet; inference doesn't read it.
            shape: shape.unwrap_or(ShapeId::from_index(0)),
            computation: body.id,
            operands,
            payload,
            attrs,
        };
        if shape.is_none() {
            instr.shape = self.inferred_shape(&op_span, &instr)?;
        }
        if let Payload::Literal(text) = payload {
            self.check_literal(instr.shape, text)?;
        }
        Ok(Some(self.push_instr(body, instr)))
    }

    /// Adds an instruction to the module and to the order of its computation.
    pub(super) fn push_instr(&mut self, body: &mut Body, instr: Instr) -> InstrId {
        let start = match instr.opcode {
            Opcode::AsyncStart => Some(self.module.instrs.next_id()),
            Opcode::AsyncUpdate => self.async_start_of.get(&instr.operands[0]).copied(),
            _ => None,
        };
        let id = self.module.instrs.push(instr);
        if let Some(start) = start {
            self.async_start_of.insert(id, start);
        }
        body.instrs.push(id);
        id
    }

    /// The shape of an instruction written without one.
    fn inferred_shape(&mut self, span: &Range<usize>, instr: &Instr) -> Rule<ShapeId> {
        let opcode = instr.opcode;
        let inferred = if can_infer_shape(opcode) {
            infer(Context::of(&self.module), instr)
                .map_err(|error| Fault::new(span.clone(), error.to_string()))?
        } else {
            None
        };
        match inferred {
            Some(shape) => {
                let shape = shape.intern(&mut self.module.shapes);
                self.check_inferred_size(span, shape)?;
                Ok(shape)
            }
            None => Err(Fault::new(
                span.clone(),
                format!("the shape of `{opcode}` must be written"),
            )
            .help("write `name = SHAPE opcode(...)`")),
        }
    }

    /// Refuses inferred tuples that a few lines of text can make as large as they like.
    fn check_inferred_size(&mut self, span: &Range<usize>, shape: ShapeId) -> Rule<()> {
        let shapes = &self.module.shapes;
        self.inferred_parts += u64::from(shapes.node_count(shape));
        if MAX_DEPTH < shapes.depth(shape) as usize || MAX_INFERRED_PARTS < self.inferred_parts {
            return Err(Fault::new(
                span.clone(),
                format!(
                    "inferred shapes nest deeper than {MAX_DEPTH} or have more than \
                     {MAX_INFERRED_PARTS} parts in all"
                ),
            ));
        }
        Ok(())
    }

    fn operation(&mut self) -> Rule<(Operation, Range<usize>)> {
        let Some(span) = self.cursor.ident() else {
            return Err(self.cursor.unexpected("a shape or an opcode"));
        };
        let name = self.cursor.slice(span.clone());
        if let Some(&opcode) = self.opcodes.get(name) {
            return Ok((
                Operation {
                    opcode,
                    phase: None,
                },
                span,
            ));
        }
        if let Some(op) = self.sugared_operation(name) {
            return Ok((op, span));
        }
        let mut error = Fault::new(span, format!("unknown opcode `{}`", shown(name)))
            .label("not an operation of HLO");
        if let Some(near) = nearest(name, Opcode::ALL.iter().map(|o| o.name())) {
            error = error.help(format!("did you mean `{near}`?"));
        }
        Err(error)
    }

    /// Operands up to the closing parenthesis. False if one has an error that is reported already.
    fn operands(&mut self, body: &mut Body, operands: &mut Operands) -> Rule<bool> {
        self.cursor.skip_space();
        if self.cursor.peek() == b')' {
            return Ok(true);
        }
        let mut good = true;
        loop {
            match self.operand(body)? {
                Some(operand) => operands.push(operand),
                None => good = false,
            }
            if !self.cursor.eat(b',') {
                return Ok(good);
            }
        }
    }

    /// `[shape] name`, or a nested instruction `[shape] opcode(operands)`.
    fn operand(&mut self, body: &mut Body) -> Rule<Option<InstrId>> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        if self.cursor.peek() == b'%' {
            let name = self.cursor.name("an operand")?;
            return self.operand_named(start..name.end, None);
        }
        let shape = self.at_shape().then(|| self.shape()).transpose()?;
        self.cursor.skip_space();
        let at = self.cursor.pos();
        if let (Some(shape), b')' | b',') = (shape, self.cursor.peek())
            && self.reify_parameters
        {
            return self.reified_parameter(body, shape, None).map(Some);
        }
        let name = self.cursor.name("an operand")?;
        self.cursor.skip_space();
        if self.cursor.peek() != b'(' {
            if let (Some(shape), true) = (shape, self.reify_parameters)
                && !self.scope.contains_key(self.cursor.slice(name.clone()))
            {
                return self.reified_parameter(body, shape, Some(name)).map(Some);
            }
            return self.operand_named(at..name.end, shape);
        }
        self.cursor.set_pos(name.start);
        self.nested_instruction(body, start, shape)
    }

    fn operand_named(
        &mut self,
        span: Range<usize>,
        declared: Option<ShapeId>,
    ) -> Rule<Option<InstrId>> {
        let text = self.cursor.slice(span.clone());
        let name = text.strip_prefix('%').unwrap_or(text);
        let found = self.lookup(name, span.clone())?;
        if let (Some(declared), Some(found)) = (declared, found) {
            let actual = self.module.instrs[found].shape;
            let shapes = &self.module.shapes;
            if !shapes.compatible(declared, actual) {
                return Err(Fault::new(
                    span,
                    format!(
                        "operand `{}` is declared {} but is {}",
                        shown(name),
                        shapes.display_without_layout(declared),
                        shapes.display_without_layout(actual)
                    ),
                ));
            }
        }
        Ok(found)
    }

    /// An instruction in an operand's place; it has no attributes and gets a name of its own.
    fn nested_instruction(
        &mut self,
        body: &mut Body,
        start: usize,
        shape: Option<ShapeId>,
    ) -> Rule<Option<InstrId>> {
        if self.depth == MAX_DEPTH {
            let at = self.cursor.pos();
            return Err(
                Fault::new(at..at, format!("operands nest deeper than {MAX_DEPTH}"))
                    .help("name the inner instructions"),
            );
        }
        let (op, span) = self.operation()?;
        let name = self.unnamed_instruction(&format!("{}.anon", op.opcode))?;
        self.depth += 1;
        let result = self.rhs_after_opcode(body, name, start, shape, op, span, false);
        self.depth -= 1;
        if let Ok(Some(instr)) = result {
            body.anonymous.push(instr);
        }
        result
    }

    /// A name for an instruction that the text gives none.
    pub(super) fn unnamed_instruction(&mut self, base: &str) -> Rule<Str> {
        self.generated_name(base, |p, name| p.scope.contains_key(name))
    }

    /// The text of a literal up to the closing parenthesis of `constant(`.
    fn literal_text(&mut self) -> Rule<Range<usize>> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        match self.cursor.peek() {
            b'{' | b'(' => self.cursor.balanced(Quotes::Both, "literal"),
            _ => {
                while !matches!(
                    self.cursor.peek(),
                    b')' | b'(' | b'}' | b' ' | b'\n' | b'\r' | b'\t' | b',' | 0
                ) && self.cursor.peek().is_ascii()
                {
                    self.cursor.bump();
                }
                // `nan(0x7fc00000)`
                if self.cursor.peek() == b'(' {
                    self.cursor.balanced(Quotes::Both, "literal")?;
                }
                let end = self.cursor.pos();
                if start == end {
                    return Err(self.cursor.unexpected("a literal"));
                }
                Ok(start..end)
            }
        }
    }

    /// A literal that stands for itself: an array's shape and values, or such literals in parentheses.
    pub(super) fn literal_with_shape(&mut self, depth: usize) -> Rule<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        if depth > MAX_DEPTH {
            let message = format!("literals nest deeper than {MAX_DEPTH}");
            return Err(Fault::new(start..start + 1, message).label("too deep"));
        }
        if self.cursor.eat(b'(') {
            while !self.cursor.eat(b')') {
                self.literal_with_shape(depth + 1)?;
                if !self.cursor.eat(b',') {
                    self.cursor.expect(b')', "`,` or `)` in a literal")?;
                    break;
                }
            }
            return Ok(());
        }
        let shape = self.shape()?;
        let values = self.literal_text()?;
        let values = self.str(values);
        self.check_literal(shape, values)
    }

    fn check_literal(&self, shape: ShapeId, text: Str) -> Rule<()> {
        let shapes = &self.module.shapes;
        let literal = self.module.str(text);
        crate::literal::validate(shapes, shape, literal).map_err(|e| {
            let start = text.start() as usize + e.span.start;
            let end = text.start() as usize + e.span.end;
            Fault::new(
                start..end,
                format!(
                    "{} (for {})",
                    e.message,
                    shapes.display_without_layout(shape)
                ),
            )
        })
    }
}

/// Whether the text may leave out the shape of `opcode`, as XLA's parser has it.
const fn can_infer_shape(opcode: Opcode) -> bool {
    use Opcode as O;
    // Those whose shape does not follow, and those that XLA wants written all the same.
    !matches!(
        opcode,
        O::AsyncStart
            | O::AsyncUpdate
            | O::AsyncDone
            | O::AllGather
            | O::AllGatherStart
            | O::AllGatherDone
            | O::AllReduce
            | O::AllReduceStart
            | O::AllReduceDone
            | O::AllToAll
            | O::CollectiveBroadcast
            | O::CollectivePermute
            | O::CollectivePermuteStart
            | O::CollectivePermuteDone
            | O::CopyDone
            | O::CopyStart
            | O::DynamicReshape
            | O::DynamicSlice
            | O::DynamicUpdateSlice
            | O::RaggedAllToAll
            | O::Recv
            | O::RecvDone
            | O::ReduceScatter
            | O::Send
            | O::SendDone
            | O::Slice
            | O::Bitcast
            | O::BitcastConvert
            | O::Constant
            | O::Convert
            | O::CustomCall
            | O::Fusion
            | O::Infeed
            | O::Iota
            | O::Outfeed
            | O::Parameter
            | O::ReducePrecision
            | O::Reshape
            | O::Rng
            | O::RngBitGenerator
            | O::RngGetAndUpdateState
            | O::StochasticConvert
    )
}

fn check_arity(span: &Range<usize>, opcode: Opcode, n: usize) -> Rule<()> {
    let arity = opcode.arity();
    if arity.accepts(n) {
        return Ok(());
    }
    let wanted = match arity {
        Arity::Exactly(k) => format!("{k}"),
        Arity::AtLeast(k) => format!("at least {k}"),
    };
    Err(Fault::new(
        span.clone(),
        format!("`{opcode}` takes {wanted} operands, found {n}"),
    ))
}
