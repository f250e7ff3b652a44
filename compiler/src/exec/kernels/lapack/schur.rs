//! Eigenvalues of general matrices: the Schur form by the shifted QR algorithm on the Hessenberg form,
//! eigenvectors by substitution, and the real Schur form by deflation.

use super::householder::hessenberg;
use super::matrix::{C, Matrix, ONE, ZERO, real, square};

/// QR steps after which an eigenvalue is given up.
const STEPS: usize = 60;

/// Vectors that the routines work in.
pub(super) struct SchurWork<'a> {
    /// `n` elements.
    pub(super) taus: Matrix<'a>,
    /// `n` elements.
    pub(super) vector: Matrix<'a>,
}

/// The Schur form: `a` becomes upper triangular, `q` unitary, `q a q^H` what `a` was. Returns how many
/// eigenvalues did not converge.
pub(super) fn schur(a: &mut Matrix<'_>, q: &mut Matrix<'_>, work: &mut SchurWork<'_>) -> usize {
    let n = a.rows;
    if n == 0 {
        return 0;
    }
    reduce(a, q, work);
    let mut high = n - 1;
    let mut steps = 0;
    while high > 0 {
        let low = split(a, high);
        if low == high {
            high -= 1;
            steps = 0;
            continue;
        }
        if steps == STEPS {
            return high + 1;
        }
        steps += 1;
        let shift = if steps.is_multiple_of(10) {
            // An exceptional shift breaks cycles.
            real(a.at(high, high - 1).abs() * 1.5) + a.at(high, high)
        } else {
            wilkinson(a, high)
        };
        chase(a, q, (low, high), shift);
    }
    0
}

/// The Hessenberg form of `a`, and in `q` the product of the reflections that made it.
fn reduce(a: &mut Matrix<'_>, q: &mut Matrix<'_>, work: &mut SchurWork<'_>) {
    let n = a.rows;
    hessenberg(a, &mut work.taus, &mut work.vector, (0, n));
    q.set_identity();
    for k in (0..n - 1).rev() {
        for i in k + 2..n {
            work.vector.put(i, 0, a.at(i, k));
            a.put(i, k, ZERO);
        }
        reflect_rows(q, &work.vector, k + 1, work.taus.at(k, 0));
    }
}

/// `(I - tau v v^H) q` with `v` in `vector` below row `first` and one there.
fn reflect_rows(q: &mut Matrix<'_>, vector: &Matrix<'_>, first: usize, tau: C) {
    for j in 0..q.columns {
        let mut sum = q.at(first, j);
        for i in first + 1..q.rows {
            sum = sum + vector.at(i, 0).conj() * q.at(i, j);
        }
        let sum = tau * sum;
        let lead = q.at(first, j) - sum;
        q.put(first, j, lead);
        for i in first + 1..q.rows {
            let x = q.at(i, j) - vector.at(i, 0) * sum;
            q.put(i, j, x);
        }
    }
}

/// The first row of the unreduced block that ends in row `high`; negligible subdiagonals become zero.
fn split(a: &mut Matrix<'_>, high: usize) -> usize {
    for l in (1..=high).rev() {
        let mut scale = a.at(l - 1, l - 1).abs() + a.at(l, l).abs();
        if scale == 0.0 {
            scale = a.norm();
        }
        if a.at(l, l - 1).abs() <= f64::EPSILON * scale {
            a.put(l, l - 1, ZERO);
            return l;
        }
    }
    0
}

/// The eigenvalue of the last 2 x 2 block that is nearer to its last element.
fn wilkinson(a: &Matrix<'_>, high: usize) -> C {
    let (p, b) = (a.at(high - 1, high - 1), a.at(high - 1, high));
    let (c, d) = (a.at(high, high - 1), a.at(high, high));
    let half = (p - d).scale(0.5);
    let root = (half * half + b * c).sqrt();
    let (plus, minus) = (half + root, half - root);
    let larger = if square(plus) >= square(minus) {
        plus
    } else {
        minus
    };
    if larger == ZERO {
        return d;
    }
    d - b * c / larger
}

/// One implicit QR step on rows `low..=high`.
fn chase(a: &mut Matrix<'_>, q: &mut Matrix<'_>, (low, high): (usize, usize), shift: C) {
    let (mut x, mut y) = (a.at(low, low) - shift, a.at(low + 1, low));
    for k in low..high {
        let r = (square(x) + square(y)).sqrt();
        if r > 0.0 {
            let (x, y) = (x.scale(1.0 / r), y.scale(1.0 / r));
            a.rotate_rows(k, k + 1, [x.conj(), y.conj(), ZERO - y, x]);
            let adjoint = [x, ZERO - y.conj(), y, x.conj()];
            a.rotate_columns(k, k + 1, adjoint);
            q.rotate_columns(k, k + 1, adjoint);
        }
        if k > low {
            a.put(k + 1, k - 1, ZERO);
        }
        if k + 1 < high {
            (x, y) = (a.at(k + 1, k), a.at(k + 2, k));
        }
    }
}

/// Right (or left) eigenvectors of the triangular `t`, turned by `q`, of norm 1 with their largest
/// element real, into the columns of `out`.
pub(super) fn eigenvectors(t: &Matrix<'_>, q: &Matrix<'_>, out: &mut Matrix<'_>, left: bool) {
    let n = t.rows;
    let smallest = f64::EPSILON * t.norm().max(f64::MIN_POSITIVE);
    let divide = |x: C, by: C| {
        let by = if by.abs() < smallest {
            real(smallest)
        } else {
            by
        };
        x / by
    };
    for k in 0..n {
        let lambda = t.at(k, k);
        // The vector in terms of the Schur basis, kept in column k of the output.
        for i in 0..n {
            out.put(i, k, ZERO);
        }
        out.put(k, k, ONE);
        if left {
            for i in k + 1..n {
                let mut sum = ZERO;
                for j in k..i {
                    sum = sum + t.at(j, i).conj() * out.at(j, k);
                }
                let x = ZERO - divide(sum, (t.at(i, i) - lambda).conj());
                out.put(i, k, x);
            }
        } else {
            for i in (0..k).rev() {
                let mut sum = ZERO;
                for j in i + 1..=k {
                    sum = sum + t.at(i, j) * out.at(j, k);
                }
                let x = ZERO - divide(sum, t.at(i, i) - lambda);
                out.put(i, k, x);
            }
        }
    }
    turn(q, out);
}

/// `q` times every column of `out`, scaled.
fn turn(q: &Matrix<'_>, out: &mut Matrix<'_>) {
    let n = q.rows;
    let mut row = smallvec::SmallVec::<[C; 32]>::new();
    for k in 0..n {
        row.clear();
        for i in 0..n {
            let mut sum = ZERO;
            for j in 0..n {
                sum = sum + q.at(i, j) * out.at(j, k);
            }
            row.push(sum);
        }
        let norm = row.iter().map(|&x| square(x)).sum::<f64>().sqrt();
        let mut largest = ONE;
        let mut size = -1.0;
        for &x in &row {
            if square(x) > size {
                (size, largest) = (square(x), x);
            }
        }
        let phase = if size > 0.0 {
            largest.conj().scale(1.0 / size.sqrt())
        } else {
            ONE
        };
        for (i, &x) in row.iter().enumerate() {
            out.put(i, k, (x * phase).scale(1.0 / norm));
        }
    }
}

/// The real Schur form of a real matrix, by Francis's double shift: blocks of one and two rows on the
/// diagonal, those of two with equal diagonal elements. Returns as [`schur`].
pub(super) fn real_schur<'m>(
    a: &mut Matrix<'m>,
    q: &mut Matrix<'m>,
    work: &mut SchurWork<'_>,
) -> usize {
    let n = a.rows;
    if n == 0 {
        return 0;
    }
    reduce(a, q, work);
    let mut end = n;
    let mut steps = 0;
    while end > 0 {
        let high = end - 1;
        let low = split(a, high);
        if low == high {
            end -= 1;
            steps = 0;
        } else if low + 1 == high {
            standardise(a, q, low);
            end -= 2;
            steps = 0;
        } else if steps == STEPS {
            return end;
        } else {
            steps += 1;
            double_step(a, q, (low, high), steps.is_multiple_of(10));
        }
    }
    0
}

/// One implicit step with both eigenvalues of the last block as shifts.
fn double_step<'m>(
    a: &mut Matrix<'m>,
    q: &mut Matrix<'m>,
    (low, high): (usize, usize),
    exceptional: bool,
) {
    let at = |a: &Matrix<'_>, i: usize, j: usize| a.at(i, j).re;
    let (mut sum, mut product) = {
        let (p, b) = (at(a, high - 1, high - 1), at(a, high - 1, high));
        let (c, d) = (at(a, high, high - 1), at(a, high, high));
        (p + d, p * d - b * c)
    };
    if exceptional {
        let s = at(a, high, high - 1).abs() + at(a, high - 1, high - 2).abs();
        (sum, product) = (1.5 * s, s * s);
    }
    let (h00, h10) = (at(a, low, low), at(a, low + 1, low));
    let mut x = [
        h00 * h00 + at(a, low, low + 1) * h10 - sum * h00 + product,
        h10 * (h00 + at(a, low + 1, low + 1) - sum),
        h10 * at(a, low + 2, low + 1),
    ];
    for k in low..high {
        let count = (high - k + 1).min(3);
        reflect_within(a, q, k, &x[..count]);
        if k > low {
            for i in k + 1..k + count {
                a.put(i, k - 1, ZERO);
            }
        }
        for (i, x) in x.iter_mut().enumerate() {
            *x = if k + 1 + i <= high {
                at(a, k + 1 + i, k)
            } else {
                0.0
            };
        }
    }
}

/// The reflection that maps `x` on to a unit vector, on rows and columns `first..` of `a`, and on `q`.
fn reflect_within<'m>(a: &mut Matrix<'m>, q: &mut Matrix<'m>, first: usize, x: &[f64]) {
    let rest: f64 = x[1..].iter().map(|x| x * x).sum();
    if rest == 0.0 {
        return;
    }
    let norm = (x[0] * x[0] + rest).sqrt();
    let beta = if x[0] >= 0.0 { -norm } else { norm };
    let tau = (beta - x[0]) / beta;
    let v = |i: usize| if i == 0 { 1.0 } else { x[i] / (x[0] - beta) };
    for j in 0..a.columns {
        let sum: f64 = (0..x.len()).map(|i| v(i) * a.at(first + i, j).re).sum();
        for i in 0..x.len() {
            let value = a.at(first + i, j).re - tau * v(i) * sum;
            a.put(first + i, j, real(value));
        }
    }
    for m in [a, q] {
        for i in 0..m.rows {
            let sum: f64 = (0..x.len()).map(|j| v(j) * m.at(i, first + j).re).sum();
            for j in 0..x.len() {
                let value = m.at(i, first + j).re - tau * v(j) * sum;
                m.put(i, first + j, real(value));
            }
        }
    }
}

/// Rotates rows and columns `k` and `k + 1`: real eigenvalues come to the diagonal; of a pair of complex
/// ones the diagonal elements become equal.
fn standardise(a: &mut Matrix<'_>, q: &mut Matrix<'_>, k: usize) {
    let (p, b) = (a.at(k, k).re, a.at(k, k + 1).re);
    let (c, d) = (a.at(k + 1, k).re, a.at(k + 1, k + 1).re);
    let half = (p - d) / 2.0;
    let discriminant = half * half + b * c;
    let (cosine, sine) = if discriminant >= 0.0 {
        // (lambda - d, c) is an eigenvector.
        let x = half + discriminant.sqrt().copysign(half);
        let norm = x.hypot(c);
        (x / norm, c / norm)
    } else {
        let angle = 0.5 * (d - p).atan2(b + c);
        (angle.cos(), angle.sin())
    };
    let (cos, sin, minus) = (real(cosine), real(sine), real(-sine));
    a.rotate_columns(k, k + 1, [cos, minus, sin, cos]);
    a.rotate_rows(k, k + 1, [cos, sin, minus, cos]);
    q.rotate_columns(k, k + 1, [cos, minus, sin, cos]);
    if discriminant >= 0.0 {
        a.put(k + 1, k, ZERO);
    } else {
        let mean = real(f64::midpoint(a.at(k, k).re, a.at(k + 1, k + 1).re));
        a.put(k, k, mean);
        a.put(k + 1, k + 1, mean);
    }
}

/// Makes complex eigenvalues of a real matrix exact pairs, the one above the real axis first, and moves
/// their vectors along. What is nearer to the axis than rounding errors is real.
pub(super) fn pair_up<'m>(
    values: &mut Matrix<'_>,
    left: &mut Matrix<'m>,
    right: &mut Matrix<'m>,
    norm: f64,
) {
    let n = values.rows;
    let threshold = 1e-12 * norm;
    let mut k = 0;
    while k < n {
        let value = values.at(k, 0);
        let partner = (k + 1..n).min_by(|&i, &j| {
            let distance = |i: usize| square(values.at(i, 0) - value.conj());
            distance(i).total_cmp(&distance(j))
        });
        let Some(partner) = partner.filter(|_| value.im.abs() > threshold) else {
            values.put(k, 0, real(value.re));
            k += 1;
            continue;
        };
        for m in [&mut *left, &mut *right] {
            m.swap_columns(k + 1, partner);
        }
        values.swap_rows(k + 1, partner);
        if value.im < 0.0 {
            for m in [&mut *left, &mut *right] {
                m.swap_columns(k, k + 1);
            }
            values.swap_rows(k, k + 1);
        }
        let value = values.at(k, 0);
        values.put(k + 1, 0, value.conj());
        for m in [&mut *left, &mut *right] {
            for i in 0..n {
                let x = m.at(i, k);
                m.put(i, k + 1, x.conj());
            }
        }
        k += 2;
    }
}

/// Eigenvalues of the diagonal blocks of a real Schur form.
pub(super) fn values_of_blocks(t: &Matrix<'_>, re: &mut Matrix<'_>, im: &mut Matrix<'_>) {
    let n = t.rows;
    let mut k = 0;
    while k < n {
        re.put(k, 0, t.at(k, k));
        if k + 1 < n && t.at(k + 1, k) != ZERO {
            let product = t.at(k, k + 1).re * t.at(k + 1, k).re;
            let part = (-product).max(0.0).sqrt();
            re.put(k + 1, 0, t.at(k + 1, k + 1));
            im.put(k, 0, real(part));
            im.put(k + 1, 0, real(-part));
            k += 1;
        }
        k += 1;
    }
}
