//! The custom-calls with which TPU programs take 64-bit elements apart: `X64SplitLow`,
//! `X64SplitHigh` and `X64Combine`.
//!
//! A 64-bit integer is its low and its high 32 bits, a `c64` its real and its imaginary part: in
//! both cases the first and the last four bytes of the element.

use slabplan_ir::ElementType;

use super::prepare::Prepare;
use super::{ArrayMut, ArrayRef, KernelError, Run};

const HALF: usize = 4;

#[derive(Debug)]
enum X64 {
    /// The half of each element that begins at this byte.
    Split(usize),
    Combine,
}

/// Prepares the custom-call `target`.
pub(super) fn prepare(p: &Prepare<'_>, target: &str) -> Result<Box<dyn Run>, KernelError> {
    let result = p.result()?;
    let whole = match target {
        "X64Combine" => result,
        _ => p.operand(0)?,
    };
    p.require(
        matches!(
            whole.element_type,
            ElementType::C64 | ElementType::S64 | ElementType::U64
        ),
        "only defined on c64, s64 and u64",
    )?;
    let (op, halves) = match target {
        "X64Combine" => (X64::Combine, p.operands()?),
        "X64SplitLow" => (X64::Split(0), vec![result]),
        _ => (X64::Split(HALF), vec![result]),
    };
    let fits = halves
        .iter()
        .all(|h| h.element_type.byte_width() as usize == HALF && h.dims == whole.dims);
    p.require(
        fits && (halves.len() == 2 || matches!(op, X64::Split(_))),
        "the halves must be 32-bit arrays of the same dimensions",
    )?;
    Ok(Box::new(op))
}

impl Run for X64 {
    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], _: &mut [u8]) {
        let out = results[0].data.chunks_exact_mut(match self {
            X64::Split(_) => HALF,
            X64::Combine => 2 * HALF,
        });
        match *self {
            X64::Split(at) => {
                for (out, x) in out.zip(operands[0].data.chunks_exact(2 * HALF)) {
                    out.copy_from_slice(&x[at..at + HALF]);
                }
            }
            X64::Combine => {
                let halves = operands[0].data.chunks_exact(HALF);
                let halves = halves.zip(operands[1].data.chunks_exact(HALF));
                for (out, (low, high)) in out.zip(halves) {
                    out[..HALF].copy_from_slice(low);
                    out[HALF..].copy_from_slice(high);
                }
            }
        }
    }
}
