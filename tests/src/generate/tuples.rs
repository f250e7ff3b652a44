//! Operations that only name or order values.

use super::{Generator, Scope, Type, Value};

impl Generator<'_, '_> {
    /// Of one to four values; the same one may stand in it twice.
    pub(super) fn tuple(&mut self, s: &mut Scope) -> Option<()> {
        let width = self.source.range(1, 4);
        let elements: Vec<Value> = (0..width)
            .map(|_| self.pick(s, |t| !t.has_token()))
            .collect::<Option<_>>()?;
        let ty = Type::Tuple(elements.iter().map(|v| v.ty.clone()).collect());
        let operands: Vec<&Value> = elements.iter().collect();
        self.emit(s, ty, "tuple", &operands, "");
        Some(())
    }

    pub(super) fn get_tuple_element(&mut self, s: &mut Scope) -> Option<()> {
        let tuple = self.pick(s, |t| t.elements().is_some_and(|e| !e.is_empty()))?;
        let width = tuple.ty.elements()?.len();
        let index = self.source.below(width);
        self.element(s, &tuple, index);
        Some(())
    }

    /// Element `index` of a tuple.
    pub(super) fn element(&mut self, s: &mut Scope, tuple: &Value, index: usize) -> Value {
        let ty = tuple.ty.elements().expect("a tuple")[index].clone();
        let attributes = format!(", index={index}");
        self.emit(s, ty, "get-tuple-element", &[tuple], &attributes)
    }

    pub(super) fn opt_barrier(&mut self, s: &mut Scope) -> Option<()> {
        let x = self.pick(s, |t| !t.has_token())?;
        self.emit(s, x.ty.clone(), "opt-barrier", &[&x], "");
        Some(())
    }

    /// A value that waits for others.
    pub(super) fn add_dependency(&mut self, s: &mut Scope) -> Option<()> {
        let x = self.pick(s, |t| t.array().is_some())?;
        let token = self.value(s, &Type::Token);
        self.emit(s, x.ty.clone(), "add-dependency", &[&x, &token], "");
        Some(())
    }
}
