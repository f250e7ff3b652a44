//! Operations that compute element by element.

use slabplan_ir::ElementType as E;

use super::{Generator, Scope, Type};

impl Generator<'_, '_> {
    /// An operation of two operands that this element type has.
    pub(super) fn binary_opcode(&mut self, element: E) -> &'static str {
        let table: &[&str] = match element {
            E::Pred => &["and", "or", "xor"],
            e if e.is_float() => &["add", "multiply", "subtract", "maximum", "minimum"],
            _ => &["add", "multiply", "subtract", "maximum", "and", "xor"],
        };
        table[self.source.below(table.len())]
    }

    pub(super) fn unary(&mut self, s: &mut Scope) -> Option<()> {
        let (x, a) = self.pick_array(s, |_| true)?;
        let table: &[&str] = match a.element {
            E::Pred => &["not"],
            e if e.is_float() => &["negate", "abs", "tanh", "floor", "sine"],
            E::S8 | E::S16 | E::S32 | E::S64 | E::S4 => &["negate", "not", "abs"],
            _ => &["not"],
        };
        let opcode = table[self.source.below(table.len())];
        let result = self.result_like(&a);
        self.emit(s, result, opcode, &[&x], "");
        Some(())
    }

    pub(super) fn binary(&mut self, s: &mut Scope) -> Option<()> {
        let (x, a) = self.pick_array(s, |_| true)?;
        let (y, _) = self.pick_array(s, |b| b.element == a.element && b.same_dims(&a))?;
        let opcode = self.binary_opcode(a.element);
        let result = self.result_like(&a);
        self.emit(s, result, opcode, &[&x, &y], "");
        Some(())
    }

    pub(super) fn compare(&mut self, s: &mut Scope) -> Option<()> {
        let (x, a) = self.pick_array(s, |_| true)?;
        let (y, _) = self.pick_array(s, |b| b.element == a.element && b.same_dims(&a))?;
        let result = self.style.with_element(&mut self.source, &a, E::Pred);
        let direction = ["LT", "EQ", "GE", "NE"][self.source.below(4)];
        let attributes = format!(", direction={direction}");
        self.emit(s, Type::Array(result), "compare", &[&x, &y], &attributes);
        Some(())
    }

    pub(super) fn select(&mut self, s: &mut Scope) -> Option<()> {
        let (x, a) = self.pick_array(s, |_| true)?;
        let (y, _) = self.pick_array(s, |b| b.element == a.element && b.same_dims(&a))?;
        let (p, _) = self.pick_array(s, |b| b.element == E::Pred && b.same_dims(&a))?;
        let result = self.result_like(&a);
        self.emit(s, result, "select", &[&p, &x, &y], "");
        Some(())
    }

    pub(super) fn convert(&mut self, s: &mut Scope) -> Option<()> {
        let (x, a) = self.pick_array(s, |_| true)?;
        let element = self.any_array()?.element;
        let result = self.style.with_element(&mut self.source, &a, element);
        self.emit(s, Type::Array(result), "convert", &[&x], "");
        Some(())
    }

    /// A copy: of an array, at times in another layout; of a tuple as it is.
    pub(super) fn copy(&mut self, s: &mut Scope) -> Option<()> {
        let planned = s.is_planned();
        let x = self.pick(s, |t| t.array().is_some() || (planned && !t.has_token()))?;
        let result = match x.ty.array().cloned() {
            Some(a) => self.result_like(&a),
            None => x.ty.clone(),
        };
        self.emit(s, result, "copy", &[&x], "");
        Some(())
    }

    /// The type `a`, now and then in another layout.
    pub(super) fn result_like(&mut self, a: &super::Array) -> Type {
        Type::Array(if self.source.chance(1, 6) {
            self.style.array(&mut self.source, a.element, &a.dims)
        } else {
            a.clone()
        })
    }
}
