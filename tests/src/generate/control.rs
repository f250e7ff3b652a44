//! Loops, branches, calls.

use slabplan_ir::ElementType as E;

use super::{Callee, DEEPEST, Generator, Role, Scope, Type, Value};

impl Generator<'_, '_> {
    /// A loop that counts to a constant and carries some values of any type, tuples and
    /// duplicates included.
    pub(super) fn while_loop(&mut self, s: &mut Scope) -> Option<()> {
        if s.depth >= DEEPEST {
            return None;
        }
        let mut carried: Vec<Value> = (0..self.source.range(1, 4))
            .map(|_| self.pick(s, |t| !t.has_token()))
            .collect::<Option<_>>()?;
        let counter_at = self.source.below(carried.len() + 1);
        let zero = self.zero(s, E::S32);
        carried.insert(counter_at, zero);
        let ty = Type::Tuple(carried.iter().map(|v| v.ty.clone()).collect());
        let condition = self.loop_condition(s, &ty, counter_at);
        let body = self.loop_body(s, &ty, counter_at);
        let operands: Vec<&Value> = carried.iter().collect();
        let init = self.emit(s, ty.clone(), "tuple", &operands, "");
        let attributes = format!(", condition={condition}, body={body}");
        let result = self.emit(s, ty, "while", &[&init], &attributes);
        self.take_apart(s, &result);
        Some(())
    }

    fn loop_condition(&mut self, s: &Scope, ty: &Type, counter_at: usize) -> String {
        let mut inner = Scope::new(s.role, s.depth + 1);
        let state = self.parameter(&mut inner, 0, ty.clone());
        let counter = self.element(&mut inner, &state, counter_at);
        if self.source.chance(1, 3) {
            self.take_apart(&mut inner, &state);
            self.fill(&mut inner, 2);
        }
        let trips = self.source.below(4);
        let limit = self.scalar_constant(&mut inner, E::S32, &trips.to_string());
        let pred = self.style.scalar(E::Pred);
        let mut goes_on = self.emit(
            &mut inner,
            pred.clone(),
            "compare",
            &[&counter, &limit],
            ", direction=LT",
        );
        // Now and then what the loop carries has a say too.
        if self.source.chance(1, 4)
            && let Some(also) = self.pick(&inner, |t| t.is_scalar(E::Pred))
        {
            goes_on = self.emit(&mut inner, pred, "and", &[&goes_on, &also], "");
        }
        let name = self.name("condition");
        self.finish(&mut inner, &name, &goes_on, "");
        name
    }

    fn loop_body(&mut self, s: &Scope, ty: &Type, counter_at: usize) -> String {
        let mut inner = Scope::new(s.role, s.depth + 1);
        let state = self.parameter(&mut inner, 0, ty.clone());
        let elements = ty.elements().expect("a loop carries a tuple");
        let parts: Vec<Value> = (0..elements.len())
            .map(|k| self.element(&mut inner, &state, k))
            .collect();
        let steps = self.source.range(1, 6);
        self.fill(&mut inner, steps);
        let one = self.scalar_constant(&mut inner, E::S32, "1");
        let counter_type = elements[counter_at].clone();
        let next = self.emit(
            &mut inner,
            counter_type,
            "add",
            &[&parts[counter_at], &one],
            "",
        );
        let mut results = Vec::new();
        for (k, part) in parts.iter().enumerate() {
            results.push(if k == counter_at {
                next.clone()
            } else {
                self.next_carry(&mut inner, part, &parts)
            });
        }
        let operands: Vec<&Value> = results.iter().collect();
        let root = self.emit(&mut inner, ty.clone(), "tuple", &operands, "");
        let name = self.name("body");
        self.finish(&mut inner, &name, &root, "");
        name
    }

    /// What a loop hands on in the place of `part`: itself, another carry, or something else.
    fn next_carry(&mut self, inner: &mut Scope, part: &Value, parts: &[Value]) -> Value {
        match self.source.below(4) {
            0 => part.clone(),
            1 => {
                let same: Vec<&Value> = parts.iter().filter(|p| p.ty == part.ty).collect();
                (*self.source.one_of(&same).unwrap_or(&part)).clone()
            }
            2 => self.value(inner, &part.ty),
            _ => self.new_value(inner, &part.ty),
        }
    }

    /// Names some elements of a tuple.
    fn take_apart(&mut self, s: &mut Scope, tuple: &Value) {
        let width = tuple.ty.elements().map_or(0, <[Type]>::len);
        for k in 0..width {
            if self.source.chance(2, 3) {
                self.element(s, tuple, k);
            }
        }
    }

    /// By a predicate or a number; branches may hand an operand on, compute much or little.
    pub(super) fn conditional(&mut self, s: &mut Scope) -> Option<()> {
        if s.depth >= DEEPEST {
            return None;
        }
        let by_number = self.source.chance(1, 3);
        let branches = if by_number {
            self.source.range(1, 3)
        } else {
            2
        };
        let operands: Vec<Value> = (0..branches)
            .map(|_| self.pick(s, |t| !t.has_token()))
            .collect::<Option<_>>()?;
        let result = self.branch_result(s, &operands)?;
        let names: Vec<String> = operands
            .iter()
            .map(|o| self.branch(s, o, &result))
            .collect();
        let (choice, attributes) = if by_number {
            let list = names.join(", ");
            (self.index(s), format!(", branch_computations={{{list}}}"))
        } else {
            let choice = self.scalar(s, E::Pred);
            let (yes, no) = (&names[0], &names[1]);
            (
                choice,
                format!(", true_computation={yes}, false_computation={no}"),
            )
        };
        let mut all = vec![&choice];
        all.extend(&operands);
        let value = self.emit(s, result, "conditional", &all, &attributes);
        self.take_apart(s, &value);
        Some(())
    }

    fn branch_result(&mut self, s: &Scope, operands: &[Value]) -> Option<Type> {
        Some(match self.source.below(3) {
            0 => operands[0].ty.clone(),
            1 => self.pick(s, |t| !t.has_token())?.ty,
            _ => {
                let parts = (0..self.source.range(1, 3))
                    .map(|_| Some(self.pick(s, |t| !t.has_token())?.ty))
                    .collect::<Option<_>>()?;
                Type::Tuple(parts)
            }
        })
    }

    fn branch(&mut self, s: &Scope, operand: &Value, result: &Type) -> String {
        let mut inner = Scope::new(s.role, s.depth + 1);
        let parameter = self.parameter(&mut inner, 0, operand.ty.clone());
        self.take_apart(&mut inner, &parameter);
        let steps = self.source.below(5);
        self.fill(&mut inner, steps);
        let root = self.value(&mut inner, result);
        let name = self.name("branch");
        self.finish(&mut inner, &name, &root, "");
        name
    }

    pub(super) fn call(&mut self, s: &mut Scope) -> Option<()> {
        if s.depth >= DEEPEST {
            return None;
        }
        let operands: Vec<Value> = (0..self.source.range(1, 3))
            .map(|_| self.pick(s, |t| !t.has_token()))
            .collect::<Option<_>>()?;
        let callee = self.callee(s, &operands);
        self.call_of(s, &callee, &operands);
        // What an asynchronous computation calls must be its own.
        if s.role == Role::Planned {
            self.callees.push(callee);
        }
        Some(())
    }

    fn callee(&mut self, s: &Scope, operands: &[Value]) -> Callee {
        let before = self.instructions;
        let mut inner = Scope::new(s.role, s.depth + 1);
        let parameters = self.parameters(&mut inner, operands);
        let steps = self.source.range(1, 4);
        self.fill(&mut inner, steps);
        let root = if self.source.chance(1, 2) {
            self.pick(&inner, |t| !t.has_token())
        } else {
            None
        };
        let root = root.unwrap_or_else(|| self.new_value(&mut inner, &parameters[0].ty));
        let name = self.name("callee");
        self.finish(&mut inner, &name, &root, "");
        Callee {
            name,
            parameters: operands.iter().map(|o| o.ty.clone()).collect(),
            result: root.ty,
            weight: self.instructions - before,
        }
    }

    /// Calls a computation that has been called before, with other operands.
    pub(super) fn call_again(&mut self, s: &mut Scope) -> Option<()> {
        if s.role != Role::Planned {
            return None;
        }
        let callee = self.source.one_of(&self.callees).cloned()?;
        if self.instructions + callee.weight > super::ENOUGH {
            return None;
        }
        self.instructions += callee.weight;
        let operands: Vec<Value> = callee
            .parameters
            .iter()
            .map(|ty| self.value(s, ty))
            .collect();
        self.call_of(s, &callee, &operands);
        Some(())
    }

    fn call_of(&mut self, s: &mut Scope, callee: &Callee, operands: &[Value]) {
        let operands: Vec<&Value> = operands.iter().collect();
        let attributes = format!(", to_apply={}", callee.name);
        self.emit(s, callee.result.clone(), "call", &operands, &attributes);
    }
}
