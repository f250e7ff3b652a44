//! Reductions, products, sorting.

use std::fmt::Write as _;

use slabplan_ir::ElementType as E;

use super::types::scalar_literal;
use super::{Array, Generator, Scope, Type};

impl Generator<'_, '_> {
    pub(super) fn reduce(&mut self, s: &mut Scope) -> Option<()> {
        let (x, a) = self.pick_array(s, |a| a.rank() > 0)?;
        let dim = self.source.below(a.rank());
        let mut dims = a.dims.clone();
        dims.remove(dim);
        let result = self.style.array(&mut self.source, a.element, &dims);
        let reducer = self.reducer(a.element);
        let init = self.scalar(s, a.element);
        let attributes = format!(", dimensions={{{dim}}}, to_apply={reducer}");
        self.emit(s, Type::Array(result), "reduce", &[&x, &init], &attributes);
        Some(())
    }

    /// The name of a computation that folds this element type.
    pub(super) fn reducer(&mut self, element: E) -> String {
        let opcode = if element == E::Pred { "or" } else { "add" };
        self.helper(opcode, element)
    }

    pub(super) fn dot(&mut self, s: &mut Scope) -> Option<()> {
        let plain = |a: &Array| a.rank() == 2 && matches!(a.element, E::F32 | E::S32 | E::F64);
        let (x, a) = self.pick_array(s, plain)?;
        let (y, _) = self.pick_array(s, |b| b.element == a.element && b.same_dims(&a))?;
        let along = self.source.below(2);
        let kept = a.dims[1 - along];
        let result = self.style.array(&mut self.source, a.element, &[kept, kept]);
        let attributes =
            format!(", lhs_contracting_dims={{{along}}}, rhs_contracting_dims={{{along}}}");
        self.emit(s, Type::Array(result), "dot", &[&x, &y], &attributes);
        Some(())
    }

    /// Of keys alone, or of keys with values.
    pub(super) fn sort(&mut self, s: &mut Scope) -> Option<()> {
        let (x, a) = self.pick_array(s, |a| a.rank() > 0 && a.element != E::Pred)?;
        let dim = self.source.below(a.rank());
        if self.source.chance(1, 2)
            && let Some((y, b)) = self.pick_array(s, |b| b.same_dims(&a))
        {
            let comparator = self.pair_comparator(a.element, b.element);
            let attributes =
                format!(", dimensions={{{dim}}}, is_stable=true, to_apply={comparator}");
            let result = Type::Tuple(vec![Type::Array(a), Type::Array(b)]);
            self.emit(s, result, "sort", &[&x, &y], &attributes);
            return Some(());
        }
        let comparator = self.helper("compare", a.element);
        let attributes = format!(", dimensions={{{dim}}}, is_stable=true, to_apply={comparator}");
        self.emit(s, Type::Array(a), "sort", &[&x], &attributes);
        Some(())
    }

    /// The name of a computation that compares the first pair of two.
    fn pair_comparator(&mut self, key: E, value: E) -> String {
        let name = format!("compare_{}_with_{}", key.name(), value.name());
        if !self.helpers.contains(&name) {
            let (k, v) = (self.style.scalar(key), self.style.scalar(value));
            let result = self.style.scalar(E::Pred);
            let _ = write!(
                self.finished,
                "{name} {{\n  a = {k} parameter(0)\n  b = {k} parameter(1)\n  \
                 c = {v} parameter(2)\n  d = {v} parameter(3)\n  \
                 ROOT r = {result} compare(a, b), direction=LT\n}}\n\n"
            );
            self.helpers.push(name.clone());
        }
        name
    }

    /// Over one device: what it computes is its operand.
    pub(super) fn all_reduce(&mut self, s: &mut Scope) -> Option<()> {
        let (x, a) = self.pick_array(s, |_| true)?;
        let reducer = self.reducer(a.element);
        let attributes = format!(", replica_groups={{{{0}}}}, to_apply={reducer}");
        self.emit(s, Type::Array(a), "all-reduce", &[&x], &attributes);
        Some(())
    }

    /// A zero of this element type.
    pub(super) fn zero(&mut self, s: &mut Scope, element: E) -> super::Value {
        self.scalar_constant(s, element, &scalar_literal(element, 0))
    }
}
