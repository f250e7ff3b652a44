//! `reduce-window`: an embedded computation folds the elements under a sliding window.

use std::ops::Range;

use slabplan_ir::attr::AttrName;

use super::cumulative::Cumulative;
use super::prepare::{Dims, Prepare, dims, row_major_strides};
use super::reducer::Reducer;
use super::scalar_program::LANES;
use super::walk::{Axes, Walk, volume};
use super::window::{Axis, axes};
use super::{ArrayMut, ArrayRef, KernelError, Run};

#[derive(Debug)]
struct ReduceWindow {
    reducer: Reducer,
    /// One for each dimension, and its step in elements of the operand.
    axes: Vec<(Axis, usize)>,
    /// The window's box.
    window: Axes,
    /// The result's dimensions but the last.
    rows: Axes,
    /// The result's last dimension; 1 for a scalar.
    row: usize,
}

/// Prepares a `reduce-window`.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (operands, results) = (p.operands()?, p.results()?);
    let n = results.len();
    p.require(operands.len() == 2 * n, "operands and results do not match")?;
    for i in 0..n {
        let (operand, init, result) = (operands[i], operands[n + i], results[i]);
        let fits = operand.dims == operands[0].dims
            && init.dims.is_empty()
            && result.dims == results[0].dims
            && operand.element_type == result.element_type
            && init.element_type == result.element_type;
        p.require(fits, "operands and results do not match")?;
    }
    let (base, out) = (dims(operands[0]), dims(results[0]));
    let types: Vec<_> = results.iter().map(|r| r.element_type).collect();
    let axes = axes(p, p.instr.window(), &base, &out)?;
    let reducer = Reducer::new(p, p.computation(AttrName::ToApply)?, &types)?;
    let steps = row_major_strides(&base);
    if let Some((along, from_end)) = cumulative_dimension(&axes, &base, &out)
        && reducer.is_associative()
    {
        return Ok(Box::new(Cumulative {
            reducer,
            size: base[along],
            step: steps[along],
            from_end,
            others: (0..base.len())
                .filter(|&d| d != along)
                .map(|d| (base[d], steps[d]))
                .collect(),
        }));
    }
    let (row, rows) = out
        .split_last()
        .map_or((1, &[][..]), |(&row, rows)| (row, rows));
    Ok(Box::new(ReduceWindow {
        reducer,
        window: axes.iter().map(|a| (a.window, 0)).collect(),
        axes: axes.into_iter().zip(steps).collect(),
        rows: rows.iter().map(|&n| (n, 0)).collect(),
        row,
    }))
}

/// The dimension that a window cumulates along, and whether from its end, where the window does
/// nothing else.
fn cumulative_dimension(axes: &[Axis], base: &Dims, out: &Dims) -> Option<(usize, bool)> {
    let mut moving = axes.iter().enumerate().filter(|(_, a)| !a.is_identity());
    let (along, axis) = moving.next()?;
    let alone = moving.next().is_none() && base == out;
    alone.then_some((along, axis.cumulates_from_end()?))
}

impl Run for ReduceWindow {
    fn scratch_bytes(&self) -> usize {
        self.reducer.register_bytes()
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]) {
        self.reducer.begin(scratch);
        if volume(&self.rows) == 0 || self.row == 0 {
            return;
        }
        let mut rows = Walk::new(&self.rows);
        let mut row = 0;
        loop {
            for first in (0..self.row).step_by(LANES) {
                let lanes = LANES.min(self.row - first);
                self.block(rows.index(), first, lanes, operands, scratch);
                for (i, result) in results.iter_mut().enumerate() {
                    let w = self.reducer.width(i);
                    let out = &mut result.data[(row * self.row + first) * w..][..lanes * w];
                    self.reducer.get(scratch, i, &(0..lanes), out);
                }
            }
            row += 1;
            if !rows.advance() {
                break;
            }
        }
    }
}

impl ReduceWindow {
    /// Folds the windows of `lanes` places of one row, from place `first` on, into the accumulators.
    fn block(
        &self,
        outer: &[usize],
        first: usize,
        lanes: usize,
        operands: &[ArrayRef<'_>],
        registers: &mut [u8],
    ) {
        let n = self.reducer.parts();
        for i in 0..n {
            self.reducer
                .set_all(registers, i, &(0..lanes), operands[n + i].data);
        }
        let mut window = Walk::new(&self.window);
        loop {
            if let Some(start) = self.outer_position(outer, window.index()) {
                self.window_element(window.index(), start, first, lanes, operands, registers);
            }
            if !window.advance() {
                break;
            }
        }
    }

    /// Where in the operand the row under this window element starts; none where it is padding.
    fn outer_position(&self, outer: &[usize], element: &[usize]) -> Option<usize> {
        let mut position = 0;
        for ((&(axis, step), &place), &k) in self.axes.iter().zip(outer).zip(element) {
            position += axis.meets(place, k)? * step;
        }
        Some(position)
    }

    /// Adds one element of every lane's window, where it has one.
    fn window_element(
        &self,
        element: &[usize],
        start: usize,
        first: usize,
        lanes: usize,
        operands: &[ArrayRef<'_>],
        registers: &mut [u8],
    ) {
        let Some((&(axis, step), &k)) = self.axes.last().zip(element.last()) else {
            self.add(start, 1, &(0..1), operands, registers);
            return;
        };
        let meets = |lane: usize| axis.meets(first + lane, k);
        if let Some(stride) = axis.even_step() {
            // The lanes that meet an element are neighbours.
            let Some(low) = (0..lanes).find(|&l| meets(l).is_some()) else {
                return;
            };
            let high = (low..lanes).take_while(|&l| meets(l).is_some()).count() + low;
            let at = start + meets(low).unwrap_or(0) * step;
            self.add(at, stride * step, &(low..high), operands, registers);
        } else {
            for lane in 0..lanes {
                if let Some(at) = meets(lane) {
                    self.add(start + at * step, 1, &(lane..lane + 1), operands, registers);
                }
            }
        }
    }

    /// Adds elements from `start` on, `step` apart, to the accumulators of `lanes`.
    fn add(
        &self,
        start: usize,
        step: usize,
        lanes: &Range<usize>,
        operands: &[ArrayRef<'_>],
        registers: &mut [u8],
    ) {
        let mut buffer = [0; LANES * 16];
        for (i, operand) in operands[..self.reducer.parts()].iter().enumerate() {
            let w = self.reducer.width(i);
            let elements = if step == 1 {
                &operand.data[start * w..][..lanes.len() * w]
            } else {
                let buffer = &mut buffer[..lanes.len() * w];
                for (l, out) in buffer.chunks_exact_mut(w).enumerate() {
                    out.copy_from_slice(&operand.data[(start + l * step) * w..][..w]);
                }
                buffer
            };
            self.reducer.argument(registers, i, lanes, elements);
        }
        self.reducer.step(registers, lanes);
    }
}
