//! Cuts a computation into regions of the language, and lowers a region to an e-graph.

use indexmap::{IndexMap, IndexSet};
use petgraph::unionfind::UnionFind;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

use egg::Id;

use slabplan_ir::attr::{Attr, AttrName};
use slabplan_ir::{ArrayShape, CompId, ElementType, Instr, InstrId, Module, Opcode, Payload};

use super::extract::Choice;
use super::lang::{Dims, Elementwise, Facts, Graph, Leaf, Node, Op, Reducer, Tables};

/// Instructions of one computation that are rewritten together.
#[derive(Clone, Debug)]
pub(super) struct Region {
    /// In the order of the computation.
    pub(super) instrs: Vec<InstrId>,
    /// Those whose value is used outside the region.
    pub(super) roots: Vec<InstrId>,
}

/// A region as an e-graph.
pub(super) struct Lowered {
    pub(super) graph: Graph,
    pub(super) class_of: IndexMap<InstrId, Id, FxBuildHasher>,
    /// What each instruction of the region is, with the ids its operands had at first.
    pub(super) nodes_before: IndexMap<InstrId, (Op, SmallVec<[Id; 2]>), FxBuildHasher>,
}

/// The regions of `comp`, none of more than `most` instructions. Near-linear.
pub(super) fn regions(module: &Module, comp: CompId, most: usize) -> Vec<Region> {
    let computation = &module.computations[comp];
    let awaited: IndexSet<InstrId, FxBuildHasher> = computation
        .instrs
        .iter()
        .flat_map(|&i| module.instrs[i].control_predecessors().iter().copied())
        .collect();
    let number: IndexMap<InstrId, usize, FxBuildHasher> = computation
        .instrs
        .iter()
        .filter(|&&i| !awaited.contains(&i) && is_in_language(module, i))
        .enumerate()
        .map(|(n, &i)| (i, n))
        .collect();
    let mut sets = UnionFind::<usize>::new(number.len());
    let mut size = vec![1usize; number.len()];
    for (&i, &n) in &number {
        for o in &module.instrs[i].operands {
            let Some(&m) = number.get(o) else {
                continue;
            };
            let (a, b) = (sets.find(n), sets.find(m));
            if a != b && size[a] + size[b] <= most {
                let total = size[a] + size[b];
                sets.union(a, b);
                size[sets.find(a)] = total;
            }
        }
    }
    let mut used_outside: IndexSet<InstrId, FxBuildHasher> =
        [computation.root].into_iter().collect();
    for &user in &computation.instrs {
        let own = number.get(&user).map(|&n| sets.find(n));
        for &o in &module.instrs[user].operands {
            if number.get(&o).map(|&n| sets.find(n)) != own {
                used_outside.insert(o);
            }
        }
    }
    let mut regions: IndexMap<usize, Region, FxBuildHasher> = IndexMap::default();
    for (&i, &n) in &number {
        let region = regions.entry(sets.find(n)).or_insert_with(|| Region {
            instrs: Vec::new(),
            roots: Vec::new(),
        });
        region.instrs.push(i);
        if used_outside.contains(&i) {
            region.roots.push(i);
        }
    }
    // One instruction alone is its own best form, but for what changes nothing.
    regions
        .into_values()
        .filter(|r| !r.roots.is_empty())
        .collect()
}

/// Whether the language has `instr`: it computes an ordinary array in HBM from such arrays alone.
fn is_in_language(module: &Module, instr: InstrId) -> bool {
    use Opcode as O;
    let i = &module.instrs[instr];
    let known = i.attrs.iter().all(|a| {
        !matches!(
            a.name,
            AttrName::Sharding
                | AttrName::FrontendAttributes
                | AttrName::BackendConfig
                | AttrName::ControlPredecessors
        )
    });
    if !known || !is_plain(module, instr) || !i.operands.iter().all(|&o| is_plain(module, o)) {
        return false;
    }
    let array = |i: InstrId| module.shapes.array(module.instrs[i].shape);
    let dims = |i: InstrId| array(i).map(|a| &a.dims);
    match i.opcode {
        O::Broadcast | O::Reshape | O::Transpose | O::Slice | O::Concatenate => {
            !i.operands.is_empty()
        }
        O::Pad => true,
        O::Reduce => i.operands.len() == 2 && i.comp(AttrName::ToApply).is_some(),
        op => {
            op.is_elementwise()
                && !i.operands.is_empty()
                && i.operands.iter().all(|&o| dims(o) == dims(instr))
        }
    }
}

/// An array without dynamic dimensions whose layout says nothing.
fn is_plain(module: &Module, instr: InstrId) -> bool {
    let array = module.shapes.array(module.instrs[instr].shape);
    array.is_some_and(|a| {
        let layout = a.layout.as_ref();
        a.dynamic == 0
            && !a.dims.contains(&0)
            && layout.is_none_or(|l| l.is_plain() && l.is_descending())
    })
}

/// The e-graph of a region before any rule.
pub(super) fn lower(module: &Module, region: &Region) -> Lowered {
    let mut lowered = Lowered {
        graph: Graph::new(Tables::default()),
        class_of: IndexMap::default(),
        nodes_before: IndexMap::default(),
    };
    for &i in &region.instrs {
        let children: SmallVec<[Id; 2]> = module.instrs[i]
            .operands
            .iter()
            .map(|&o| lowered.operand(module, o))
            .collect();
        let op = operation(module, i, &mut lowered.graph.analysis);
        lowered
            .nodes_before
            .insert(i, (op.clone(), children.clone()));
        let id = lowered.graph.add(Node { op, children });
        lowered.class_of.insert(i, id);
    }
    lowered.graph.rebuild();
    lowered
}

impl Lowered {
    /// The nodes that the region had, by class; of several equal values the first.
    pub(super) fn original(&self, region: &Region) -> Choice {
        let mut choice = Choice::new();
        for i in &region.instrs {
            let (op, children) = &self.nodes_before[i];
            let mut node = Node::new(op.clone(), children);
            for c in &mut node.children {
                *c = self.graph.find(*c);
            }
            let class = self.graph.find(self.class_of[i]);
            choice.entry(class).or_insert(node);
        }
        choice
    }

    fn operand(&mut self, module: &Module, operand: InstrId) -> Id {
        if let Some(&id) = self.class_of.get(&operand) {
            return id;
        }
        let leaf = leaf(module, operand);
        let leaves = &mut self.graph.analysis.leaves;
        let known = leaves
            .iter()
            .position(|l| l.instr == operand || is_same_constant(module, l.instr, operand));
        let number = known.unwrap_or_else(|| {
            leaves.push(leaf);
            leaves.len() - 1
        });
        // Not entered into `class_of`, which is for instructions of the region.
        self.graph.add(Node::new(Op::Leaf(number as u32), &[]))
    }
}

fn leaf(module: &Module, instr: InstrId) -> Leaf {
    let i = &module.instrs[instr];
    let facts = facts(module, instr);
    let constant = match i.payload {
        Payload::Literal(text) if facts.dims.is_empty() => number(module.str(text)),
        _ => None,
    };
    Leaf {
        instr,
        facts,
        constant,
    }
}

fn number(literal: &str) -> Option<f64> {
    match literal.trim() {
        "true" => Some(1.0),
        "false" => Some(0.0),
        text => text.parse().ok(),
    }
}

fn is_same_constant(module: &Module, a: InstrId, b: InstrId) -> bool {
    let (a, b) = (&module.instrs[a], &module.instrs[b]);
    match (a.payload, b.payload) {
        (Payload::Literal(x), Payload::Literal(y)) => {
            a.shape == b.shape
                && module.str(x) == module.str(y)
                && !slabplan_ir::literal::is_elided(module.str(x))
        }
        _ => false,
    }
}

/// Shape of the array that `instr` computes.
pub(super) fn facts(module: &Module, instr: InstrId) -> Facts {
    let array: Option<&ArrayShape> = module.shapes.array(module.instrs[instr].shape);
    Facts {
        element: array.map_or(ElementType::Pred, |a| a.element_type),
        dims: array.map_or_else(Dims::new, |a| a.dims.clone()),
    }
}

fn operation(module: &Module, instr: InstrId, tables: &mut Tables) -> Op {
    use Opcode as O;
    let i = &module.instrs[instr];
    let unsigned = |v: &[i64]| v.iter().map(|&d| d as u64).collect::<Dims>();
    let facts = facts(module, instr);
    match i.opcode {
        O::Reshape => Op::Reshape(facts.dims),
        O::Transpose => Op::Transpose(unsigned(i.ints(AttrName::Dimensions))),
        O::Broadcast => Op::Broadcast {
            dims: facts.dims,
            map: unsigned(i.ints(AttrName::Dimensions)),
        },
        O::Slice => Op::Slice(
            i.slice_dims()
                .iter()
                .map(|d| (d.start as u64, d.limit as u64, d.stride as u64))
                .collect(),
        ),
        O::Pad => Op::Pad(
            i.padding()
                .iter()
                .map(|d| (d.low, d.high, d.interior))
                .collect(),
        ),
        O::Concatenate => Op::Concatenate(i.ints(AttrName::Dimensions)[0] as u64),
        O::Convert => Op::Convert(facts.element),
        O::Reduce => {
            let mut dims = unsigned(i.ints(AttrName::Dimensions));
            dims.sort_unstable();
            let by = reducer(module, instr, &mut tables.reducers);
            Op::Reduce { dims, by }
        }
        opcode => {
            let known = tables.elementwise.iter().position(|e| {
                e.opcode == opcode
                    && e.element == facts.element
                    && without_metadata(&module.instrs[e.like]).eq(without_metadata(i))
            });
            let number = known.unwrap_or_else(|| {
                tables.elementwise.push(Elementwise {
                    opcode,
                    like: instr,
                    element: facts.element,
                });
                tables.elementwise.len() - 1
            });
            Op::Elementwise(number as u32)
        }
    }
}

/// The attributes that say what an instruction computes.
pub(super) fn without_metadata(i: &Instr) -> impl Iterator<Item = &Attr> {
    i.attrs.iter().filter(|a| a.name != AttrName::Metadata)
}

fn reducer(module: &Module, instr: InstrId, known: &mut Vec<Reducer>) -> u32 {
    let comp = |i: InstrId| module.instrs[i].comp(AttrName::ToApply);
    let opcode = comp(instr).and_then(|c| single_operation(module, c));
    let found = known.iter().position(|r| {
        comp(r.like) == comp(instr)
            || (opcode.is_some()
                && r.opcode == opcode
                && facts(module, r.like).element == facts(module, instr).element)
    });
    found.unwrap_or_else(|| {
        known.push(Reducer {
            like: instr,
            opcode,
        });
        known.len() - 1
    }) as u32
}

/// The operation of a computation that is one commutative operation on its two parameters.
fn single_operation(module: &Module, comp: CompId) -> Option<Opcode> {
    use Opcode as O;
    let computation = &module.computations[comp];
    let root = &module.instrs[computation.root];
    let known = matches!(
        root.opcode,
        O::Add | O::Multiply | O::Maximum | O::Minimum | O::And | O::Or
    );
    let params = &computation.params;
    let operands = &root.operands[..];
    let on_both = params.len() == 2
        && (operands == [params[0], params[1]] || operands == [params[1], params[0]]);
    (known && on_both && computation.instrs.len() == 3).then_some(root.opcode)
}
