//! Values by name: `%fusion.3{1,0}`, or `%body/%fusion.3{1,0}` where two computations have the name.

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use super::PlanValue;
use crate::entity::{CompId, InstrId};
use crate::module::Module;
use crate::shape::{DisplayIndex, ShapeIndex};

/// Instructions of a module by name.
pub(super) struct Names<'m> {
    module: &'m Module,
    /// The instruction of each name; none where several computations have it.
    instrs: IndexMap<&'m str, Option<InstrId>, FxBuildHasher>,
    comps: IndexMap<&'m str, CompId, FxBuildHasher>,
}

impl<'m> Names<'m> {
    /// O(instructions).
    pub(super) fn new(module: &'m Module) -> Self {
        let mut instrs = IndexMap::with_hasher(FxBuildHasher);
        instrs.reserve(module.instrs.len());
        for (id, instr) in module.instrs.iter() {
            instrs
                .entry(module.str(instr.name))
                .and_modify(|known| *known = None)
                .or_insert(Some(id));
        }
        let comps = module
            .computations
            .iter()
            .map(|(id, c)| (module.str(c.name), id))
            .collect();
        Self {
            module,
            instrs,
            comps,
        }
    }

    /// `%name`, with the computation where the name alone is not enough.
    pub(super) fn instr(&self, id: InstrId) -> String {
        let name = self.module.name_of(id);
        if self.instrs.get(name).is_some_and(Option::is_some) {
            return format!("%{name}");
        }
        let comp = self.module.instrs[id].computation;
        format!("%{}/%{name}", self.module.comp_name(comp))
    }

    /// `%name{1,0}`, without braces for a whole result.
    pub(super) fn value(&self, value: &PlanValue) -> String {
        let name = self.instr(value.instr);
        if value.index.is_empty() {
            name
        } else {
            format!("{name}{}", DisplayIndex(&value.index))
        }
    }

    /// The instruction called `text`, or what is wrong.
    pub(super) fn find_instr(&self, text: &str) -> Result<InstrId, String> {
        match text.split_once('/') {
            Some((comp, name)) => self.find_in(comp, name),
            None => match self.instrs.get(strip(text)) {
                Some(Some(id)) => Ok(*id),
                Some(None) => Err(format!(
                    "several computations have an instruction `{text}`: write `%computation/{text}`"
                )),
                None => Err(format!("the module has no instruction `{text}`")),
            },
        }
    }

    /// The instruction `name` of computation `comp`. O(instructions of the computation) where
    /// other computations have the name too.
    pub(super) fn find_in(&self, comp: &str, name: &str) -> Result<InstrId, String> {
        let Some(&id) = self.comps.get(strip(comp)) else {
            return Err(format!("the module has no computation `{comp}`"));
        };
        if let Some(&Some(instr)) = self.instrs.get(strip(name))
            && self.module.instrs[instr].computation == id
        {
            return Ok(instr);
        }
        self.module.computations[id]
            .instrs
            .iter()
            .copied()
            .find(|&i| self.module.name_of(i) == strip(name))
            .ok_or_else(|| format!("computation `{comp}` has no instruction `{name}`"))
    }

    /// The value written as [`value`](Self::value) writes it.
    pub(super) fn find_value(&self, text: &str) -> Result<PlanValue, String> {
        let (name, index) = match text.split_once('{') {
            None => (text, ShapeIndex::new()),
            Some((name, rest)) => {
                let numbers = rest
                    .strip_suffix('}')
                    .ok_or_else(|| format!("`{text}` does not end in `}}`"))?;
                (name, parse_index(numbers)?)
            }
        };
        Ok(PlanValue {
            instr: self.find_instr(name)?,
            index,
        })
    }
}

/// `1,0` as a shape index.
pub(super) fn parse_index(numbers: &str) -> Result<ShapeIndex, String> {
    if numbers.trim().is_empty() {
        return Ok(ShapeIndex::new());
    }
    numbers
        .split(',')
        .map(|n| {
            n.trim()
                .parse()
                .map_err(|_| format!("`{n}` in a shape index is not a number"))
        })
        .collect()
}

fn strip(name: &str) -> &str {
    name.strip_prefix('%').unwrap_or(name)
}
