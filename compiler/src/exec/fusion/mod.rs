//! A fusion's computation, run inside one instruction.
//!
//! ```text
//! computation --graph--> values --lower--> loops, kernels --place--> scratch
//! ```
//!
//! Nested fusions and calls are inlined. Elementwise operations, broadcasts and other movements
//! become loops in one pass over memory; what else there is reads and writes scratch memory, which
//! is laid out once: a value's bytes are free after its last use.

mod graph;
mod lower;
mod physical;
mod place;

use slabplan_ir::ElementType;
use slabplan_ir::attr::AttrName;
use slabplan_ir::entity::{CompId, InstrId};
use slabplan_ir::module::Module;
use slabplan_ir::shape::ArrayShape;

use crate::exec::ExecError;
use crate::exec::flat;
use crate::exec::kernels::fused_loop::FusedLoop;
use crate::exec::kernels::{ArrayMut, ArrayRef, Kernel, KernelError};
use crate::exec::recycle::Refs;
use crate::exec::tiled::TiledMap;

use graph::Graph;

/// A prepared fusion.
#[derive(Debug)]
pub(crate) struct Fusion {
    ops: Vec<InnerOp>,
    constants: Vec<Box<[u8]>>,
    scratch: usize,
    most_refs: usize,
    over_memory: bool,
}

/// Bytes seen as an array.
#[derive(Clone, Debug)]
struct Value {
    source: Source,
    element_type: ElementType,
    dims: Box<[u64]>,
}

impl Value {
    fn of(node: &graph::Node, source: Source) -> Self {
        Self {
            source,
            element_type: node.element_type,
            dims: node.dims.iter().map(|&d| d as u64).collect(),
        }
    }

    fn bytes(&self) -> usize {
        let elements: u64 = self.dims.iter().product();
        (elements * self.element_type.byte_width()) as usize
    }
}

/// What memory holds a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// Array `n` of the fusion's operands.
    Operand(usize),
    /// A constant of the fusion's computation.
    Constant(usize),
    /// Scratch: first the slot's number, then the byte it starts at.
    Slot(usize),
    /// Array `n` of the fusion's results; only written.
    Result(usize),
}

/// What memory an operation writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Slot(usize),
    Result(usize),
}

impl Target {
    fn source(self) -> Source {
        match self {
            Target::Slot(n) => Source::Slot(n),
            Target::Result(n) => Source::Result(n),
        }
    }
}

#[derive(Debug)]
struct InnerOp {
    body: InnerBody,
    operands: Vec<Value>,
    results: Vec<Value>,
    /// Bytes that `body` works in.
    scratch: usize,
    /// The parts of scratch memory in use, ascending.
    pieces: Vec<Piece>,
    /// Pairs of the fusion's result and this operation's that goes there, ascending.
    direct: Vec<(usize, usize)>,
    /// Pairs of a result of the fusion that is not written yet, and the operand that lies there.
    lent: Vec<(usize, usize)>,
}

#[derive(Debug)]
enum InnerBody {
    Kernel(Kernel),
    Loop(Box<FusedLoop>),
    /// Out of one padded form and into another.
    Bitcast(Box<(TiledMap, TiledMap)>),
}

/// A part of scratch memory during one operation.
#[derive(Debug)]
struct Piece {
    start: usize,
    len: usize,
    role: Role,
}

#[derive(Debug)]
enum Role {
    /// Operands with these numbers.
    Operands(Vec<usize>),
    Result(usize),
    Scratch,
}

impl InnerOp {
    fn new(body: InnerBody, operands: Vec<Value>, results: Vec<(Value, Target)>) -> Self {
        let scratch = match &body {
            InnerBody::Kernel(kernel) => kernel.scratch_bytes(),
            InnerBody::Loop(l) => l.scratch_bytes(),
            InnerBody::Bitcast(maps) => maps.0.padded_bytes().max(maps.1.padded_bytes()),
        };
        let mut direct: Vec<(usize, usize)> = results
            .iter()
            .enumerate()
            .filter_map(|(n, (_, target))| match target {
                Target::Result(r) => Some((*r, n)),
                Target::Slot(_) => None,
            })
            .collect();
        direct.sort_unstable();
        Self {
            body,
            operands,
            results: results.into_iter().map(|(value, _)| value).collect(),
            scratch,
            pieces: Vec::new(),
            direct,
            lent: Vec::new(),
        }
    }

    /// Whether operand `n` of this operation may be the memory of its result `result`.
    fn may_overwrite(&self, n: usize, result: usize) -> bool {
        match &self.body {
            InnerBody::Kernel(kernel) => kernel.may_overwrite(n, result),
            InnerBody::Loop(l) => l.may_overwrite(n),
            InnerBody::Bitcast(_) => false,
        }
    }
}

impl Fusion {
    /// Prepares the computation of the fusion `instr` for at most `threads` threads. Operands and
    /// results of a plain layout are taken as they lie, all others row-major.
    pub(crate) fn prepare(
        module: &Module,
        instr: InstrId,
        threads: usize,
    ) -> Result<Self, ExecError> {
        let comp = module.instrs[instr].comp(AttrName::Calls);
        let comp = comp.ok_or_else(|| unsupported(module, instr, "a fusion of nothing"))?;
        let operands: Vec<&ArrayShape> = module.instrs[instr]
            .operands
            .iter()
            .flat_map(|&o| arrays(module, o))
            .collect();
        let results = arrays(module, instr);
        let graph = graph::build(module, comp, &operands, threads)?;
        Ok(Self::lowered(graph, &operands, &results, threads))
    }

    /// Prepares one elementwise or moving instruction.
    pub(crate) fn of_instr(
        module: &Module,
        instr: InstrId,
        threads: usize,
    ) -> Result<Self, ExecError> {
        let graph = graph::build_single(module, instr, threads)?;
        let operands: Vec<&ArrayShape> = module.instrs[instr]
            .operands
            .iter()
            .flat_map(|&o| arrays(module, o))
            .collect();
        Ok(Self::lowered(
            graph,
            &operands,
            &arrays(module, instr),
            threads,
        ))
    }

    /// Prepares `comp`; its operands are the arrays of its parameters.
    pub(crate) fn of_computation(module: &Module, comp: CompId) -> Result<Self, ExecError> {
        let operands: Vec<&ArrayShape> = module.computations[comp]
            .params
            .iter()
            .flat_map(|&p| arrays(module, p))
            .collect();
        let results = arrays(module, module.computations[comp].root);
        let graph = graph::build(module, comp, &operands, 1)?;
        Ok(Self::lowered(graph, &operands, &results, 1))
    }

    fn lowered(
        mut graph: Graph,
        operands: &[&ArrayShape],
        results: &[&ArrayShape],
        threads: usize,
    ) -> Self {
        let over_memory = physical::over_memory(&mut graph, operands, results);
        let strides: Vec<graph::Dims> = results
            .iter()
            .map(|r| {
                if over_memory {
                    graph::Dims::from_elem(1, 1)
                } else {
                    graph::layout_strides(r)
                }
            })
            .collect();
        let lower::Lowered { mut ops, slots } = lower::lower(&mut graph, &strides, threads);
        let scratch = place::place(&mut ops, &slots);
        let most_refs = ops
            .iter()
            .map(|o| o.operands.len().max(o.results.len()))
            .max();
        Self {
            ops,
            constants: graph.constants,
            scratch,
            most_refs: most_refs.unwrap_or(0),
            over_memory,
        }
    }

    /// Whether all arrays but scalars are taken as they lie, padding included.
    pub(crate) fn is_over_memory(&self) -> bool {
        self.over_memory
    }

    /// Bytes of scratch memory that [`run`](Self::run) needs.
    pub(crate) fn scratch_bytes(&self) -> usize {
        self.scratch
    }

    /// Largest number of operands or results of an inner operation.
    pub(crate) fn most_refs(&self) -> usize {
        self.most_refs
    }

    /// Whether operand `n` may be the memory of result `result`: nothing reads it after the result
    /// is written, and what writes that may overwrite it.
    pub(crate) fn may_overwrite(&self, n: usize, result: usize) -> bool {
        let Some((writer, own)) = self.writer(result) else {
            return false;
        };
        let reads = |op: &InnerOp| op.operands.iter().any(|v| v.source == Source::Operand(n));
        if self.ops[writer + 1..].iter().any(reads) {
            return false;
        }
        let op = &self.ops[writer];
        op.operands
            .iter()
            .enumerate()
            .filter(|(_, v)| v.source == Source::Operand(n))
            .all(|(i, _)| op.may_overwrite(i, own))
    }

    /// From now on operand `n` is the memory of result `result`, and given as no bytes; it
    /// [may](Self::may_overwrite) be.
    pub(crate) fn overwrite(&mut self, n: usize, result: usize) {
        let Some((writer, own)) = self.writer(result) else {
            return;
        };
        for (at, op) in self.ops.iter_mut().enumerate().take(writer + 1) {
            for i in 0..op.operands.len() {
                if op.operands[i].source != Source::Operand(n) {
                    continue;
                }
                match &mut op.body {
                    _ if at < writer => op.lent.push((result, i)),
                    InnerBody::Kernel(kernel) => kernel.overwrite(i, own),
                    InnerBody::Loop(l) => l.overwrite(i),
                    InnerBody::Bitcast(_) => {}
                }
            }
        }
    }

    /// The operation that writes a result, and which of its results that is.
    fn writer(&self, result: usize) -> Option<(usize, usize)> {
        self.ops.iter().enumerate().find_map(|(n, op)| {
            let own = op.direct.iter().find(|d| d.0 == result)?;
            Some((n, own.1))
        })
    }

    /// Runs all operations. `refs` lends its lists, so that nothing is allocated.
    pub(crate) fn run(
        &self,
        operands: &[ArrayRef<'_>],
        results: &mut [ArrayMut<'_>],
        scratch: &mut [u8],
        refs: &mut Refs,
    ) -> Result<(), KernelError> {
        for op in &self.ops {
            self.run_op(op, operands, results, scratch, refs)?;
        }
        Ok(())
    }

    fn run_op(
        &self,
        op: &InnerOp,
        operands: &[ArrayRef<'_>],
        results: &mut [ArrayMut<'_>],
        scratch: &mut [u8],
        refs: &mut Refs,
    ) -> Result<(), KernelError> {
        let mut lists = refs.take();
        lists.reads.extend(op.operands.iter().map(|v| ArrayRef {
            element_type: v.element_type,
            dims: &v.dims,
            data: match v.source {
                Source::Operand(n) => operands[n].data,
                Source::Constant(n) => &self.constants[n],
                Source::Slot(_) | Source::Result(_) => &[],
            },
        }));
        lists.writes.extend(op.results.iter().map(|v| ArrayMut {
            element_type: v.element_type,
            dims: &v.dims,
            data: &mut [],
        }));
        let mut direct = op.direct.iter().peekable();
        for (n, result) in results.iter_mut().enumerate() {
            if let Some(&&(_, own)) = direct.peek().filter(|d| d.0 == n) {
                lists.writes[own].data = &mut *result.data;
                direct.next();
                continue;
            }
            let data: &[u8] = &*result.data;
            for &(_, operand) in op.lent.iter().filter(|l| l.0 == n) {
                lists.reads[operand].data = data;
            }
        }
        let mut work: &mut [u8] = &mut [];
        let mut rest = scratch;
        let mut at = 0;
        for piece in &op.pieces {
            let (mine, tail) = rest
                .split_at_mut(piece.start - at)
                .1
                .split_at_mut(piece.len);
            rest = tail;
            at = piece.start + piece.len;
            match &piece.role {
                Role::Operands(numbers) => {
                    let mine: &[u8] = mine;
                    for &n in numbers {
                        lists.reads[n].data = mine;
                    }
                }
                Role::Result(n) => lists.writes[*n].data = mine,
                Role::Scratch => work = mine,
            }
        }
        let result = match &op.body {
            InnerBody::Kernel(kernel) => kernel.run(&lists.reads, &mut lists.writes, work),
            InnerBody::Loop(l) => {
                l.run(&lists.reads, &mut lists.writes, work);
                Ok(())
            }
            InnerBody::Bitcast(maps) => {
                maps.0.pack(lists.reads[0].data, work);
                maps.1.unpack(work, lists.writes[0].data);
                Ok(())
            }
        };
        refs.give_back(lists);
        result
    }
}

/// The arrays of an instruction's result.
fn arrays(module: &Module, instr: InstrId) -> Vec<&ArrayShape> {
    flat::arrays(&module.shapes, module.instrs[instr].shape)
        .into_iter()
        .filter_map(|s| module.shapes.array(s))
        .collect()
}

fn unsupported(module: &Module, instr: InstrId, what: &str) -> ExecError {
    ExecError::Unsupported {
        instr: module.name_of(instr).to_owned(),
        what: format!("the executor does not support {what}"),
    }
}
