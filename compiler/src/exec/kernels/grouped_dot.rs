//! `ragged-dot`, groups of rows each with a matrix of their own, and `scaled-dot`, products of block-scaled
//! arrays. Computed in double precision, straight from the definition.

use slabplan_ir::attr::AttrName;
use slabplan_ir::{ArrayShape, ElementType, Opcode};

use super::convert::Convert;
use super::prepare::{Dims, MAX_RANK, Prepare, dims, row_major_strides};
use super::scalar::{Scalar, width};
use super::{ArrayMut, ArrayRef, KernelError, Run};

const WIDE: usize = f64::BYTES;

/// A dimension of the result, or one that is summed over: its size, and steps of the operands.
#[derive(Clone, Copy, Debug)]
struct Axis {
    size: usize,
    lhs: usize,
    rhs: usize,
}

/// What the sizes of groups cut.
#[derive(Clone, Copy, Debug)]
enum Ragged {
    /// Nothing.
    None,
    /// A free dimension of the left operand: dimension `axis` of the result. The right operand steps
    /// by `step` from group to group.
    Free { axis: usize, step: usize },
    /// A contracting dimension: each group gives a result of its own, along the first dimension.
    Contracting { axis: usize },
}

/// An array as doubles: how it is converted, and which scales its elements take.
#[derive(Debug)]
struct Side {
    convert: Convert,
    elements: usize,
    scale: Option<Scale>,
}

/// One scale for each block of elements.
#[derive(Debug)]
struct Scale {
    convert: Convert,
    elements: usize,
    /// For each dimension: size of the array, elements of a block, step among the scales.
    axes: Vec<(usize, usize, usize)>,
}

#[derive(Debug)]
struct GroupedDot {
    lhs: Side,
    rhs: Side,
    result: Convert,
    result_width: usize,
    out: Vec<Axis>,
    sum: Vec<Axis>,
    ragged: Ragged,
    groups: usize,
    /// Leading dimensions of the result that have group sizes of their own.
    size_batch: usize,
    size_width: usize,
}

/// Prepares a `ragged-dot` or a `scaled-dot`.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    use AttrName as A;
    let (x, y, result) = (p.operand(0)?, p.operand(1)?, p.result()?);
    let (xs, ys) = (dims(x), dims(y));
    let (x_steps, y_steps) = (row_major_strides(&xs), row_major_strides(&ys));
    let x_batch = p.dimensions(A::LhsBatchDims, xs.len())?;
    let y_batch = p.dimensions(A::RhsBatchDims, ys.len())?;
    let x_sum = p.dimensions(A::LhsContractingDims, xs.len())?;
    let y_sum = p.dimensions(A::RhsContractingDims, ys.len())?;
    let y_group = p.dimensions(A::RhsGroupDims, ys.len())?;
    let pairs = |a: &Dims, b: &Dims| -> Result<Vec<Axis>, KernelError> {
        let axes: Vec<Axis> = a
            .iter()
            .zip(b)
            .map(|(&i, &j)| Axis {
                size: xs[i],
                lhs: x_steps[i],
                rhs: y_steps[j],
            })
            .collect();
        let agree = a.len() == b.len() && a.iter().zip(b).all(|(&i, &j)| xs[i] == ys[j]);
        p.require(agree, "operands do not match")?;
        Ok(axes)
    };
    let mut out = pairs(&x_batch, &y_batch)?;
    let sum = pairs(&x_sum, &y_sum)?;
    let x_free = (0..xs.len()).filter(|d| !x_batch.contains(d) && !x_sum.contains(d));
    let ragged_dim = p.dimensions(A::LhsRaggedDims, xs.len())?.first().copied();
    let mut ragged = Ragged::None;
    for d in x_free {
        if Some(d) == ragged_dim {
            let step = y_group.first().map_or(0, |&g| y_steps[g]);
            ragged = Ragged::Free {
                axis: out.len(),
                step,
            };
        }
        out.push(Axis {
            size: xs[d],
            lhs: x_steps[d],
            rhs: 0,
        });
    }
    let taken = |d: &usize| y_batch.contains(d) || y_sum.contains(d) || y_group.contains(d);
    out.extend((0..ys.len()).filter(|d| !taken(d)).map(|d| Axis {
        size: ys[d],
        lhs: 0,
        rhs: y_steps[d],
    }));
    if let Some(axis) = x_sum.iter().position(|&d| Some(d) == ragged_dim) {
        ragged = Ragged::Contracting { axis };
    }
    let is_ragged = p.instr.opcode == Opcode::RaggedDot;
    let (mut groups, mut size_batch, mut size_width) = (0, 0, 0);
    if is_ragged {
        let sizes = p.operand(2)?;
        let leading = sizes.rank().saturating_sub(1);
        p.require(
            sizes.rank() > 0
                && sizes.element_type.is_integer()
                && leading <= x_batch.len()
                && sizes.dims[..leading]
                    .iter()
                    .zip(&out)
                    .all(|(&n, axis)| n as usize == axis.size),
            "group sizes are not one vector for each batch",
        )?;
        groups = sizes.dims[leading] as usize;
        size_batch = leading;
        size_width = width(sizes.element_type);
    }
    let by_group = matches!(ragged, Ragged::Contracting { .. });
    let expected = by_group.then_some(groups).into_iter();
    let expected: Vec<usize> = expected.chain(out.iter().map(|a| a.size)).collect();
    p.require(
        expected.iter().eq(dims(result).iter()) && expected.len() <= MAX_RANK,
        "operands and result do not match",
    )?;
    let scales = if is_ragged { None } else { Some((2, 3)) };
    let to = Convert::new(ElementType::F64, result.element_type);
    Ok(Box::new(GroupedDot {
        lhs: side(p, x, scales.map(|s| s.0))?,
        rhs: side(p, y, scales.map(|s| s.1))?,
        result: to.ok_or_else(|| p.error(format!("not defined on {}", result.element_type)))?,
        result_width: width(result.element_type),
        out,
        sum,
        ragged,
        groups,
        size_batch,
        size_width,
    }))
}

fn side(p: &Prepare<'_>, shape: &ArrayShape, scale: Option<usize>) -> Result<Side, KernelError> {
    let to_wide = |ty: ElementType| {
        Convert::new(ty, ElementType::F64)
            .filter(|_| !ty.is_complex())
            .ok_or_else(|| p.error(format!("not defined on {ty}")))
    };
    let scale = match scale {
        None => None,
        Some(operand) => {
            let scale = p.operand(operand)?;
            let steps = row_major_strides(&dims(scale));
            let divides = |(&n, &blocks): (&u64, &u64)| blocks > 0 && n.is_multiple_of(blocks);
            p.require(
                scale.rank() == 0
                    || (scale.rank() == shape.rank()
                        && shape.dims.iter().zip(&scale.dims).all(divides)),
                "its scales do not divide an operand into blocks",
            )?;
            let axes = shape.dims.iter().zip(&scale.dims).zip(&steps);
            Some(Scale {
                convert: to_wide(scale.element_type)?,
                elements: p.element_count(scale)?,
                axes: axes
                    .map(|((&n, &blocks), &step)| (n as usize, (n / blocks) as usize, step))
                    .collect(),
            })
        }
    };
    Ok(Side {
        convert: to_wide(shape.element_type)?,
        elements: p.element_count(shape)?,
        scale,
    })
}

impl Side {
    fn scratch_bytes(&self) -> usize {
        let scale = self.scale.as_ref().map_or(0, |s| s.elements);
        (self.elements + scale) * WIDE
    }

    /// The elements as doubles, at the front of `scratch`.
    fn widen(&self, data: &[u8], scales: Option<&ArrayRef<'_>>, scratch: &mut [u8]) {
        let (wide, rest) = scratch.split_at_mut(self.elements * WIDE);
        self.convert.apply(data, wide);
        let (Some(scale), Some(array)) = (&self.scale, scales) else {
            return;
        };
        let scales = &mut rest[..scale.elements * WIDE];
        scale.convert.apply(array.data, scales);
        for (n, element) in wide.chunks_exact_mut(WIDE).enumerate() {
            let (mut left, mut at) = (n, 0);
            for &(size, block, step) in scale.axes.iter().rev() {
                at += left % size / block * step;
                left /= size;
            }
            let value = f64::load(element) * get(scales, at);
            value.store(element);
        }
    }
}

fn get(wide: &[u8], at: usize) -> f64 {
    f64::load(&wide[at * WIDE..][..WIDE])
}

impl Run for GroupedDot {
    fn scratch_bytes(&self) -> usize {
        self.lhs.scratch_bytes() + self.rhs.scratch_bytes()
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]) {
        let (x, y) = scratch.split_at_mut(self.lhs.scratch_bytes());
        self.lhs.widen(operands[0].data, operands.get(2), x);
        self.rhs.widen(operands[1].data, operands.get(3), y);
        let sizes = operands.get(2).map_or(&[][..], |a| a.data);
        let by_group = matches!(self.ragged, Ragged::Contracting { .. });
        let per_group: usize = self.out.iter().map(|a| a.size).product();
        let elements = results[0].data.chunks_exact_mut(self.result_width);
        for (n, element) in elements.enumerate() {
            let group = if by_group { n / per_group.max(1) } else { 0 };
            let mut left = n % per_group.max(1);
            let mut index = [0; MAX_RANK];
            let (mut lhs, mut rhs) = (0, 0);
            for (d, axis) in self.out.iter().enumerate().rev() {
                index[d] = left % axis.size;
                left /= axis.size;
                lhs += index[d] * axis.lhs;
                rhs += index[d] * axis.rhs;
            }
            let value = match self.ragged {
                Ragged::None => self.sum(x, y, (lhs, rhs), None),
                Ragged::Free { axis, step } => match self.group_of(sizes, &index, index[axis]) {
                    Some(group) => self.sum(x, y, (lhs, rhs + group * step), None),
                    None => 0.0,
                },
                Ragged::Contracting { axis } => {
                    let (start, end) = self.range_of(sizes, &index, group);
                    self.sum(x, y, (lhs, rhs), Some((axis, start, end)))
                }
            };
            self.result.apply(&value.to_le_bytes(), element);
        }
    }
}

impl GroupedDot {
    /// Sum of products over the contracting dimensions; of one of them only a range.
    fn sum(
        &self,
        x: &[u8],
        y: &[u8],
        (lhs, rhs): (usize, usize),
        range: Option<(usize, usize, usize)>,
    ) -> f64 {
        let bounds = |d: usize| match range {
            Some((axis, start, end)) if axis == d => {
                (start.min(self.sum[d].size), end.min(self.sum[d].size))
            }
            _ => (0, self.sum[d].size),
        };
        let mut index = [0; MAX_RANK];
        for (d, i) in index.iter_mut().enumerate().take(self.sum.len()) {
            let (start, end) = bounds(d);
            if start >= end {
                return 0.0;
            }
            *i = start;
        }
        let mut total = 0.0;
        loop {
            let (mut l, mut r) = (lhs, rhs);
            for (axis, &i) in self.sum.iter().zip(&index) {
                l += i * axis.lhs;
                r += i * axis.rhs;
            }
            total += get(x, l) * get(y, r);
            let mut d = self.sum.len();
            loop {
                if d == 0 {
                    return total;
                }
                d -= 1;
                index[d] += 1;
                let (start, end) = bounds(d);
                if index[d] < end {
                    break;
                }
                index[d] = start;
            }
        }
    }

    /// Rows of group `group`, of the batch that `index` is in.
    fn range_of(&self, sizes: &[u8], index: &[usize], group: usize) -> (usize, usize) {
        let start: usize = (0..group).map(|g| self.size(sizes, index, g)).sum();
        (start, start + self.size(sizes, index, group))
    }

    /// The group that row `row` is in; none past the last.
    fn group_of(&self, sizes: &[u8], index: &[usize], row: usize) -> Option<usize> {
        let mut end = 0usize;
        (0..self.groups).find(|&g| {
            end = end.saturating_add(self.size(sizes, index, g));
            row < end
        })
    }

    fn size(&self, sizes: &[u8], index: &[usize], group: usize) -> usize {
        let batch = self.out[..self.size_batch].iter().zip(index);
        let at = batch.fold(0, |at, (axis, &i)| at * axis.size + i) * self.groups + group;
        let bytes = &sizes[at * self.size_width..][..self.size_width];
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        // Negative sizes of narrow types read as huge ones: nothing lies past such a group.
        usize::try_from(u64::from_le_bytes(wide)).unwrap_or(usize::MAX)
    }
}
