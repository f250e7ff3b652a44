//! `scatter`: slices combined into arrays, at places given by another.

use slabplan_ir::attr::AttrName;
use slabplan_ir::{ArrayShape, ElementType};

use super::prepare::{Dims, Prepare, dims};
use super::scalar::width;
use super::scalar_program::{LANES, ScalarProgram};
use super::scatter_dims::IndexVectors;
use super::walk::{Axes, Walk, volume};
use super::{ArrayMut, ArrayRef, KernelError, Run};

#[derive(Debug)]
struct Scatter {
    /// Combines elements of the operands with those of the updates.
    combiner: ScalarProgram,
    widths: Vec<usize>,
    indices: IndexVectors,
    /// Sizes of the operand and of the box an update covers; steps of the operand in elements.
    operand: Dims,
    window: Dims,
    steps: Dims,
    /// The update windows' dimensions but the last, with steps in elements of operand and updates.
    window_to: Axes,
    window_from: Axes,
    /// The last one: its size, and the steps of operand and updates.
    row: (usize, usize, usize),
    /// The batch dimensions of the updates, with steps in elements.
    batch: Axes,
    strided: bool,
    /// For each result, whether it has the operand's elements already.
    in_place: Vec<bool>,
}

/// Prepares a `scatter`.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (operands, results) = (p.operands()?, p.results()?);
    let n = results.len();
    p.require(
        operands.len() == 2 * n + 1 && n > 0,
        "operands and results do not match",
    )?;
    let (inputs, indices, updates) = (&operands[..n], operands[n], &operands[n + 1..]);
    // One set of steps serves all operands and results, another all updates.
    let alike = |shapes: &[&ArrayShape], first| {
        let strides = p.strides(first);
        shapes.iter().all(|s| p.strides(s) == strides)
    };
    let p = &Prepare {
        in_layout: p.in_layout
            && alike(inputs, inputs[0])
            && alike(&results, inputs[0])
            && alike(updates, updates[0]),
        ..*p
    };
    for i in 0..n {
        let fits = inputs[i].dims == inputs[0].dims
            && updates[i].dims == updates[0].dims
            && results[i].dims == inputs[0].dims
            && results[i].element_type == inputs[i].element_type
            && updates[i].element_type == inputs[i].element_type;
        p.require(fits, "operands and results do not match")?;
    }
    let (sizes, update) = (dims(inputs[0]), dims(updates[0]));
    let window_dims = p.dimensions(AttrName::UpdateWindowDims, update.len())?;
    let inserted = p.dimensions(AttrName::InsertedWindowDims, sizes.len())?;
    let batching = p.dimensions(AttrName::InputBatchingDims, sizes.len())?;
    let vectors = IndexVectors::new(
        p,
        indices,
        &p.dimensions(AttrName::ScatterDimsToOperandDims, sizes.len())?,
        &batching,
        &p.sizes(AttrName::ScatterIndicesBatchingDims)?,
        sizes.len(),
    )?;
    let kept: Vec<usize> = (0..sizes.len())
        .filter(|d| !inserted.contains(d) && !batching.contains(d))
        .collect();
    let batch_dims: Vec<usize> = (0..update.len())
        .filter(|d| !window_dims.contains(d))
        .collect();
    p.require(
        kept.len() == window_dims.len()
            && kept
                .iter()
                .zip(&window_dims)
                .all(|(&d, &u)| update[u] <= sizes[d])
            && vectors.batch_sizes() == batch_dims.iter().map(|&d| update[d]).collect::<Dims>(),
        "updates do not match the operand and the indices",
    )?;
    let mut window = Dims::from_elem(1, sizes.len());
    for (&d, &u) in kept.iter().zip(&window_dims) {
        window[d] = update[u];
    }
    let (steps, update_steps) = (p.strides(inputs[0]), p.strides(updates[0]));
    let axes: Vec<(usize, usize, usize)> = kept
        .iter()
        .zip(&window_dims)
        .map(|(&d, &u)| (update[u], steps[d], update_steps[u]))
        .collect();
    let (row, outer) = axes
        .split_last()
        .map_or(((1, 1, 1), &[][..]), |(&row, outer)| (row, outer));
    let types: Vec<ElementType> = inputs.iter().map(|a| a.element_type).collect();
    let both: Vec<ElementType> = types.iter().chain(&types).copied().collect();
    let comp = p.computation(AttrName::ToApply)?;
    Ok(Box::new(Scatter {
        combiner: ScalarProgram::new(p, comp, &both, &types, LANES)?,
        widths: types.iter().map(|&ty| width(ty)).collect(),
        indices: vectors,
        window_to: outer.iter().map(|a| (a.0, a.1)).collect(),
        window_from: outer.iter().map(|a| (a.0, a.2)).collect(),
        row,
        batch: batch_dims
            .iter()
            .map(|&d| (update[d], update_steps[d]))
            .collect(),
        operand: sizes,
        window,
        steps,
        strided: p.in_layout,
        in_place: vec![false; n],
    }))
}

impl Run for Scatter {
    fn is_strided(&self) -> bool {
        self.strided
    }

    fn may_overwrite(&self, operand: usize, result: usize) -> bool {
        operand == result
    }

    fn overwrite(&mut self, _: usize, result: usize) {
        self.in_place[result] = true;
    }

    fn scratch_bytes(&self) -> usize {
        self.combiner.register_bytes()
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]) {
        let n = results.len();
        for ((result, operand), in_place) in results.iter_mut().zip(operands).zip(&self.in_place) {
            if !in_place {
                result.data.copy_from_slice(operand.data);
            }
        }
        let (indices, updates) = (operands[n].data, &operands[n + 1..]);
        if volume(&self.batch) == 0 || updates[0].data.is_empty() {
            return;
        }
        self.combiner.begin(scratch);
        let mut batch = Walk::new(&self.batch);
        loop {
            if let Some(start) = self.start(indices, batch.index()) {
                self.update(start, batch.position(), updates, results, scratch);
            }
            if !batch.advance() {
                break;
            }
        }
    }
}

impl Scatter {
    /// Where in the operand an update starts; none if any part of it would lie outside.
    fn start(&self, indices: &[u8], batch: &[usize]) -> Option<usize> {
        let (mut start, mut inside) = (0, true);
        self.indices
            .each(indices, batch, |d, index| match usize::try_from(index) {
                Ok(i) if i.saturating_add(self.window[d]) <= self.operand[d] => {
                    start += i * self.steps[d];
                }
                _ => inside = false,
            });
        inside.then_some(start)
    }

    /// Combines one update window into the results, row by row.
    fn update(
        &self,
        start: usize,
        update: usize,
        updates: &[ArrayRef<'_>],
        results: &mut [ArrayMut<'_>],
        registers: &mut [u8],
    ) {
        let row = self.row;
        let (mut to, mut from) = (Walk::new(&self.window_to), Walk::new(&self.window_from));
        loop {
            for first in (0..row.0).step_by(LANES) {
                let lanes = LANES.min(row.0 - first);
                let to = (start + to.position() + first * row.1, row.1);
                let from = (update + from.position() + first * row.2, row.2);
                self.combine(lanes, to, from, updates, results, registers);
            }
            if !to.advance() {
                break;
            }
            from.advance();
        }
    }

    /// Combines `lanes` elements; `to` and `from` are the first one's place and the step to the next.
    fn combine(
        &self,
        lanes: usize,
        to: (usize, usize),
        from: (usize, usize),
        updates: &[ArrayRef<'_>],
        results: &mut [ArrayMut<'_>],
        registers: &mut [u8],
    ) {
        let n = results.len();
        let lanes = 0..lanes;
        for (i, &w) in self.widths.iter().enumerate() {
            let old = self.combiner.input(registers, i, &lanes);
            collect(w, results[i].data, to, old);
            let new = self.combiner.input(registers, n + i, &lanes);
            collect(w, updates[i].data, from, new);
        }
        self.combiner.run(registers, &lanes);
        for (i, &w) in self.widths.iter().enumerate() {
            let combined = self.combiner.output(registers, i, &lanes);
            let (start, step) = to;
            for (l, element) in combined.chunks_exact(w).enumerate() {
                results[i].data[(start + l * step) * w..][..w].copy_from_slice(element);
            }
        }
    }
}

/// Elements of `w` bytes from a place on, a step apart.
fn collect(w: usize, data: &[u8], (start, step): (usize, usize), out: &mut [u8]) {
    if step == 1 {
        let n = out.len();
        out.copy_from_slice(&data[start * w..][..n]);
        return;
    }
    for (l, out) in out.chunks_exact_mut(w).enumerate() {
        out.copy_from_slice(&data[(start + l * step) * w..][..w]);
    }
}
