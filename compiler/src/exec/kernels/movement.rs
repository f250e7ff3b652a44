//! Operations that only place elements anew: the result is known by position.

use slabplan_ir::attr::AttrName;
use slabplan_ir::{ArrayShape, InstrId, Module, Opcode};

use super::mixed::converts_on_the_way;
use super::prepare::{Dims, Prepare, dims, row_major_strides};
use super::scalar::width;
use super::strided::StridedCopy;
use super::{ArrayMut, ArrayRef, KernelError, Run};

/// One strided copy for each operand, side by side in the result.
#[derive(Debug)]
struct Movement {
    /// The copy, the byte it starts from in the operand, and the byte it starts at in the result.
    copies: Vec<(StridedCopy, usize, usize)>,
    /// Whether they are between arrays in their own layouts.
    strided: bool,
    /// Most threads that a copy is divided among.
    parts: usize,
}

impl Run for Movement {
    fn is_strided(&self) -> bool {
        self.strided
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], _: &mut [u8]) {
        for ((copy, from, to), operand) in self.copies.iter().zip(operands) {
            copy.run_in_parallel(operand.data, *from, results[0].data, *to, self.parts);
        }
    }
}

/// Prepares `broadcast`, `transpose`, `reverse`, `slice`, `concatenate`, `reshape` and `copy`.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let result = p.result()?;
    let copies = match p.instr.opcode {
        Opcode::Concatenate => concatenate(p, result)?,
        _ => vec![one(p, result)?],
    };
    Ok(Box::new(Movement {
        copies,
        strided: p.instr.opcode == Opcode::Concatenate,
        parts: p.threads,
    }))
}

/// Where an index comes from: the dimension, the step and the start.
pub(crate) type MovedDim = (Option<usize>, isize, isize);

/// For each dimension of the operand, the dimension of the result that its index comes from, the
/// step and the start; `None` if the instruction is not a broadcast, transpose, slice or reverse
/// that keeps the element type.
pub(crate) fn moved_dims(
    module: &Module,
    instr: InstrId,
) -> Result<Option<Vec<MovedDim>>, KernelError> {
    let p = Prepare::new(module, instr);
    let opcode = p.instr.opcode;
    if !matches!(
        opcode,
        Opcode::Broadcast | Opcode::Transpose | Opcode::Slice | Opcode::Reverse
    ) || converts_on_the_way(&p)?
    {
        return Ok(None);
    }
    one(&p, p.result()?)?;
    let from = dims(p.operand(0)?);
    let given = p.dimensions(AttrName::Dimensions, p.result()?.rank())?;
    let same = |d: usize| (Some(d), 1, 0);
    Ok(Some(match opcode {
        Opcode::Broadcast => given.iter().map(|&d| same(d)).collect(),
        Opcode::Transpose => {
            let mut map = vec![same(0); from.len()];
            for (i, &d) in given.iter().enumerate() {
                map[d] = same(i);
            }
            map
        }
        Opcode::Slice => (p.instr.slice_dims().iter().enumerate())
            .map(|(d, b)| (Some(d), b.stride as isize, b.start as isize))
            .collect(),
        _ => (0..from.len())
            .map(|d| {
                if given.contains(&d) {
                    (Some(d), -1, from[d].saturating_sub(1) as isize)
                } else {
                    same(d)
                }
            })
            .collect(),
    }))
}

fn one(p: &Prepare<'_>, result: &ArrayShape) -> Result<(StridedCopy, usize, usize), KernelError> {
    let operand = p.operand(0)?;
    let same_type = operand.element_type == result.element_type;
    let (from, to) = (dims(operand), dims(result));
    let strides = row_major_strides(&from);
    let w = width(result.element_type);
    // For each result dimension, the operand's step; and the operand's first element.
    let (steps, start): (Vec<isize>, usize) = match p.instr.opcode {
        Opcode::Broadcast => (broadcast(p, &from, &to, &strides)?, 0),
        Opcode::Transpose => (transpose(p, &from, &to, &strides)?, 0),
        Opcode::Reverse => reverse(p, &from, &to, &strides)?,
        Opcode::Slice => slice(p, &from, &to, &strides)?,
        _ => {
            p.require(
                p.element_count(operand)? == p.element_count(result)?,
                "operand and result differ in the number of elements",
            )?;
            let count = p.element_count(result)?;
            p.require(same_type, "operand and result differ in element type")?;
            return Ok((StridedCopy::new(w, [(count, 1, 1)]), 0, 0));
        }
    };
    p.require(same_type, "operand and result differ in element type")?;
    let axes = to.iter().zip(row_major_strides(&to)).zip(steps);
    let copy = StridedCopy::new(w, axes.map(|((&n, to), from)| (n, from, to as isize)));
    Ok((copy, start * w, 0))
}

fn broadcast(
    p: &Prepare<'_>,
    from: &Dims,
    to: &Dims,
    strides: &Dims,
) -> Result<Vec<isize>, KernelError> {
    let map = p.dimensions(AttrName::Dimensions, to.len())?;
    p.require(
        map.len() == from.len() && map.iter().zip(from).all(|(&d, &n)| to[d] == n),
        "dimensions do not match the operand",
    )?;
    let mut steps = vec![0; to.len()];
    for (&d, &stride) in map.iter().zip(strides) {
        steps[d] = stride as isize;
    }
    Ok(steps)
}

fn transpose(
    p: &Prepare<'_>,
    from: &Dims,
    to: &Dims,
    strides: &Dims,
) -> Result<Vec<isize>, KernelError> {
    let permutation = p.dimensions(AttrName::Dimensions, from.len())?;
    p.require(
        permutation.len() == from.len()
            && to.len() == from.len()
            && permutation.iter().zip(to).all(|(&d, &n)| from[d] == n),
        "dimensions do not permute the operand",
    )?;
    Ok(permutation.iter().map(|&d| strides[d] as isize).collect())
}

fn reverse(
    p: &Prepare<'_>,
    from: &Dims,
    to: &Dims,
    strides: &Dims,
) -> Result<(Vec<isize>, usize), KernelError> {
    p.require(from == to, "operand and result differ in shape")?;
    let mut steps: Vec<isize> = strides.iter().map(|&s| s as isize).collect();
    let mut start = 0;
    for d in p.dimensions(AttrName::Dimensions, from.len())? {
        steps[d] = -steps[d];
        start += from[d].saturating_sub(1) * strides[d];
    }
    Ok((steps, start))
}

fn slice(
    p: &Prepare<'_>,
    from: &Dims,
    to: &Dims,
    strides: &Dims,
) -> Result<(Vec<isize>, usize), KernelError> {
    let bounds = p.instr.slice_dims();
    p.require(
        bounds.len() == from.len() && to.len() == from.len(),
        "slice does not match the operand",
    )?;
    let mut steps = Vec::new();
    let mut start = 0;
    for (i, b) in bounds.iter().enumerate() {
        let inside =
            0 <= b.start && b.start <= b.limit && b.limit as u64 <= from[i] as u64 && 1 <= b.stride;
        p.require(
            inside && to[i] as u64 == ((b.limit - b.start) as u64).div_ceil(b.stride as u64),
            "slice leaves the operand or does not match the result",
        )?;
        steps.push((b.stride as isize).wrapping_mul(strides[i] as isize));
        start += b.start as usize * strides[i];
    }
    Ok((steps, start))
}

fn concatenate(
    p: &Prepare<'_>,
    result: &ArrayShape,
) -> Result<Vec<(StridedCopy, usize, usize)>, KernelError> {
    let to = dims(result);
    let along = p.dimension(AttrName::Dimensions, to.len())?;
    let strides = p.strides(result);
    let w = width(result.element_type);
    let mut copies = Vec::new();
    let mut position = 0;
    for operand in p.operands()? {
        let from = dims(operand);
        let fits = from.len() == to.len()
            && from
                .iter()
                .zip(&to)
                .enumerate()
                .all(|(i, (m, n))| i == along || m == n)
            && operand.element_type == result.element_type;
        p.require(fits, "operands do not match the result")?;
        let axes = from.iter().zip(p.strides(operand)).zip(&strides);
        let copy = StridedCopy::new(w, axes.map(|((&n, s), &t)| (n, s as isize, t as isize)));
        copies.push((copy, 0, position * strides[along] * w));
        position += from[along];
    }
    p.require(position == to[along], "operands do not fill the result")?;
    Ok(copies)
}
