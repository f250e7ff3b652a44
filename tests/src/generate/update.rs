//! Operations that write into an operand.

use slabplan_ir::ElementType as E;

use super::{Array, Generator, Scope, Type, Value};

impl Generator<'_, '_> {
    pub(super) fn dynamic_update_slice(&mut self, s: &mut Scope) -> Option<()> {
        let (x, a) = self.pick_array(s, |a| a.rank() > 0)?;
        let operands = self.update_operands(s, x, &a);
        let operands: Vec<&Value> = operands.iter().collect();
        self.emit(s, Type::Array(a), "dynamic-update-slice", &operands, "");
        Some(())
    }

    /// Operands of a dynamic-update-slice of `x`.
    pub(super) fn update_operands(&mut self, s: &mut Scope, x: Value, a: &Array) -> Vec<Value> {
        let fits = |b: &Array| {
            b.element == a.element
                && b.rank() == a.rank()
                && b.dims.iter().zip(&a.dims).all(|(b, a)| b <= a)
        };
        let update = match self.pick_array(s, fits) {
            Some((update, _)) if self.source.chance(1, 2) => update,
            _ => {
                let dims: Vec<u64> = a.dims.iter().map(|&d| d.min(2)).collect();
                let part = self.style.array(&mut self.source, a.element, &dims);
                self.new_value(s, &Type::Array(part))
            }
        };
        let mut operands = vec![x, update];
        operands.extend((0..a.rank()).map(|_| self.index(s)));
        operands
    }

    /// Rows added to, or put over, rows of the operand; at times of two operands at once.
    pub(super) fn scatter(&mut self, s: &mut Scope) -> Option<()> {
        let (x, a) = self.pick_array(s, |a| a.rank() > 0 && a.dims[0] > 0)?;
        let rows = self.source.range(1, 3) as u64;
        let indices = self.style.array(&mut self.source, E::S32, &[rows, 1]);
        let indices = self.value(s, &Type::Array(indices));
        let mut dims = a.dims.clone();
        dims[0] = rows;
        let updates = self.style.array(&mut self.source, a.element, &dims);
        let updates = self.value(s, &Type::Array(updates));
        let reducer = self.reducer(a.element);
        let window: Vec<String> = (1..a.rank()).map(|d| d.to_string()).collect();
        let attributes = format!(
            ", update_window_dims={{{}}}, inserted_window_dims={{0}}, \
             scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply={reducer}",
            window.join(",")
        );
        let operands = [&x, &indices, &updates];
        self.emit(s, Type::Array(a), "scatter", &operands, &attributes);
        Some(())
    }
}
