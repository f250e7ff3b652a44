//! Operations that move elements without computing on them.

use super::{
    Dims, ElementMatch, InferError, Inference, Inferred, LayoutSource, Op, PlainArray, describe,
    dynamic_from, result, same_dim, scalar,
};
use crate::ElementType;
use crate::attr::AttrName;
use crate::shape::{ArrayShape, UNBOUNDED};

/// What a broadcast adds is left to the text.
pub(super) fn broadcast(op: Op<'_>) -> Inference {
    op.array(0)?;
    Ok(None)
}

/// `dimensions` says which operand dimension becomes each result dimension.
pub(super) fn transpose(op: Op<'_>) -> Inference {
    let a = op.array(0)?;
    let order = op.dimension_numbers(AttrName::Dimensions, a.rank())?;
    if order.len() != a.rank() {
        return op.fail(format!(
            "needs a permutation of {} dimension(s), given {} number(s)",
            a.rank(),
            order.len()
        ));
    }
    let dims = order.iter().map(|&d| a.dims[d]).collect();
    let dynamic = dynamic_from(a, order.iter().copied());
    Ok(Some(Inferred::Array(PlainArray {
        element_type: a.element_type,
        dims,
        dynamic,
        layout: LayoutSource::Transposed(op.shape(0), order),
    })))
}

pub(super) fn reverse(op: Op<'_>) -> Inference {
    op.dimension_numbers(AttrName::Dimensions, op.array(0)?.rank())?;
    op.same_as_operand(0)
}

/// Result dimension: `ceil((limit - start) / stride)`.
pub(super) fn slice(op: Op<'_>) -> Inference {
    let a = op.array(0)?;
    let bounds = op.instr.slice_dims();
    if bounds.len() != a.rank() {
        return op.fail(format!(
            "of {} needs {} range(s), given {}",
            describe(a),
            a.rank(),
            bounds.len()
        ));
    }
    let mut dims = Dims::new();
    for (i, (b, &d)) in bounds.iter().zip(&a.dims).enumerate() {
        let in_range = d == UNBOUNDED || i128::from(b.limit) <= i128::from(d);
        if b.stride <= 0 || b.start < 0 || b.start > b.limit || !in_range {
            return op.fail(format!(
                "range [{}:{}:{}] of dimension {i} does not lie in {}",
                b.start,
                b.limit,
                b.stride,
                describe(a)
            ));
        }
        dims.push(((b.limit - b.start) as u64).div_ceil(b.stride as u64));
    }
    result(a.element_type, dims, 0)
}

pub(super) fn dynamic_slice(op: Op<'_>) -> Inference {
    let a = op.array(0)?;
    check_indices(op, a, 1)?;
    let sizes = op.instr.ints(AttrName::DynamicSliceSizes);
    if sizes.len() != a.rank() {
        return op.fail(format!(
            "of {} needs {} dynamic_slice_sizes, given {}",
            describe(a),
            a.rank(),
            sizes.len()
        ));
    }
    let mut dims = Dims::new();
    for (&n, &d) in sizes.iter().zip(&a.dims) {
        if n < 0 || n as u64 > d {
            return op.fail(format!("takes {n} of a dimension of {d} elements"));
        }
        dims.push(n as u64);
    }
    result(a.element_type, dims, 0)
}

pub(super) fn dynamic_update_slice(op: Op<'_>) -> Inference {
    let (a, update) = (op.array(0)?, op.array(1)?);
    check_indices(op, a, 2)?;
    let fits = a.rank() == update.rank()
        && a.dims
            .iter()
            .zip(&update.dims)
            .all(|(&d, &u)| u <= d || u == UNBOUNDED);
    if !fits {
        return op.fail(format!(
            "cannot put {} into {}",
            describe(update),
            describe(a)
        ));
    }
    if !ElementMatch::AnyPrecision.accepts(a.element_type, update.element_type) {
        return op.fail(format!(
            "update is {}, but the operand is {}",
            describe(update),
            describe(a)
        ));
    }
    op.same_as_operand(0)
}

/// Start indices from operand `first` on: one scalar a dimension, or one vector of them all.
fn check_indices(op: Op<'_>, a: &ArrayShape, first: usize) -> Result<(), InferError> {
    let given = op.len().saturating_sub(first);
    if given == 1 {
        let index = op.array(first)?;
        if index.rank() == 1 && same_dim(index.dims[0], a.rank() as u64) {
            return check_index_type(op, index);
        }
    }
    if given != a.rank() {
        return op.fail(format!(
            "of {} needs {} start indices, given {given}",
            describe(a),
            a.rank()
        ));
    }
    for i in first..op.len() {
        let index = op.array(i)?;
        if index.rank() != 0 {
            return op.fail(format!(
                "start index (operand {i}) must be a scalar, but is {}",
                describe(index)
            ));
        }
        check_index_type(op, index)?;
    }
    Ok(())
}

fn check_index_type(op: Op<'_>, index: &ArrayShape) -> Result<(), InferError> {
    if index.element_type.is_integer() {
        Ok(())
    } else {
        op.fail(format!(
            "start indices must be integers, but are {}",
            describe(index)
        ))
    }
}

/// Result dimension: `low + d + interior * max(d - 1, 0) + high`.
pub(super) fn pad(op: Op<'_>) -> Inference {
    let (a, value) = (op.array(0)?, op.array(1)?);
    if value.rank() != 0 || !ElementMatch::AnyPrecision.accepts(a.element_type, value.element_type)
    {
        return op.fail(format!(
            "needs a padding value that is a scalar of the type of {}, given {}",
            describe(a),
            describe(value)
        ));
    }
    let padding = op.instr.padding();
    if padding.len() != a.rank() {
        return op.fail(format!(
            "of {} needs padding for {} dimension(s), given {}",
            describe(a),
            a.rank(),
            padding.len()
        ));
    }
    let mut dims = Dims::new();
    for (p, &d) in padding.iter().zip(&a.dims) {
        if p.interior < 0 {
            return op.fail("has negative interior padding");
        }
        if d == UNBOUNDED {
            dims.push(d);
            continue;
        }
        let inner = i128::from(d) + i128::from(p.interior) * (i128::from(d) - 1).max(0);
        dims.push(op.size(i128::from(p.low) + inner + i128::from(p.high))?);
    }
    result(a.element_type, dims, a.dynamic)
}

pub(super) fn concatenate(op: Op<'_>) -> Inference {
    let first = op.array(0)?;
    let along = op.dimension(first.rank())?;
    let mut sum = 0i128;
    let mut dynamic = 0;
    for i in 0..op.len() {
        let a = op.array(i)?;
        let agrees = a.rank() == first.rank()
            && ElementMatch::AnyPrecision.accepts(a.element_type, first.element_type)
            && (0..a.rank()).all(|d| d == along || same_dim(a.dims[d], first.dims[d]));
        if !agrees {
            return op.fail(format!(
                "along dimension {along}: operand {i} is {}, but operand 0 is {}",
                describe(a),
                describe(first)
            ));
        }
        dynamic |= a.dynamic;
        sum = if a.dims[along] == UNBOUNDED || sum < 0 {
            -1
        } else {
            sum + i128::from(a.dims[along])
        };
    }
    let mut dims = first.dims.clone();
    dims[along] = if sum < 0 { UNBOUNDED } else { op.size(sum)? };
    result(first.element_type, dims, dynamic)
}

pub(super) fn get_dimension_size(op: Op<'_>) -> Inference {
    op.dimension(op.array(0)?.rank())?;
    Ok(scalar(ElementType::S32))
}

/// The operand's shape with one dimension dynamic (or, where set to its bound, static).
pub(super) fn set_dimension_size(op: Op<'_>) -> Inference {
    let a = op.array(0)?;
    let d = op.dimension(a.rank())?;
    let size = op.array(1)?;
    if size.rank() != 0 || size.element_type != ElementType::S32 {
        return op.fail(format!(
            "needs a size of shape s32[], given {}",
            describe(size)
        ));
    }
    Ok(Some(Inferred::Array(PlainArray {
        dynamic: a.dynamic | 1u64.checked_shl(d as u32).unwrap_or(0),
        layout: LayoutSource::Same(op.shape(0)),
        ..PlainArray::like(a, a.element_type)
    })))
}
