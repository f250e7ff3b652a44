//! Jacobi's method: eigenvalues of Hermitian matrices by rotations from both sides, singular values by
//! rotations from one (Hestenes). Converges quadratically; accurate to the last digits.

use super::householder;
use super::matrix::{C, Matrix, ZERO, real, square};

/// Sweeps after which the method gives up; a handful suffice.
const SWEEPS: usize = 60;

/// The rotation `[[c, s], [-conj(s), c]]` that diagonalises `[[p, z], [conj(z), q]]` as
/// `R^H A R`: given as the matrix that columns are multiplied with.
fn rotation(p: f64, q: f64, z: C) -> [C; 4] {
    let size = z.abs();
    let phase = z.scale(1.0 / size);
    let ratio = (q - p) / (2.0 * size);
    // The smaller root of t^2 + 2 ratio t = 1.
    let t = ratio.signum() / (ratio.abs() + ratio.hypot(1.0));
    let c = 1.0 / t.hypot(1.0);
    let s = t * c;
    [real(c), phase.scale(s), phase.conj().scale(-s), real(c)]
}

/// `heevd`: `a`, of which one triangle is read, becomes its eigenvectors, column by column; `values`
/// ascend. `work` is as large as `a`. Returns 1 where it did not converge.
pub(super) fn eigh(
    a: &mut Matrix<'_>,
    values: &mut Matrix<'_>,
    work: &mut Matrix<'_>,
    lower: bool,
) -> usize {
    let n = a.rows;
    for i in 0..n {
        for j in 0..=i {
            let x = if lower { a.at(i, j) } else { a.at(j, i).conj() };
            let x = if i == j { real(x.re) } else { x };
            work.put(i, j, x);
            work.put(j, i, x.conj());
        }
    }
    let converged = diagonalise(work, a);
    for i in 0..n {
        values.put(i, 0, real(work.at(i, i).re));
    }
    sort(values, false, |i, k| a.swap_columns(i, k));
    usize::from(!converged)
}

/// Rotates the Hermitian `work` until it is diagonal; `vectors` becomes the product of the rotations. An index
/// without off-diagonal elements stays as it is.
pub(super) fn diagonalise(work: &mut Matrix<'_>, vectors: &mut Matrix<'_>) -> bool {
    let n = work.rows;
    vectors.set_identity();
    let threshold = f64::EPSILON * work.norm();
    let mut converged = n < 2;
    for _ in 0..SWEEPS {
        if converged {
            break;
        }
        converged = true;
        for p in 0..n {
            for q in p + 1..n {
                let z = work.at(p, q);
                if z.abs() <= threshold * 1e-3 || z == ZERO {
                    continue;
                }
                converged &= z.abs() <= threshold;
                let r = rotation(work.at(p, p).re, work.at(q, q).re, z);
                work.rotate_columns(p, q, r);
                work.rotate_rows(p, q, [r[0].conj(), r[2].conj(), r[1].conj(), r[3].conj()]);
                vectors.rotate_columns(p, q, r);
            }
        }
    }
    converged
}

/// Sorts a column of real numbers by exchanges, which `exchange` is told of.
fn sort(values: &mut Matrix<'_>, descending: bool, mut exchange: impl FnMut(usize, usize)) {
    for i in 0..values.rows {
        let mut best = i;
        for k in i + 1..values.rows {
            let (x, y) = (values.at(k, 0).re, values.at(best, 0).re);
            let comes_first = if descending { x > y } else { x < y };
            if comes_first {
                best = k;
            }
        }
        if best != i {
            values.swap_rows(i, best);
            exchange(i, best);
        }
    }
}

/// What [`svd`] works in.
pub(super) struct SvdWork<'a> {
    /// `max(m, n)` times `min(m, n)`.
    pub(super) tall: Matrix<'a>,
    /// `min(m, n)` squared.
    pub(super) right: Matrix<'a>,
    /// `max(m, n)` squared.
    pub(super) basis: Matrix<'a>,
    /// `max(m, n)`.
    pub(super) taus: Matrix<'a>,
}

/// `gesdd` and `gesvd`: singular values in descending order, `u` and `vh` as far as they have columns and
/// rows. Returns 1 where it did not converge.
pub(super) fn svd(
    a: &Matrix<'_>,
    s: &mut Matrix<'_>,
    u: &mut Matrix<'_>,
    vh: &mut Matrix<'_>,
    mut work: SvdWork<'_>,
) -> usize {
    // Of a wide matrix the adjoint is taken: u s vh = a  <=>  v s u^H = a^H.
    let is_tall = a.rows >= a.columns;
    let SvdWork {
        tall,
        right,
        basis,
        taus,
    } = &mut work;
    for i in 0..tall.rows {
        for j in 0..tall.columns {
            let x = if is_tall {
                a.at(i, j)
            } else {
                a.at(j, i).conj()
            };
            tall.put(i, j, x);
        }
    }
    right.set_identity();
    let info = orthogonalise(tall, right);
    let n = tall.columns;
    for j in 0..n {
        s.put(j, 0, real(column_norm(tall, j)));
    }
    sort(s, true, |i, k| {
        tall.swap_columns(i, k);
        right.swap_columns(i, k);
    });
    complete(tall, s, basis, taus);
    for i in 0..u.rows {
        for j in 0..u.columns {
            let x = if is_tall {
                basis.at(i, j)
            } else {
                right.at(i, j)
            };
            u.put(i, j, x);
        }
    }
    for i in 0..vh.rows {
        for j in 0..vh.columns {
            let x = if is_tall {
                right.at(j, i)
            } else {
                basis.at(j, i)
            };
            vh.put(i, j, x.conj());
        }
    }
    info
}

/// Rotates columns until they are orthogonal; `right` collects the rotations.
fn orthogonalise(tall: &mut Matrix<'_>, right: &mut Matrix<'_>) -> usize {
    for _ in 0..SWEEPS {
        let mut converged = true;
        for p in 0..tall.columns {
            for q in p + 1..tall.columns {
                let (mut z, mut pp, mut qq) = (ZERO, 0.0, 0.0);
                for i in 0..tall.rows {
                    let (x, y) = (tall.at(i, p), tall.at(i, q));
                    z = z + x.conj() * y;
                    pp += square(x);
                    qq += square(y);
                }
                if z.abs() <= f64::EPSILON * (pp * qq).sqrt() || z == ZERO {
                    continue;
                }
                converged = false;
                let r = rotation(pp, qq, z);
                tall.rotate_columns(p, q, r);
                right.rotate_columns(p, q, r);
            }
        }
        if converged {
            return 0;
        }
    }
    1
}

fn column_norm(a: &Matrix<'_>, j: usize) -> f64 {
    (0..a.rows).map(|i| square(a.at(i, j))).sum::<f64>().sqrt()
}

/// The columns of `tall` divided by `s`, and further ones that make a unitary `basis`.
fn complete(tall: &mut Matrix<'_>, s: &Matrix<'_>, basis: &mut Matrix<'_>, taus: &mut Matrix<'_>) {
    let largest = if s.rows > 0 { s.at(0, 0).re } else { 0.0 };
    let rank = (0..s.rows)
        .take_while(|&j| s.at(j, 0).re > f64::EPSILON * largest * tall.rows as f64)
        .count();
    for j in 0..rank {
        for i in 0..tall.rows {
            let x = tall.at(i, j).scale(1.0 / s.at(j, 0).re);
            tall.put(i, j, x);
        }
    }
    for j in rank..tall.columns {
        for i in 0..tall.rows {
            tall.put(i, j, ZERO);
        }
    }
    // Reflections that map orthonormal columns to unit vectors span the rest; R is then diagonal, of
    // phases, by which the basis differs from the columns.
    for k in 0..taus.rows {
        taus.put(k, 0, ZERO);
    }
    for k in 0..rank {
        householder::qr_step(tall, taus, k);
    }
    householder::product_of(tall, taus, rank, basis);
    for j in 0..rank {
        let phase = tall.at(j, j);
        for i in 0..basis.rows {
            let x = basis.at(i, j) * phase;
            basis.put(i, j, x);
        }
    }
}
