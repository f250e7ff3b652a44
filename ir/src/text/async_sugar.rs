//! The short form of asynchronous operations: `slice-start`, `slice-done`.
//!
//! The text names the operation that runs; the module holds the general form,
//! `async-start` of a computation that wraps it.

use std::ops::Range;

use smallvec::SmallVec;

use super::computation::Body;
use super::diagnostic::{Fault, Rule};
use super::instruction::{Operands, Operation};
use super::parser::Parser;
use crate::attr::{Attr, AttrName, AttrValue};
use crate::entity::{InstrId, ShapeId};
use crate::instr::{Instr, Payload};
use crate::module::Computation;
use crate::opcode::Opcode;
use crate::strings::Str;

/// Which of the three operations a name like `slice-start` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Start,
    Update,
    Done,
}

impl Parser<'_> {
    /// The operation called `name` in the short form, if it is one.
    pub(super) fn sugared_operation(&self, name: &str) -> Option<Operation> {
        let (base, phase) = [
            ("-start", Phase::Start),
            ("-update", Phase::Update),
            ("-done", Phase::Done),
        ]
        .into_iter()
        .find_map(|(suffix, phase)| Some((name.strip_suffix(suffix)?, phase)))?;
        let &opcode = self.opcodes.get(base)?;
        Some(Operation {
            opcode,
            phase: Some(phase),
        })
    }

    /// Builds the general form.
    #[allow(clippy::too_many_arguments, reason = "the parts of an instruction")]
    pub(super) fn async_sugar(
        &mut self,
        body: &mut Body,
        name: Str,
        shape: Option<ShapeId>,
        wrapped: Opcode,
        phase: Phase,
        operands: Operands,
        attrs: Vec<Attr>,
        span: Range<usize>,
    ) -> Rule<Option<InstrId>> {
        let Some(shape) = shape else {
            return Err(Fault::new(
                span,
                "the shape of an asynchronous operation must be written",
            ));
        };
        let opcode = match phase {
            Phase::Start => {
                return self
                    .async_start(body, name, shape, wrapped, &operands, attrs, span)
                    .map(Some);
            }
            Phase::Update => Opcode::AsyncUpdate,
            Phase::Done => Opcode::AsyncDone,
        };
        // What is said of the wrapped operation again here must agree with its start; it is not kept.
        let kept = attrs
            .into_iter()
            .filter(|a| super::legal::COMMON.contains(&a.name))
            .collect();
        let instr = Instr {
            operands,
            attrs: kept,
            ..Instr::new(name, opcode, shape, body.id, &[])
        };
        Ok(Some(self.push_instr(body, instr)))
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of an instruction")]
    fn async_start(
        &mut self,
        body: &mut Body,
        name: Str,
        shape: ShapeId,
        wrapped: Opcode,
        operands: &Operands,
        attrs: Vec<Attr>,
        span: Range<usize>,
    ) -> Rule<InstrId> {
        let result = match self.module.shapes.tuple(shape) {
            Some(parts) if 2 <= parts.len() && self.module.shapes.tuple(parts[0]).is_some() => {
                parts[1]
            }
            _ => {
                return Err(Fault::new(
                    span,
                    "the result of an asynchronous start must be a tuple of the operands' tuple, the result and any state",
                ));
            }
        };
        let of_start = |a: &Attr| {
            matches!(
                a.name,
                AttrName::AsyncExecutionThread | AttrName::ControlPredecessors
            )
        };
        let (mut start_attrs, wrapped_attrs): (Vec<Attr>, Vec<Attr>) =
            attrs.into_iter().partition(of_start);
        // Metadata and the like describe both.
        start_attrs.extend(
            wrapped_attrs
                .iter()
                .filter(|a| {
                    matches!(
                        a.name,
                        AttrName::Metadata
                            | AttrName::BackendConfig
                            | AttrName::FrontendAttributes
                            | AttrName::Origin
                            | AttrName::Statistics
                    )
                })
                .cloned(),
        );
        let thread = start_attrs.iter().find_map(|a| match a.value {
            AttrValue::Raw(thread) if a.name == AttrName::AsyncExecutionThread => Some(thread),
            _ => None,
        });
        let comp = self.wrap(wrapped, result, operands, wrapped_attrs, thread)?;
        start_attrs.insert(
            0,
            Attr {
                name: AttrName::Calls,
                value: AttrValue::Comp(comp),
            },
        );
        let instr = Instr {
            attrs: start_attrs,
            ..Instr::new(name, Opcode::AsyncStart, shape, body.id, operands)
        };
        Ok(self.push_instr(body, instr))
    }

    /// A computation of one operation on parameters shaped as `operands` are.
    fn wrap(
        &mut self,
        opcode: Opcode,
        shape: ShapeId,
        operands: &[InstrId],
        attrs: Vec<Attr>,
        execution_thread: Option<Str>,
    ) -> Rule<crate::entity::CompId> {
        let name = self.unnamed_computation("async_wrapped")?;
        self.unnamed.push(self.module.computations.next_id());
        let root_name = self.push_str("async_op")?;
        let placeholder = self.module.instrs.next_id();
        let id = self.module.computations.push(Computation {
            name,
            instrs: Vec::new(),
            params: Vec::new(),
            root: placeholder,
            execution_thread,
            has_signature: true,
        });
        let mut inner = Body::new(id);
        let mut params: SmallVec<[InstrId; 3]> = SmallVec::new();
        for (i, &operand) in operands.iter().enumerate() {
            let shape = self.module.instrs[operand].shape;
            let name = self.push_str(&format!("async_param.{i}"))?;
            let param = Instr {
                payload: Payload::Parameter(i as u32),
                ..Instr::new(name, Opcode::Parameter, shape, id, &[])
            };
            params.push(self.push_instr(&mut inner, param));
        }
        let root = Instr {
            attrs,
            ..Instr::new(root_name, opcode, shape, id, &params)
        };
        let root = self.push_instr(&mut inner, root);
        let comp = &mut self.module.computations[id];
        comp.instrs = inner.instrs;
        comp.params = params.into_vec();
        comp.root = root;
        Ok(id)
    }
}
