//! `triangular-solve`: linear systems with a triangular matrix, from the left or the right.

use slabplan_ir::attr::AttrName;

use super::field::{Field, get, match_field, set};
use super::prepare::Prepare;
use super::{ArrayMut, ArrayRef, KernelError, Run};

/// Where the matrix stands, which triangle is read, and how it is turned first.
#[derive(Clone, Copy, Debug)]
struct Form {
    left: bool,
    lower: bool,
    unit_diagonal: bool,
    transpose: bool,
    conjugate: bool,
}

#[derive(Debug)]
struct TriangularSolve {
    form: Form,
    n: usize,
    /// Right-hand sides of each system.
    count: usize,
    solve: fn(&TriangularSolve, &[u8], &mut [u8]),
}

/// Prepares a `triangular-solve`.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (a, b, result) = (p.operand(0)?, p.operand(1)?, p.result()?);
    let ty = result.element_type;
    let left = p.instr.flag(AttrName::LeftSide);
    let ([batch @ .., m, n], [b_batch @ .., rows, columns]) = (&a.dims[..], &b.dims[..]) else {
        return Err(p.error("an operand is not a matrix".into()));
    };
    let (size, count) = if left {
        (rows, columns)
    } else {
        (columns, rows)
    };
    p.require(
        m == n
            && size == n
            && batch == b_batch
            && b.dims == result.dims
            && a.element_type == ty
            && b.element_type == ty,
        "operands and result do not match",
    )?;
    let (transpose, conjugate) = match p.word(AttrName::TransposeA) {
        None | Some("NO_TRANSPOSE") => (false, false),
        Some("TRANSPOSE") => (true, false),
        Some("ADJOINT") => (true, true),
        Some(other) => return Err(p.error(format!("transpose_a={other} is unknown"))),
    };
    let solve = match_field!(ty,
        T => solve::<T>,
        _ => return Err(p.error(format!("not defined on {ty}"))));
    Ok(Box::new(TriangularSolve {
        form: Form {
            left,
            lower: p.instr.flag(AttrName::Lower),
            unit_diagonal: p.instr.flag(AttrName::UnitDiagonal),
            transpose,
            conjugate,
        },
        n: *n as usize,
        count: *count as usize,
        solve,
    }))
}

impl Run for TriangularSolve {
    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], _: &mut [u8]) {
        let out = &mut *results[0].data;
        out.copy_from_slice(operands[1].data);
        if !out.is_empty() {
            (self.solve)(self, operands[0].data, out);
        }
    }
}

/// Substitution, in place of the right-hand sides.
fn solve<T: Field>(s: &TriangularSolve, a: &[u8], x: &mut [u8]) {
    let (n, count, form) = (s.n, s.count, s.form);
    // x a = b is a^T x^T = b^T.
    let flipped = form.transpose == form.left;
    let forward = form.lower != flipped;
    let element = |a: &[u8], i: usize, j: usize| -> T {
        let value: T = get(a, if flipped { j * n + i } else { i * n + j });
        if form.conjugate { value.conj() } else { value }
    };
    let systems = a.chunks_exact(n * n * T::BYTES);
    for (a, x) in systems.zip(x.chunks_exact_mut(n * count * T::BYTES)) {
        for c in 0..count {
            let place = |i: usize| if form.left { i * count + c } else { c * n + i };
            for step in 0..n {
                let i = if forward { step } else { n - 1 - step };
                let mut sum: T = get(x, place(i));
                let known = if forward { 0..i } else { i + 1..n };
                for j in known {
                    sum = sum - element(a, i, j) * get(x, place(j));
                }
                if !form.unit_diagonal {
                    sum = sum / element(a, i, i);
                }
                set(x, place(i), sum);
            }
        }
    }
}
