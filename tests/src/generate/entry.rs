//! The entry computation and the module's header.

use std::fmt::Write as _;

use super::{Generator, Role, Scope, Type, Value};

impl Generator<'_, '_> {
    /// Writes the whole module.
    pub(super) fn entry(mut self) -> String {
        let mut s = Scope::new(Role::Planned, 0);
        let types: Vec<Type> = (0..self.source.range(1, 4))
            .filter_map(|_| self.parameter_type(0))
            .collect();
        // Some parameters come late in the schedule.
        let late = self.source.below(types.len() + 1);
        let late = if self.source.chance(1, 4) { late } else { 0 };
        let early = types.len() - late;
        for (n, ty) in types[..early].iter().enumerate() {
            self.entry_parameter(&mut s, n, ty);
        }
        let steps = self.source.range(1, 12);
        self.fill(&mut s, steps);
        for (n, ty) in types.iter().enumerate().skip(early) {
            self.entry_parameter(&mut s, n, ty);
        }
        let steps = self.source.range(0, 12);
        self.fill(&mut s, steps);
        // What arrives last may be a result too.
        self.finish_all(&mut s);
        let root = self.entry_root(&mut s);
        if self.source.chance(1, 4) {
            // The root need not be the last instruction.
            self.fill(&mut s, 2);
            self.finish_all(&mut s);
        }
        let header = self.header(&types, &root.ty);
        let entry = s.finish("ENTRY main", &root.name);
        format!("{header}\n\n{}{}", self.finished, entry)
            .trim_end()
            .to_owned()
            + "\n"
    }

    fn parameter_type(&mut self, depth: usize) -> Option<Type> {
        if depth < 2 && self.source.chance(1, 4) {
            let width = self.source.range(1, 3);
            let elements = (0..width)
                .map(|_| self.parameter_type(depth + 1))
                .collect::<Option<_>>()?;
            return Some(Type::Tuple(elements));
        }
        Some(match self.source.below(8) {
            6 => self.style.scalar(slabplan_ir::ElementType::S32),
            7 => self.style.scalar(slabplan_ir::ElementType::Pred),
            _ => Type::Array(self.any_array()?),
        })
    }

    fn entry_parameter(&mut self, s: &mut Scope, n: usize, ty: &Type) {
        let value = self.parameter(s, n, ty.clone());
        let width = ty.elements().map_or(0, <[Type]>::len);
        for k in 0..width {
            self.element(s, &value, k);
        }
    }

    /// One value, or a tuple of several, in which some may stand twice.
    fn entry_root(&mut self, s: &mut Scope) -> Value {
        if self.source.chance(1, 4)
            && let Some(root) = self.pick(s, |t| !t.has_token())
        {
            return root;
        }
        let outputs: Vec<Value> = (0..self.source.range(1, 4))
            .filter_map(|_| self.pick(s, |t| !t.has_token()))
            .collect();
        let ty = Type::Tuple(outputs.iter().map(|v| v.ty.clone()).collect());
        let outputs: Vec<&Value> = outputs.iter().collect();
        self.emit(s, ty, "tuple", &outputs, "")
    }

    /// The header, with arguments given away for outputs of the same type.
    fn header(&mut self, parameters: &[Type], result: &Type) -> String {
        let mut header = "HloModule generated".to_owned();
        if self.style.scheduled {
            header.push_str(", is_scheduled=true");
        }
        let mut arguments: Vec<(usize, Vec<usize>, super::Array)> = parameters
            .iter()
            .enumerate()
            .flat_map(|(n, ty)| {
                let leaves = ty.leaves().into_iter();
                leaves.map(move |(index, a)| (n, index, a.clone()))
            })
            .collect();
        if self.source.chance(1, 2) {
            return header;
        }
        let mut aliases = Vec::new();
        for (output, array) in result.leaves() {
            let fitting: Vec<usize> = (0..arguments.len())
                .filter(|&k| arguments[k].2 == *array)
                .collect();
            if let Some(&k) = self.source.one_of(&fitting)
                && self.source.chance(3, 4)
            {
                let (n, index, _) = arguments.remove(k);
                let kind = ["may-alias", "must-alias"][self.source.below(2)];
                aliases.push(format!(
                    "{}: ({n}, {}, {kind})",
                    list(&output),
                    list(&index)
                ));
            }
        }
        let mut donors = Vec::new();
        for (n, index, _) in arguments {
            if self.source.chance(1, 4) {
                donors.push(format!("({n}, {})", list(&index)));
            }
        }
        if !aliases.is_empty() {
            let _ = write!(header, ", input_output_alias={{ {} }}", aliases.join(", "));
        }
        if !donors.is_empty() {
            let _ = write!(header, ", buffer_donor={{ {} }}", donors.join(", "));
        }
        header
    }
}

/// `{1,0}`.
fn list(index: &[usize]) -> String {
    let parts: Vec<String> = index.iter().map(usize::to_string).collect();
    format!("{{{}}}", parts.join(","))
}
