//! Puts copies into a module: the part of a value that is handed over somewhere is replaced by a copy.
//!
//! A part of a tuple is reached by rebuilding the tuple around the copy: a `tuple` instruction gets
//! the copy as its operand; of any other tuple the elements are taken out and put together again.

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

use slabplan_ir::attr::{Attr, AttrName, AttrValue};
use slabplan_ir::edit::Names;
use slabplan_ir::instr::Instr;
use slabplan_ir::plan::InsertedCopy;
use slabplan_ir::{CompId, InstrId, Module, Opcode, ShapeId};

use crate::copies::Wanted;

/// A place at which a value is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Site {
    /// To `instr`, as this operand; copies stand right before it.
    Operand {
        /// The instruction.
        instr: InstrId,
        /// Operand number.
        operand: u32,
    },
    /// To the caller of a computation; copies stand at its end.
    Root(CompId),
}

/// Collects new instructions and puts all of them into their computations at the end.
pub(crate) struct Edits<'a> {
    module: &'a mut Module,
    names: &'a mut Names,
    before: IndexMap<InstrId, Vec<InstrId>, FxBuildHasher>,
    at_end: IndexMap<CompId, Vec<InstrId>, FxBuildHasher>,
    inserted: Vec<InsertedCopy>,
    /// Tuples that another one stands in for.
    replaced: Vec<InstrId>,
}

impl<'a> Edits<'a> {
    pub(crate) fn new(module: &'a mut Module, names: &'a mut Names) -> Self {
        Self {
            module,
            names,
            before: IndexMap::default(),
            at_end: IndexMap::default(),
            inserted: Vec::new(),
            replaced: Vec::new(),
        }
    }

    /// Inserts all `wanted` copies. O(instructions of the computations concerned + copies · tuple width).
    pub(crate) fn insert(mut self, wanted: &[Wanted]) -> Vec<InsertedCopy> {
        let mut by_site: IndexMap<Site, Vec<&Wanted>, FxBuildHasher> = IndexMap::default();
        for w in wanted {
            by_site.entry(w.site).or_default().push(w);
        }
        for (site, copies) in by_site {
            let parts: Vec<Part<'_>> = copies
                .iter()
                .map(|w| Part {
                    index: &w.index,
                    wanted: w,
                })
                .collect();
            match site {
                Site::Operand { instr, operand } => {
                    let old = self.module.instrs[instr].operands[operand as usize];
                    let new = self.with_copies(site, old, &parts);
                    self.module.instrs[instr].operands[operand as usize] = new;
                }
                Site::Root(comp) => {
                    let old = self.module.computations[comp].root;
                    self.module.computations[comp].root = self.with_copies(site, old, &parts);
                }
            }
        }
        self.place();
        self.inserted
    }

    /// A new instruction equal to `original` with the `parts` replaced by copies.
    fn with_copies(&mut self, site: Site, original: InstrId, parts: &[Part<'_>]) -> InstrId {
        if let Some(part) = parts.iter().find(|p| p.index.is_empty()) {
            return self.copy(site, original, part.wanted);
        }
        self.replaced.push(original);
        let width = self
            .module
            .shapes
            .tuple(self.module.instrs[original].shape)
            .map_or(0, <[ShapeId]>::len);
        let mut elements: SmallVec<[InstrId; 3]> = SmallVec::with_capacity(width);
        for k in 0..width as u32 {
            let of_element: Vec<Part<'_>> = parts
                .iter()
                .filter(|p| p.index[0] == k)
                .map(|p| Part {
                    index: &p.index[1..],
                    wanted: p.wanted,
                })
                .collect();
            let element = self.element(site, original, k);
            elements.push(if of_element.is_empty() {
                element
            } else {
                self.with_copies(site, element, &of_element)
            });
        }
        let shapes: Vec<ShapeId> = elements
            .iter()
            .map(|&e| self.module.instrs[e].shape)
            .collect();
        let shape = self.module.shapes.intern_tuple(&shapes);
        self.push(site, "tuple", Opcode::Tuple, shape, &elements)
    }

    fn element(&mut self, site: Site, tuple: InstrId, k: u32) -> InstrId {
        let i = &self.module.instrs[tuple];
        if i.opcode == Opcode::Tuple {
            return i.operands[k as usize];
        }
        let shape = self.module.shapes.subshape(i.shape, &[k]);
        let shape = shape.expect("the element exists");
        let id = self.push(
            site,
            "get-tuple-element",
            Opcode::GetTupleElement,
            shape,
            &[tuple],
        );
        self.module.instrs[id].attrs.push(Attr {
            name: AttrName::Index,
            value: AttrValue::Int(k.into()),
        });
        id
    }

    fn copy(&mut self, site: Site, original: InstrId, wanted: &Wanted) -> InstrId {
        let shape = wanted.shape.unwrap_or(self.module.instrs[original].shape);
        if self.reads_next_to_nothing(original) {
            return self.computed_again(site, original, shape);
        }
        let instr = self.push(site, "copy", Opcode::Copy, shape, &[original]);
        self.inserted.push(InsertedCopy {
            instr,
            cause: wanted.cause.clone(),
        });
        instr
    }

    /// Whether computing an array again is cheaper than copying it.
    fn reads_next_to_nothing(&self, instr: InstrId) -> bool {
        let i = &self.module.instrs[instr];
        let of_scalar = || {
            let operand = self.module.instrs[i.operands[0]].shape;
            self.module
                .shapes
                .array(operand)
                .is_some_and(|a| a.rank() == 0)
        };
        match i.opcode {
            Opcode::Iota => true,
            Opcode::Broadcast => of_scalar(),
            _ => false,
        }
    }

    fn computed_again(&mut self, site: Site, original: InstrId, shape: ShapeId) -> InstrId {
        let Instr {
            opcode,
            operands,
            attrs,
            ..
        } = self.module.instrs[original].clone();
        let again = self.push(site, opcode.name(), opcode, shape, &operands);
        self.module.instrs[again].attrs = attrs;
        again
    }

    fn push(
        &mut self,
        site: Site,
        name: &str,
        opcode: Opcode,
        shape: ShapeId,
        operands: &[InstrId],
    ) -> InstrId {
        let comp = match site {
            Site::Operand { instr, .. } => self.module.instrs[instr].computation,
            Site::Root(comp) => comp,
        };
        let name = self.names.instruction(&mut self.module.strings, name);
        let id = self
            .module
            .instrs
            .push(Instr::new(name, opcode, shape, comp, operands));
        match site {
            Site::Operand { instr, .. } => self.before.entry(instr).or_default().push(id),
            Site::Root(comp) => self.at_end.entry(comp).or_default().push(id),
        }
        id
    }

    /// The control predecessors in `comp`, ascending.
    fn waited_for(&self, comp: CompId) -> Vec<InstrId> {
        let instrs = self.module.computations[comp].instrs.iter();
        let predecessors =
            instrs.flat_map(|&i| self.module.instrs[i].control_predecessors().iter().copied());
        let mut found: Vec<InstrId> = predecessors.collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Puts the new instructions into the orders of their computations, and drops tuples that nobody
    /// takes any more.
    fn place(&mut self) {
        let mut touched: Vec<CompId> = self.at_end.keys().copied().collect();
        touched.extend(
            self.before
                .keys()
                .map(|&i| self.module.instrs[i].computation),
        );
        touched.sort_unstable();
        touched.dedup();
        let users = self.module.users();
        self.replaced.sort_unstable();
        let replaced = std::mem::take(&mut self.replaced);
        for comp in touched {
            let root = self.module.computations[comp].root;
            let waited_for = self.waited_for(comp);
            let is_dropped = |module: &Module, i: InstrId| {
                let instr = &module.instrs[i];
                instr.opcode == Opcode::Tuple
                    && i != root
                    && users.of(i).is_empty()
                    && waited_for.binary_search(&i).is_err()
            };

            let old = std::mem::take(&mut self.module.computations[comp].instrs);
            let mut new = Vec::with_capacity(old.len() + 8);
            for instr in old {
                new.extend(self.before.swap_remove(&instr).unwrap_or_default());
                if !(replaced.binary_search(&instr).is_ok() && is_dropped(self.module, instr)) {
                    new.push(instr);
                }
            }
            new.extend(self.at_end.swap_remove(&comp).unwrap_or_default());
            self.module.computations[comp].instrs = new;
        }
    }
}

/// A part to copy, its index relative to the instruction at hand.
struct Part<'w> {
    index: &'w [u32],
    wanted: &'w Wanted,
}
