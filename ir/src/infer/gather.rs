//! `gather` and `scatter`.
//!
//! Both see the index array's dimensions but `index_vector_dim` as batch
//! dimensions of the result (of the updates) and the window's dimensions at
//! `offset_dims` (`update_window_dims`).

use smallvec::SmallVec;

use super::{Dims, ElementMatch, InferError, Inference, Inferred, Op, describe, result, same_dim};
use crate::attr::AttrName;
use crate::shape::ArrayShape;

/// Dimensions of the indices without `index_vector_dim`, and how many indices a vector holds.
fn batch_dims(op: Op<'_>, indices: &ArrayShape) -> Result<(Dims, u64), InferError> {
    let vector = op.int(AttrName::IndexVectorDim)?;
    if !indices.element_type.is_integer() {
        return op.fail(format!(
            "indices must be integers, but are {}",
            describe(indices)
        ));
    }
    match usize::try_from(vector) {
        Ok(v) if v == indices.rank() => Ok((indices.dims.clone(), 1)),
        Ok(v) if v < indices.rank() => {
            let mut dims = indices.dims.clone();
            let depth = dims.remove(v);
            Ok((dims, depth))
        }
        _ => op.fail(format!(
            "index_vector_dim {vector} is out of range for indices {}",
            describe(indices)
        )),
    }
}

pub(super) fn gather(op: Op<'_>) -> Inference {
    let (a, indices) = (op.array(0)?, op.array(1)?);
    let (batch, depth) = batch_dims(op, indices)?;
    let sizes = op.instr.ints(AttrName::SliceSizes);
    if sizes.len() != a.rank() {
        return op.fail(format!(
            "of {} needs {} slice_sizes, given {}",
            describe(a),
            a.rank(),
            sizes.len()
        ));
    }
    for (&n, &d) in sizes.iter().zip(&a.dims) {
        if n < 0 || n as u64 > d {
            return op.fail(format!("takes {n} of a dimension of {d} elements"));
        }
    }
    let map = op.dimension_numbers(AttrName::StartIndexMap, a.rank())?;
    if !same_dim(map.len() as u64, depth) {
        return op.fail(format!(
            "has {} start_index_map entries for index vectors of {depth}",
            map.len()
        ));
    }
    let mut dropped = op.dimension_numbers(AttrName::CollapsedSliceDims, a.rank())?;
    dropped.extend(op.dimension_numbers(AttrName::OperandBatchingDims, a.rank())?);
    let window: Dims = (0..a.rank())
        .filter(|d| !dropped.contains(d))
        .map(|d| sizes[d] as u64)
        .collect();

    let rank = batch.len() + window.len();
    let offsets = op.dimension_numbers(AttrName::OffsetDims, rank)?;
    if offsets.len() != window.len() {
        return op.fail(format!(
            "has {} offset_dims for a window of {} dimension(s)",
            offsets.len(),
            window.len()
        ));
    }
    let (mut batch, mut window) = (batch.iter(), window.iter());
    let dims: Option<Dims> = (0..rank)
        .map(|d| {
            if offsets.contains(&d) {
                window.next().copied()
            } else {
                batch.next().copied()
            }
        })
        .collect();
    match dims {
        Some(dims) => result(a.element_type, dims, 0),
        None => op.fail("has offset_dims that do not fit the window"),
    }
}

/// Operands `a_0..a_n, indices, updates_0..updates_n`; the result is like the `a_i`.
pub(super) fn scatter(op: Op<'_>) -> Inference {
    if op.len().is_multiple_of(2) {
        return op.fail(format!(
            "takes N operands, the indices and N updates, given {} operand(s)",
            op.len()
        ));
    }
    let n = op.len() / 2;
    let (batch, depth) = batch_dims(op, op.array(n)?)?;
    for i in 0..n {
        check_updates(op, i, n + 1 + i, &batch, depth)?;
    }
    check_combiner(op, n)?;
    if n == 1 {
        op.same_as_operand(0)
    } else {
        Ok(Some(Inferred::Tuple(
            (0..n).map(|i| Inferred::Same(op.shape(i))).collect(),
        )))
    }
}

fn check_updates(
    op: Op<'_>,
    operand: usize,
    updates: usize,
    batch: &[u64],
    depth: u64,
) -> Result<(), InferError> {
    let (a, u) = (op.array(operand)?, op.array(updates)?);
    if !ElementMatch::AnyPrecision.accepts(a.element_type, u.element_type) {
        return op.fail(format!(
            "updates are {}, but the operand is {}",
            describe(u),
            describe(a)
        ));
    }
    let to = op.dimension_numbers(AttrName::ScatterDimsToOperandDims, a.rank())?;
    if !same_dim(to.len() as u64, depth) {
        return op.fail(format!(
            "has {} scatter_dims_to_operand_dims for index vectors of {depth}",
            to.len()
        ));
    }
    let mut inserted = op.dimension_numbers(AttrName::InsertedWindowDims, a.rank())?;
    inserted.extend(op.dimension_numbers(AttrName::InputBatchingDims, a.rank())?);
    let windows = op.dimension_numbers(AttrName::UpdateWindowDims, u.rank())?;
    let operand_window: SmallVec<[u64; 4]> = (0..a.rank())
        .filter(|d| !inserted.contains(d))
        .map(|d| a.dims[d])
        .collect();
    let scattered: SmallVec<[u64; 4]> = (0..u.rank())
        .filter(|d| !windows.contains(d))
        .map(|d| u.dims[d])
        .collect();
    let agrees = windows.len() == operand_window.len()
        && windows
            .iter()
            .zip(&operand_window)
            .all(|(&w, &d)| u.dims[w] <= d || same_dim(u.dims[w], d))
        && scattered.len() == batch.len()
        && scattered.iter().zip(batch).all(|(&x, &y)| same_dim(x, y));
    if agrees {
        return Ok(());
    }
    op.fail(format!(
        "updates {} do not fit operand {} with these dimension numbers",
        describe(u),
        describe(a)
    ))
}

/// The combiner takes the N old and the N new scalars.
fn check_combiner(op: Op<'_>, n: usize) -> Result<(), InferError> {
    let comp = op.comp(AttrName::ToApply)?;
    let given = op.cx.params(comp).len();
    if given == 2 * n {
        Ok(())
    } else {
        op.fail(format!(
            "needs a computation of {} parameter(s), to_apply has {given}",
            2 * n
        ))
    }
}
