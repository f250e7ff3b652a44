//! Operations that are begun here and finished there.

use slabplan_ir::ElementType as E;

use super::scope::InFlight;
use super::types::Layouts;
use super::{DEEPEST, Generator, Role, Scope, Type, Value};

impl Generator<'_, '_> {
    /// `async-start` of a computation of its own.
    pub(super) fn async_generic(&mut self, s: &mut Scope) -> Option<()> {
        if s.role != Role::Planned || s.depth >= DEEPEST {
            return None;
        }
        let operands: Vec<Value> = (0..self.source.range(1, 2))
            .map(|_| self.pick(s, |t| !t.has_token()))
            .collect::<Option<_>>()?;
        let mut inner = Scope::new(Role::Async, s.depth + 1);
        let parameters = self.parameters(&mut inner, &operands);
        let steps = self.source.range(1, 4);
        self.fill(&mut inner, steps);
        let root = match self.pick(&inner, |t| !t.has_token()) {
            Some(root) if parameters.iter().all(|p| p.name != root.name) => root,
            _ => self.new_value(&mut inner, &parameters[0].ty),
        };
        let name = self.name("wrapped");
        self.finish(&mut inner, &name, &root, "");
        let attributes = format!(", calls={name}");
        self.start(s, "async", &operands, root.ty, &attributes, &attributes);
        Some(())
    }

    /// `slice-start` and the like, whose computation the parser makes up.
    pub(super) fn async_sugared(&mut self, s: &mut Scope) -> Option<()> {
        if s.role != Role::Planned {
            return None;
        }
        let (x, a) = self.pick_array(s, |a| a.rank() > 0)?;
        let result = Type::Array(a.clone());
        let (opcode, operands, result, attributes) = match self.source.below(4) {
            0 => {
                let (sliced, attributes) = self.slice_of(&a);
                ("slice", vec![x], Type::Array(sliced), attributes)
            }
            1 => {
                let operands = self.update_operands(s, x, &a);
                ("dynamic-update-slice", operands, result, String::new())
            }
            2 => {
                let attributes = format!(", dimensions={{{}}}", self.source.below(a.rank()));
                ("reverse", vec![x], result, attributes)
            }
            _ => {
                let opcode = self.binary_opcode(a.element);
                let y = self.pick(s, |t| *t == result)?;
                (opcode, vec![x, y], result, String::new())
            }
        };
        self.start(s, opcode, &operands, result, &attributes, "");
        Some(())
    }

    /// Writes `OPCODE-start`; its done comes later.
    fn start(
        &mut self,
        s: &mut Scope,
        opcode: &str,
        operands: &[Value],
        result: Type,
        attributes: &str,
        repeated: &str,
    ) {
        let bound = Type::Tuple(operands.iter().map(|o| o.ty.clone()).collect());
        let mut parts = vec![bound, result.clone()];
        if self.source.chance(1, 2) {
            parts.push(self.style.scalar(E::U32));
        }
        let handle_type = Type::Tuple(parts);
        let operands: Vec<&Value> = operands.iter().collect();
        let start = format!("{opcode}-start");
        let value = self.emit_unnamed(s, handle_type.clone(), &start, &operands, attributes);
        s.in_flight.push(InFlight {
            handle: value.name,
            handle_type: handle_type.to_string(),
            update: format!("{opcode}-update"),
            done: format!("{opcode}-done"),
            attributes: repeated.to_owned(),
            result,
        });
    }

    /// A copy, in tiled modules at times into another memory space.
    pub(super) fn copy_start(&mut self, s: &mut Scope) -> Option<()> {
        if s.role != Role::Planned {
            return None;
        }
        let (x, a) = self.pick_array(s, |_| true)?;
        let mut to = a.clone();
        if self.style.layouts == Layouts::Tiles && self.source.chance(1, 2) {
            to.layout = match a.layout.strip_suffix("S(1)}") {
                Some(layout) => format!("{layout}}}"),
                None => format!("{}S(1)}}", a.layout.trim_end_matches('}')),
            };
        }
        let result = Type::Array(to);
        let parts = vec![result.clone(), x.ty.clone(), self.style.scalar(E::U32)];
        let handle = self.emit_unnamed(s, Type::Tuple(parts), "copy-start", &[&x], "");
        Self::in_flight(s, handle, "copy-done", result);
        Some(())
    }

    /// A collective over one device.
    pub(super) fn collective_start(&mut self, s: &mut Scope) -> Option<()> {
        if s.role != Role::Planned {
            return None;
        }
        let (x, a) = self.pick_array(s, |a| a.rank() > 0)?;
        let result = x.ty.clone();
        match self.source.below(3) {
            0 => {
                let reducer = self.reducer(a.element);
                let attributes = format!(", replica_groups={{{{0}}}}, to_apply={reducer}");
                let handle =
                    self.emit_unnamed(s, result.clone(), "all-reduce-start", &[&x], &attributes);
                Self::in_flight(s, handle, "all-reduce-done", result);
            }
            1 => {
                let dim = self.source.below(a.rank());
                let attributes = format!(", replica_groups={{{{0}}}}, dimensions={{{dim}}}");
                let ty = Type::Tuple(vec![result.clone(), result.clone()]);
                let handle = self.emit_unnamed(s, ty, "all-gather-start", &[&x], &attributes);
                Self::in_flight(s, handle, "all-gather-done", result);
            }
            _ => {
                let contexts = vec![self.style.scalar(E::U32); self.source.below(2) * 2];
                let ty = Type::Tuple([vec![result.clone(), result.clone()], contexts].concat());
                let attributes = ", source_target_pairs={{0,0}}";
                let handle =
                    self.emit_unnamed(s, ty, "collective-permute-start", &[&x], attributes);
                Self::in_flight(s, handle, "collective-permute-done", result);
            }
        }
        Some(())
    }

    fn in_flight(s: &mut Scope, handle: Value, done: &str, result: Type) {
        s.in_flight.push(InFlight {
            handle: handle.name,
            handle_type: handle.ty.to_string(),
            update: String::new(),
            done: done.to_owned(),
            attributes: String::new(),
            result,
        });
    }

    /// Updates or finishes something that is in flight.
    pub(super) fn progress(&mut self, s: &mut Scope) -> Option<()> {
        if s.in_flight.is_empty() {
            return None;
        }
        let at = self.source.below(s.in_flight.len());
        if !s.in_flight[at].update.is_empty() && self.source.chance(1, 4) {
            let flight = s.in_flight[at].clone();
            let name = self.name("update");
            self.instructions += 1;
            s.lines.push(format!(
                "{name} = {} {}({}){}",
                flight.handle_type, flight.update, flight.handle, flight.attributes
            ));
            s.in_flight[at].handle = name;
        } else {
            self.finish_one(s, at);
        }
        Some(())
    }

    fn finish_one(&mut self, s: &mut Scope, at: usize) {
        let flight = s.in_flight.remove(at);
        let result = flight.result.clone();
        let value = self.emit_text(s, result, &flight.done, &flight.handle, &flight.attributes);
        s.values.push(value);
    }

    /// Finishes all that is in flight.
    pub(super) fn finish_all(&mut self, s: &mut Scope) {
        while !s.in_flight.is_empty() {
            self.finish_one(s, 0);
        }
    }
}
