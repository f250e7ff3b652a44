//! `topk` and the custom-call `TopK`: the largest (or smallest) elements of each row and their indices.

use slabplan_ir::ElementType;
use slabplan_ir::Opcode;
use slabplan_ir::attr::AttrName;

use super::lanes::Loop2;
use super::merge_sort::{Order, merge_sort};
use super::prepare::Prepare;
use super::scalar::width;
use super::{ArrayMut, ArrayRef, KernelError, Run, compare};

#[derive(Debug)]
struct TopK {
    width: usize,
    row: usize,
    k: usize,
    /// Whether its first operand comes before its second.
    before: Loop2,
}

/// Prepares a `topk` or a custom-call `TopK`: ordered by the total order, equals by their index.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let operand = p.operand(0)?;
    let results = p.results()?;
    let ty = operand.element_type;
    let (Some((&row, outer)), &[values, indices]) = (operand.dims.split_last(), &results[..])
    else {
        return Err(p.error("operand and results do not match".into()));
    };
    let Some((&k, result_outer)) = values.dims.split_last() else {
        return Err(p.error("operand and results do not match".into()));
    };
    p.require(
        result_outer == outer
            && k <= row
            && indices.dims == values.dims
            && values.element_type == ty
            && indices.element_type == ElementType::S32
            && i32::try_from(row).is_ok(),
        "operand and results do not match",
    )?;
    let smallest = p.instr.opcode == Opcode::TopK
        && p.instr.attr(AttrName::Largest).is_some()
        && !p.instr.flag(AttrName::Largest);
    let direction = if smallest {
        compare::Direction::Lt
    } else {
        compare::Direction::Gt
    };
    let before = compare::compare(direction, true, ty)
        .ok_or_else(|| p.error(format!("not defined on {ty}")))?;
    Ok(Box::new(TopK {
        width: width(ty),
        row: row as usize,
        k: k as usize,
        before,
    }))
}

impl Run for TopK {
    fn scratch_bytes(&self) -> usize {
        Order::bytes(self.row)
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]) {
        let [values, indices] = results else {
            unreachable!("two results are checked when the kernel is prepared");
        };
        if self.k == 0 {
            return;
        }
        let w = self.width;
        let rows = operands[0].data.chunks_exact(self.row * w);
        let outs = values.data.chunks_exact_mut(self.k * w);
        let indices = indices.data.chunks_exact_mut(self.k * 4);
        for ((row, values), indices) in rows.zip(outs).zip(indices) {
            let element = |i: u32| &row[i as usize * w..][..w];
            let mut order = Order::new(scratch, self.row);
            merge_sort(&mut order, |a, b| {
                let mut before = [0];
                (self.before)(element(a), element(b), &mut before);
                before != [0]
            });
            let outs = values.chunks_exact_mut(w).zip(indices.chunks_exact_mut(4));
            for (i, (value, index)) in outs.enumerate() {
                value.copy_from_slice(element(order.get(i)));
                index.copy_from_slice(&order.get(i).to_le_bytes());
            }
        }
    }
}
