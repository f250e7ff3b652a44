//! Products against their definition.

use super::*;

fn bytes<T: Accumulator>(values: &[T]) -> Vec<u8> {
    let mut out = vec![0; values.len() * T::BYTES];
    for (v, out) in values.iter().zip(out.chunks_exact_mut(T::BYTES)) {
        v.store(out);
    }
    out
}

/// `m` by `k` times `k` by `n`, each matrix row-major or column-major.
fn check<T: Accumulator + PartialEq + std::fmt::Debug>(
    (m, k, n): (usize, usize, usize),
    (a_by_row, b_by_row): (bool, bool),
    small: impl Fn(usize) -> T,
) {
    let steps = |by_row: bool, rows: usize, columns: usize| {
        if by_row { (columns, 1) } else { (1, rows) }
    };
    let ((a_row, a_column), (b_row, b_column)) = (steps(a_by_row, m, k), steps(b_by_row, k, n));
    let a: Vec<T> = (0..m * k).map(|i| small(i % 7)).collect();
    let b: Vec<T> = (0..k * n).map(|i| small(i % 5)).collect();
    let left = Matrix {
        lines: [(m, a_row)].into_iter().collect(),
        depth: [(k, a_column)].into_iter().collect(),
    };
    let right = Matrix {
        lines: [(n, b_column)].into_iter().collect(),
        depth: [(k, b_row)].into_iter().collect(),
    };
    let size = Size {
        rows: m,
        columns: n,
        depth: k,
    };
    let mut scratch = vec![7; size.scratch_bytes(T::BYTES).unwrap()];
    let mut c = vec![9; m * n * T::BYTES];
    let (a_bytes, b_bytes) = (bytes(&a), bytes(&b));
    let (rows, columns) = (
        [(m, n)].into_iter().collect(),
        [(n, 1)].into_iter().collect(),
    );
    multiply::<T>(
        &StridedLines {
            matrix: &left,
            data: &a_bytes,
        },
        &StridedLines {
            matrix: &right,
            data: &b_bytes,
        },
        size,
        (0, m),
        &mut StridedSink {
            data: &mut c,
            base: 0,
            first_row: 0,
            rows: &rows,
            columns: &columns,
        },
        &mut scratch,
    );
    for i in 0..m {
        for j in 0..n {
            let expected = (0..k).fold(T::ZERO, |sum, l| {
                sum.add_product(a[i * a_row + l * a_column], b[l * b_row + j * b_column])
            });
            let found = T::load(&c[(i * n + j) * T::BYTES..][..T::BYTES]);
            assert_eq!(found, expected, "{m}x{k}x{n} at {i}, {j}");
        }
    }
}

/// Sizes around those of tiles and blocks; small integers, so that sums are exact in any order.
#[test]
fn agrees_with_the_definition() {
    let sizes = [
        (1, 1, 1),
        (1, 300, 70),
        (3, 9, 33),
        (12, 8, 32),
        (23, 17, 64),
        (25, 31, 97),
        (251, 270, 40),
        (67, 515, 9),
        (3, 0, 4),
        (5, 3, 1100),
    ];
    for size in sizes {
        for by_row in [(true, true), (true, false), (false, true), (false, false)] {
            check(size, by_row, |i| i as f32 - 3.0);
            check(size, by_row, |i| i as f64 - 3.0);
            check(size, by_row, |i| i as i32 - 3);
            check(size, by_row, |i| i as i64 - 3);
        }
    }
}

#[test]
fn complex_products() {
    use crate::exec::kernels::complex::Complex;
    for size in [(5, 4, 3), (13, 300, 17)] {
        check(size, (true, false), |i| Complex::new(i as f32, 1.0));
        check(size, (false, true), |i| Complex::new(1.0, i as f64));
    }
}
