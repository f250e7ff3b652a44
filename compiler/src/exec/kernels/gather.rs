//! `gather`: slices of one array, at places given by another.

use slabplan_ir::attr::AttrName;

use super::index::clamp_start;
use super::prepare::{Dims, Prepare, dims};
use super::scalar::width;
use super::scatter_dims::IndexVectors;
use super::strided::StridedCopy;
use super::walk::{Axes, Walk, volume};
use super::{ArrayMut, ArrayRef, KernelError, Run};

#[derive(Debug)]
struct Gather {
    indices: IndexVectors,
    /// Sizes of the operand and of the slices.
    operand: Dims,
    slice: Dims,
    /// Steps of the operand in bytes.
    steps: Dims,
    /// One slice.
    copy: StridedCopy,
    /// The batch dimensions of the result, with steps in bytes.
    batch: Axes,
}

/// Prepares a `gather`.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (operand, indices, result) = (p.operand(0)?, p.operand(1)?, p.result()?);
    let (sizes, out) = (dims(operand), dims(result));
    let slice = p.sizes(AttrName::SliceSizes)?;
    let offset_dims = p.dimensions(AttrName::OffsetDims, out.len())?;
    let collapsed = p.dimensions(AttrName::CollapsedSliceDims, sizes.len())?;
    let batching = p.dimensions(AttrName::OperandBatchingDims, sizes.len())?;
    p.require(
        operand.element_type == result.element_type
            && slice.len() == sizes.len()
            && slice.iter().zip(&sizes).all(|(s, n)| s <= n),
        "slice_sizes do not match the operand",
    )?;
    let vectors = IndexVectors::new(
        p,
        indices,
        &p.dimensions(AttrName::StartIndexMap, sizes.len())?,
        &batching,
        &p.sizes(AttrName::StartIndicesBatchingDims)?,
        sizes.len(),
    )?;
    // The slice's dimensions that stay, in order, are the result's offset dimensions.
    let window: Vec<usize> = (0..sizes.len())
        .filter(|d| !collapsed.contains(d) && !batching.contains(d))
        .collect();
    let batch_dims: Vec<usize> = (0..out.len())
        .filter(|d| !offset_dims.contains(d))
        .collect();
    let dropped_are_single = collapsed.iter().chain(&batching).all(|&d| slice[d] <= 1);
    p.require(
        window.len() == offset_dims.len()
            && window
                .iter()
                .zip(&offset_dims)
                .all(|(&d, &o)| slice[d] == out[o])
            && dropped_are_single
            && vectors.batch_sizes() == batch_dims.iter().map(|&d| out[d]).collect::<Dims>(),
        "operands and result do not match",
    )?;
    let w = width(result.element_type);
    let (strides, out_strides) = (p.strides(operand), p.strides(result));
    let axes = window
        .iter()
        .zip(&offset_dims)
        .map(|(&d, &o)| (slice[d], strides[d] as isize, out_strides[o] as isize));
    Ok(Box::new(Gather {
        copy: StridedCopy::new(w, axes),
        batch: batch_dims
            .iter()
            .map(|&d| (out[d], out_strides[d] * w))
            .collect(),
        steps: strides.iter().map(|s| s * w).collect(),
        indices: vectors,
        operand: sizes,
        slice,
    }))
}

impl Run for Gather {
    fn is_strided(&self) -> bool {
        true
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], _: &mut [u8]) {
        if results[0].data.is_empty() || volume(&self.batch) == 0 {
            return;
        }
        let mut batch = Walk::new(&self.batch);
        loop {
            let mut from = 0;
            self.indices
                .each(operands[1].data, batch.index(), |d, index| {
                    from += clamp_start(index, self.slice[d], self.operand[d]) * self.steps[d];
                });
            self.copy
                .run(operands[0].data, from, results[0].data, batch.position());
            if !batch.advance() {
                break;
            }
        }
    }
}
