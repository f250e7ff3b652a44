//! A single instruction as a whole module: `add(f32[10], f32[10])`.

use std::ops::Range;

use super::computation::Body;
use super::diagnostic::Rule;
use super::parser::{Parser, Symbol};
use crate::entity::{EntityId, InstrId, ShapeId};
use crate::instr::{Instr, Payload};
use crate::module::Computation;
use crate::opcode::Opcode;

impl Parser<'_> {
    /// `[name =] [shape] opcode(operands) {, attr}`; operands that are not defined become parameters.
    pub(super) fn single_instruction(&mut self) -> Rule<()> {
        let mut probe = self.cursor.clone();
        let named = probe.name("a name").is_ok() && probe.eat(b'=');
        let name = if named {
            let name = self.cursor.name("a name")?;
            self.cursor.expect(b'=', "`=`")?;
            self.str(name)
        } else {
            self.push_str("_")?
        };
        if !named && !self.at_shape() {
            return Err(self.cursor.unexpected("`name =` or a shape"));
        }
        let comp_name = self.push_str("_")?;
        let id = self.module.computations.push(Computation {
            name: comp_name,
            instrs: Vec::new(),
            params: Vec::new(),
            root: InstrId::from_index(0),
            execution_thread: None,
            has_signature: true,
        });
        self.computations.insert("_", Some(id));
        self.module.name = self.push_str("_")?;
        self.module.is_scheduled = true;
        self.reify_parameters = true;
        let mut body = Body::new(id);
        let root = self.instruction_rhs(&mut body, name)?;
        self.cursor.skip_space();
        if !self.cursor.at_end() {
            return Err(self.cursor.unexpected("the end of the text"));
        }
        if let Some(root) = root {
            let params = self.parameters(&body)?;
            let comp = &mut self.module.computations[id];
            comp.instrs = body.instrs;
            comp.params = params;
            comp.root = root;
            self.module.entry = id;
        }
        Ok(())
    }

    /// A parameter for an operand of the single-instruction form that is not defined.
    pub(super) fn reified_parameter(
        &mut self,
        body: &mut Body,
        shape: ShapeId,
        name: Option<Range<usize>>,
    ) -> Rule<InstrId> {
        let number = body
            .instrs
            .iter()
            .filter(|&&i| self.module.instrs[i].opcode == Opcode::Parameter)
            .count();
        let text = name.clone().map(|n| self.cursor.slice(n));
        let name = match name {
            Some(name) => self.str(name),
            None => self.push_str(&format!("_{number}"))?,
        };
        let param = Instr {
            payload: Payload::Parameter(number as u32),
            ..Instr::new(name, Opcode::Parameter, shape, body.id, &[])
        };
        let id = self.push_instr(body, param);
        if let Some(text) = text {
            self.scope.insert(text, Symbol::Defined(id));
        }
        Ok(id)
    }
}
