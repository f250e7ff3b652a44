//! `cholesky`: the triangular factor of Hermitian positive-definite matrices.

use slabplan_ir::attr::AttrName;

use super::field::{Field, get, match_field, set};
use super::prepare::Prepare;
use super::{ArrayMut, ArrayRef, KernelError, Run};

#[derive(Debug)]
struct Cholesky {
    n: usize,
    factorise: fn(usize, bool, &[u8], &mut [u8]),
    lower: bool,
}

/// Prepares a `cholesky`. Only the given triangle is read; the other one of the result is zero.
/// A matrix that is not positive definite gives NaNs.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (a, result) = (p.operand(0)?, p.result()?);
    let ty = result.element_type;
    let square = matches!(a.dims[..], [.., m, n] if m == n);
    p.require(
        square && a.dims == result.dims && a.element_type == ty,
        "operand and result are not square matrices of one type",
    )?;
    let factorise = match_field!(ty,
        T => factorise::<T>,
        _ => return Err(p.error(format!("not defined on {ty}"))));
    Ok(Box::new(Cholesky {
        n: a.dims[a.rank() - 1] as usize,
        factorise,
        lower: p.instr.flag(AttrName::Lower),
    }))
}

impl Run for Cholesky {
    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], _: &mut [u8]) {
        if results[0].data.is_empty() {
            return;
        }
        (self.factorise)(self.n, self.lower, operands[0].data, results[0].data);
    }
}

/// The Cholesky-Banachiewicz algorithm on each matrix. The upper factor is the lower one of the
/// conjugate transpose, so both are computed as `l` with `l l^H = a`.
fn factorise<T: Field>(n: usize, lower: bool, a: &[u8], out: &mut [u8]) {
    let bytes = n * n * T::BYTES;
    let place = |i: usize, j: usize| if lower { i * n + j } else { j * n + i };
    let turn = |x: T| if lower { x } else { x.conj() };
    for (a, l) in a.chunks_exact(bytes).zip(out.chunks_exact_mut(bytes)) {
        l.fill(0);
        for i in 0..n {
            for j in 0..=i {
                let mut sum = turn(get(a, place(i, j)));
                for k in 0..j {
                    let (x, y): (T, T) = (get(l, place(i, k)), get(l, place(j, k)));
                    sum = sum - turn(x) * turn(y).conj();
                }
                let value = if i == j {
                    sum.real_sqrt()
                } else {
                    sum / turn(get(l, place(j, j)))
                };
                set(l, place(i, j), turn(value));
            }
        }
    }
}
