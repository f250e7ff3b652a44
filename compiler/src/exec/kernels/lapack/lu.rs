//! Gaussian elimination: LU with row exchanges, tridiagonal systems, inverses of triangles, and the
//! Cholesky factor.

use super::matrix::{C, Matrix, ONE, ZERO, real};

/// `getrf`: `a` becomes L (unit diagonal) and U. `pivots[k]` is the row that row `k` changed places
/// with, from 0. Returns the first column without a pivot, from 1, or 0.
pub(super) fn lu(a: &mut Matrix<'_>, pivots: &mut Matrix<'_>) -> usize {
    let mut info = 0;
    for k in 0..a.rows.min(a.columns) {
        let size = |a: &Matrix<'_>, i: usize| a.at(i, k).re.abs() + a.at(i, k).im.abs();
        let mut best = k;
        for i in k + 1..a.rows {
            if size(a, i) > size(a, best) {
                best = i;
            }
        }
        pivots.put(k, 0, real(best as f64));
        if a.at(best, k) == ZERO {
            info = if info == 0 { k + 1 } else { info };
            continue;
        }
        a.swap_rows(k, best);
        for i in k + 1..a.rows {
            let factor = a.at(i, k) / a.at(k, k);
            a.put(i, k, factor);
            for j in k + 1..a.columns {
                let x = a.at(i, j) - factor * a.at(k, j);
                a.put(i, j, x);
            }
        }
    }
    info
}

/// `potrf`: the given triangle of `a` becomes its Cholesky factor; the other one is left alone.
/// Returns the order of the leading minor that is not positive definite, or 0.
pub(super) fn cholesky(a: &mut Matrix<'_>, lower: bool) -> usize {
    let n = a.rows;
    // With the upper triangle, `u^H u = a`: `l` is the conjugate transpose of `u`.
    let get = |a: &Matrix<'_>, i: usize, j: usize| {
        if lower { a.at(i, j) } else { a.at(j, i).conj() }
    };
    let put = |a: &mut Matrix<'_>, i: usize, j: usize, x: C| {
        if lower {
            a.put(i, j, x);
        } else {
            a.put(j, i, x.conj());
        }
    };
    for j in 0..n {
        let mut diagonal = get(a, j, j).re;
        for k in 0..j {
            diagonal -= super::matrix::square(get(a, j, k));
        }
        if diagonal <= 0.0 || diagonal.is_nan() {
            return j + 1;
        }
        let root = diagonal.sqrt();
        put(a, j, j, real(root));
        for i in j + 1..n {
            let mut sum = get(a, i, j);
            for k in 0..j {
                sum = sum - get(a, i, k) * get(a, j, k).conj();
            }
            put(a, i, j, sum / real(root));
        }
    }
    0
}

/// `gtsv`: solves the tridiagonal system for all columns of `b`. Afterwards `d` and `du` are the
/// diagonal and first superdiagonal of U, and `dl` its second superdiagonal. Returns as [`lu`].
pub(super) fn tridiagonal_solve(
    dl: &mut Matrix<'_>,
    d: &mut Matrix<'_>,
    du: &mut Matrix<'_>,
    b: &mut Matrix<'_>,
) -> usize {
    let n = d.rows;
    let size = |x: C| x.re.abs() + x.im.abs();
    for k in 0..n.saturating_sub(1) {
        let below = dl.at(k, 0);
        let last = k + 2 >= n;
        if size(d.at(k, 0)) >= size(below) {
            if d.at(k, 0) == ZERO {
                return k + 1;
            }
            let factor = below / d.at(k, 0);
            let next = d.at(k + 1, 0) - factor * du.at(k, 0);
            d.put(k + 1, 0, next);
            for j in 0..b.columns {
                let x = b.at(k + 1, j) - factor * b.at(k, j);
                b.put(k + 1, j, x);
            }
            if !last {
                dl.put(k, 0, ZERO);
            }
        } else {
            let factor = d.at(k, 0) / below;
            d.put(k, 0, below);
            let next = d.at(k + 1, 0);
            d.put(k + 1, 0, du.at(k, 0) - factor * next);
            if !last {
                let after = du.at(k + 1, 0);
                dl.put(k, 0, after);
                du.put(k + 1, 0, ZERO - factor * after);
            }
            du.put(k, 0, next);
            for j in 0..b.columns {
                let (x, y) = (b.at(k, j), b.at(k + 1, j));
                b.put(k, j, y);
                b.put(k + 1, j, x - factor * y);
            }
        }
    }
    if n > 0 && d.at(n - 1, 0) == ZERO {
        return n;
    }
    for j in 0..b.columns {
        for k in (0..n).rev() {
            let mut x = b.at(k, j);
            if k + 1 < n {
                x = x - du.at(k, 0) * b.at(k + 1, j);
            }
            if k + 2 < n {
                x = x - dl.at(k, 0) * b.at(k + 2, j);
            }
            b.put(k, j, x / d.at(k, 0));
        }
    }
    0
}

/// The inverse of a triangle; the other triangle of the result is zero.
pub(super) fn invert_triangle(a: &Matrix<'_>, inverse: &mut Matrix<'_>, lower: bool) {
    let n = a.rows;
    let place = |i: usize, j: usize| {
        if lower {
            (i, j)
        } else {
            (n - 1 - i, n - 1 - j)
        }
    };
    for j in 0..n {
        for i in j..n {
            let mut sum = if i == j { ONE } else { ZERO };
            for k in j..i {
                let (at, of) = (place(i, k), place(k, j));
                sum = sum - a.at(at.0, at.1) * inverse.at(of.0, of.1);
            }
            let (diagonal, to) = (place(i, i), place(i, j));
            inverse.put(to.0, to.1, sum / a.at(diagonal.0, diagonal.1));
        }
    }
}
