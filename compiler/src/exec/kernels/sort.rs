//! `sort`: rows of one or several arrays ordered together by an embedded comparator.

use slabplan_ir::ElementType;
use slabplan_ir::attr::AttrName;

use super::merge_sort::{Order, merge_sort};
use super::prepare::{Prepare, dims, row_major_strides};
use super::scalar::width;
use super::scalar_program::ScalarProgram;
use super::walk::{Axes, Walk};
use super::{ArrayMut, ArrayRef, KernelError, Run};

#[derive(Debug)]
struct Sort {
    comparator: ScalarProgram,
    widths: Vec<usize>,
    /// The sorted dimension: its size and step in elements.
    size: usize,
    step: usize,
    /// The other dimensions.
    others: Axes,
}

/// Prepares a `sort`. It is stable whether asked for or not.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (operands, results) = (p.operands()?, p.results()?);
    let fits = operands.len() == results.len()
        && operands.iter().zip(&results).all(|(o, r)| {
            o.dims == operands[0].dims && o.dims == r.dims && o.element_type == r.element_type
        });
    p.require(fits, "operands and results do not match")?;
    let sizes = dims(operands[0]);
    let along = p.dimension(AttrName::Dimensions, sizes.len())?;
    p.require(
        u32::try_from(sizes[along]).is_ok(),
        "the sorted dimension is too long",
    )?;
    let strides = row_major_strides(&sizes);
    let pairs: Vec<ElementType> = operands.iter().flat_map(|o| [o.element_type; 2]).collect();
    let comp = p.computation(AttrName::ToApply)?;
    Ok(Box::new(Sort {
        comparator: ScalarProgram::new(p, comp, &pairs, &[ElementType::Pred], 1)?,
        widths: operands.iter().map(|o| width(o.element_type)).collect(),
        size: sizes[along],
        step: strides[along],
        others: (0..sizes.len())
            .filter(|&d| d != along)
            .map(|d| (sizes[d], strides[d]))
            .collect(),
    }))
}

impl Run for Sort {
    fn scratch_bytes(&self) -> usize {
        self.comparator.register_bytes() + Order::bytes(self.size)
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]) {
        if results[0].data.is_empty() {
            return;
        }
        let (registers, order) = scratch.split_at_mut(self.comparator.register_bytes());
        self.comparator.begin(registers);
        let mut row = Walk::new(&self.others);
        loop {
            let start = row.position();
            let at = |i: u32| start + i as usize * self.step;
            let mut order = Order::new(order, self.size);
            merge_sort(&mut order, |a, b| {
                for (k, (operand, &w)) in operands.iter().zip(&self.widths).enumerate() {
                    for (side, i) in [a, b].into_iter().enumerate() {
                        let to = self.comparator.input(registers, 2 * k + side, &(0..1));
                        to.copy_from_slice(&operand.data[at(i) * w..][..w]);
                    }
                }
                self.comparator.run(registers, &(0..1));
                self.comparator.output(registers, 0, &(0..1)) != [0]
            });
            for ((operand, result), &w) in operands.iter().zip(results.iter_mut()).zip(&self.widths)
            {
                for i in 0..self.size {
                    let from = &operand.data[at(order.get(i)) * w..][..w];
                    result.data[at(i as u32) * w..][..w].copy_from_slice(from);
                }
            }
            if !row.advance() {
                break;
            }
        }
    }
}
