//! The table of routines: names, operands and results, and what each runs.

use slabplan_ir::ElementType;

use super::householder;
use super::jacobi::{self, SvdWork};
use super::lu;
use super::matrix::{Matrix, ONE, Scratch, ZERO, product, quotient, real};
use super::schur::{self, SchurWork};

/// Ranks of operands and results without batch dimensions: 2 matrix, 1 vector, 0 scalar.
#[derive(Debug)]
pub(super) struct Signature {
    pub(super) operands: &'static [usize],
    pub(super) results: &'static [usize],
}

/// A routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Routine {
    Potrf,
    Getrf,
    Geqrf,
    Geqp3,
    Orgqr,
    Ormqr,
    Trsm,
    Syevd,
    Svd,
    GeevReal,
    GeevComplex,
    GeesReal,
    GeesComplex,
    Gehrd,
    Sytrd,
    Gtsv,
    TpuCholesky,
    TpuLu,
    TpuEigh,
    TpuEighBlocks,
    InvertLower,
    InvertUpper,
    CompactWy,
}

/// Names after the letter of the type, the routine for real and for complex numbers, and what they take and give.
type Row = (
    &'static [&'static str],
    Routine,
    Routine,
    Signature,
    Option<Signature>,
);

/// Routine names without `lapack_`, the letter of the type, and `_ffi`; both where real and complex
/// matrices have different ones.
const LAPACK: [Row; 15] = [
    both(&["potrf"], Routine::Potrf, &[2], &[2, 0]),
    both(&["getrf"], Routine::Getrf, &[2], &[2, 1, 0]),
    both(&["geqrf"], Routine::Geqrf, &[2], &[2, 1]),
    both(&["geqp3"], Routine::Geqp3, &[2, 1], &[2, 1, 1]),
    both(&["orgqr", "ungqr"], Routine::Orgqr, &[2, 1], &[2]),
    both(&["ormqr", "unmqr"], Routine::Ormqr, &[2, 1, 2], &[2]),
    both(&["trsm"], Routine::Trsm, &[2, 2], &[2]),
    both(&["syevd", "heevd"], Routine::Syevd, &[2], &[2, 1, 0]),
    both(&["gesdd"], Routine::Svd, &[2], &[2, 1, 2, 2, 0]),
    both(&["gesvd"], Routine::Svd, &[2], &[2, 1, 2, 2, 0]),
    (
        &["geev"],
        Routine::GeevReal,
        Routine::GeevComplex,
        signature(&[2], &[1, 1, 2, 2, 0]),
        Some(signature(&[2], &[1, 2, 2, 0])),
    ),
    (
        &["gees"],
        Routine::GeesReal,
        Routine::GeesComplex,
        signature(&[2], &[2, 2, 1, 1, 0, 0]),
        Some(signature(&[2], &[2, 2, 1, 0, 0])),
    ),
    both(&["gehrd"], Routine::Gehrd, &[2], &[2, 1, 0]),
    both(&["sytrd", "hetrd"], Routine::Sytrd, &[2], &[2, 1, 1, 1, 0]),
    both(&["gtsv"], Routine::Gtsv, &[1, 1, 1, 2], &[1, 1, 1, 2, 0]),
];

/// Custom-call targets of XLA:TPU.
const TPU: [(&str, Routine, Signature); 11] = [
    ("Cholesky", Routine::TpuCholesky, signature(&[2], &[2])),
    (
        "LuDecomposition",
        Routine::TpuLu,
        signature(&[2], &[2, 1, 1]),
    ),
    ("Qr", Routine::Geqrf, signature(&[2], &[2, 1])),
    (
        "QrDecompositionBlock",
        Routine::Geqrf,
        signature(&[2], &[2, 1]),
    ),
    (
        "ProductOfElementaryHouseholderReflectors",
        Routine::Orgqr,
        signature(&[2, 1], &[2]),
    ),
    ("CompactWyHelper", Routine::CompactWy, signature(&[2], &[2])),
    ("Eigh", Routine::TpuEigh, signature(&[2], &[2, 1])),
    (
        "EighTpu",
        Routine::TpuEighBlocks,
        signature(&[2, 2, 2, 2], &[1, 1, 2, 2, 2, 2]),
    ),
    (
        "LuDecompositionBlock",
        Routine::TpuLu,
        signature(&[2], &[2, 1, 1]),
    ),
    (
        "InvertDiagBlocksLowerTriangular",
        Routine::InvertLower,
        signature(&[2], &[2]),
    ),
    (
        "InvertDiagBlocksUpperTriangular",
        Routine::InvertUpper,
        signature(&[2], &[2]),
    ),
];

const fn signature(operands: &'static [usize], results: &'static [usize]) -> Signature {
    Signature { operands, results }
}

const fn both(
    names: &'static [&'static str],
    routine: Routine,
    operands: &'static [usize],
    results: &'static [usize],
) -> (
    &'static [&'static str],
    Routine,
    Routine,
    Signature,
    Option<Signature>,
) {
    (names, routine, routine, signature(operands, results), None)
}

/// The routine that a custom-call target names.
pub(super) fn find(target: &str) -> Option<(Routine, &'static Signature)> {
    if let Some((_, routine, signature)) = TPU.iter().find(|(name, ..)| *name == target) {
        return Some((*routine, signature));
    }
    let name = target.strip_prefix("lapack_")?.strip_suffix("_ffi")?;
    let complex = match name.chars().next()? {
        's' | 'd' => false,
        'c' | 'z' => true,
        _ => return None,
    };
    let name = &name[1..];
    let (_, of_real, of_complex, signature, other) =
        LAPACK.iter().find(|(names, ..)| names.contains(&name))?;
    Some(if complex {
        (*of_complex, other.as_ref().unwrap_or(signature))
    } else {
        (*of_real, signature)
    })
}

/// The names of all custom-call targets of linear algebra, in groups: for the documentation.
pub(in crate::exec::kernels) fn targets() -> Vec<String> {
    let lapack = LAPACK
        .iter()
        .map(|(names, ..)| format!("lapack_?{}_ffi", names.join("/")));
    let tpu = TPU.iter().map(|(name, ..)| (*name).to_owned());
    lapack.chain(tpu).collect()
}

/// What a call's `backend_config` chooses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    lower: bool,
    left: bool,
    /// `trans_x` or `transpose`.
    transpose: bool,
    conjugate: bool,
    unit_diagonal: bool,
    low: usize,
    high: usize,
}

impl Options {
    /// Reads `{uplo = 76 : ui8, ...}`: letters by their ASCII code. XLA:TPU's Eigh begins with
    /// `lower,`.
    pub(super) fn parse(config: &str, ty: ElementType) -> Self {
        let number = |name: &str| -> Option<u32> {
            let list = config.trim_matches(['{', '}', ' ']);
            let entry = list.split(',').find_map(|entry| {
                let (key, value) = entry.split_once('=')?;
                (key.trim() == name).then_some(value)
            })?;
            let value = entry.split(':').next()?.trim();
            match value {
                "true" => Some(1),
                "false" => Some(0),
                digits => digits.parse().ok(),
            }
        };
        let letter = |name: &str| number(name).and_then(char::from_u32);
        let is_complex = matches!(ty, ElementType::C64 | ElementType::C128);
        let transposed = letter("trans_x");
        Self {
            lower: letter("uplo").map_or(!config.starts_with("0,"), |c| c == 'L'),
            left: letter("side").map_or(number("left") != Some(0), |c| c == 'L'),
            transpose: matches!(transposed, Some('T' | 'C')) || number("transpose") == Some(1),
            conjugate: transposed == Some('C') || (transposed.is_none() && is_complex),
            unit_diagonal: letter("diag") == Some('U'),
            low: number("low").map_or(0, |n| n.saturating_sub(1) as usize),
            high: number("high").map_or(usize::MAX, |n| n as usize),
        }
    }
}

impl Routine {
    /// Bytes that the routine works in, for a first operand of this shape.
    pub(super) fn work_bytes(self, m: usize, n: usize) -> usize {
        let (tall, wide) = (m.max(n), m.min(n));
        match self {
            Self::Syevd | Self::TpuEigh => Matrix::bytes(n, n),
            Self::TpuEighBlocks => 2 * Matrix::bytes(2 * n, 2 * n),
            Self::Svd => {
                Matrix::bytes(tall, wide)
                    + Matrix::bytes(wide, wide)
                    + Matrix::bytes(tall, tall)
                    + Matrix::bytes(tall, 1)
            }
            Self::GeevReal | Self::GeevComplex => Matrix::bytes(n, n) + 3 * Matrix::bytes(n, 1),
            Self::GeesReal | Self::GeesComplex | Self::Sytrd => 2 * Matrix::bytes(n, 1),
            Self::Gehrd => Matrix::bytes(n, 1),
            _ => 0,
        }
    }

    /// Whether operands and results (rows, columns) fit each other.
    pub(super) fn check(
        self,
        operands: &[(usize, usize)],
        results: &[(usize, usize)],
    ) -> Result<(), &'static str> {
        let (m, n) = operands[0];
        let k = m.min(n);
        let ok = match self {
            Self::Potrf | Self::TpuCholesky | Self::CompactWy => m == n && results[0] == (n, n),
            Self::InvertLower | Self::InvertUpper => m == n && results[0] == (n, n),
            Self::Getrf => results[0] == (m, n) && results[1].0 == k,
            Self::TpuLu => results[0] == (m, n) && results[1].0 == k && results[2].0 == m,
            Self::Geqrf => results[0] == (m, n) && results[1].0 == k,
            Self::Geqp3 => {
                operands[1].0 == n && results[0] == (m, n) && results[1].0 == n && results[2].0 == k
            }
            Self::Orgqr => {
                let count = operands[1].0;
                results[0].0 == m && count <= results[0].1 && results[0].1 <= m && count <= n
            }
            Self::Ormqr => {
                let (c, count) = (operands[2], operands[1].0);
                results[0] == c && count <= k && (c.0 == m || c.1 == m)
            }
            Self::Trsm => m == n && results[0] == operands[1],
            Self::Syevd | Self::TpuEigh => m == n && results[0] == (n, n) && results[1].0 == n,
            Self::TpuEighBlocks => {
                m == n
                    && operands.iter().chain(&results[2..]).all(|&q| q == (n, n))
                    && results[0].0 == n
                    && results[1].0 == n
            }
            Self::Svd => {
                results[1].0 == k
                    && results[2].0 == m
                    && results[2].1 <= m
                    && results[3].1 == n
                    && results[3].0 <= n
            }
            Self::GeevReal => m == n && results[0].0 == n && results[3] == (n, n),
            Self::GeevComplex => m == n && results[0].0 == n && results[2] == (n, n),
            Self::GeesReal | Self::GeesComplex => {
                m == n && results[0] == (n, n) && results[1] == (n, n) && results[2].0 == n
            }
            Self::Gehrd => m == n && results[0] == (n, n) && results[1].0 + 1 == n.max(1),
            Self::Sytrd => {
                m == n
                    && results[0] == (n, n)
                    && results[1].0 == n
                    && results[2].0 + 1 == n.max(1)
                    && results[3].0 + 1 == n.max(1)
            }
            Self::Gtsv => {
                operands[1].0 == m
                    && operands[2].0 == m
                    && operands[3].0 == m
                    && results[3] == operands[3]
            }
        };
        if ok {
            Ok(())
        } else {
            Err("shapes of operands and results do not fit the routine")
        }
    }

    /// Runs on one matrix. Results are zero at the start.
    pub(super) fn run<'a>(
        self,
        options: &Options,
        given: &mut [Matrix<'a>],
        found: &mut [Matrix<'a>],
        work: &mut Scratch<'a>,
    ) {
        let n = given[0].columns;
        let info = |value: usize| real(value as f64);
        match (self, given, found) {
            (Self::Potrf, [a], [l, status]) => {
                l.copy(a);
                let value = lu::cholesky(l, options.lower);
                status.put(0, 0, info(value));
            }
            (Self::TpuCholesky, [a], [l]) => {
                l.copy(a);
                let failed = lu::cholesky(l, true) > 0;
                for i in 0..n {
                    for j in 0..n {
                        if failed && j <= i {
                            l.put(i, j, real(f64::NAN));
                        } else if j > i {
                            l.put(i, j, ZERO);
                        }
                    }
                }
            }
            (Self::Getrf, [a], [f, pivots, status]) => {
                f.copy(a);
                let value = lu::lu(f, pivots);
                for k in 0..pivots.rows {
                    let from_one = pivots.at(k, 0) + ONE;
                    pivots.put(k, 0, from_one);
                }
                status.put(0, 0, info(value));
            }
            (Self::TpuLu, [a], [f, pivots, permutation]) => {
                f.copy(a);
                lu::lu(f, pivots);
                for i in 0..permutation.rows {
                    permutation.put(i, 0, info(i));
                }
                for k in 0..pivots.rows {
                    permutation.swap_rows(k, pivots.at(k, 0).re as usize);
                }
            }
            (Self::Geqrf, [a], [r, taus]) => {
                r.copy(a);
                householder::qr(r, taus);
            }
            (Self::Geqp3, [a, columns], [r, pivots, taus]) => {
                r.copy(a);
                pivots.copy(columns);
                householder::pivoted_qr(r, pivots, taus);
            }
            (Self::Orgqr, [vs, taus], [q]) => householder::product(vs, taus, q),
            (Self::Ormqr, [vs, taus, c], [out]) => {
                out.copy(c);
                householder::multiply(vs, taus, out, (options.left, options.transpose));
            }
            (Self::Trsm, [a, b], [x]) => {
                x.copy(b);
                solve_triangle(a, x, options);
            }
            (Self::Syevd, [a], [vectors, values, status]) => {
                vectors.copy(a);
                let mut matrix = Matrix::carve(work, n, n);
                let value = jacobi::eigh(vectors, values, &mut matrix, options.lower);
                status.put(0, 0, info(value));
            }
            (Self::TpuEigh, [a], [vectors, values]) => {
                vectors.copy(a);
                let mut matrix = Matrix::carve(work, n, n);
                jacobi::eigh(vectors, values, &mut matrix, options.lower);
            }
            (Self::TpuEighBlocks, quadrants, found) => {
                let mut matrix = Matrix::carve(work, 2 * n, 2 * n);
                let mut vectors = Matrix::carve(work, 2 * n, 2 * n);
                for i in 0..2 * n {
                    for j in 0..2 * n {
                        let quadrant = &quadrants[i / n * 2 + j / n];
                        matrix.put(i, j, quadrant.at(i % n, j % n));
                    }
                }
                jacobi::diagonalise(&mut matrix, &mut vectors);
                for i in 0..2 * n {
                    found[i / n].put(i % n, 0, matrix.at(i, i));
                    for j in 0..2 * n {
                        // Eigenvectors are rows here.
                        found[2 + i / n * 2 + j / n].put(i % n, j % n, vectors.at(j, i));
                    }
                }
            }
            (Self::Svd, [a], [overwritten, s, u, vh, status]) => {
                overwritten.copy(a);
                let (tall, wide) = (a.rows.max(n), a.rows.min(n));
                let work = SvdWork {
                    tall: Matrix::carve(work, tall, wide),
                    right: Matrix::carve(work, wide, wide),
                    basis: Matrix::carve(work, tall, tall),
                    taus: Matrix::carve(work, tall, 1),
                };
                let value = jacobi::svd(a, s, u, vh, work);
                status.put(0, 0, info(value));
            }
            (Self::GeevReal, [a], [re, im, left, right, status]) => {
                let (mut basis, mut vectors, mut values) = eigen_work(work, n);
                let value = schur::schur(a, &mut basis, &mut vectors);
                schur::eigenvectors(a, &basis, left, true);
                schur::eigenvectors(a, &basis, right, false);
                for k in 0..n {
                    values.put(k, 0, a.at(k, k));
                }
                schur::pair_up(&mut values, left, right, a.norm());
                for k in 0..n {
                    re.put(k, 0, real(values.at(k, 0).re));
                    im.put(k, 0, real(values.at(k, 0).im));
                }
                status.put(0, 0, info(value));
            }
            (Self::GeevComplex, [a], [values, left, right, status]) => {
                let (mut basis, mut vectors, _) = eigen_work(work, n);
                let value = schur::schur(a, &mut basis, &mut vectors);
                schur::eigenvectors(a, &basis, left, true);
                schur::eigenvectors(a, &basis, right, false);
                for k in 0..n {
                    values.put(k, 0, a.at(k, k));
                }
                status.put(0, 0, info(value));
            }
            (Self::GeesReal, [a], [t, q, re, im, _, status]) => {
                t.copy(a);
                let value = schur::real_schur(t, q, &mut schur_work(work, n));
                schur::values_of_blocks(t, re, im);
                status.put(0, 0, info(value));
            }
            (Self::GeesComplex, [a], [t, q, values, _, status]) => {
                t.copy(a);
                let value = schur::schur(t, q, &mut schur_work(work, n));
                for k in 0..n {
                    values.put(k, 0, t.at(k, k));
                }
                status.put(0, 0, info(value));
            }
            (Self::Gehrd, [a], [h, taus, _]) => {
                h.copy(a);
                let mut vector = Matrix::carve(work, n, 1);
                let rows = (options.low.min(n), options.high.min(n));
                householder::hessenberg(h, taus, &mut vector, rows);
            }
            (Self::Sytrd, [a], [t, d, e, taus, _]) => {
                t.copy(a);
                let (mut v, mut w) = (Matrix::carve(work, n, 1), Matrix::carve(work, n, 1));
                householder::tridiagonal(t, (d, e, taus), (&mut v, &mut w), options.lower);
            }
            (Self::Gtsv, [dl, d, du, b], [below, diagonal, above, x, status]) => {
                // LAPACK's subdiagonal begins with the second row; JAX's with an element that is not used.
                for k in 0..d.rows {
                    let next = if k + 1 < d.rows {
                        dl.at(k + 1, 0)
                    } else {
                        ZERO
                    };
                    below.put(k, 0, next);
                }
                diagonal.copy(d);
                above.copy(du);
                x.copy(b);
                let value = lu::tridiagonal_solve(below, diagonal, above, x);
                status.put(0, 0, info(value));
            }
            (Self::InvertLower, [a], [inverse]) => lu::invert_triangle(a, inverse, true),
            (Self::InvertUpper, [a], [inverse]) => lu::invert_triangle(a, inverse, false),
            (Self::CompactWy, [m], [t]) => householder::compact_wy(m, t),
            _ => unreachable!("the number of operands and results is checked"),
        }
    }
}

fn schur_work<'a>(work: &mut Scratch<'a>, n: usize) -> SchurWork<'a> {
    SchurWork {
        taus: Matrix::carve(work, n, 1),
        vector: Matrix::carve(work, n, 1),
    }
}

fn eigen_work<'a>(work: &mut Scratch<'a>, n: usize) -> (Matrix<'a>, SchurWork<'a>, Matrix<'a>) {
    let basis = Matrix::carve(work, n, n);
    let vectors = schur_work(work, n);
    (basis, vectors, Matrix::carve(work, n, 1))
}

/// `trsm`: substitution, in place of the right-hand sides.
fn solve_triangle(a: &Matrix<'_>, x: &mut Matrix<'_>, options: &Options) {
    let n = a.rows;
    // x op(a) = b is op(a)^T x^T = b^T.
    let flipped = options.transpose == options.left;
    let forward = options.lower != flipped;
    let element = |i: usize, j: usize| {
        let value = if flipped { a.at(j, i) } else { a.at(i, j) };
        if options.transpose && options.conjugate {
            value.conj()
        } else {
            value
        }
    };
    let count = if options.left { x.columns } else { x.rows };
    for c in 0..count {
        let place = |i: usize| if options.left { (i, c) } else { (c, i) };
        for step in 0..n {
            let i = if forward { step } else { n - 1 - step };
            let (row, column) = place(i);
            let mut sum = x.at(row, column);
            for j in if forward { 0..i } else { i + 1..n } {
                let (row, column) = place(j);
                sum = sum - product(element(i, j), x.at(row, column));
            }
            if !options.unit_diagonal {
                sum = quotient(sum, element(i, i));
            }
            x.put(row, column, sum);
        }
    }
}
