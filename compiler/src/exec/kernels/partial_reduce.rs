//! The custom-call `PartialReduce`: candidates for the first few elements of each row in the order of a comparator,
//! which is what XLA:TPU makes of JAX's `approx_max_k` and `approx_min_k`.

use slabplan_ir::ElementType;
use slabplan_ir::attr::AttrName;

use super::merge_sort::{Order, merge_sort};
use super::prepare::{Prepare, dims, row_major_strides};
use super::scalar::width;
use super::scalar_program::ScalarProgram;
use super::walk::{Axes, Walk};
use super::{ArrayMut, ArrayRef, KernelError, Run};

/// Operands: arrays that are ordered together, then a filling value for each. The results have the first
/// elements, as many as they have room for: of all choices that a recall target allows, the exact one.
#[derive(Debug)]
struct PartialReduce {
    comparator: ScalarProgram,
    widths: Vec<usize>,
    /// The reduced dimension of operands and of results: its size and step in elements.
    from: (usize, usize),
    to: (usize, usize),
    /// The other dimensions of both.
    others_from: Axes,
    others_to: Axes,
}

/// Prepares a `PartialReduce`.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (operands, results) = (p.operands()?, p.results()?);
    p.require(
        !results.is_empty() && operands.len() == 2 * results.len(),
        "takes an array and a filling value for each result",
    )?;
    let along = reduced_dimension(p)?;
    let (arrays, fills) = operands.split_at(results.len());
    let (from, to) = (dims(arrays[0]), dims(results[0]));
    let alike = |a: &[usize], b: &[usize]| {
        a.len() == b.len() && (0..a.len()).all(|d| d == along || a[d] == b[d])
    };
    let fits = along < from.len()
        && alike(&from, &to)
        && u32::try_from(from[along]).is_ok()
        && arrays.iter().zip(fills).zip(&results).all(|((a, f), r)| {
            dims(a) == from
                && dims(r) == to
                && f.dims.is_empty()
                && a.element_type == r.element_type
                && a.element_type == f.element_type
        });
    p.require(fits, "operands and results do not match")?;
    let pairs: Vec<ElementType> = arrays.iter().flat_map(|a| [a.element_type; 2]).collect();
    let comp = p.instr.called_computations().next();
    let comp = comp.ok_or_else(|| p.error("names no comparator".into()))?;
    let axes = |sizes: &[usize], strides: &[usize]| -> Axes {
        let others = (0..sizes.len()).filter(|&d| d != along);
        others.map(|d| (sizes[d], strides[d])).collect()
    };
    let (from_strides, to_strides) = (row_major_strides(&from), row_major_strides(&to));
    Ok(Box::new(PartialReduce {
        comparator: ScalarProgram::new(p, comp, &pairs, &[ElementType::Pred], 1)?,
        widths: arrays.iter().map(|a| width(a.element_type)).collect(),
        from: (from[along], from_strides[along]),
        to: (to[along], to_strides[along]),
        others_from: axes(&from, &from_strides),
        others_to: axes(&to, &to_strides),
    }))
}

/// `"reduction_dim": 1` of the backend's configuration.
fn reduced_dimension(p: &Prepare<'_>) -> Result<usize, KernelError> {
    let config = p.word(AttrName::BackendConfig).unwrap_or_default();
    let number = config.split_once("\"reduction_dim\":").map(|(_, rest)| {
        let rest = rest.trim_start();
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        rest[..end].parse()
    });
    match number {
        Some(Ok(d)) => Ok(d),
        _ => Err(p.error("its backend_config has no reduction_dim".into())),
    }
}

impl Run for PartialReduce {
    fn scratch_bytes(&self) -> usize {
        self.comparator.register_bytes() + Order::bytes(self.from.0)
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]) {
        if results[0].data.is_empty() {
            return;
        }
        let (arrays, fills) = operands.split_at(results.len());
        let (registers, order) = scratch.split_at_mut(self.comparator.register_bytes());
        self.comparator.begin(registers);
        let (mut row, mut to) = (Walk::new(&self.others_from), Walk::new(&self.others_to));
        loop {
            let element = |i: u32| row.position() + i as usize * self.from.1;
            let mut order = Order::new(order, self.from.0);
            merge_sort(&mut order, |a, b| {
                for (k, (array, &w)) in arrays.iter().zip(&self.widths).enumerate() {
                    for (side, i) in [a, b].into_iter().enumerate() {
                        let register = self.comparator.input(registers, 2 * k + side, &(0..1));
                        register.copy_from_slice(&array.data[element(i) * w..][..w]);
                    }
                }
                self.comparator.run(registers, &(0..1));
                self.comparator.output(registers, 0, &(0..1)) != [0]
            });
            for (k, (result, &w)) in results.iter_mut().zip(&self.widths).enumerate() {
                for i in 0..self.to.0 {
                    let value = if i < self.from.0 {
                        &arrays[k].data[element(order.get(i)) * w..][..w]
                    } else {
                        fills[k].data
                    };
                    let at = to.position() + i * self.to.1;
                    result.data[at * w..][..w].copy_from_slice(value);
                }
            }
            if !(row.advance() && to.advance()) {
                break;
            }
        }
    }
}
