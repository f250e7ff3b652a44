//! `reduce`: dimensions folded away with an embedded computation.

use slabplan_ir::attr::AttrName;

use super::prepare::{Prepare, dims, row_major_strides};
use super::reducer::Reducer;
use super::scalar_program::LANES;
use super::walk::{Axes, Walk, merge, volume};
use super::{ArrayMut, ArrayRef, KernelError, Run};

/// Rows shorter than this are not worth folding lane by lane.
const MIN_ROW: usize = 16;

#[derive(Debug)]
struct Reduce {
    reducer: Reducer,
    /// Dimensions of the result, with steps in elements of the operands.
    kept: Axes,
    /// Dimensions folded away.
    reduced: Axes,
}

/// Prepares a `reduce`.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (operands, results) = (p.operands()?, p.results()?);
    let n = results.len();
    p.require(operands.len() == 2 * n, "operands and results do not match")?;
    let sizes = dims(operands[0]);
    let along = p.dimensions(AttrName::Dimensions, sizes.len())?;
    let kept: Vec<usize> = (0..sizes.len()).filter(|d| !along.contains(d)).collect();
    for i in 0..n {
        let (operand, init, result) = (operands[i], operands[n + i], results[i]);
        let fits = operand.dims == operands[0].dims
            && init.dims.is_empty()
            && operand.element_type == result.element_type
            && init.element_type == result.element_type
            && result.rank() == kept.len()
            && kept
                .iter()
                .zip(&result.dims)
                .all(|(&d, &size)| sizes[d] as u64 == size);
        p.require(fits, "operands and results do not match")?;
    }
    let types: Vec<_> = results.iter().map(|r| r.element_type).collect();
    let strides = row_major_strides(&sizes);
    let mut along = along;
    along.sort_unstable();
    Ok(Box::new(Reduce {
        reducer: Reducer::new(p, p.computation(AttrName::ToApply)?, &types)?,
        kept: merge(kept.iter().map(|&d| (sizes[d], strides[d]))),
        reduced: merge(along.iter().map(|&d| (sizes[d], strides[d]))),
    }))
}

impl Run for Reduce {
    fn scratch_bytes(&self) -> usize {
        self.reducer.register_bytes()
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]) {
        self.reducer.begin(scratch);
        if volume(&self.kept) == 0 {
            return;
        }
        match self.reduced.last() {
            Some(&(size, 1)) if size >= MIN_ROW && self.reducer.is_associative() => {
                self.fold_rows(size, operands, results, scratch);
            }
            _ => self.fold_lanes(operands, results, scratch),
        }
    }
}

impl Reduce {
    /// Each lane accumulates one element of the result, in the order of the operand.
    fn fold_lanes(
        &self,
        operands: &[ArrayRef<'_>],
        results: &mut [ArrayMut<'_>],
        registers: &mut [u8],
    ) {
        let n = self.reducer.parts();
        let total = volume(&self.kept);
        let any = volume(&self.reduced) > 0;
        let mut kept = Walk::new(&self.kept);
        let mut starts = [0; LANES];
        let mut done = 0;
        while done < total {
            let lanes = 0..LANES.min(total - done);
            for start in &mut starts[..lanes.end] {
                *start = kept.position();
                kept.advance();
            }
            let starts = &starts[..lanes.end];
            let contiguous = starts.windows(2).all(|w| w[1] == w[0] + 1);
            for i in 0..n {
                self.reducer
                    .set_all(registers, i, &lanes, operands[n + i].data);
            }
            let mut reduced = Walk::new(&self.reduced);
            let mut more = any;
            while more {
                let mut buffer = [0; LANES * 16];
                for (i, operand) in operands[..n].iter().enumerate() {
                    let w = self.reducer.width(i);
                    let elements = if contiguous {
                        &operand.data[(starts[0] + reduced.position()) * w..][..lanes.end * w]
                    } else {
                        let buffer = &mut buffer[..lanes.end * w];
                        gather(w, operand.data, starts, reduced.position(), buffer);
                        buffer
                    };
                    self.reducer.argument(registers, i, &lanes, elements);
                }
                self.reducer.step(registers, &lanes);
                more = reduced.advance();
            }
            for (i, result) in results.iter_mut().enumerate() {
                let w = self.reducer.width(i);
                let out = &mut result.data[done * w..][..lanes.end * w];
                self.reducer.get(registers, i, &lanes, out);
            }
            done += lanes.end;
        }
    }

    /// Lanes accumulate parts of one contiguous row and are folded together at its end.
    fn fold_rows(
        &self,
        row: usize,
        operands: &[ArrayRef<'_>],
        results: &mut [ArrayMut<'_>],
        registers: &mut [u8],
    ) {
        let w = self.reducer.width(0);
        let data = operands[0].data;
        let rows = &self.reduced[..self.reduced.len() - 1];
        let any_rows = volume(rows) > 0;
        let mut kept = Walk::new(&self.kept);
        for out in results[0].data.chunks_exact_mut(w) {
            self.reducer
                .set_all(registers, 0, &(0..1), operands[1].data);
            let mut walk = Walk::new(rows);
            let lanes = row.min(LANES);
            let mut fresh = true;
            let mut more = any_rows;
            while more {
                let start = (kept.position() + walk.position()) * w;
                for chunk in data[start..start + row * w].chunks(LANES * w) {
                    let used = 0..chunk.len() / w;
                    if fresh {
                        self.reducer.set(registers, 0, &used, chunk);
                        fresh = false;
                    } else {
                        self.reducer.argument(registers, 0, &used, chunk);
                        self.reducer.step(registers, &used);
                    }
                }
                more = walk.advance();
            }
            if !fresh {
                self.reducer.fold_lanes(registers, lanes);
                self.reducer
                    .argument(registers, 0, &(0..1), operands[1].data);
                self.reducer.step(registers, &(0..1));
            }
            self.reducer.get(registers, 0, &(0..1), out);
            kept.advance();
        }
    }
}

/// Collects the elements of `w` bytes at `starts`, all moved on by `offset` elements.
fn gather(w: usize, data: &[u8], starts: &[usize], offset: usize, out: &mut [u8]) {
    for (out, start) in out.chunks_exact_mut(w).zip(starts) {
        out.copy_from_slice(&data[(start + offset) * w..][..w]);
    }
}
