//! The language of regions: arrays made from other arrays by views, moves and elementwise operations.
//!
//! Payloads are numbers and lists of numbers, never strings, so that the order of nodes (which
//! decides ties) depends on nothing but the program.

use egg::{Analysis, DidMerge, EGraph, Id, Language};
use smallvec::SmallVec;

use slabplan_ir::{ElementType, InstrId, Opcode};

/// Sizes, or numbers, of dimensions.
pub(super) type Dims = SmallVec<[u64; 4]>;

/// The e-graph of one region.
pub(super) type Graph = EGraph<Node, Tables>;

/// An operation of the language.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Op {
    /// A value from outside: a number in [`Tables::leaves`].
    Leaf(u32),
    /// An elementwise operation of operands of one shape: a number in [`Tables::elementwise`].
    Elementwise(u32),
    /// Other element type, same elements.
    Convert(ElementType),
    /// Operand dimension `i` becomes dimension `map[i]` of `dims`.
    Broadcast { dims: Dims, map: Dims },
    /// The elements in row-major order as an array of these dimensions.
    Reshape(Dims),
    /// Result dimension `i` is operand dimension `p[i]`.
    Transpose(Dims),
    /// `(start, limit, stride)` of every dimension.
    Slice(SmallVec<[(u64, u64, u64); 4]>),
    /// `(low, high, interior)` of every dimension; the second operand is the padding value.
    Pad(SmallVec<[(i64, i64, i64); 4]>),
    /// Operands one after another along this dimension.
    Concatenate(u64),
    /// Reduces these dimensions; the second operand is the initial value.
    Reduce {
        /// Ascending.
        dims: Dims,
        /// A number in [`Tables::reducers`].
        by: u32,
    },
}

/// An operation and its operands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Node {
    pub(super) op: Op,
    pub(super) children: SmallVec<[Id; 2]>,
}

impl Language for Node {
    type Discriminant = Op;

    fn discriminant(&self) -> Op {
        self.op.clone()
    }

    fn matches(&self, other: &Self) -> bool {
        self.op == other.op && self.children.len() == other.children.len()
    }

    fn children(&self) -> &[Id] {
        &self.children
    }

    fn children_mut(&mut self) -> &mut [Id] {
        &mut self.children
    }
}

/// A value that a region takes from outside.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// The instruction.
    pub(super) instr: InstrId,
    pub(super) facts: Facts,
    /// Its number, if it is a scalar constant.
    pub(super) constant: Option<f64>,
}

/// An elementwise operation with its attributes: those of one instruction that stands for all alike.
#[derive(Clone, Debug)]
pub(super) struct Elementwise {
    pub(super) opcode: Opcode,
    pub(super) like: InstrId,
    pub(super) element: ElementType,
}

/// A reduction: one instruction stands for all with the same computation.
#[derive(Clone, Debug)]
pub(super) struct Reducer {
    pub(super) like: InstrId,
    /// The operation, if the computation is one operation on its two parameters.
    pub(super) opcode: Option<Opcode>,
}

/// What payload numbers mean; also the analysis, since facts of leaves are here.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    pub(super) leaves: Vec<Leaf>,
    pub(super) elementwise: Vec<Elementwise>,
    pub(super) reducers: Vec<Reducer>,
    /// Names of nodes from which on the rule at work adds nothing, and whether one came to that in this round.
    pub(super) most_names: usize,
    pub(super) is_cut_short: bool,
    /// The rule that is being applied.
    pub(super) at_work: &'static str,
    /// Nodes that rules made.
    pub(super) made: Vec<(Node, &'static str)>,
    /// Classes that rules found equal.
    pub(super) joined: Vec<(Id, &'static str)>,
}

/// What is known of every array of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) element: ElementType,
    pub(super) dims: Dims,
}

impl Analysis<Node> for Tables {
    type Data = Facts;

    fn make(egraph: &mut Graph, node: &Node, _: Id) -> Facts {
        let of = |n: usize| &egraph[node.children[n]].data;
        let keep = |n: usize, dims: Dims| Facts {
            element: of(n).element,
            dims,
        };
        match &node.op {
            Op::Leaf(n) => egraph.analysis.leaves[*n as usize].facts.clone(),
            Op::Elementwise(n) => Facts {
                element: egraph.analysis.elementwise[*n as usize].element,
                dims: of(0).dims.clone(),
            },
            Op::Convert(element) => Facts {
                element: *element,
                dims: of(0).dims.clone(),
            },
            Op::Broadcast { dims, .. } | Op::Reshape(dims) => keep(0, dims.clone()),
            Op::Transpose(p) => {
                let dims = &of(0).dims;
                keep(0, p.iter().map(|&d| dims[d as usize]).collect())
            }
            Op::Slice(bounds) => {
                let size =
                    |&(start, limit, stride): &(u64, u64, u64)| (limit - start).div_ceil(stride);
                keep(0, bounds.iter().map(size).collect())
            }
            Op::Pad(padding) => {
                let size = |(&d, &(low, high, interior)): (&u64, &(i64, i64, i64))| {
                    let inner = d as i64 + interior * (d as i64 - 1).max(0);
                    (inner + low + high).max(0) as u64
                };
                keep(0, of(0).dims.iter().zip(padding).map(size).collect())
            }
            Op::Concatenate(d) => {
                let mut dims = of(0).dims.clone();
                dims[*d as usize] = (0..node.children.len())
                    .map(|n| of(n).dims[*d as usize])
                    .sum();
                keep(0, dims)
            }
            Op::Reduce { dims, .. } => {
                let own = of(0).dims.iter().enumerate();
                let kept = own.filter(|(i, _)| !dims.contains(&(*i as u64)));
                keep(0, kept.map(|(_, &n)| n).collect())
            }
        }
    }

    fn merge(&mut self, a: &mut Facts, b: Facts) -> DidMerge {
        assert_eq!(*a, b, "a rule equated arrays of different shapes");
        DidMerge(false, false)
    }
}

impl Node {
    pub(super) fn new(op: Op, children: &[Id]) -> Self {
        Self {
            op,
            children: children.into(),
        }
    }
}
