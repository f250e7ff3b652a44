//! Changing modules: new instructions, new names, other operands, cloned computations.
//!
//! Passes keep what they know of a module (users, positions, names) in side
//! tables of their own; nothing here keeps them up to date.

use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxBuildHasher;

use crate::attr::AttrValue;
use crate::entity::{CompId, EntityId, InstrId, PrimaryMap, SecondaryMap, ShapeId};
use crate::instr::{Instr, Payload};
use crate::module::{Computation, Module};
use crate::opcode::Opcode;
use crate::strings::{Str, StringPool};

/// On which side of an instruction another one is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Right before it.
    Before,
    /// Right after it.
    After,
}

/// A new instruction's place in the order of its computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The instruction to place, in the arena but in no order yet.
    pub instr: InstrId,
    /// On which side of `anchor`.
    pub side: Side,
    /// An instruction that has its place already.
    pub anchor: InstrId,
}

/// All names of a module, so that new ones are unique in the whole of it.
#[derive(Clone, Debug)]
pub struct Names {
    instrs: NameSet,
    computations: NameSet,
}

/// Names that are taken, and the next number to try for each base.
#[derive(Clone, Debug, Default)]
struct NameSet {
    taken: IndexSet<String, FxBuildHasher>,
    next: IndexMap<String, u64, FxBuildHasher>,
}

impl Names {
    /// The names of `module`. O(instructions).
    pub fn new(module: &Module) -> Self {
        Self {
            instrs: NameSet::new(module.instrs.values().map(|i| module.str(i.name))),
            computations: NameSet::new(module.computations.values().map(|c| module.str(c.name))),
        }
    }

    /// A new instruction name: `base`, or `base.1`, `base.2`, ...
    ///
    /// A number at the end of `base` is not kept: `copy.3` gives `copy.N`.
    pub fn instruction(&mut self, strings: &mut StringPool, base: &str) -> Str {
        strings.push(&self.instrs.fresh(base))
    }

    /// A new computation name, as [`instruction`](Self::instruction) makes them.
    pub fn computation(&mut self, strings: &mut StringPool, base: &str) -> Str {
        strings.push(&self.computations.fresh(base))
    }
}

impl NameSet {
    fn new<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        Self {
            taken: names.map(str::to_owned).collect(),
            next: IndexMap::default(),
        }
    }

    fn fresh(&mut self, base: &str) -> String {
        let stem = match base.rsplit_once('.') {
            Some((stem, number)) if number.bytes().all(|b| b.is_ascii_digit()) => stem,
            _ => base,
        };
        let next = self.next.entry(stem.to_owned()).or_insert(0);
        loop {
            let name = match *next {
                0 => stem.to_owned(),
                n => format!("{stem}.{n}"),
            };
            *next += 1;
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

impl Instr {
    /// An instruction without attributes, for [`Module::insert_instruction_before`] and the like.
    pub fn new(
        name: Str,
        opcode: Opcode,
        shape: ShapeId,
        computation: CompId,
        operands: &[InstrId],
    ) -> Self {
        Self {
            name,
            opcode,
            shape,
            computation,
            operands: operands.into(),
            payload: Payload::None,
            attrs: Vec::new(),
        }
    }
}

impl Module {
    /// Puts `instr` into the order of its computation right before `anchor`. O(instructions of the
    /// computation); use [`place`](Self::place) for many at once.
    ///
    /// # Panics
    /// If `anchor` is not in the order of `instr.computation`.
    pub fn insert_instruction_before(&mut self, anchor: InstrId, instr: Instr) -> InstrId {
        self.insert_at(anchor, 0, instr)
    }

    /// Puts `instr` into the order of its computation right after `anchor`. O(instructions of the
    /// computation); use [`place`](Self::place) for many at once.
    ///
    /// # Panics
    /// If `anchor` is not in the order of `instr.computation`.
    pub fn insert_instruction_after(&mut self, anchor: InstrId, instr: Instr) -> InstrId {
        self.insert_at(anchor, 1, instr)
    }

    fn insert_at(&mut self, anchor: InstrId, offset: usize, instr: Instr) -> InstrId {
        let order = &mut self.computations[instr.computation].instrs;
        let at = order
            .iter()
            .position(|&i| i == anchor)
            .expect("the anchor is in the computation");
        let id = self.instrs.push(instr);
        order.insert(at + offset, id);
        id
    }

    /// Puts `instr` at the end of its computation. O(1).
    pub fn append_instruction(&mut self, instr: Instr) -> InstrId {
        let comp = instr.computation;
        let id = self.instrs.push(instr);
        self.computations[comp].instrs.push(id);
        id
    }

    /// Gives new instructions of the arena (`self.instrs.push`) their places, in one pass.
    ///
    /// Several on one side of one anchor stand in the order of `placements`.
    /// O(instructions + placements), whatever their number.
    ///
    /// # Panics
    /// If an anchor is itself not in the order of the computation of its `instr`.
    pub fn place(&mut self, placements: &[Placement]) {
        let mut around: IndexMap<InstrId, [Vec<InstrId>; 2], FxBuildHasher> = IndexMap::default();
        let mut touched: Vec<CompId> = Vec::new();
        for p in placements {
            let sides = around.entry(p.anchor).or_default();
            sides[usize::from(p.side == Side::After)].push(p.instr);
            touched.push(self.instrs[p.instr].computation);
        }
        touched.sort_unstable();
        touched.dedup();
        let mut placed = 0;
        for comp in touched {
            let old = std::mem::take(&mut self.computations[comp].instrs);
            let mut new = Vec::with_capacity(old.len() + placements.len());
            for instr in old {
                let Some([before, after]) = around.get(&instr) else {
                    new.push(instr);
                    continue;
                };
                placed += before.len() + after.len();
                new.extend_from_slice(before);
                new.push(instr);
                new.extend_from_slice(after);
            }
            self.computations[comp].instrs = new;
        }
        assert_eq!(
            placed,
            placements.len(),
            "every anchor is in the order of its computation"
        );
    }

    /// Makes `user` take `new` wherever it takes `old` as an operand.
    pub fn replace_operand(&mut self, user: InstrId, old: InstrId, new: InstrId) {
        for operand in &mut self.instrs[user].operands {
            if *operand == old {
                *operand = new;
            }
        }
    }

    /// Makes every user of `old` in its computation take `new` instead, and the computation
    /// return it where it returned `old`; `new` itself keeps `old` as its operand.
    ///
    /// O(instructions of the computation); with the users at hand, call
    /// [`replace_operand`](Self::replace_operand) for each.
    pub fn replace_uses(&mut self, old: InstrId, new: InstrId) {
        let comp = self.instrs[old].computation;
        for i in 0..self.computations[comp].instrs.len() {
            let user = self.computations[comp].instrs[i];
            if user != new {
                self.replace_operand(user, old, new);
            }
        }
        let root = &mut self.computations[comp].root;
        if *root == old {
            *root = new;
        }
    }

    /// Makes `caller` name `new` wherever one of its attributes names computation `old`.
    pub fn replace_called_computation(&mut self, caller: InstrId, old: CompId, new: CompId) {
        for attr in &mut self.instrs[caller].attrs {
            let named = match &mut attr.value {
                AttrValue::Comp(c) => std::slice::from_mut(c),
                AttrValue::Comps(c) => c,
                _ => continue,
            };
            for comp in named.iter_mut().filter(|c| **c == old) {
                *comp = new;
            }
        }
    }

    /// Forgets instructions that no computation lists; the others get new ids, in the same order.
    ///
    /// Nothing listed may refer to what is forgotten. O(instructions).
    pub fn remove_unlisted(&mut self) {
        let mut listed = SecondaryMap::filled(self.instrs.len(), false);
        for comp in self.computations.values() {
            for &i in &comp.instrs {
                listed[i] = true;
            }
        }
        let mut new_id = SecondaryMap::filled(self.instrs.len(), InstrId::from_index(0));
        let mut kept = PrimaryMap::new();
        for (id, instr) in self.instrs.iter().filter(|(id, _)| listed[*id]) {
            new_id[id] = kept.push(instr.clone());
        }
        for instr in kept.values_mut() {
            for operand in &mut instr.operands {
                *operand = new_id[*operand];
            }
            for attr in &mut instr.attrs {
                if let AttrValue::Instrs(predecessors) = &mut attr.value {
                    for p in predecessors {
                        *p = new_id[*p];
                    }
                }
            }
        }
        self.instrs = kept;
        for comp in self.computations.values_mut() {
            for i in comp.instrs.iter_mut().chain(&mut comp.params) {
                *i = new_id[*i];
            }
            comp.root = new_id[comp.root];
        }
    }

    /// A copy of `comp` with new names. Its instructions are in the same order as the original's,
    /// so entry `i` of one is the copy of entry `i` of the other.
    ///
    /// Computations it calls are shared with the original, not copied. O(instructions of `comp`).
    pub fn clone_computation(&mut self, comp: CompId, names: &mut Names) -> CompId {
        let original = self.computations[comp].clone();
        let base = format!("{}.clone", self.str(original.name));
        let name = names.computation(&mut self.strings, &base);
        let id = self.computations.push(Computation {
            name,
            ..original.clone()
        });
        let mut copy_of: IndexMap<InstrId, InstrId, FxBuildHasher> = IndexMap::default();
        for &instr in &original.instrs {
            let mut copy = self.instrs[instr].clone();
            let base = format!("{}.clone", self.str(copy.name));
            copy.name = names.instruction(&mut self.strings, &base);
            copy.computation = id;
            for operand in &mut copy.operands {
                *operand = copy_of[&*operand];
            }
            for attr in &mut copy.attrs {
                if let AttrValue::Instrs(predecessors) = &mut attr.value {
                    for p in predecessors {
                        *p = copy_of[&*p];
                    }
                }
            }
            copy_of.insert(instr, self.instrs.push(copy));
        }
        let comp = &mut self.computations[id];
        comp.instrs = original.instrs.iter().map(|i| copy_of[i]).collect();
        comp.params = original.params.iter().map(|i| copy_of[i]).collect();
        comp.root = copy_of[&original.root];
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{parse, print};

    const SOURCE: &str = "\
HloModule m, is_scheduled=true

%inner (a: f32[2]) -> f32[2] {
  %a = f32[2]{0} parameter(0)
  %n.7 = f32[2]{0} negate(%a)
  ROOT %m = f32[2]{0} negate(%n.7), control-predecessors={%a}
}

ENTRY %main (p: f32[2]) -> f32[2] {
  %p = f32[2]{0} parameter(0)
  %c.1 = f32[2]{0} call(%p), to_apply=%inner
  ROOT %c.2 = f32[2]{0} call(%c.1), to_apply=%inner
}

";

    fn module() -> Module {
        parse(SOURCE).into_result().unwrap()
    }

    fn find(module: &Module, name: &str) -> InstrId {
        let found = module.instrs.keys().find(|&i| module.name_of(i) == name);
        found.unwrap()
    }

    #[test]
    fn new_names_are_unique_and_drop_old_numbers() {
        let mut m = module();
        let mut names = Names::new(&m);
        let mut fresh = |base: &str| {
            let name = names.instruction(&mut m.strings, base);
            m.str(name).to_owned()
        };
        // `c.1` and `c.2` are taken, `c` is not.
        assert_eq!(fresh("c.2"), "c");
        assert_eq!(fresh("c"), "c.3");
        assert_eq!(fresh("c.9"), "c.4");
        assert_eq!(fresh("p"), "p.1");
        assert_eq!(fresh("copy"), "copy");
        assert_eq!(fresh("copy"), "copy.1");
    }

    #[test]
    fn a_copy_before_its_user() {
        let mut m = module();
        let mut names = Names::new(&m);
        let (p, user) = (find(&m, "p"), find(&m, "c.1"));
        let name = names.instruction(&mut m.strings, "copy");
        let copy = Instr::new(name, Opcode::Copy, m.instrs[p].shape, m.entry, &[p]);
        let copy = m.insert_instruction_before(user, copy);
        m.replace_operand(user, p, copy);
        assert_eq!(
            print(&m),
            SOURCE
                .replace("  %c.1 =", "  %copy = f32[2]{0} copy(%p)\n  %c.1 =")
                .replace("call(%p)", "call(%copy)")
        );
    }

    #[test]
    fn replacing_all_uses_keeps_the_new_instructions_operand() {
        let mut m = module();
        let mut names = Names::new(&m);
        let root = find(&m, "c.2");
        let name = names.instruction(&mut m.strings, "copy");
        let copy = Instr::new(name, Opcode::Copy, m.instrs[root].shape, m.entry, &[root]);
        let copy = m.insert_instruction_after(root, copy);
        m.replace_uses(root, copy);
        assert_eq!(
            print(&m),
            SOURCE.replace(
                "  ROOT %c.2 = f32[2]{0} call(%c.1), to_apply=%inner\n",
                "  %c.2 = f32[2]{0} call(%c.1), to_apply=%inner\n  ROOT %copy = f32[2]{0} copy(%c.2)\n"
            )
        );
    }

    #[test]
    fn what_is_not_listed_is_forgotten() {
        let mut m = module();
        let mut names = Names::new(&m);
        let p = find(&m, "p");
        let shape = m.instrs[p].shape;
        let name = names.instruction(&mut m.strings, "unused");
        let unused = Instr::new(name, Opcode::Copy, shape, m.entry, &[p]);
        let unused = m.instrs.push(unused);
        let (before, text) = (m.instrs.len(), print(&m));
        m.remove_unlisted();
        assert_eq!(m.instrs.len(), before - 1);
        assert!(m.instrs.keys().all(|i| m.name_of(i) != "unused"));
        assert_eq!(print(&m), text);
        assert_eq!(unused.index(), before - 1);
    }

    #[test]
    fn many_placements_at_once() {
        let mut m = module();
        let (p, c2) = (find(&m, "p"), find(&m, "c.2"));
        let shape = m.instrs[p].shape;
        let mut names = Names::new(&m);
        let mut copies = Vec::new();
        for _ in 0..3 {
            let name = names.instruction(&mut m.strings, "copy");
            copies.push(
                m.instrs
                    .push(Instr::new(name, Opcode::Copy, shape, m.entry, &[p])),
            );
        }
        let at = |instr, side, anchor| Placement {
            instr,
            side,
            anchor,
        };
        m.place(&[
            at(copies[0], Side::Before, c2),
            at(copies[1], Side::After, p),
            at(copies[2], Side::Before, c2),
        ]);
        let order: Vec<&str> = m.entry().instrs.iter().map(|&i| m.name_of(i)).collect();
        assert_eq!(order, ["p", "copy.1", "c.1", "copy", "copy.2", "c.2"]);
    }

    #[test]
    fn a_cloned_computation_is_the_same_under_other_names() {
        let mut m = module();
        let mut names = Names::new(&m);
        let inner = m.instrs[find(&m, "c.1")].called_computations().next();
        let inner = inner.unwrap();
        let clone = m.clone_computation(inner, &mut names);
        let caller = find(&m, "c.2");
        m.replace_called_computation(caller, inner, clone);
        let expected = "\
%inner.clone (a.clone: f32[2]) -> f32[2] {
  %a.clone = f32[2]{0} parameter(0)
  %n.7.clone = f32[2]{0} negate(%a.clone)
  ROOT %m.clone = f32[2]{0} negate(%n.7.clone), control-predecessors={%a.clone}
}

";
        let text = print(&m);
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("%c.2 = f32[2]{0} call(%c.1), to_apply=%inner.clone\n"));
        // The clone is defined before its caller although it is the youngest.
        assert!(parse(&text).module.is_some());
    }
}
