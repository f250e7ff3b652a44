//! One layout for an array and everything that only forwards it.
//!
//! Before optimisation the layouts in a module's text are each instruction's own default: a call may
//! take a `{0,1}` array as a `{1,0}` parameter. A forwarded value has the bytes of what it forwards, so
//! it must have its layout too, or the bytes would change under another reader. Layouts follow the
//! values here; where two meet (a loop's state, a branch's result), the later one is copied.

use slabplan_ir::attr::{Attr, AttrName, AttrValue};
use slabplan_ir::edit::Names;
use slabplan_ir::{CompId, Instr, InstrId, Module, Opcode, ShapeId};

enum Task {
    Computation(CompId),
    Enter(InstrId),
    Leave(InstrId),
}

/// Gives what forwards a value that value's layout; returns whether anything changed. The call graph must be
/// flat. O(instructions and parts of tuples).
pub(super) fn settle(module: &mut Module) -> bool {
    let mut settling = Settling {
        names: None,
        changed: false,
    };
    let mut tasks = vec![Task::Computation(module.entry)];
    while let Some(task) = tasks.pop() {
        match task {
            Task::Computation(comp) => {
                let instrs = module.computations[comp].instrs.iter().rev();
                tasks.extend(instrs.map(|&i| Task::Enter(i)));
            }
            Task::Enter(instr) => {
                tasks.push(Task::Leave(instr));
                let callees = settling.enter(module, instr);
                tasks.extend(callees.into_iter().rev().map(Task::Computation));
            }
            Task::Leave(instr) => settling.leave(module, instr),
        }
    }
    settling.changed
}

struct Settling {
    /// Made when a copy is first needed.
    names: Option<Names>,
    changed: bool,
}

impl Settling {
    fn set(&mut self, module: &mut Module, instr: InstrId, shape: ShapeId) {
        if module.instrs[instr].shape != shape {
            module.instrs[instr].shape = shape;
            self.changed = true;
        }
    }

    /// Hands operands over to the parameters of what `instr` calls.
    fn enter(&mut self, module: &mut Module, instr: InstrId) -> Vec<CompId> {
        let i = &module.instrs[instr];
        let operands = i.operands.clone();
        match i.opcode {
            Opcode::While => {
                let callees: Vec<CompId> = [AttrName::Condition, AttrName::Body]
                    .into_iter()
                    .filter_map(|n| i.comp(n))
                    .collect();
                for &comp in &callees {
                    self.bind(module, comp, &operands);
                }
                callees
            }
            Opcode::Conditional => {
                let branches = i.branches();
                for (&comp, operand) in branches.iter().zip(operands.iter().skip(1)) {
                    self.bind(module, comp, std::slice::from_ref(operand));
                }
                branches.to_vec()
            }
            Opcode::Call => {
                let callee = i.comp(AttrName::ToApply);
                if let Some(comp) = callee {
                    self.bind(module, comp, &operands);
                }
                callee.into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn bind(&mut self, module: &mut Module, comp: CompId, operands: &[InstrId]) {
        let params = module.computations[comp].params.clone();
        for (param, &operand) in params.into_iter().zip(operands) {
            let shape = module.instrs[operand].shape;
            self.set(module, param, shape);
        }
    }

    /// Gives `instr` the layout of what it forwards, its operands and callees settled.
    fn leave(&mut self, module: &mut Module, instr: InstrId) {
        let i = &module.instrs[instr];
        let of = |n: usize| i.operands.get(n).map(|&o| module.instrs[o].shape);
        let is_array = module.shapes.array(i.shape).is_some();
        let shape = match i.opcode {
            Opcode::Tuple => {
                let operands = i.operands.iter();
                let operands: Vec<ShapeId> = operands.map(|&o| module.instrs[o].shape).collect();
                Some(module.shapes.intern_tuple(&operands))
            }
            Opcode::GetTupleElement => {
                let n = i.int(AttrName::Index).unwrap_or(0) as usize;
                let elements = of(0).and_then(|s| module.shapes.tuple(s));
                elements.and_then(|e| e.get(n).copied())
            }
            Opcode::OptimizationBarrier | Opcode::AddDependency | Opcode::Domain => of(0),
            Opcode::Copy if !is_array => of(0),
            Opcode::While => {
                let state = of(0);
                if let (Some(state), Some(body)) = (state, i.comp(AttrName::Body)) {
                    self.return_as(module, body, state);
                }
                state
            }
            Opcode::Call => {
                let callee = i.comp(AttrName::ToApply);
                callee.map(|c| module.instrs[module.computations[c].root].shape)
            }
            Opcode::Conditional => {
                let branches = i.branches();
                let first = branches.first().copied();
                let shape = first.map(|c| module.instrs[module.computations[c].root].shape);
                if let Some(shape) = shape {
                    for &branch in &branches[1..] {
                        self.return_as(module, branch, shape);
                    }
                }
                shape
            }
            _ => None,
        };
        if let Some(shape) = shape {
            self.set(module, instr, shape);
        }
    }

    /// Makes the root of `comp` one of shape `wanted`, which differs in layouts alone.
    fn return_as(&mut self, module: &mut Module, comp: CompId, wanted: ShapeId) {
        let root = module.computations[comp].root;
        if module.instrs[root].shape == wanted {
            return;
        }
        self.changed = true;
        module.computations[comp].root = self.relaid(module, comp, root, wanted);
    }

    /// `value` with other layouts: a copy of an array, a new tuple of copies.
    fn relaid(
        &mut self,
        module: &mut Module,
        comp: CompId,
        value: InstrId,
        wanted: ShapeId,
    ) -> InstrId {
        let shape = module.instrs[value].shape;
        if shape == wanted {
            return value;
        }
        let (Some(parts), Some(wanted_parts)) = (
            module.shapes.tuple(shape).map(<[_]>::to_vec),
            module.shapes.tuple(wanted).map(<[_]>::to_vec),
        ) else {
            return self.add(module, comp, Opcode::Copy, wanted, &[value]);
        };
        let mut elements = Vec::with_capacity(parts.len());
        for (n, (part, wanted)) in parts.into_iter().zip(wanted_parts).enumerate() {
            let element = if module.instrs[value].opcode == Opcode::Tuple {
                module.instrs[value].operands[n]
            } else {
                let element = self.add(module, comp, Opcode::GetTupleElement, part, &[value]);
                module.instrs[element].attrs.push(Attr {
                    name: AttrName::Index,
                    value: AttrValue::Int(n as i64),
                });
                element
            };
            elements.push(self.relaid(module, comp, element, wanted));
        }
        self.add(module, comp, Opcode::Tuple, wanted, &elements)
    }

    fn add(
        &mut self,
        module: &mut Module,
        comp: CompId,
        opcode: Opcode,
        shape: ShapeId,
        operands: &[InstrId],
    ) -> InstrId {
        let mut names = self.names.take().unwrap_or_else(|| Names::new(module));
        let name = names.instruction(&mut module.strings, opcode.name());
        self.names = Some(names);
        module.append_instruction(Instr::new(name, opcode, shape, comp, operands))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(text: &str) -> Module {
        let mut module = slabplan_ir::text::parse(text).into_result().unwrap();
        assert!(settle(&mut module));
        slabplan_ir::verify::verify(&module).unwrap();
        module
    }

    #[test]
    fn a_parameter_takes_the_layout_of_its_operand() {
        let module = settled(
            "HloModule m
            f { a = f32[4,6]{1,0} parameter(0)
              ROOT n = f32[4,6]{1,0} negate(a) }
            ENTRY e { x = f32[6,4]{1,0} parameter(0)
              t = f32[4,6]{0,1} transpose(x), dimensions={1,0}
              ROOT c = f32[4,6]{0,1} call(t), to_apply=f }",
        );
        let text = slabplan_ir::text::print(&module);
        assert!(text.contains("%a = f32[4,6]{0,1} parameter(0)"), "{text}");
        assert!(text.contains("%c = f32[4,6]{1,0} call(%t)"), "{text}");
    }

    #[test]
    fn a_loop_returns_its_state_as_it_took_it() {
        let module = settled(
            "HloModule m
            cond { s = (f32[4,4]{1,0}) parameter(0)
              ROOT p = pred[] constant(false) }
            body { s.1 = (f32[4,4]{1,0}) parameter(0)
              x = f32[4,4]{1,0} get-tuple-element(s.1), index=0
              y = f32[4,4]{0,1} transpose(x), dimensions={1,0}
              ROOT r = (f32[4,4]{0,1}) tuple(y) }
            ENTRY e { a = f32[4,4]{1,0} parameter(0)
              i = (f32[4,4]{1,0}) tuple(a)
              ROOT w = (f32[4,4]{1,0}) while(i), condition=cond, body=body }",
        );
        let text = slabplan_ir::text::print(&module);
        assert!(text.contains("%copy = f32[4,4]{1,0} copy(%y)"), "{text}");
        assert!(
            text.contains("ROOT %tuple = (f32[4,4]{1,0}) tuple(%copy)"),
            "{text}"
        );
    }
}
