//! `select-and-scatter`: each source element is added to the operand position its window selects.

use slabplan_ir::attr::AttrName;
use slabplan_ir::{CompId, ElementType};

use super::lanes::fill;
use super::prepare::{Prepare, dims, row_major_strides};
use super::scalar::width;
use super::scalar_program::ScalarProgram;
use super::walk::{Axes, Walk, volume};
use super::window::{Axis, axes};
use super::{ArrayMut, ArrayRef, KernelError, Run};

#[derive(Debug)]
struct SelectAndScatter {
    select: ScalarProgram,
    scatter: ScalarProgram,
    /// One for each dimension, and its step in elements of the operand.
    axes: Vec<(Axis, usize)>,
    window: Axes,
    source: Axes,
    width: usize,
}

/// Prepares a `select-and-scatter`.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (operand, source, init) = (p.operand(0)?, p.operand(1)?, p.operand(2)?);
    let result = p.result()?;
    let ty = operand.element_type;
    p.require(
        operand.dims == result.dims
            && init.dims.is_empty()
            && [source, init, result].iter().all(|a| a.element_type == ty),
        "operands and result do not match",
    )?;
    let (base, places) = (dims(operand), dims(source));
    let axes = axes(p, p.instr.window(), &base, &places)?;
    let program = |name, result: ElementType| -> Result<ScalarProgram, KernelError> {
        let comp: CompId = p.computation(name)?;
        ScalarProgram::new(p, comp, &[ty, ty], &[result], 1)
    };
    Ok(Box::new(SelectAndScatter {
        select: program(AttrName::Select, ElementType::Pred)?,
        scatter: program(AttrName::Scatter, ty)?,
        window: axes.iter().map(|a| (a.window, 0)).collect(),
        axes: axes.into_iter().zip(row_major_strides(&base)).collect(),
        source: places.iter().map(|&n| (n, 0)).collect(),
        width: width(ty),
    }))
}

impl Run for SelectAndScatter {
    fn scratch_bytes(&self) -> usize {
        self.select.register_bytes() + self.scatter.register_bytes()
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]) {
        let w = self.width;
        let out = &mut *results[0].data;
        fill(operands[2].data, out);
        let (select, scatter) = scratch.split_at_mut(self.select.register_bytes());
        self.select.begin(select);
        self.scatter.begin(scatter);
        if volume(&self.source) == 0 {
            return;
        }
        let mut place = Walk::new(&self.source);
        for source in operands[1].data.chunks_exact(w) {
            if let Some(chosen) = self.choose(place.index(), operands[0].data, select) {
                let target = &mut out[chosen * w..][..w];
                self.scatter
                    .input(scatter, 0, &(0..1))
                    .copy_from_slice(source);
                self.scatter
                    .input(scatter, 1, &(0..1))
                    .copy_from_slice(target);
                self.scatter.run(scatter, &(0..1));
                target.copy_from_slice(self.scatter.output(scatter, 0, &(0..1)));
            }
            place.advance();
        }
    }
}

impl SelectAndScatter {
    /// The operand element the window at `place` selects; none if it meets only padding.
    fn choose(&self, place: &[usize], operand: &[u8], registers: &mut [u8]) -> Option<usize> {
        let w = self.width;
        let mut chosen: Option<usize> = None;
        let mut window = Walk::new(&self.window);
        loop {
            if let Some(candidate) = self.position(place, window.index()) {
                let replaces = chosen.is_none_or(|chosen| {
                    for (i, at) in [chosen, candidate].into_iter().enumerate() {
                        let to = self.select.input(registers, i, &(0..1));
                        to.copy_from_slice(&operand[at * w..][..w]);
                    }
                    self.select.run(registers, &(0..1));
                    self.select.output(registers, 0, &(0..1)) == [0]
                });
                if replaces {
                    chosen = Some(candidate);
                }
            }
            if !window.advance() {
                return chosen;
            }
        }
    }

    fn position(&self, place: &[usize], element: &[usize]) -> Option<usize> {
        let mut position = 0;
        for ((&(axis, step), &place), &k) in self.axes.iter().zip(place).zip(element) {
            position += axis.meets(place, k)? * step;
        }
        Some(position)
    }
}
