//! A fusion's computation as a graph of values, nested fusions and calls inlined.

use std::collections::BTreeMap;

use slabplan_ir::attr::AttrName;
use slabplan_ir::entity::{CompId, InstrId, ShapeId};
use slabplan_ir::module::Module;
use slabplan_ir::padding::logical_bytes;
use slabplan_ir::shape::ArrayShape;
use slabplan_ir::{ElementType, Opcode};
use smallvec::SmallVec;

use super::{Source, unsupported};
use crate::exec::ExecError;
use crate::exec::constant::dense_literal;
use crate::exec::flat;
use crate::exec::kernels::{Elementwise, Kernel, iota_type, moved_dims};
use crate::exec::tiled::{TiledMap, plain_strides};

/// Most instructions a fusion may have once nested ones are inlined.
const MAX_INSTRS: usize = 1 << 18;
/// Deepest nesting of fusions.
const MAX_DEPTH: usize = 64;

/// Sizes, or steps in elements, one for each dimension.
pub(super) type Dims = SmallVec<[usize; 6]>;
/// Index into [`Graph::nodes`]; operands have smaller ones than what uses them.
pub(super) type NodeId = usize;

/// A value, or what gives several.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) element_type: ElementType,
    pub(super) dims: Dims,
    pub(super) kind: Kind,
    /// How the value would be laid out in memory of its own: elements between neighbours.
    pub(super) strides: Dims,
    /// Whether an operation relies on that layout.
    pub(super) pinned: bool,
}

/// How a value comes about.
#[derive(Debug)]
pub(super) enum Kind {
    /// It lies in memory.
    Memory(View),
    /// Element by element from values of the same dimensions.
    Compute {
        op: Elementwise,
        args: SmallVec<[NodeId; 3]>,
    },
    /// Its element at an index is that of another value at an index made from it.
    Move { of: NodeId, map: Map },
    /// The index along a dimension, then converted.
    Iota { dim: usize },
    /// The elements of another value in row-major order, under other dimensions.
    Reshape { of: NodeId },
    /// What an operation gives.
    Result { call: usize },
}

/// Elements of memory at steps of their own along each dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) source: Source,
    /// Of the first element, in elements.
    pub(super) start: isize,
    pub(super) steps: SmallVec<[isize; 6]>,
}

impl View {
    /// All of `source`, laid out with the given strides.
    pub(super) fn whole(source: Source, strides: &Dims) -> Self {
        Self {
            source,
            start: 0,
            steps: strides.iter().map(|&s| s as isize).collect(),
        }
    }
}

/// For each dimension of an operand, where its index comes from.
pub(super) type Map = SmallVec<[MapDim; 6]>;

/// `start + step * (index along dim)`; `start` alone without a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MapDim {
    pub(super) dim: Option<usize>,
    pub(super) step: isize,
    pub(super) start: isize,
}

impl MapDim {
    /// The index along `dim` itself.
    pub(super) fn same(dim: usize) -> Self {
        Self {
            dim: Some(dim),
            step: 1,
            start: 0,
        }
    }

    fn fixed(start: isize) -> Self {
        Self {
            dim: None,
            step: 0,
            start,
        }
    }
}

/// An operation that is not computed element by element.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) body: CallBody,
    pub(super) operands: Vec<NodeId>,
    pub(super) results: Vec<NodeId>,
}

#[derive(Debug)]
pub(super) enum CallBody {
    Kernel(Kernel),
    /// Out of one padded form and into another.
    Bitcast(Box<(TiledMap, TiledMap)>),
}

/// The whole computation.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) calls: Vec<Call>,
    pub(super) constants: Vec<Box<[u8]>>,
    pub(super) outputs: Vec<NodeId>,
}

/// Builds the graph of `comp`, whose parameters' arrays are laid out like `operands`.
pub(super) fn build(
    module: &Module,
    comp: CompId,
    operands: &[&ArrayShape],
    threads: usize,
) -> Result<Graph, ExecError> {
    let mut inliner = Inliner::new(module, threads);
    let params: Vec<NodeId> = operands
        .iter()
        .enumerate()
        .map(|(n, shape)| inliner.memory(Source::Operand(n), shape, layout_strides(shape)))
        .collect();
    inliner.graph.outputs = inliner.inline(comp, &params, 0)?;
    Ok(inliner.graph)
}

/// Builds the graph of one elementwise instruction on its operands.
pub(super) fn build_single(
    module: &Module,
    instr: InstrId,
    threads: usize,
) -> Result<Graph, ExecError> {
    let mut inliner = Inliner::new(module, threads);
    let mut params = Vec::new();
    for (n, &o) in module.instrs[instr].operands.iter().enumerate() {
        let shape = array(module, instr, module.instrs[o].shape)?;
        params.push(inliner.memory(Source::Operand(n), shape, layout_strides(shape)));
    }
    inliner.graph.outputs = inliner.other(instr, params)?;
    Ok(inliner.graph)
}

/// Elements between neighbours of an array that lies as its layout says if that is plain, and
/// row-major otherwise.
pub(super) fn layout_strides(shape: &ArrayShape) -> Dims {
    plain_strides(shape).unwrap_or_else(|| row_major(&dims(shape)))
}

/// Elements between neighbours of a row-major array.
pub(super) fn row_major(dims: &[usize]) -> Dims {
    let mut strides = Dims::from_elem(1, dims.len());
    for i in (1..dims.len()).rev() {
        strides[i - 1] = strides[i] * dims[i].max(1);
    }
    strides
}

fn dims(shape: &ArrayShape) -> Dims {
    shape.dims.iter().map(|&d| d as usize).collect()
}

fn array(module: &Module, instr: InstrId, shape: ShapeId) -> Result<&ArrayShape, ExecError> {
    let array = module.shapes.array(shape);
    array.ok_or_else(|| unsupported(module, instr, "something other than an array here"))
}

struct Inliner<'a> {
    module: &'a Module,
    threads: usize,
    graph: Graph,
    /// Instructions seen so far, nested ones each time they are inlined.
    instrs: usize,
}

impl<'a> Inliner<'a> {
    fn new(module: &'a Module, threads: usize) -> Self {
        Self {
            module,
            threads,
            graph: Graph::default(),
            instrs: 0,
        }
    }

    /// Adds the values of `comp` for the given arguments; returns the arrays of its root.
    fn inline(
        &mut self,
        comp: CompId,
        arguments: &[NodeId],
        depth: usize,
    ) -> Result<Vec<NodeId>, ExecError> {
        let module = self.module;
        let computation = &module.computations[comp];
        let mut first_argument = vec![0];
        for &p in &computation.params {
            let arrays = flat::arrays(&module.shapes, module.instrs[p].shape).len();
            first_argument.push(first_argument[first_argument.len() - 1] + arrays);
        }
        let mut values: BTreeMap<InstrId, Vec<NodeId>> = BTreeMap::new();
        for &id in &computation.instrs {
            let instr = &module.instrs[id];
            self.instrs += 1;
            if self.instrs > MAX_INSTRS {
                return Err(unsupported(module, id, "fusions this large"));
            }
            check_sizes(module, id)?;
            let operands: Vec<NodeId> = instr
                .operands
                .iter()
                .flat_map(|o| values[o].iter().copied())
                .collect();
            let result = match instr.opcode {
                Opcode::Parameter => {
                    let n = instr.parameter_number().unwrap_or(0) as usize;
                    let range = first_argument[n]..first_argument[n + 1];
                    arguments.get(range).unwrap_or(&[]).to_vec()
                }
                Opcode::Constant => self.constant(id)?,
                Opcode::Tuple => operands,
                Opcode::GetTupleElement => {
                    let tuple = module.instrs[instr.operands[0]].shape;
                    let index = instr.int(AttrName::Index).unwrap_or(0) as usize;
                    operands[flat::element_range(&module.shapes, tuple, index)].to_vec()
                }
                Opcode::OptimizationBarrier | Opcode::Domain | Opcode::AddDependency => {
                    let own = flat::arrays(&module.shapes, instr.shape).len();
                    operands[..own.min(operands.len())].to_vec()
                }
                Opcode::Fusion | Opcode::Call => {
                    let callee = instr.called_computations().next();
                    let callee = callee
                        .filter(|_| depth < MAX_DEPTH)
                        .ok_or_else(|| unsupported(module, id, "fusions nested this deep"))?;
                    self.inline(callee, &operands, depth + 1)?
                }
                _ => self.other(id, operands)?,
            };
            values.insert(id, result);
        }
        Ok(values.remove(&computation.root).unwrap_or_default())
    }

    /// An instruction that computes or moves elements.
    fn other(&mut self, id: InstrId, operands: Vec<NodeId>) -> Result<Vec<NodeId>, ExecError> {
        let module = self.module;
        let instr = &module.instrs[id];
        match instr.opcode {
            Opcode::Bitcast => return Ok(vec![self.bitcast(id, operands[0])?]),
            Opcode::Reshape | Opcode::Copy if operands.len() == 1 => {
                let shape = array(module, id, instr.shape)?;
                if shape.element_type == self.graph.nodes[operands[0]].element_type {
                    return Ok(vec![self.reshape(
                        operands[0],
                        dims(shape),
                        layout_strides(shape),
                    )]);
                }
            }
            Opcode::Iota => {
                let shape = array(module, id, instr.shape)?;
                if let Some(node) = self.iota(id, shape) {
                    return Ok(vec![node]);
                }
            }
            _ => {}
        }
        if let Some(op) = Elementwise::of(module, id)? {
            let shape = array(module, id, instr.shape)?;
            let dims = dims(shape);
            let args = operands
                .iter()
                .map(|&o| self.spread(o, &dims))
                .collect::<Option<_>>()
                .ok_or_else(|| unsupported(module, id, "operands that differ in shape here"))?;
            return Ok(vec![self.push(shape, Kind::Compute { op, args })]);
        }
        if let Some(dims) = moved_dims(module, id)? {
            let shape = array(module, id, instr.shape)?;
            let map = dims
                .iter()
                .map(|&(dim, step, start)| MapDim { dim, step, start })
                .collect();
            let of = operands[0];
            return Ok(vec![self.push(shape, Kind::Move { of, map })]);
        }
        let kernel = Kernel::prepare_in_layout(module, id, self.threads)?;
        let strided = kernel.is_strided();
        let operands = instr
            .operands
            .iter()
            .zip(operands)
            .map(|(&o, node)| {
                // In the layout that the kernel was prepared for.
                let shape = array(module, id, module.instrs[o].shape)?;
                let strides = if strided {
                    layout_strides(shape)
                } else {
                    row_major(&dims(shape))
                };
                Ok(self.laid_out(node, shape, strides))
            })
            .collect::<Result<_, ExecError>>()?;
        let call = self.graph.calls.len();
        let mut results = Vec::new();
        for shape in flat::arrays(&module.shapes, instr.shape) {
            let shape = array(module, id, shape)?;
            let node = self.push(shape, Kind::Result { call });
            if !strided {
                self.graph.nodes[node].strides = row_major(&self.graph.nodes[node].dims);
            }
            results.push(node);
        }
        self.graph.calls.push(Call {
            body: CallBody::Kernel(kernel),
            operands,
            results: results.clone(),
        });
        Ok(results)
    }

    /// The same value with a wish for its layout; the node itself where that is as it is.
    fn laid_out(&mut self, of: NodeId, shape: &ArrayShape, strides: Dims) -> NodeId {
        let node = &self.graph.nodes[of];
        let fits = match &node.kind {
            Kind::Memory(view) => *view == View::whole(view.source, &strides),
            _ => node.strides == strides,
        };
        let map = (0..strides.len()).map(MapDim::same).collect();
        let node = if fits {
            of
        } else {
            self.push(shape, Kind::Move { of, map })
        };
        self.graph.nodes[node].strides = strides;
        self.graph.nodes[node].pinned = true;
        node
    }

    /// A scalar repeated to `dims`; other values must have these dimensions.
    fn spread(&mut self, of: NodeId, dims: &Dims) -> Option<NodeId> {
        let node = &self.graph.nodes[of];
        if node.dims == *dims {
            return Some(of);
        }
        if !node.dims.is_empty() {
            return None;
        }
        let map = Map::new();
        Some(self.push_like(of, dims.clone(), row_major(dims), Kind::Move { of, map }))
    }

    fn constant(&mut self, id: InstrId) -> Result<Vec<NodeId>, ExecError> {
        let module = self.module;
        let first = self.graph.constants.len();
        self.graph.constants.extend(dense_literal(module, id)?);
        flat::arrays(&module.shapes, module.instrs[id].shape)
            .into_iter()
            .enumerate()
            .map(|(n, shape)| {
                let shape = array(module, id, shape)?;
                let strides = row_major(&dims(shape));
                Ok(self.memory(Source::Constant(first + n), shape, strides))
            })
            .collect()
    }

    fn iota(&mut self, id: InstrId, shape: &ArrayShape) -> Option<NodeId> {
        let dim = self.module.instrs[id].int(AttrName::IotaDimension)?;
        let dim = usize::try_from(dim).ok().filter(|&d| d < shape.rank())?;
        let op = iota_type(shape.element_type)?;
        let index = self.push(shape, Kind::Iota { dim });
        self.graph.nodes[index].element_type = ElementType::S64;
        let args = SmallVec::from_slice(&[index]);
        Some(self.push(shape, Kind::Compute { op, args }))
    }

    /// The elements of a value in row-major order under other dimensions, and with `strides` if it gets memory.
    fn reshape(&mut self, of: NodeId, to: Dims, strides: Dims) -> NodeId {
        let from = &self.graph.nodes[of];
        if from.dims == to {
            return of;
        }
        let in_order = row_major(&to);
        if let Kind::Memory(view) = &from.kind
            && *view == View::whole(view.source, &row_major(&from.dims))
        {
            let kind = Kind::Memory(View::whole(view.source, &in_order));
            return self.push_like(of, to, strides, kind);
        }
        let lies_in_order = matches!(from.kind, Kind::Result { .. } | Kind::Reshape { .. })
            && from.strides == row_major(&from.dims);
        if let Some(map) = without_ones(&from.dims, &to).filter(|_| !lies_in_order) {
            return self.push_like(of, to, strides, Kind::Move { of, map });
        }
        // What is computed for the reshape alone had better lie in its order.
        let free = matches!(from.kind, Kind::Compute { .. } | Kind::Move { .. }) && !from.pinned;
        if free {
            self.graph.nodes[of].strides = row_major(&self.graph.nodes[of].dims);
        }
        self.push_like(of, to, in_order, Kind::Reshape { of })
    }

    /// A bitcast between plain layouts is a transposition to the order of memory, a reshape, and a
    /// transposition back; any other goes through the padded form.
    fn bitcast(&mut self, id: InstrId, from: NodeId) -> Result<NodeId, ExecError> {
        let module = self.module;
        let from_shape = array(
            module,
            id,
            module.instrs[module.instrs[id].operands[0]].shape,
        )?;
        let to_shape = array(module, id, module.instrs[id].shape)?;
        let map = |shape: &ArrayShape| {
            TiledMap::new(shape).map_err(|source| ExecError::Layout {
                instr: module.name_of(id).to_owned(),
                source,
            })
        };
        if same_places(from_shape, to_shape) {
            return Ok(from);
        }
        let maps = (map(from_shape)?, map(to_shape)?);
        let same_type = from_shape.element_type == to_shape.element_type
            && maps.0.dense_bytes() == maps.1.dense_bytes();
        let plain =
            |shape: &ArrayShape, map: &TiledMap| plain_strides(shape).is_some() || map.is_dense();
        if same_type && plain(from_shape, &maps.0) && plain(to_shape, &maps.1) {
            let order = memory_order(from_shape, &maps.0);
            let ordered = self.transposed(from, &order);
            let to_order = memory_order(to_shape, &maps.1);
            let to_dims = dims(to_shape);
            let in_order: Dims = to_order.iter().map(|&d| to_dims[d]).collect();
            let strides = row_major(&in_order);
            let reshaped = self.reshape(ordered, in_order, strides);
            let mut inverse = Dims::from_elem(0, to_order.len());
            for (place, &d) in to_order.iter().enumerate() {
                inverse[d] = place;
            }
            let node = self.transposed(reshaped, &inverse);
            return Ok(node);
        }
        let operand = self.laid_out(from, from_shape, row_major(&dims(from_shape)));
        let call = self.graph.calls.len();
        let dims = dims(to_shape);
        let strides = row_major(&dims);
        let kind = Kind::Result { call };
        let node = self.add(to_shape.element_type, dims, strides, kind);
        self.graph.calls.push(Call {
            body: CallBody::Bitcast(Box::new(maps)),
            operands: vec![operand],
            results: vec![node],
        });
        Ok(node)
    }

    /// The value with dimension `order[i]` as dimension `i`.
    fn transposed(&mut self, of: NodeId, order: &Dims) -> NodeId {
        if order.iter().enumerate().all(|(i, &d)| i == d) {
            return of;
        }
        let node = &self.graph.nodes[of];
        let dims: Dims = order.iter().map(|&d| node.dims[d]).collect();
        let strides = order.iter().map(|&d| node.strides[d]).collect();
        let mut map: Map = SmallVec::from_elem(MapDim::fixed(0), order.len());
        for (i, &d) in order.iter().enumerate() {
            map[d] = MapDim::same(i);
        }
        self.push_like(of, dims, strides, Kind::Move { of, map })
    }

    /// Adds a value of the type of `other`.
    fn push_like(&mut self, other: NodeId, dims: Dims, strides: Dims, kind: Kind) -> NodeId {
        let element_type = self.graph.nodes[other].element_type;
        self.add(element_type, dims, strides, kind)
    }

    fn memory(&mut self, source: Source, shape: &ArrayShape, strides: Dims) -> NodeId {
        let kind = Kind::Memory(View::whole(source, &strides));
        self.add(shape.element_type, dims(shape), strides, kind)
    }

    /// Adds a value that has the type of `shape`, and its layout if it gets memory.
    fn push(&mut self, shape: &ArrayShape, kind: Kind) -> NodeId {
        self.add(shape.element_type, dims(shape), layout_strides(shape), kind)
    }

    /// Adds a value that lies with `strides` if it gets memory.
    fn add(&mut self, element_type: ElementType, dims: Dims, strides: Dims, kind: Kind) -> NodeId {
        self.graph.nodes.push(Node {
            element_type,
            dims,
            kind,
            strides,
            pinned: false,
        });
        self.graph.nodes.len() - 1
    }
}

/// The dimensions from the outermost in memory to the innermost.
fn memory_order(shape: &ArrayShape, map: &TiledMap) -> Dims {
    if map.is_dense() {
        return (0..shape.rank()).collect();
    }
    let order = shape.minor_to_major();
    order.iter().rev().map(|&d| d as usize).collect()
}

/// The map of a reshape that only adds or removes dimensions of size 1.
fn without_ones(from: &Dims, to: &Dims) -> Option<Map> {
    let mut rest = to.iter().enumerate().filter(|(_, n)| **n != 1);
    let map = from
        .iter()
        .map(|&n| {
            if n == 1 {
                return Some(MapDim::fixed(0));
            }
            let (d, &m) = rest.next()?;
            (m == n).then(|| MapDim::same(d))
        })
        .collect::<Option<Map>>()?;
    rest.next().is_none().then_some(map)
}

/// Whether two arrays differ at most in memory space.
fn same_places(a: &ArrayShape, b: &ArrayShape) -> bool {
    let layout = |shape: &ArrayShape| {
        let mut layout = shape
            .layout
            .clone()
            .unwrap_or_else(|| slabplan_ir::layout::Layout::row_major(shape.rank()));
        layout.memory_space = 0;
        layout
    };
    a.element_type == b.element_type && a.dims == b.dims && layout(a) == layout(b)
}

/// An error unless every array of the result has a size.
fn check_sizes(module: &Module, instr: InstrId) -> Result<(), ExecError> {
    for shape in flat::arrays(&module.shapes, module.instrs[instr].shape) {
        if let Some(array) = module.shapes.array(shape) {
            logical_bytes(array).map_err(|source| ExecError::Size {
                instr: module.name_of(instr).to_owned(),
                source,
            })?;
        }
    }
    Ok(())
}
