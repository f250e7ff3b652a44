//! `get-dimension-size` and `set-dimension-size` of arrays whose sizes are fixed.

use slabplan_ir::ElementType;
use slabplan_ir::attr::AttrName;

use super::prepare::Prepare;
use super::{ArrayMut, ArrayRef, KernelError, Run, movement};

#[derive(Debug)]
struct GetDimensionSize {
    size: i32,
}

/// Prepares a `get-dimension-size`.
pub(super) fn prepare_get(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let operand = p.operand(0)?;
    let d = p.dimension(AttrName::Dimensions, operand.rank())?;
    p.require(
        operand.dynamic >> d & 1 == 0,
        "dynamic sizes are not executed",
    )?;
    let size =
        i32::try_from(operand.dims[d]).map_err(|_| p.error("the size does not fit s32".into()))?;
    let result = p.result()?;
    p.require(
        result.dims.is_empty() && result.element_type == ElementType::S32,
        "the result is not an s32",
    )?;
    Ok(Box::new(GetDimensionSize { size }))
}

impl Run for GetDimensionSize {
    fn run(&self, _: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], _: &mut [u8]) {
        results[0].data.copy_from_slice(&self.size.to_le_bytes());
    }
}

/// Prepares a `set-dimension-size` whose result has a fixed size: the operand as it is.
pub(super) fn prepare_set(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    p.require(p.result()?.dynamic == 0, "dynamic sizes are not executed")?;
    movement::prepare(p)
}
