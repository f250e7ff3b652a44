//! Custom-calls of linear algebra: LAPACK's, to which JAX lowers on CPUs, and those of XLA:TPU.
//!
//! A routine works on one matrix at a time, in complex doubles whatever the element type: slower than
//! LAPACK and at least as exact. Where a result is not unique (signs of eigenvectors, order of
//! eigenvalues), it may differ from LAPACK's in just that.

mod householder;
mod jacobi;
mod lu;
mod matrix;
mod routines;
mod schur;

use slabplan_ir::attr::AttrName;
use slabplan_ir::{ArrayShape, ElementType};
use smallvec::SmallVec;

use super::prepare::Prepare;
use super::scalar::width;
use super::{ArrayMut, ArrayRef, KernelError, Run};
use matrix::{Matrix, Scratch};
pub(super) use routines::targets;
use routines::{Options, Routine};

/// An operand or result: a stack of matrices.
#[derive(Clone, Copy, Debug)]
struct Part {
    element_type: ElementType,
    rows: usize,
    columns: usize,
    /// Which array it is, and whether the next one holds its imaginary parts.
    array: usize,
    paired: bool,
}

impl Part {
    fn bytes(self) -> usize {
        self.rows * self.columns * width(self.element_type)
    }

    fn scratch(self) -> usize {
        Matrix::bytes(self.rows, self.columns)
    }
}

const WRONG_NUMBER: &str = "has another number of operands or results than the routine";

#[derive(Debug)]
struct Lapack {
    routine: Routine,
    options: Options,
    batch: usize,
    operands: SmallVec<[Part; 4]>,
    results: SmallVec<[Part; 6]>,
    work: usize,
}

/// Prepares the custom-call `target`, if it is one of these.
pub(super) fn prepare(p: &Prepare<'_>, target: &str) -> Option<Result<Box<dyn Run>, KernelError>> {
    let (routine, signature) = routines::find(target)?;
    Some(prepare_routine(p, routine, signature))
}

fn prepare_routine(
    p: &Prepare<'_>,
    routine: Routine,
    signature: &routines::Signature,
) -> Result<Box<dyn Run>, KernelError> {
    let (operands, results) = (p.operands()?, p.results()?);
    // XLA:TPU has no complex numbers: it splits each array of them in two.
    let paired = operands.len() > signature.operands.len();
    let batch_rank = operands[0].rank().checked_sub(signature.operands[0]);
    let batch_rank = batch_rank.ok_or_else(|| p.error("its operand is not a matrix".into()))?;
    let batch = &operands[0].dims[..batch_rank];
    let parts = |shapes: &[&ArrayShape], ranks: &[usize]| -> Result<Vec<Part>, KernelError> {
        let mut parts = Vec::with_capacity(ranks.len());
        let mut array = 0;
        for &rank in ranks {
            let shape = shapes
                .get(array)
                .ok_or_else(|| p.error(WRONG_NUMBER.into()))?;
            let ty = shape.element_type;
            let paired = paired && ty.is_float();
            p.require(
                shape.rank() == batch_rank + rank && shape.dims[..batch_rank] == *batch,
                "operands and results have different batch dimensions",
            )?;
            p.require(matrix::is_supported(ty), &format!("not defined on {ty}"))?;
            let twin = shapes.get(array + 1).filter(|_| paired);
            p.require(
                !paired || twin.is_some_and(|t| t.dims == shape.dims && t.element_type == ty),
                WRONG_NUMBER,
            )?;
            let size = |d: usize| shape.dims.get(batch_rank + d).map_or(1, |&n| n as usize);
            parts.push(Part {
                element_type: ty,
                rows: size(0),
                columns: size(1),
                array,
                paired,
            });
            array += if paired { 2 } else { 1 };
        }
        p.require(array == shapes.len(), WRONG_NUMBER)?;
        Ok(parts)
    };
    let operands = parts(&operands, signature.operands)?;
    let results = parts(&results, signature.results)?;
    let config = p.word(AttrName::BackendConfig).unwrap_or_default();
    let options = Options::parse(config, operands[0].element_type);
    let shape = |part: &Part| (part.rows, part.columns);
    let shapes: Vec<_> = operands.iter().chain(&results).map(shape).collect();
    routine
        .check(&shapes[..operands.len()], &shapes[operands.len()..])
        .map_err(|message| p.error(message.into()))?;
    Ok(Box::new(Lapack {
        work: routine.work_bytes(operands[0].rows, operands[0].columns),
        routine,
        options,
        batch: batch.iter().product::<u64>() as usize,
        operands: operands.into(),
        results: results.into(),
    }))
}

impl Run for Lapack {
    fn scratch_bytes(&self) -> usize {
        let parts = self.operands.iter().chain(&self.results);
        parts.map(|p| p.scratch()).sum::<usize>() + self.work
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]) {
        for n in 0..self.batch {
            let mut rest = Scratch(&mut *scratch);
            let mut given: SmallVec<[Matrix<'_>; 4]> = SmallVec::new();
            for part in &self.operands {
                let mut m = Matrix::carve(&mut rest, part.rows, part.columns);
                let item = |array: usize| &operands[array].data[n * part.bytes()..][..part.bytes()];
                m.load(part.element_type, item(part.array));
                if part.paired {
                    m.load_imaginary(part.element_type, item(part.array + 1));
                }
                given.push(m);
            }
            let mut found: SmallVec<[Matrix<'_>; 6]> = SmallVec::new();
            for part in &self.results {
                found.push(Matrix::carve(&mut rest, part.rows, part.columns));
            }
            self.routine
                .run(&self.options, &mut given, &mut found, &mut rest);
            for (part, m) in self.results.iter().zip(&found) {
                let bytes = part.bytes();
                let item = n * bytes..(n + 1) * bytes;
                m.store(
                    part.element_type,
                    &mut results[part.array].data[item.clone()],
                );
                if part.paired {
                    let imaginary = &mut results[part.array + 1].data[item];
                    m.store_imaginary(part.element_type, imaginary);
                }
            }
        }
    }
}
