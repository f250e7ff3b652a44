//! Operations between devices, as far as one device's shapes determine them.
//!
//! `all-gather` and `reduce-scatter` scale a dimension by the size of the
//! group, which the header need not state, so they declare their result.

use super::{Inference, Inferred, Op};
use crate::attr::AttrName;

/// One operand: its shape. Several: a tuple of theirs.
pub(super) fn same_as_operands(op: Op<'_>) -> Inference {
    Ok(Some(match op.len() {
        1 => Inferred::Same(op.shape(0)),
        _ => op.tuple_of_operands(),
    }))
}

/// With `dimensions` one array is split and put together again along the same dimension.
pub(super) fn all_to_all(op: Op<'_>) -> Inference {
    if op.instr.attr(AttrName::Dimensions).is_none() {
        return Ok(Some(op.tuple_of_operands()));
    }
    op.dimension(op.array(0)?.rank())?;
    same_as_operands(op)
}

/// The form with `slice_sizes` writes into its operand 1.
pub(super) fn permute(op: Op<'_>) -> Inference {
    if op.instr.attr(AttrName::SliceSizes).is_some() && op.len() == 4 {
        return op.same_as_operand(1);
    }
    same_as_operands(op)
}
