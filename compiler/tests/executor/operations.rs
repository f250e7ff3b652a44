//! Operations that no exported program has, and the number of threads.

use super::{f32s, parse, run, s32s};
use slabplan::exec::{ExecConfig, Executable, HostArray, reference_plan};
use slabplan::{CompileConfig, compile, target};

#[test]
fn scales_apply_to_blocks_and_sizes_can_be_asked_for() {
    // Two blocks of two along the contracting dimension: (1 + 2) * 2 * 1 + (3 + 4) * 1 * 10.
    let text = "HloModule scaled
ENTRY e {
  x = f32[1,4] parameter(0)
  y = f32[1,4] parameter(1)
  sx = f32[1,2] parameter(2)
  sy = f32[1,2] parameter(3)
  p = f32[1,1] scaled-dot(x, y, sx, sy), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  n = s32[] get-dimension-size(x), dimensions={1}
  k = f32[1,4] set-dimension-size(x, n), dimensions={1}
  ROOT t = (f32[1,1], s32[], f32[1,4]) tuple(p, n, k)
}";
    let module = parse(text);
    let plan = reference_plan(&module).unwrap();
    let mut executable = Executable::new(&module, &plan, ExecConfig::default()).unwrap();
    let x = f32s(&[1.0, 2.0, 3.0, 4.0], &[1, 4]);
    let inputs = [
        x.clone(),
        f32s(&[1.0; 4], &[1, 4]),
        f32s(&[2.0, 1.0], &[1, 2]),
        f32s(&[1.0, 10.0], &[1, 2]),
    ];
    let out = executable.execute(&inputs).unwrap();
    assert_eq!(out, [f32s(&[76.0], &[1, 1]), s32s(&[4], &[]), x]);
}

/// A module whose arrays are large enough for several threads.
const LARGE: &str = "HloModule large
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] add(x, y) }
ENTRY e {
  a = f32[500,700] parameter(0)
  b = f32[700,300]{0,1} parameter(1)
  c = f32[500,300] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[300,500] transpose(c), dimensions={1,0}
  e = f32[300,500] tanh(t)
  zero = f32[] constant(0)
  rows = f32[300] reduce(e, zero), dimensions={1}, to_apply=add
  columns = f32[500] reduce(e, zero), dimensions={0}, to_apply=add
  all = f32[] reduce(a, zero), dimensions={0,1}, to_apply=add
  ROOT r = (f32[500,300], f32[300,500], f32[300], f32[500], f32[]) tuple(c, e, rows, columns, all)
}";

#[test]
fn results_do_not_depend_on_threads() {
    let module = parse(LARGE);
    let values =
        |n: usize| -> Vec<f32> { (0..n).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect() };
    let inputs = [
        f32s(&values(500 * 700), &[500, 700]),
        f32s(&values(700 * 300), &[700, 300]),
    ];
    let target = target::load("cpu").unwrap();
    let compiled = compile(module, &target, &CompileConfig::default()).unwrap();
    let run = |threads: usize| {
        let config = ExecConfig {
            threads: std::num::NonZeroUsize::new(threads),
            ..ExecConfig::default()
        };
        let mut executable = Executable::new(&compiled.module, compiled.plan(), config).unwrap();
        executable.execute(&inputs).unwrap()
    };
    let one = run(1);
    for threads in [2, 3, 7] {
        assert_eq!(run(threads), one, "{threads} threads");
    }
    // One element of each result, worked out in double precision.
    let (a, b) = (values(500 * 700), values(700 * 300));
    let c = |i: usize, j: usize| -> f64 {
        (0..700)
            .map(|k| f64::from(a[i * 700 + k]) * f64::from(b[k * 300 + j]))
            .sum()
    };
    let element = |array: &HostArray, at: usize| {
        f64::from(f32::from_le_bytes(
            array.data[at * 4..][..4].try_into().unwrap(),
        ))
    };
    let close = |found: f64, expected: f64| {
        assert!(
            (found - expected).abs() < 1e-3 * expected.abs().max(1.0),
            "{found} {expected}"
        );
    };
    close(element(&one[0], 123 * 300 + 45), c(123, 45));
    close(element(&one[1], 45 * 500 + 123), c(123, 45).tanh());
    close(element(&one[2], 7), (0..500).map(|i| c(i, 7).tanh()).sum());
    close(element(&one[3], 9), (0..300).map(|j| c(9, j).tanh()).sum());
    // Positive and negative ones cancel out: what rounding may do is a part of the sum of magnitudes.
    let (found, expected): (_, f64) = (element(&one[4], 0), a.iter().map(|&x| f64::from(x)).sum());
    let magnitudes: f64 = a.iter().map(|&x| f64::from(x.abs())).sum();
    assert!(
        (found - expected).abs() < f64::from(f32::EPSILON) * magnitudes,
        "{found} {expected}"
    );
}

/// What other machines trap at has a result, as XLA defines it.
#[test]
fn division_and_indices_at_the_edges() {
    let text = "HloModule edges
ENTRY e {
  x = s32[4] parameter(0)
  y = s32[4] parameter(1)
  at = s32[] parameter(2)
  f = f32[4] parameter(3)
  q = s32[4] divide(x, y)
  r = s32[4] remainder(x, y)
  s = s32[2] dynamic-slice(x, at), dynamic_slice_sizes={2}
  two = s32[2] constant({7, 8})
  u = s32[4] dynamic-update-slice(y, two, at)
  shifted = s32[4] shift-left(x, y)
  bent = s32[4] shift-right-arithmetic(x, y)
  n = s32[4] convert(f)
  zero = f32[] constant(0)
  zeros = f32[4] broadcast(zero), dimensions={}
  m = f32[4] maximum(f, zeros)
  ROOT t = (s32[4], s32[4], s32[2], s32[4], s32[4], s32[4], s32[4], f32[4]) tuple(q, r, s, u, shifted, bent, n, m)
}";
    let x = [7, i32::MIN, -7, i32::MIN];
    let y = [0, -1, 40, 32];
    let f = [f32::NAN, f32::INFINITY, -1e20, -0.5];
    let inputs = |at: i32| {
        [
            s32s(&x, &[4]),
            s32s(&y, &[4]),
            s32s(&[at], &[]),
            f32s(&f, &[4]),
        ]
    };
    // Beyond the end and before the start: the nearest place at which the slice fits.
    for (at, slice, update) in [
        (9, [-7, i32::MIN], [0, -1, 7, 8]),
        (-5, [7, i32::MIN], [7, 8, 40, 32]),
    ] {
        let out = run(text, "cpu", &inputs(at));
        assert_eq!(out[0], s32s(&[-1, i32::MIN, 0, i32::MIN / 32], &[4]));
        assert_eq!(out[1], s32s(&[7, 0, -7, 0], &[4]));
        assert_eq!(out[2], s32s(&slice, &[2]));
        assert_eq!(out[3], s32s(&update, &[4]));
        // Past the width: zeros, or the sign. A negative amount counts as a large one.
        assert_eq!(out[4], s32s(&[7, 0, 0, 0], &[4]));
        assert_eq!(out[5], s32s(&[7, -1, -1, -1], &[4]));
        assert_eq!(out[6], s32s(&[0, i32::MAX, i32::MIN, 0], &[4]));
        assert!(out[7].data[..4] != [0; 4], "the maximum of NaN is NaN");
        assert_eq!(
            out[7].data[4..],
            f32s(&[f32::INFINITY, 0.0, 0.0], &[3]).data
        );
    }
}
