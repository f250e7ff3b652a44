//! `reduce`: dimensions folded away with an embedded computation.

use slabplan_ir::attr::AttrName;

use super::folds::Folds;
use super::prepare::{Prepare, dims};
use super::reducer::Reducer;
use super::scalar_program::LANES;
use super::walk::{Axes, Walk, volume};
use super::{ArrayMut, ArrayRef, KernelError, Run};

#[derive(Debug)]
struct Reduce {
    reducer: Reducer,
    /// Dimensions of the result, in the order of its memory, with steps in elements of the
    /// operands and of the results.
    kept: Axes,
    kept_results: Axes,
    /// Dimensions folded away.
    reduced: Axes,
    strided: bool,
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
    let reducer = Reducer::new(p, p.computation(AttrName::ToApply)?, &types)?;
    let alike = (1..n).all(|i| {
        p.strides(operands[i]) == p.strides(operands[0])
            && p.strides(results[i]) == p.strides(results[0])
    });
    let p = &Prepare {
        in_layout: p.in_layout && alike,
        ..*p
    };
    let (strides, out_strides) = (p.strides(operands[0]), p.strides(results[0]));
    // Both groups in the order of memory: the result's, and the operand's.
    let mut kept: Vec<(usize, usize, usize)> = kept
        .iter()
        .enumerate()
        .filter(|&(_, &d)| sizes[d] != 1)
        .map(|(i, &d)| (sizes[d], strides[d], out_strides[i]))
        .collect();
    kept.sort_by_key(|k| std::cmp::Reverse(k.2));
    let mut reduced: Vec<(usize, usize)> = along
        .iter()
        .filter(|&&d| sizes[d] != 1)
        .map(|&d| (sizes[d], strides[d]))
        .collect();
    reduced.sort_by_key(|r| std::cmp::Reverse(r.1));
    if let Some(folds) = Folds::new(&reducer, &kept, &reduced, p.threads) {
        return Ok(Box::new(folds));
    }
    Ok(Box::new(Reduce {
        reducer,
        kept: kept.iter().map(|k| (k.0, k.1)).collect(),
        kept_results: kept.iter().map(|k| (k.0, k.2)).collect(),
        reduced: reduced.into_iter().collect(),
        strided: p.in_layout,
    }))
}

impl Run for Reduce {
    fn is_strided(&self) -> bool {
        self.strided
    }

    fn scratch_bytes(&self) -> usize {
        self.reducer.register_bytes()
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]) {
        self.reducer.begin(scratch);
        if volume(&self.kept) > 0 {
            self.fold_lanes(operands, results, scratch);
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
        let mut kept_results = Walk::new(&self.kept_results);
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
            for lane in lanes.clone() {
                for (i, result) in results.iter_mut().enumerate() {
                    let w = self.reducer.width(i);
                    let out = &mut result.data[kept_results.position() * w..][..w];
                    self.reducer.get(registers, i, &(lane..lane + 1), out);
                }
                kept_results.advance();
            }
            done += lanes.end;
        }
    }
}

/// Collects the elements of `w` bytes at `starts`, all moved on by `offset` elements.
fn gather(w: usize, data: &[u8], starts: &[usize], offset: usize, out: &mut [u8]) {
    for (out, start) in out.chunks_exact_mut(w).zip(starts) {
        out.copy_from_slice(&data[(start + offset) * w..][..w]);
    }
}
