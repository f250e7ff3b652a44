//! `map`: an embedded computation on every element.

use slabplan_ir::attr::AttrName;

use super::prepare::Prepare;
use super::scalar::width;
use super::scalar_program::{LANES, ScalarProgram};
use super::{ArrayMut, ArrayRef, KernelError, Run};

#[derive(Debug)]
struct Map {
    program: ScalarProgram,
    /// Bytes of an element of each operand, and of the result.
    widths: Vec<usize>,
    width: usize,
}

/// Prepares a `map`.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (operands, result) = (p.operands()?, p.result()?);
    p.require(
        operands.iter().all(|o| o.dims == result.dims),
        "operands and result differ in shape",
    )?;
    let types: Vec<_> = operands.iter().map(|o| o.element_type).collect();
    let comp = p.computation(AttrName::ToApply)?;
    Ok(Box::new(Map {
        program: ScalarProgram::new(p, comp, &types, &[result.element_type], LANES)?,
        widths: types.iter().map(|&ty| width(ty)).collect(),
        width: width(result.element_type),
    }))
}

impl Run for Map {
    fn scratch_bytes(&self) -> usize {
        self.program.register_bytes()
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]) {
        self.program.begin(scratch);
        for (chunk, out) in results[0].data.chunks_mut(LANES * self.width).enumerate() {
            let lanes = 0..out.len() / self.width;
            for (i, (operand, &w)) in operands.iter().zip(&self.widths).enumerate() {
                let elements = &operand.data[chunk * LANES * w..][..lanes.end * w];
                self.program
                    .input(scratch, i, &lanes)
                    .copy_from_slice(elements);
            }
            self.program.run(scratch, &lanes);
            out.copy_from_slice(self.program.output(scratch, 0, &lanes));
        }
    }
}
