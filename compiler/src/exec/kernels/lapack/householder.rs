//! Reflections `H = I - tau v v^H` with `v[0] = 1`: QR, products of reflections, Hessenberg and
//! tridiagonal forms, by LAPACK's conventions (`larfg`: the reflected vector begins with `-sign(re) norm`).

use super::matrix::{C, Matrix, ONE, ZERO, real, square};

/// The reflection that maps column `column` from row `first` on to a multiple of the unit vector.
/// Leaves `v` below row `first` and the new leading element in row `first`; returns `tau`, for which
/// `H^H x` is that multiple.
pub(super) fn reflect(a: &mut Matrix<'_>, first: usize, column: usize) -> C {
    let alpha = a.at(first, column);
    let below = first + 1..a.rows;
    let rest: f64 = below.clone().map(|i| square(a.at(i, column))).sum();
    if rest == 0.0 && alpha.im == 0.0 {
        return ZERO;
    }
    let norm = (square(alpha) + rest).sqrt();
    let beta = if alpha.re >= 0.0 { -norm } else { norm };
    let scale = ONE / (alpha - real(beta));
    for i in below {
        let v = a.at(i, column) * scale;
        a.put(i, column, v);
    }
    a.put(first, column, real(beta));
    C::new((beta - alpha.re) / beta, -alpha.im / beta)
}

/// `(I - factor v v^H) c` on rows `first..` and columns `columns` of `c`; `v` gives the vector below row `first`, and is
/// one there. It may stand in `c`, left of `columns`.
fn apply_left(
    c: &mut Matrix<'_>,
    first: usize,
    factor: C,
    columns: std::ops::Range<usize>,
    v: impl Fn(&Matrix<'_>, usize) -> C,
) {
    for j in columns {
        let mut sum = c.at(first, j);
        for i in first + 1..c.rows {
            sum = sum + v(c, i).conj() * c.at(i, j);
        }
        let sum = factor * sum;
        let lead = c.at(first, j) - sum;
        c.put(first, j, lead);
        for i in first + 1..c.rows {
            let value = c.at(i, j) - v(c, i) * sum;
            c.put(i, j, value);
        }
    }
}

/// `geqrf`: `a` becomes R with the vectors below its diagonal.
pub(super) fn qr(a: &mut Matrix<'_>, taus: &mut Matrix<'_>) {
    for k in 0..a.rows.min(a.columns).min(taus.rows) {
        qr_step(a, taus, k);
    }
}

/// Step `k` of [`qr`].
pub(super) fn qr_step(a: &mut Matrix<'_>, taus: &mut Matrix<'_>, k: usize) {
    let tau = reflect(a, k, k);
    taus.put(k, 0, tau);
    let columns = k + 1..a.columns;
    apply_left(a, k, tau.conj(), columns, |a, i| a.at(i, k));
}

/// `geqp3`: QR of `a` with its columns permuted so that the diagonal of R does not grow; columns with
/// `pivots` other than zero come first and stay. `pivots` becomes the permutation, from 1.
pub(super) fn pivoted_qr(a: &mut Matrix<'_>, pivots: &mut Matrix<'_>, taus: &mut Matrix<'_>) {
    let mut fixed = 0;
    for j in 0..a.columns {
        let is_fixed = pivots.at(j, 0).re != 0.0;
        pivots.put(j, 0, real((j + 1) as f64));
        if is_fixed {
            a.swap_columns(fixed, j);
            pivots.swap_rows(fixed, j);
            fixed += 1;
        }
    }
    for k in 0..a.rows.min(a.columns) {
        if k >= fixed {
            let norm = |j: usize| (k..a.rows).map(|i| square(a.at(i, j))).sum::<f64>();
            let mut best = k;
            for j in k + 1..a.columns {
                if norm(j) > norm(best) {
                    best = j;
                }
            }
            a.swap_columns(k, best);
            pivots.swap_rows(k, best);
        }
        qr_step(a, taus, k);
    }
}

/// `orgqr`: the first columns of the product of the reflections in `vs`, as many as `q` has.
pub(super) fn product(vs: &Matrix<'_>, taus: &Matrix<'_>, q: &mut Matrix<'_>) {
    product_of(vs, taus, taus.rows.min(q.columns), q);
}

/// The same of the first `count` reflections.
pub(super) fn product_of(vs: &Matrix<'_>, taus: &Matrix<'_>, count: usize, q: &mut Matrix<'_>) {
    q.set_identity();
    for k in (0..count).rev() {
        let columns = k..q.columns;
        apply_left(q, k, taus.at(k, 0), columns, |_, i| vs.at(i, k));
    }
}

/// `ormqr`: `c` times the product of the reflections (or its adjoint), from the left or the right.
pub(super) fn multiply(
    vs: &Matrix<'_>,
    taus: &Matrix<'_>,
    c: &mut Matrix<'_>,
    (left, adjoint): (bool, bool),
) {
    let count = taus.rows;
    for step in 0..count {
        // H1 H2 ... Hk c starts with Hk; its adjoint, and products from the right, with H1.
        let k = if left == adjoint {
            step
        } else {
            count - 1 - step
        };
        let tau = taus.at(k, 0);
        let factor = if adjoint { tau.conj() } else { tau };
        if left {
            let columns = 0..c.columns;
            apply_left(c, k, factor, columns, |_, i| vs.at(i, k));
        } else {
            apply_right(vs, (k, k), factor, c);
        }
    }
}

/// `c (I - factor v v^H)`; `v` is column `column` of `vs` below row `first`, and one there.
pub(super) fn apply_right(
    vs: &Matrix<'_>,
    (first, column): (usize, usize),
    factor: C,
    c: &mut Matrix<'_>,
) {
    for i in 0..c.rows {
        let mut sum = c.at(i, first);
        for j in first + 1..c.columns {
            sum = sum + c.at(i, j) * vs.at(j, column);
        }
        let sum = factor * sum;
        let lead = c.at(i, first) - sum;
        c.put(i, first, lead);
        for j in first + 1..c.columns {
            let value = c.at(i, j) - sum * vs.at(j, column).conj();
            c.put(i, j, value);
        }
    }
}

/// `gehrd`: `a` becomes upper Hessenberg, with the vectors below its subdiagonal. `vector` has room for
/// one column of it. Rows and columns `low..high` (from 0) take part.
pub(super) fn hessenberg(
    a: &mut Matrix<'_>,
    taus: &mut Matrix<'_>,
    vector: &mut Matrix<'_>,
    (low, high): (usize, usize),
) {
    for k in low..high.saturating_sub(1) {
        // Below `high` the column is zero: LAPACK requires it.
        let tau = reflect(a, k + 1, k);
        taus.put(k, 0, tau);
        for i in k + 2..a.rows {
            vector.put(i, 0, a.at(i, k));
        }
        apply_right(vector, (k + 1, 0), tau, a);
        let columns = k + 1..a.columns;
        apply_left(a, k + 1, tau.conj(), columns, |a, i| a.at(i, k));
    }
}

/// `sytrd` and `hetrd`: `a` becomes tridiagonal with diagonal `d` and off-diagonal `e`; vectors lie
/// below the subdiagonal, or above the superdiagonal where the upper triangle is given. The other
/// triangle is neither read nor written.
pub(super) fn tridiagonal(
    a: &mut Matrix<'_>,
    (d, e, taus): (&mut Matrix<'_>, &mut Matrix<'_>, &mut Matrix<'_>),
    (v, w): (&mut Matrix<'_>, &mut Matrix<'_>),
    lower: bool,
) {
    let n = a.rows;
    // The upper form is the lower one with rows and columns in reverse order.
    let place = |i: usize| if lower { i } else { n - 1 - i };
    let get = |a: &Matrix<'_>, i: usize, j: usize| {
        let (i, j, conj) = if i >= j { (i, j, false) } else { (j, i, true) };
        let x = a.at(place(i), place(j));
        if conj { x.conj() } else { x }
    };
    for k in 0..n.saturating_sub(1) {
        for i in k + 1..n {
            v.put(i, 0, get(a, i, k));
        }
        let tau = reflect(v, k + 1, 0);
        let beta = v.at(k + 1, 0);
        v.put(k + 1, 0, ONE);
        if tau != ZERO {
            let mut dot = ZERO;
            for i in k + 1..n {
                let mut sum = ZERO;
                for j in k + 1..n {
                    sum = sum + get(a, i, j) * v.at(j, 0);
                }
                w.put(i, 0, tau * sum);
                dot = dot + (tau * sum).conj() * v.at(i, 0);
            }
            let alpha = real(-0.5) * tau * dot;
            for i in k + 1..n {
                let x = w.at(i, 0) + alpha * v.at(i, 0);
                w.put(i, 0, x);
            }
            for i in k + 1..n {
                for j in k + 1..=i {
                    let x = get(a, i, j)
                        - v.at(i, 0) * w.at(j, 0).conj()
                        - w.at(i, 0) * v.at(j, 0).conj();
                    a.put(place(i), place(j), x);
                }
            }
        }
        a.put(place(k + 1), place(k), beta);
        for i in k + 2..n {
            a.put(place(i), place(k), v.at(i, 0));
        }
        let at = if lower { k } else { n - 2 - k };
        e.put(at, 0, beta);
        taus.put(at, 0, tau);
    }
    for i in 0..n {
        d.put(i, 0, a.at(i, i));
    }
}

/// The triangular factor of a product of reflections, `I + V T V^H`, from
/// `m = (strictly upper part of V^H V + I) * -tau`, columns scaled: XLA:TPU's `CompactWyHelper`.
pub(super) fn compact_wy(m: &Matrix<'_>, t: &mut Matrix<'_>) {
    for j in 0..m.columns {
        for i in 0..j {
            let mut sum = ZERO;
            for k in i..j {
                sum = sum + t.at(i, k) * m.at(k, j);
            }
            t.put(i, j, sum);
        }
        t.put(j, j, m.at(j, j));
    }
}
