//! Operations that convert on the way: XLA:TPU folds a conversion between floats into the data
//! movement, `select` or reduction beside it, and the element types then differ.

use slabplan_ir::{ArrayShape, ElementType, Opcode};

use super::convert::Convert;
use super::prepare::Prepare;
use super::scalar::width;
use super::{ArrayMut, ArrayRef, KernelError, Run, prepare_run};

/// Most operands and results of such an operation.
const MAX_ARRAYS: usize = 8;

/// A kernel whose operands are converted before it runs, and its results after.
#[derive(Debug)]
struct Mixed {
    inner: Box<dyn Run>,
    operands: Vec<Conversion>,
    results: Vec<Conversion>,
}

/// The conversion of one array, if it needs one.
#[derive(Debug)]
struct Conversion {
    convert: Option<Convert>,
    /// Element type and bytes of the array inside the kernel.
    inside: ElementType,
    bytes: usize,
}

/// Whether [`prepare`] would convert operands of `p`'s instruction.
pub(super) fn converts_on_the_way(p: &Prepare<'_>) -> Result<bool, KernelError> {
    let Some(data) = data_operands(p) else {
        return Ok(false);
    };
    let to = p.result()?.element_type;
    let shapes = p.operands()?;
    Ok(data
        .into_iter()
        .any(|i| shapes.get(i).is_some_and(|s| s.element_type != to)))
}

/// The operands that such an operation takes as elements of its result, if it is data movement.
fn data_operands(p: &Prepare<'_>) -> Option<std::ops::Range<usize>> {
    use Opcode as O;
    Some(match p.instr.opcode {
        O::Broadcast
        | O::Copy
        | O::DynamicSlice
        | O::Gather
        | O::Reshape
        | O::Reverse
        | O::Slice
        | O::Transpose => 0..1,
        O::DynamicUpdateSlice | O::Pad => 0..2,
        O::Concatenate => 0..p.instr.operands.len(),
        O::Select => 1..3,
        _ => return None,
    })
}

/// Prepares an instruction whose element types differ where the operation itself has only one;
/// `None` if they do not.
///
/// Operands of data movement are converted to the result's type first; a reduction is done in the
/// type of its operands and its result converted.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Option<Box<dyn Run>>, KernelError> {
    if matches!(p.instr.opcode, Opcode::Reduce | Opcode::ReduceWindow) {
        return reduction(p);
    }
    let Some(data) = data_operands(p) else {
        return Ok(None);
    };
    let to = p.result()?.element_type;
    let shapes = p.operands()?;
    let differs = |i: usize| data.contains(&i) && shapes[i].element_type != to;
    if !(0..shapes.len()).any(differs) {
        return Ok(None);
    }
    let inside: Vec<ArrayShape> = shapes
        .iter()
        .enumerate()
        .map(|(i, &shape)| retyped(shape, if differs(i) { to } else { shape.element_type }))
        .collect();
    let inner = prepare_run(&Prepare {
        operand_shapes: Some(&inside),
        in_layout: false,
        ..*p
    })?;
    let pairs = shapes.into_iter().zip(&inside);
    let operands = pairs
        .map(|(outside, inside)| conversion(p, outside.element_type, inside.element_type, inside));
    finish(p, inner, operands.collect::<Result<_, _>>()?, Vec::new())
}

/// A reduction whose results are of other types than its operands.
fn reduction(p: &Prepare<'_>) -> Result<Option<Box<dyn Run>>, KernelError> {
    let (operands, results) = (p.operands()?, p.results()?);
    let pairs = || results.iter().zip(&operands);
    if pairs().all(|(r, o)| r.element_type == o.element_type) {
        return Ok(None);
    }
    let inside: Vec<ArrayShape> = pairs().map(|(r, o)| retyped(r, o.element_type)).collect();
    let inner = prepare_run(&Prepare {
        result_shapes: Some(&inside),
        in_layout: false,
        ..*p
    })?;
    let results = results
        .iter()
        .zip(&inside)
        .map(|(outside, inside)| conversion(p, inside.element_type, outside.element_type, inside));
    finish(p, inner, Vec::new(), results.collect::<Result<_, _>>()?)
}

fn retyped(shape: &ArrayShape, element_type: ElementType) -> ArrayShape {
    ArrayShape {
        element_type,
        ..shape.clone()
    }
}

/// The conversion between two types of an array that is `inside` within the kernel.
fn conversion(
    p: &Prepare<'_>,
    from: ElementType,
    to: ElementType,
    inside: &ArrayShape,
) -> Result<Conversion, KernelError> {
    p.require(
        from == to || (from.is_float() && to.is_float()),
        "operands and result differ in element type",
    )?;
    Ok(Conversion {
        convert: (from != to).then(|| Convert::new(from, to)).flatten(),
        inside: inside.element_type,
        bytes: p.element_count(inside)? * width(inside.element_type),
    })
}

fn finish(
    p: &Prepare<'_>,
    inner: Box<dyn Run>,
    operands: Vec<Conversion>,
    results: Vec<Conversion>,
) -> Result<Option<Box<dyn Run>>, KernelError> {
    p.require(
        operands.len() <= MAX_ARRAYS && results.len() <= MAX_ARRAYS,
        "converts more than 8 arrays on the way",
    )?;
    Ok(Some(Box::new(Mixed {
        inner,
        operands,
        results,
    })))
}

impl Run for Mixed {
    fn scratch_bytes(&self) -> usize {
        let converted = self.operands.iter().chain(&self.results);
        let bytes: usize = converted
            .filter(|c| c.convert.is_some())
            .map(|c| c.bytes)
            .sum();
        bytes + self.inner.scratch_bytes()
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]) {
        let (inner_scratch, scratch) = scratch.split_at_mut(self.inner.scratch_bytes());
        if self.results.is_empty() {
            self.with_operands(operands, results, scratch, inner_scratch);
        } else {
            self.with_results(operands, results, scratch, inner_scratch);
        }
    }
}

impl Mixed {
    fn with_operands(
        &self,
        operands: &[ArrayRef<'_>],
        results: &mut [ArrayMut<'_>],
        scratch: &mut [u8],
        inner_scratch: &mut [u8],
    ) {
        let nothing = ArrayRef {
            element_type: ElementType::Pred,
            dims: &[],
            data: &[],
        };
        let mut inside = [nothing; MAX_ARRAYS];
        let mut rest = scratch;
        for ((inside, &operand), c) in inside.iter_mut().zip(operands).zip(&self.operands) {
            *inside = operand;
            if let Some(convert) = &c.convert {
                let (memory, after) = rest.split_at_mut(c.bytes);
                rest = after;
                convert.apply(operand.data, memory);
                *inside = ArrayRef {
                    element_type: c.inside,
                    dims: operand.dims,
                    data: memory,
                };
            }
        }
        self.inner
            .run(&inside[..operands.len()], results, inner_scratch);
    }

    fn with_results(
        &self,
        operands: &[ArrayRef<'_>],
        results: &mut [ArrayMut<'_>],
        scratch: &mut [u8],
        inner_scratch: &mut [u8],
    ) {
        let count = results.len();
        let mut inside: [ArrayMut<'_>; MAX_ARRAYS] = std::array::from_fn(|_| ArrayMut {
            element_type: ElementType::Pred,
            dims: &[],
            data: &mut [],
        });
        let mut rest = &mut *scratch;
        for ((inside, result), c) in inside.iter_mut().zip(results.iter_mut()).zip(&self.results) {
            let data = if c.convert.is_some() {
                let (memory, after) = rest.split_at_mut(c.bytes);
                rest = after;
                memory
            } else {
                &mut *result.data
            };
            *inside = ArrayMut {
                element_type: c.inside,
                dims: result.dims,
                data,
            };
        }
        self.inner
            .run(operands, &mut inside[..count], inner_scratch);
        let mut rest = &*scratch;
        for (result, c) in results.iter_mut().zip(&self.results) {
            if let Some(convert) = &c.convert {
                let (memory, after) = rest.split_at(c.bytes);
                rest = after;
                convert.apply(memory, result.data);
            }
        }
    }
}
