//! Fusions.

use super::{DEEPEST, Generator, Role, Scope, Type, Value};

impl Generator<'_, '_> {
    /// Elementwise or not, in place or not, with one output or several, of which some are not
    /// used.
    pub(super) fn fusion(&mut self, s: &mut Scope) -> Option<()> {
        if s.depth > DEEPEST {
            return None;
        }
        let operands: Vec<Value> = (0..self.source.range(1, 3))
            .map(|_| self.pick(s, |t| t.array().is_some()))
            .collect::<Option<_>>()?;
        let mut inner = Scope::new(Role::Fused, s.depth + 1);
        let parameters = self.parameters(&mut inner, &operands);
        let steps = self.source.range(1, 4);
        self.fill(&mut inner, steps);
        let root = if self.source.chance(1, 3) {
            let width = self.source.range(2, 3);
            let outputs: Vec<Value> = (0..width)
                .filter_map(|_| self.computed(&inner, &parameters))
                .collect();
            if outputs.is_empty() {
                return None;
            }
            let ty = Type::Tuple(outputs.iter().map(|v| v.ty.clone()).collect());
            let outputs: Vec<&Value> = outputs.iter().collect();
            self.emit(&mut inner, ty, "tuple", &outputs, "")
        } else if let Some(root) = self.computed(&inner, &parameters) {
            root
        } else {
            let ty = operands[0].ty.clone();
            self.new_value(&mut inner, &ty)
        };
        let name = self.name("fused");
        self.finish(&mut inner, &name, &root, "");
        let kind = ["kLoop", "kLoop", "kInput", "kOutput", "kCustom"][self.source.below(5)];
        let attributes = format!(", kind={kind}, calls={name}");
        let operands: Vec<&Value> = operands.iter().collect();
        self.emit(s, root.ty, "fusion", &operands, &attributes);
        Some(())
    }

    /// A value of the computation that is no parameter.
    fn computed(&mut self, inner: &Scope, parameters: &[Value]) -> Option<Value> {
        let computed: Vec<Value> = inner
            .values
            .iter()
            .filter(|v| v.ty.array().is_some() && parameters.iter().all(|p| p.name != v.name))
            .cloned()
            .collect();
        self.source.one_of(&computed).cloned()
    }

    /// Writes a parameter for each operand.
    pub(super) fn parameters(&mut self, inner: &mut Scope, operands: &[Value]) -> Vec<Value> {
        operands
            .iter()
            .enumerate()
            .map(|(n, v)| self.parameter(inner, n, v.ty.clone()))
            .collect()
    }

    pub(super) fn parameter(&mut self, inner: &mut Scope, n: usize, ty: Type) -> Value {
        let value = self.emit_text(inner, ty, "parameter", &n.to_string(), "");
        inner.values.push(value.clone());
        value
    }
}
