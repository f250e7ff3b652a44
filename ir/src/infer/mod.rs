//! Shape inference: the result shape that an operation, its operands and its attributes imply.
//!
//! The parser asks where the text omits a shape, the verifier to compare with
//! the shape that is declared. The rules are those of XLA's
//! `shape_inference.cc` and `hlo_verifier.cc`. Some operations leave their
//! result to whoever writes them (`reshape`, `convert`, `custom-call`, ...):
//! for these [`infer`] checks nothing and answers `None`.
//!
//! Nothing here assumes a verified module beyond ids that are in range: a
//! wrong arity, a missing attribute or an absurd dimension is an error, never
//! a panic.

mod collective;
mod contraction;
mod control;
mod elementwise;
mod gather;
mod movement;
mod reduction;
#[cfg(test)]
mod tests;

use smallvec::SmallVec;

use crate::ElementType;
use crate::attr::AttrName;
use crate::entity::{CompId, InstrId, PrimaryMap, ShapeId};
use crate::instr::Instr;
use crate::layout::Layout;
use crate::module::{Computation, Module};
use crate::opcode::{Arity, OpClass, Opcode};
use crate::shape::{ArrayShape, Shape, ShapePool, UNBOUNDED};
use crate::strings::{Str, StringPool};

/// What inference reads: the parts of a module that exist before it is complete.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Shapes of the operands and of the called computations.
    pub shapes: &'a ShapePool,
    /// Instructions parsed so far.
    pub instrs: &'a PrimaryMap<InstrId, Instr>,
    /// Computations parsed so far.
    pub computations: &'a PrimaryMap<CompId, Computation>,
    /// Text that attribute values refer to.
    pub strings: &'a StringPool,
}

impl<'a> Context<'a> {
    /// The context of a whole module.
    pub fn of(module: &'a Module) -> Self {
        Self {
            shapes: &module.shapes,
            instrs: &module.instrs,
            computations: &module.computations,
            strings: &module.strings,
        }
    }

    /// The shape of a computation's result.
    fn result(&self, comp: CompId) -> ShapeId {
        self.instrs[self.computations[comp].root].shape
    }

    /// The shapes of a computation's parameters, by number.
    fn params(&self, comp: CompId) -> impl ExactSizeIterator<Item = ShapeId> + '_ {
        self.computations[comp]
            .params
            .iter()
            .map(|&p| self.instrs[p].shape)
    }
}

/// A shape that need not be in the pool yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inferred {
    /// A shape of the pool, with its layout: that of an operand, a part of one, or a root.
    Same(ShapeId),
    /// An array of its own.
    Array(PlainArray),
    /// A tuple.
    Tuple(Vec<Inferred>),
    /// `token[]`.
    Token,
}

/// An array that no operand has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainArray {
    /// Element type.
    pub element_type: ElementType,
    /// Logical dimensions, major to minor.
    pub dims: SmallVec<[u64; 4]>,
    /// Bit `i` is set where dimension `i` is dynamic.
    pub dynamic: u64,
    /// The layout it gets where the text leaves the shape out.
    pub layout: LayoutSource,
}

/// Where the layout of an inferred array comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayoutSource {
    /// Nowhere: it is the default one.
    Default,
    /// An operand's, as it is.
    Same(ShapeId),
    /// An operand's, with the dimensions exchanged: dimension `i` is the operand's `order[i]`. The
    /// elements then lie as they lay.
    Transposed(ShapeId, SmallVec<[usize; 6]>),
}

impl LayoutSource {
    fn layout(&self, pool: &ShapePool) -> Option<Layout> {
        let of = |id: ShapeId| pool.array(id).and_then(|a| a.layout.clone());
        match self {
            LayoutSource::Default => None,
            LayoutSource::Same(id) => of(*id),
            LayoutSource::Transposed(id, order) => of(*id).map(|mut layout| {
                for d in &mut layout.minor_to_major {
                    let new = order.iter().position(|&o| o == *d as usize);
                    *d = new.unwrap_or(0) as u32;
                }
                layout
            }),
        }
    }
}

impl PlainArray {
    fn new(element_type: ElementType, dims: &[u64]) -> Self {
        Self {
            element_type,
            dims: dims.into(),
            dynamic: 0,
            layout: LayoutSource::Default,
        }
    }

    /// The dimensions of `a` with elements of another type.
    fn like(a: &ArrayShape, element_type: ElementType) -> Self {
        Self {
            element_type,
            dims: a.dims.clone(),
            dynamic: a.dynamic,
            layout: LayoutSource::Default,
        }
    }

    fn into_shape(self, layout: Option<Layout>) -> ArrayShape {
        ArrayShape {
            element_type: self.element_type,
            dims: self.dims,
            dynamic: self.dynamic,
            layout,
        }
    }
}

impl Inferred {
    /// Stores the shape. O(size of the shape).
    pub fn intern(self, pool: &mut ShapePool) -> ShapeId {
        match self {
            Inferred::Same(id) => id,
            Inferred::Array(a) => {
                let layout = a.layout.layout(pool);
                pool.intern_array(a.into_shape(layout))
            }
            Inferred::Tuple(elements) => {
                let elements: Vec<ShapeId> = elements.into_iter().map(|e| e.intern(pool)).collect();
                pool.intern_tuple(&elements)
            }
            Inferred::Token => pool.intern(Shape::Token),
        }
    }

    /// Whether `declared` has this structure and these dimensions and element types, layouts aside.
    pub fn matches(&self, pool: &ShapePool, declared: ShapeId, elements: ElementMatch) -> bool {
        match self {
            Inferred::Same(id) => same_shape(pool, *id, declared, elements),
            Inferred::Array(a) => pool.array(declared).is_some_and(|d| {
                elements.accepts(a.element_type, d.element_type) && same_dims(&a.dims, &d.dims)
            }),
            Inferred::Tuple(parts) => pool.tuple(declared).is_some_and(|d| {
                d.len() == parts.len()
                    && parts
                        .iter()
                        .zip(d)
                        .all(|(p, &d)| p.matches(pool, d, elements))
            }),
            Inferred::Token => matches!(pool.get(declared), Shape::Token),
        }
    }

    /// The shape as text, without layouts.
    pub fn describe(&self, pool: &ShapePool) -> String {
        match self {
            Inferred::Same(id) => pool.display_without_layout(*id).to_string(),
            Inferred::Array(a) => array_text(a.clone().into_shape(None)),
            Inferred::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(|p| p.describe(pool)).collect();
                format!("({})", parts.join(", "))
            }
            Inferred::Token => "token[]".to_owned(),
        }
    }
}

/// How strictly element types are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementMatch {
    /// Equal types.
    Exact,
    /// Equal types, or two floating-point (two complex) types: XLA's compilers mix precisions.
    AnyPrecision,
    /// Any two types: the result type of `dot` and `convolution` is the author's choice.
    Any,
}

impl ElementMatch {
    /// How the declared result of `opcode` is compared with the inferred one.
    pub fn of_result(opcode: Opcode) -> Self {
        match opcode {
            Opcode::Dot | Opcode::Convolution | Opcode::RaggedDot | Opcode::ScaledDot => {
                ElementMatch::Any
            }
            _ => ElementMatch::AnyPrecision,
        }
    }

    pub(crate) fn accepts(self, a: ElementType, b: ElementType) -> bool {
        match self {
            ElementMatch::Any => true,
            ElementMatch::Exact => a == b,
            ElementMatch::AnyPrecision => {
                a == b || (a.is_float() && b.is_float()) || (a.is_complex() && b.is_complex())
            }
        }
    }
}

/// Whether two shapes of the pool agree in structure, dimensions and element types, layouts aside.
///
/// An unbounded dimension agrees with every other. Iterative, O(size of the shapes).
pub fn same_shape(pool: &ShapePool, a: ShapeId, b: ShapeId, elements: ElementMatch) -> bool {
    let mut stack: SmallVec<[(ShapeId, ShapeId); 8]> = SmallVec::new();
    stack.push((a, b));
    while let Some((a, b)) = stack.pop() {
        if a == b {
            continue;
        }
        match (pool.get(a), pool.get(b)) {
            (Shape::Array(x), Shape::Array(y))
                if elements.accepts(x.element_type, y.element_type)
                    && same_dims(&x.dims, &y.dims) => {}
            (Shape::Tuple(x), Shape::Tuple(y)) if x.len() == y.len() => {
                stack.extend(x.iter().copied().zip(y.iter().copied()));
            }
            (Shape::Buffer(x), Shape::Buffer(y)) => stack.push((*x, *y)),
            (x, y) if x == y => {}
            _ => return false,
        }
    }
    true
}

fn array_text(array: ArrayShape) -> String {
    let mut pool = ShapePool::new();
    let id = pool.intern_array(array);
    pool.display_without_layout(id).to_string()
}

/// Whether dimensions agree; an unbounded one agrees with any.
pub(crate) fn same_dims(a: &[u64], b: &[u64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&x, &y)| same_dim(x, y))
}

fn same_dim(a: u64, b: u64) -> bool {
    a == b || a == UNBOUNDED || b == UNBOUNDED
}

/// Why an operation has no valid result shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InferError(pub String);

/// `Some` shape, or `None` where the result is for the text to declare.
type Inference = Result<Option<Inferred>, InferError>;

/// Infers the result shape of `instr`; its own `shape` field is not read.
///
/// `None` means that the operation does not determine it and the text must declare it.
///
/// # Errors
/// The operands and attributes admit no result. O(operands + rank) but for whole-tuple results,
/// which cost their size.
pub fn infer(cx: Context<'_>, instr: &Instr) -> Inference {
    let op = Op { cx, instr };
    op.check_arity()?;
    use Opcode as O;
    match instr.opcode {
        O::Convert | O::StochasticConvert | O::BitcastConvert | O::Bitcast => Ok(None),
        O::Reshape | O::DynamicReshape => Ok(None),
        O::Constant | O::Parameter | O::Iota | O::Rng | O::RngBitGenerator => Ok(None),
        O::CustomCall | O::Infeed | O::Scan => Ok(None),

        o if o.class() == OpClass::Elementwise => elementwise::infer(op),
        O::Clamp => elementwise::clamp(op),
        O::Copy | O::Domain | O::OptimizationBarrier | O::AddDependency => op.same_as_operand(0),

        O::Broadcast => movement::broadcast(op),
        O::Transpose => movement::transpose(op),
        O::Reverse => movement::reverse(op),
        O::Slice => movement::slice(op),
        O::DynamicSlice => movement::dynamic_slice(op),
        O::DynamicUpdateSlice => movement::dynamic_update_slice(op),
        O::Pad => movement::pad(op),
        O::Concatenate => movement::concatenate(op),
        O::GetDimensionSize => movement::get_dimension_size(op),
        O::SetDimensionSize => movement::set_dimension_size(op),
        O::Gather => gather::gather(op),
        O::Scatter => gather::scatter(op),

        O::Dot | O::ScaledDot => contraction::dot(op),
        O::RaggedDot => contraction::ragged_dot(op),
        O::Convolution => contraction::convolution(op),
        O::Fft => contraction::fft(op),
        O::Cholesky => contraction::cholesky(op),
        O::TriangularSolve => contraction::triangular_solve(op),

        O::Reduce => reduction::reduce(op),
        O::ReduceWindow => reduction::reduce_window(op),
        O::SelectAndScatter => reduction::select_and_scatter(op),
        O::Map => reduction::map(op),
        O::Sort => reduction::sort(op),
        O::TopK => reduction::topk(op),
        O::BatchNormTraining | O::BatchNormGrad => reduction::batch_norm_with_statistics(op),
        O::BatchNormInference => op.same_as_operand(0),

        O::Tuple => Ok(Some(op.tuple_of_operands())),
        O::GetTupleElement => control::get_tuple_element(op),
        O::Call => control::call(op),
        O::While => control::while_loop(op),
        O::Conditional => control::conditional(op),
        O::Fusion => control::fusion(op),
        O::AsyncStart | O::AsyncUpdate => Ok(None),
        O::AsyncDone => control::async_done(op),
        O::CopyStart => control::copy_start(op),
        O::CopyDone => op.element_of_operand(0, 0),
        O::Send => control::send(op),
        O::RecvDone => control::recv_done(op),
        O::Recv => Ok(None),
        O::SendDone | O::AfterAll | O::Outfeed => Ok(Some(Inferred::Token)),
        O::PartitionId | O::ReplicaId => Ok(scalar(ElementType::U32)),
        O::RngGetAndUpdateState => Ok(array(ElementType::U64, &[2])),

        O::AllReduce | O::AllReduceStart | O::CollectiveBroadcast => {
            collective::same_as_operands(op)
        }
        O::AllReduceDone => op.same_as_operand(0),
        O::AllToAll => collective::all_to_all(op),
        O::RaggedAllToAll => op.same_as_operand(1),
        O::CollectivePermute => collective::permute(op),
        O::CollectivePermuteDone | O::AllGatherDone => op.element_of_operand(0, 1),
        O::AllGather | O::AllGatherStart | O::ReduceScatter | O::CollectivePermuteStart => Ok(None),

        // Every other operation is elementwise and handled above.
        o => Err(InferError(format!("{o} has no shape rule"))),
    }
}

fn scalar(element_type: ElementType) -> Option<Inferred> {
    array(element_type, &[])
}

fn array(element_type: ElementType, dims: &[u64]) -> Option<Inferred> {
    Some(Inferred::Array(PlainArray::new(element_type, dims)))
}

/// `a` as text, without its layout.
fn describe(a: &ArrayShape) -> String {
    array_text(ArrayShape {
        layout: None,
        ..a.clone()
    })
}

/// Which dimensions of a result are dynamic if its dimension `i` is the `i`-th of `from` in `a`.
fn dynamic_from(a: &ArrayShape, from: impl Iterator<Item = usize>) -> u64 {
    if a.dynamic == 0 {
        return 0;
    }
    from.enumerate().fold(0, |bits, (to, from)| {
        let bit = a.dynamic.checked_shr(from as u32).unwrap_or(0) & 1;
        bits | bit.checked_shl(to as u32).unwrap_or(0)
    })
}

/// The dimensions of a result under construction.
type Dims = SmallVec<[u64; 4]>;

/// One instruction with what it refers to.
#[derive(Clone, Copy)]
struct Op<'a> {
    cx: Context<'a>,
    instr: &'a Instr,
}

impl<'a> Op<'a> {
    fn check_arity(self) -> Result<(), InferError> {
        let given = self.instr.operands.len();
        match self.instr.opcode.arity() {
            a if a.accepts(given) => Ok(()),
            Arity::Exactly(n) => self.fail(format!("takes {n} operand(s), given {given}")),
            Arity::AtLeast(n) => self.fail(format!("takes at least {n} operand(s), given {given}")),
        }
    }

    fn fail<T>(self, message: impl AsRef<str>) -> Result<T, InferError> {
        Err(InferError(format!(
            "{} {}",
            self.instr.opcode,
            message.as_ref()
        )))
    }

    fn len(self) -> usize {
        self.instr.operands.len()
    }

    /// Shape of operand `i`, which exists by the arity check or the caller's own.
    fn shape(self, i: usize) -> ShapeId {
        self.cx.instrs[self.instr.operands[i]].shape
    }

    fn shapes(self) -> impl ExactSizeIterator<Item = ShapeId> + 'a {
        let instrs = self.cx.instrs;
        self.instr.operands.iter().map(move |&o| instrs[o].shape)
    }

    fn array(self, i: usize) -> Result<&'a ArrayShape, InferError> {
        match self.cx.shapes.get(self.shape(i)) {
            // An operation on the address of an array works on the array.
            Shape::Buffer(inner) => self.cx.shapes.array(*inner),
            Shape::Array(a) => Some(a),
            _ => None,
        }
        .map_or_else(
            || {
                self.fail(format!(
                    "operand {i} must be an array, but is {}",
                    self.text(self.shape(i))
                ))
            },
            Ok,
        )
    }

    fn text(self, shape: ShapeId) -> String {
        self.cx.shapes.display_without_layout(shape).to_string()
    }

    fn text_of(self, s: Str) -> &'a str {
        self.cx.strings.get(s)
    }

    fn same_as_operand(self, i: usize) -> Inference {
        Ok(Some(Inferred::Same(self.shape(i))))
    }

    fn element_of_operand(self, i: usize, element: usize) -> Inference {
        let shape = self.shape(i);
        match self.cx.shapes.tuple(shape).and_then(|t| t.get(element)) {
            Some(&e) => Ok(Some(Inferred::Same(e))),
            None => self.fail(format!(
                "operand {i} must be a tuple with an element {element}, but is {}",
                self.text(shape)
            )),
        }
    }

    fn tuple_of_operands(self) -> Inferred {
        Inferred::Tuple(self.shapes().map(Inferred::Same).collect())
    }

    fn int(self, name: AttrName) -> Result<i64, InferError> {
        match self.instr.int(name) {
            Some(n) => Ok(n),
            None => self.missing(name),
        }
    }

    fn comp(self, name: AttrName) -> Result<CompId, InferError> {
        match self.instr.comp(name) {
            Some(c) => Ok(c),
            None => self.missing(name),
        }
    }

    fn missing<T>(self, name: AttrName) -> Result<T, InferError> {
        self.fail(format!("needs attribute {}", name.name()))
    }

    /// The dimension numbers of attribute `name`, each below `rank` and no two equal.
    fn dimension_numbers(
        self,
        name: AttrName,
        rank: usize,
    ) -> Result<SmallVec<[usize; 6]>, InferError> {
        let mut seen: SmallVec<[usize; 6]> = SmallVec::new();
        for &d in self.instr.ints(name) {
            let d = match usize::try_from(d) {
                Ok(d) if d < rank => d,
                _ => {
                    return self.fail(format!(
                        "{}: dimension {d} is out of range, the rank is {rank}",
                        name.name()
                    ));
                }
            };
            if seen.contains(&d) {
                return self.fail(format!("{}: dimension {d} occurs twice", name.name()));
            }
            seen.push(d);
        }
        Ok(seen)
    }

    /// The one dimension number of attribute `dimensions`.
    fn dimension(self, rank: usize) -> Result<usize, InferError> {
        match self.dimension_numbers(AttrName::Dimensions, rank)?[..] {
            [d] => Ok(d),
            _ => self.fail("needs attribute dimensions with exactly one entry"),
        }
    }

    /// A computed size as a dimension.
    fn size(self, n: i128) -> Result<u64, InferError> {
        match i64::try_from(n) {
            Ok(n) if n >= 0 => Ok(n as u64),
            Ok(n) => self.fail(format!("would have a dimension of {n}")),
            Err(_) => self.fail("would have a dimension past 2^63 - 1"),
        }
    }
}

/// An array with the given dimensions, of which those in `dynamic` are dynamic.
fn result(element_type: ElementType, dims: Dims, dynamic: u64) -> Inference {
    Ok(Some(Inferred::Array(PlainArray {
        element_type,
        dims,
        dynamic,
        layout: LayoutSource::Default,
    })))
}
