//! From chosen nodes back to instructions.

use std::collections::BTreeMap;

use egg::Id;
use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxBuildHasher;

use slabplan_ir::attr::{Attr, AttrName, AttrValue, PaddingDim, SliceDim};
use slabplan_ir::edit::Names;
use slabplan_ir::{ArrayShape, CompId, Instr, InstrId, Module, Opcode};

use super::extract::Choice;
use super::lang::{Node, Op};
use super::region::{Lowered, Region, without_metadata};

/// A region and what was chosen for it.
pub(super) struct Chosen<'a> {
    pub(super) region: &'a Region,
    pub(super) lowered: &'a Lowered,
    pub(super) choice: &'a Choice,
}

/// Writes the chosen forms of regions of `comp` into the module; false, and the module unusable, if
/// they can't be put in an order.
///
/// An instruction whose node was chosen stays, with its name; new ones take the metadata of an
/// instruction that had the same value, or of the one they were made for.
pub(super) fn raise(
    module: &mut Module,
    comp: CompId,
    chosen: &[Chosen<'_>],
    names: &mut Names,
) -> bool {
    let mut rank: IndexMap<InstrId, u32, FxBuildHasher> = IndexMap::default();
    for (n, &i) in module.computations[comp].instrs.iter().enumerate() {
        rank.insert(i, n as u32);
    }
    let mut replaced: BTreeMap<InstrId, InstrId> = BTreeMap::new();
    let mut old: IndexSet<InstrId, FxBuildHasher> = IndexSet::default();
    for c in chosen {
        old.extend(&c.region.instrs);
        let mut writer = Writer {
            module,
            comp,
            chosen: c,
            names,
            rank: &mut rank,
            made: BTreeMap::new(),
            originals: BTreeMap::new(),
        };
        writer.find_originals();
        for &root in &c.region.roots {
            let new = writer.write(root);
            if new != root {
                replaced.insert(root, new);
            }
        }
    }
    rename_uses(module, comp, &rank, &replaced);
    order(module, comp, &rank, &old)
}

struct Writer<'a, 'm> {
    module: &'m mut Module,
    comp: CompId,
    chosen: &'a Chosen<'a>,
    names: &'m mut Names,
    /// Place of every instruction, old and new, in the computation.
    rank: &'m mut IndexMap<InstrId, u32, FxBuildHasher>,
    made: BTreeMap<Id, InstrId>,
    /// Instructions of the region with this value, in order.
    originals: BTreeMap<Id, Vec<InstrId>>,
}

impl Writer<'_, '_> {
    fn find_originals(&mut self) {
        for (&instr, &id) in &self.chosen.lowered.class_of {
            let class = self.chosen.lowered.graph.find(id);
            self.originals.entry(class).or_default().push(instr);
        }
    }

    /// The instruction of `root`'s class, made with all it needs.
    fn write(&mut self, root: InstrId) -> InstrId {
        let graph = &self.chosen.lowered.graph;
        let class = graph.find(self.chosen.lowered.class_of[&root]);
        let mut stack = vec![(class, false)];
        while let Some((class, ready)) = stack.pop() {
            if self.made.contains_key(&class) {
                continue;
            }
            let node = &self.chosen.choice[&class];
            if ready {
                let instr = self.instruction(class, node, root);
                self.made.insert(class, instr);
            } else {
                stack.push((class, true));
                stack.extend(node.children.iter().map(|&c| (graph.find(c), false)));
            }
        }
        self.made[&class]
    }

    fn instruction(&mut self, class: Id, node: &Node, root: InstrId) -> InstrId {
        let graph = &self.chosen.lowered.graph;
        if let Op::Leaf(n) = node.op {
            return graph.analysis.leaves[n as usize].instr;
        }
        let operands: Vec<InstrId> = node
            .children
            .iter()
            .map(|&c| self.made[&graph.find(c)])
            .collect();
        let originals = self.originals.get(&class).map_or(&[][..], Vec::as_slice);
        let kept = originals.iter().copied().find(|&o| self.is_node(o, node));
        if let Some(kept) = kept {
            self.module.instrs[kept].operands = operands.into_iter().collect();
            return kept;
        }
        let like = originals.first().copied().unwrap_or(root);
        let instr = self.new_instruction(class, node, &operands, like);
        let place = self.rank[&root];
        self.rank.insert(instr, place);
        instr
    }

    /// Whether instruction `original` is this very node.
    fn is_node(&self, original: InstrId, node: &Node) -> bool {
        let lowered = self.chosen.lowered;
        let before = lowered.nodes_before.get(&original);
        before.is_some_and(|(op, children)| {
            *op == node.op
                && children.len() == node.children.len()
                && children
                    .iter()
                    .zip(&node.children)
                    .all(|(&a, &b)| lowered.graph.find(a) == lowered.graph.find(b))
        })
    }

    fn new_instruction(
        &mut self,
        class: Id,
        node: &Node,
        operands: &[InstrId],
        like: InstrId,
    ) -> InstrId {
        let graph = &self.chosen.lowered.graph;
        let facts = &graph[class].data;
        let shape = ArrayShape::new(facts.element, &facts.dims);
        let shape = self.module.shapes.intern_array(shape);
        let (opcode, attrs) = self.spelled(node);
        let metadata = &self.module.instrs[like].attrs;
        let metadata = metadata.iter().find(|a| a.name == AttrName::Metadata);
        let metadata = metadata.cloned();
        let name = self
            .names
            .instruction(&mut self.module.strings, opcode.name());
        let mut instr = Instr::new(name, opcode, shape, self.comp, operands);
        instr.attrs = attrs;
        instr.attrs.extend(metadata);
        self.module.instrs.push(instr)
    }

    /// Opcode and attributes of a node.
    fn spelled(&self, node: &Node) -> (Opcode, Vec<Attr>) {
        let tables = &self.chosen.lowered.graph.analysis;
        let dimensions = |d: &[u64]| {
            let value = AttrValue::Ints(d.iter().map(|&d| d as i64).collect());
            attr(AttrName::Dimensions, value)
        };
        match &node.op {
            Op::Leaf(_) => unreachable!("a leaf has its instruction"),
            Op::Elementwise(n) => {
                let like = &self.module.instrs[tables.elementwise[*n as usize].like];
                (like.opcode, without_metadata(like).cloned().collect())
            }
            Op::Convert(_) => (Opcode::Convert, Vec::new()),
            Op::Broadcast { map, .. } => (Opcode::Broadcast, vec![dimensions(map)]),
            Op::Reshape(_) => (Opcode::Reshape, Vec::new()),
            Op::Transpose(p) => (Opcode::Transpose, vec![dimensions(p)]),
            Op::Concatenate(d) => (Opcode::Concatenate, vec![dimensions(&[*d])]),
            Op::Slice(bounds) => {
                let dim = |&(start, limit, stride): &(u64, u64, u64)| SliceDim {
                    start: start as i64,
                    limit: limit as i64,
                    stride: stride as i64,
                };
                let value = AttrValue::Slice(bounds.iter().map(dim).collect());
                (Opcode::Slice, vec![attr(AttrName::Slice, value)])
            }
            Op::Pad(padding) => {
                let dim = |&(low, high, interior): &(i64, i64, i64)| PaddingDim {
                    low,
                    high,
                    interior,
                };
                let value = AttrValue::Padding(padding.iter().map(dim).collect());
                (Opcode::Pad, vec![attr(AttrName::Padding, value)])
            }
            Op::Reduce { dims, by } => {
                let like = &self.module.instrs[tables.reducers[*by as usize].like];
                let rest = without_metadata(like).filter(|a| a.name != AttrName::Dimensions);
                let mut attrs = vec![dimensions(dims)];
                attrs.extend(rest.cloned());
                (Opcode::Reduce, attrs)
            }
        }
    }
}

fn attr(name: AttrName, value: AttrValue) -> Attr {
    Attr { name, value }
}

/// Makes every instruction of the computation use what replaced its operands.
fn rename_uses(
    module: &mut Module,
    comp: CompId,
    rank: &IndexMap<InstrId, u32, FxBuildHasher>,
    replaced: &BTreeMap<InstrId, InstrId>,
) {
    let end = |mut i: InstrId| {
        // What replaces a root may be a root of another region that is replaced, too.
        for _ in 0..=replaced.len() {
            match replaced.get(&i) {
                Some(&next) => i = next,
                None => break,
            }
        }
        i
    };
    for &user in rank.keys() {
        for operand in &mut module.instrs[user].operands {
            *operand = end(*operand);
        }
    }
    let root = &mut module.computations[comp].root;
    *root = end(*root);
}

/// Lists what is needed, operands first and otherwise by place; false if there is a circle.
///
/// Instructions of `old` and scalar constants that nobody uses any more are left out.
fn order(
    module: &mut Module,
    comp: CompId,
    rank: &IndexMap<InstrId, u32, FxBuildHasher>,
    old: &IndexSet<InstrId, FxBuildHasher>,
) -> bool {
    let root = module.computations[comp].root;
    let stays = |i: InstrId| {
        let listed = module.computations[comp].instrs.len() as u32;
        let is_new = rank.get_index_of(&i).is_some_and(|n| n as u32 >= listed);
        i == root || !(is_new || old.contains(&i) || module.instrs[i].opcode == Opcode::Constant)
    };
    let mut needed: IndexSet<InstrId, FxBuildHasher> = IndexSet::default();
    let mut stack: Vec<InstrId> = rank.keys().copied().filter(|&i| stays(i)).collect();
    while let Some(i) = stack.pop() {
        if needed.insert(i) {
            let before = module.instrs[i].control_predecessors().iter();
            stack.extend(module.instrs[i].operands.iter().chain(before).copied());
        }
    }
    let mut waits: IndexMap<InstrId, usize, FxBuildHasher> = IndexMap::default();
    let mut users: IndexMap<InstrId, Vec<InstrId>, FxBuildHasher> = IndexMap::default();
    for &i in &needed {
        let before: IndexSet<InstrId, FxBuildHasher> = module.instrs[i]
            .operands
            .iter()
            .chain(module.instrs[i].control_predecessors())
            .copied()
            .collect();
        waits.insert(i, before.len());
        for b in before {
            users.entry(b).or_default().push(i);
        }
    }
    let key = |i: InstrId| (rank.get(&i).copied().unwrap_or(u32::MAX), i);
    let mut ready: std::collections::BTreeSet<(u32, InstrId)> = waits
        .iter()
        .filter(|(_, n)| **n == 0)
        .map(|(&i, _)| key(i))
        .collect();
    let mut listed = Vec::with_capacity(needed.len());
    while let Some((_, i)) = ready.pop_first() {
        listed.push(i);
        for &u in users.get(&i).map_or(&[][..], Vec::as_slice) {
            let n = &mut waits[&u];
            *n -= 1;
            if *n == 0 {
                ready.insert(key(u));
            }
        }
    }
    let complete = listed.len() == needed.len();
    module.computations[comp].instrs = listed;
    complete
}
