//! A fusion's computation, run inside one instruction on dense scratch memory.
//!
//! Nested fusions and calls are inlined. What only renames bytes (reshape, copy, a bitcast
//! between dense layouts, tuples) costs nothing; any other bitcast goes through the padded
//! form. Scratch memory is laid out once: a value's bytes are free after its last use.

use std::collections::BTreeMap;

use slabplan_ir::attr::AttrName;
use slabplan_ir::entity::{CompId, InstrId, ShapeId};
use slabplan_ir::layout::Layout;
use slabplan_ir::module::Module;
use slabplan_ir::padding::logical_bytes;
use slabplan_ir::shape::ArrayShape;
use slabplan_ir::{ElementType, Opcode};

use crate::exec::ExecError;
use crate::exec::constant::dense_literal;
use crate::exec::flat;
use crate::exec::kernels::{ArrayMut, ArrayRef, Kernel, KernelError};
use crate::exec::recycle::Refs;
use crate::exec::tiled::TiledMap;

/// Most instructions a fusion may have once nested ones are inlined.
const MAX_INSTRS: usize = 1 << 18;
/// Deepest nesting of fusions.
const MAX_DEPTH: usize = 64;

/// A prepared fusion.
#[derive(Debug)]
pub(crate) struct Fusion {
    ops: Vec<InnerOp>,
    constants: Vec<Box<[u8]>>,
    outputs: Vec<Value>,
    scratch: usize,
    most_refs: usize,
}

/// Dense bytes seen as an array.
#[derive(Clone, Debug)]
struct Value {
    source: Source,
    element_type: ElementType,
    dims: Box<[u64]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// Array `n` of the fusion's operands.
    Operand(usize),
    /// A constant of the fusion's computation.
    Constant(usize),
    /// Scratch bytes.
    Slot(usize),
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
}

#[derive(Debug)]
enum InnerBody {
    Kernel(Kernel),
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

impl Fusion {
    /// Prepares the computation of the fusion `instr`.
    pub(crate) fn prepare(module: &Module, instr: InstrId) -> Result<Self, ExecError> {
        let comp = module.instrs[instr].comp(AttrName::Calls);
        let comp = comp.ok_or_else(|| unsupported(module, instr, "a fusion of nothing"))?;
        Self::of_computation(module, comp)
    }

    /// Prepares `comp`; its operands are the arrays of its parameters.
    pub(crate) fn of_computation(module: &Module, comp: CompId) -> Result<Self, ExecError> {
        let operands: Vec<Value> = module.computations[comp]
            .params
            .iter()
            .flat_map(|&p| flat::arrays(&module.shapes, module.instrs[p].shape))
            .enumerate()
            .map(|(n, shape)| value(module, Source::Operand(n), shape))
            .collect();
        let mut inliner = Inliner {
            module,
            ops: Vec::new(),
            constants: Vec::new(),
            slots: Vec::new(),
            instrs: 0,
        };
        let outputs = inliner.inline(comp, &operands, 0)?;
        Ok(inliner.finish(outputs))
    }

    /// Bytes of scratch memory that [`run`](Self::run) needs.
    pub(crate) fn scratch_bytes(&self) -> usize {
        self.scratch
    }

    /// Largest number of operands or results of an inner operation.
    pub(crate) fn most_refs(&self) -> usize {
        self.most_refs
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
            self.run_op(op, operands, scratch, refs)?;
        }
        for (output, result) in self.outputs.iter().zip(results) {
            let len = result.data.len();
            result.data.copy_from_slice(match output.source {
                Source::Operand(n) => operands[n].data,
                Source::Constant(n) => &self.constants[n],
                Source::Slot(at) => &scratch[at..at + len],
            });
        }
        Ok(())
    }

    fn run_op(
        &self,
        op: &InnerOp,
        operands: &[ArrayRef<'_>],
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
                Source::Slot(_) => &[],
            },
        }));
        lists.writes.extend(op.results.iter().map(|v| ArrayMut {
            element_type: v.element_type,
            dims: &v.dims,
            data: &mut [],
        }));
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

/// Scratch bytes of one value, before they have a place.
struct Slot {
    bytes: usize,
    /// The operation that writes it, and the last that reads it.
    written: usize,
    last_read: usize,
}

struct Inliner<'a> {
    module: &'a Module,
    ops: Vec<InnerOp>,
    constants: Vec<Box<[u8]>>,
    slots: Vec<Slot>,
    /// Instructions seen so far, nested ones each time they are inlined.
    instrs: usize,
}

impl Inliner<'_> {
    /// Adds the operations of `comp` for the given arguments; returns the arrays of its root.
    fn inline(
        &mut self,
        comp: CompId,
        arguments: &[Value],
        depth: usize,
    ) -> Result<Vec<Value>, ExecError> {
        let module = self.module;
        let computation = &module.computations[comp];
        let mut first_argument = vec![0];
        for &p in &computation.params {
            let arrays = flat::arrays(&module.shapes, module.instrs[p].shape).len();
            first_argument.push(first_argument[first_argument.len() - 1] + arrays);
        }
        let mut values: BTreeMap<InstrId, Vec<Value>> = BTreeMap::new();
        for &id in &computation.instrs {
            let instr = &module.instrs[id];
            self.instrs += 1;
            if self.instrs > MAX_INSTRS {
                return Err(unsupported(module, id, "fusions this large"));
            }
            check_sizes(module, id)?;
            let operand = |n: usize| -> &[Value] { &values[&instr.operands[n]] };
            let result = match instr.opcode {
                Opcode::Parameter => {
                    let n = instr.parameter_number().unwrap_or(0) as usize;
                    let range = first_argument[n]..first_argument[n + 1];
                    let mine = arguments.get(range).unwrap_or(&[]).to_vec();
                    retyped(module, mine, instr.shape)
                }
                Opcode::Constant => {
                    let first = self.constants.len();
                    self.constants.extend(dense_literal(module, id)?);
                    flat::arrays(&module.shapes, instr.shape)
                        .into_iter()
                        .enumerate()
                        .map(|(n, shape)| value(module, Source::Constant(first + n), shape))
                        .collect()
                }
                Opcode::Tuple => instr
                    .operands
                    .iter()
                    .flat_map(|o| values[o].iter().cloned())
                    .collect(),
                Opcode::GetTupleElement => {
                    let tuple = module.instrs[instr.operands[0]].shape;
                    let index = instr.int(AttrName::Index).unwrap_or(0) as usize;
                    operand(0)[flat::element_range(&module.shapes, tuple, index)].to_vec()
                }
                Opcode::Reshape
                | Opcode::Copy
                | Opcode::OptimizationBarrier
                | Opcode::Domain
                | Opcode::AddDependency => retyped(module, operand(0).to_vec(), instr.shape),
                Opcode::Bitcast => {
                    let from = operand(0)[0].clone();
                    vec![self.bitcast(id, from)?]
                }
                Opcode::Fusion | Opcode::Call => {
                    let callee = instr.called_computations().next();
                    let callee = callee
                        .filter(|_| depth < MAX_DEPTH)
                        .ok_or_else(|| unsupported(module, id, "fusions nested this deep"))?;
                    let arguments: Vec<Value> = instr
                        .operands
                        .iter()
                        .flat_map(|o| values[o].iter().cloned())
                        .collect();
                    self.inline(callee, &arguments, depth + 1)?
                }
                _ => {
                    let operands = instr
                        .operands
                        .iter()
                        .flat_map(|o| values[o].iter().cloned())
                        .collect();
                    let kernel = Kernel::prepare(module, id)?;
                    let scratch = kernel.scratch_bytes();
                    let shapes = flat::arrays(&module.shapes, instr.shape);
                    self.add(InnerBody::Kernel(kernel), operands, &shapes, scratch)
                }
            };
            values.insert(id, result);
        }
        Ok(values.remove(&computation.root).unwrap_or_default())
    }

    fn bitcast(&mut self, id: InstrId, from: Value) -> Result<Value, ExecError> {
        let module = self.module;
        let (from_shape, to_shape) = (
            module.instrs[module.instrs[id].operands[0]].shape,
            module.instrs[id].shape,
        );
        let map = |shape: ShapeId| {
            let array = module.shapes.array(shape).ok_or_else(|| {
                unsupported(module, id, "a bitcast of something other than an array")
            })?;
            TiledMap::new(array).map_err(|source| ExecError::Layout {
                instr: module.name_of(id).to_owned(),
                source,
            })
        };
        let maps = (map(from_shape)?, map(to_shape)?);
        let renames = same_places(module, from_shape, to_shape)
            || (maps.0.is_dense()
                && maps.1.is_dense()
                && maps.0.dense_bytes() == maps.1.dense_bytes());
        if renames {
            return Ok(value(module, from.source, to_shape));
        }
        let scratch = maps.0.padded_bytes().max(maps.1.padded_bytes());
        let body = InnerBody::Bitcast(Box::new(maps));
        let mut results = self.add(body, vec![from], &[to_shape], scratch);
        Ok(results.remove(0))
    }

    fn add(
        &mut self,
        body: InnerBody,
        operands: Vec<Value>,
        shapes: &[ShapeId],
        scratch: usize,
    ) -> Vec<Value> {
        let number = self.ops.len();
        for operand in &operands {
            if let Source::Slot(slot) = operand.source {
                self.slots[slot].last_read = number;
            }
        }
        let mut results = Vec::with_capacity(shapes.len());
        for &shape in shapes {
            let result = value(self.module, Source::Slot(self.slots.len()), shape);
            self.slots.push(Slot {
                bytes: dense_bytes(&result),
                written: number,
                last_read: number,
            });
            results.push(result);
        }
        self.ops.push(InnerOp {
            body,
            operands,
            results: results.clone(),
            scratch,
            pieces: Vec::new(),
        });
        results
    }

    /// Places all slots and works out the pieces of each operation.
    fn finish(mut self, mut outputs: Vec<Value>) -> Fusion {
        for output in &outputs {
            if let Source::Slot(slot) = output.source {
                self.slots[slot].last_read = self.ops.len();
            }
        }
        let (offsets, work, scratch) = place(&self.slots, &self.ops);
        let move_to = |value: &mut Value| {
            if let Source::Slot(slot) = value.source {
                value.source = Source::Slot(offsets[slot]);
            }
        };
        for (op, &work) in self.ops.iter_mut().zip(&work) {
            op.operands.iter_mut().for_each(move_to);
            op.results.iter_mut().for_each(move_to);
            op.pieces = pieces(op, work);
        }
        outputs.iter_mut().for_each(move_to);
        let most_refs = self
            .ops
            .iter()
            .map(|o| o.operands.len().max(o.results.len()))
            .max();
        Fusion {
            ops: self.ops,
            constants: self.constants,
            outputs,
            scratch,
            most_refs: most_refs.unwrap_or(0),
        }
    }
}

/// First fit in order of definition: offsets of the slots, of each operation's own scratch, and
/// the total. O(slots * slots alive at once).
fn place(slots: &[Slot], ops: &[InnerOp]) -> (Vec<usize>, Vec<usize>, usize) {
    const ALIGN: usize = 64;
    let mut offsets = vec![0; slots.len()];
    let mut work = Vec::with_capacity(ops.len());
    // (offset, bytes, last operation that needs them), ascending.
    let mut alive: Vec<(usize, usize, usize)> = Vec::new();
    let mut total = 0;
    let mut next = 0;
    for (number, op) in ops.iter().enumerate() {
        alive.retain(|&(_, _, last)| last >= number);
        let mut take = |bytes: usize, last: usize| {
            let bytes = bytes.next_multiple_of(ALIGN);
            let mut offset = 0;
            let mut at = alive.len();
            for (i, &(start, len, _)) in alive.iter().enumerate() {
                if offset + bytes <= start {
                    at = i;
                    break;
                }
                offset = offset.max(start + len);
            }
            if bytes > 0 {
                alive.insert(at, (offset, bytes, last));
            }
            total = total.max(offset + bytes);
            offset
        };
        while slots.get(next).is_some_and(|s| s.written == number) {
            offsets[next] = take(slots[next].bytes, slots[next].last_read);
            next += 1;
        }
        work.push(take(op.scratch, number));
    }
    (offsets, work, total)
}

fn pieces(op: &InnerOp, work: usize) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for (n, operand) in op.operands.iter().enumerate() {
        let Source::Slot(start) = operand.source else {
            continue;
        };
        let len = dense_bytes(operand);
        let same = pieces.iter_mut().find(|p| p.start == start && p.len == len);
        match same.map(|p| &mut p.role) {
            Some(Role::Operands(numbers)) => numbers.push(n),
            _ => pieces.push(Piece {
                start,
                len,
                role: Role::Operands(vec![n]),
            }),
        }
    }
    for (n, result) in op.results.iter().enumerate() {
        if let Source::Slot(start) = result.source {
            pieces.push(Piece {
                start,
                len: dense_bytes(result),
                role: Role::Result(n),
            });
        }
    }
    pieces.push(Piece {
        start: work,
        len: op.scratch,
        role: Role::Scratch,
    });
    // Empty pieces have no place of their own and may point anywhere.
    pieces.retain(|p| p.len > 0);
    pieces.sort_by_key(|p| p.start);
    pieces
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

fn value(module: &Module, source: Source, shape: ShapeId) -> Value {
    let array = module.shapes.array(shape);
    Value {
        source,
        element_type: array.map_or(ElementType::Pred, |a| a.element_type),
        dims: array.map_or(&[][..], |a| &a.dims).into(),
    }
}

/// The same bytes under the type of `shape`.
fn retyped(module: &Module, values: Vec<Value>, shape: ShapeId) -> Vec<Value> {
    values
        .into_iter()
        .zip(flat::arrays(&module.shapes, shape))
        .map(|(v, shape)| value(module, v.source, shape))
        .collect()
}

fn dense_bytes(value: &Value) -> usize {
    let elements: u64 = value.dims.iter().product();
    (elements * value.element_type.byte_width()) as usize
}

/// Whether two arrays differ at most in memory space.
fn same_places(module: &Module, a: ShapeId, b: ShapeId) -> bool {
    let without_space = |shape: ShapeId| -> Option<(ElementType, &[u64], Layout)> {
        let array: &ArrayShape = module.shapes.array(shape)?;
        let mut layout = array
            .layout
            .clone()
            .unwrap_or_else(|| Layout::row_major(array.rank()));
        layout.memory_space = 0;
        Some((array.element_type, &array.dims, layout))
    };
    without_space(a) == without_space(b)
}

fn unsupported(module: &Module, instr: InstrId, what: &str) -> ExecError {
    ExecError::Unsupported {
        instr: module.name_of(instr).to_owned(),
        what: format!("the executor does not support {what}"),
    }
}
