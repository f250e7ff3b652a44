//! Loops, branches and calls.

use super::{f32s, run, s32s};
use slabplan::exec::HostArray;
use slabplan_ir::ElementType;

const SWAP: &str = "HloModule swap
cond {
  s = (s32[], f32[2], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[2], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[2] get-tuple-element(s), index=1
  b = f32[2] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT t = (s32[], f32[2], f32[2]) tuple(next, b, a)
}
ENTRY e {
  a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  zero = s32[] constant(0)
  init = (s32[], f32[2], f32[2]) tuple(zero, a, b)
  ROOT w = (s32[], f32[2], f32[2]) while(init), condition=cond, body=body
}";

#[test]
fn swapped_carries_change_place_at_once() {
    // Three iterations swap three times.
    let out = run(
        SWAP,
        "cpu",
        &[f32s(&[1.0, 2.0], &[2]), f32s(&[3.0, 4.0], &[2])],
    );
    assert_eq!(out[0], s32s(&[3], &[]));
    assert_eq!(out[1], f32s(&[3.0, 4.0], &[2]));
    assert_eq!(out[2], f32s(&[1.0, 2.0], &[2]));
}

#[test]
fn a_conditional_takes_the_last_branch_for_an_index_out_of_range() {
    let text = "HloModule switch
b0 { p = f32[2] parameter(0)
  ROOT r = f32[2] negate(p) }
b1 { p = f32[2] parameter(0)
  ROOT r = f32[2] add(p, p) }
b2 { ROOT p = f32[2] parameter(0) }
ENTRY e {
  i = s32[] parameter(0)
  x = f32[2] parameter(1)
  ROOT c = f32[2] conditional(i, x, x, x), branch_computations={b0, b1, b2}
}";
    let x = [1.0, -2.0];
    for (index, expected) in [(0, [-1.0, 2.0]), (1, [2.0, -4.0]), (2, x), (3, x), (-1, x)] {
        let out = run(text, "cpu", &[s32s(&[index], &[]), f32s(&x, &[2])]);
        assert_eq!(out, [f32s(&expected, &[2])], "branch {index}");
    }
}

#[test]
fn true_is_branch_zero_of_a_predicate() {
    let text = "HloModule cond
t { p = f32[] parameter(0)
  ROOT r = f32[] negate(p) }
f { p = f32[] parameter(0)
  ROOT r = f32[] add(p, p) }
ENTRY e {
  p = pred[] parameter(0)
  x = f32[] parameter(1)
  ROOT c = f32[] conditional(p, x, x), true_computation=t, false_computation=f
}";
    for (value, expected) in [(1, -3.0), (0, 6.0)] {
        let p = HostArray::new(ElementType::Pred, &[], vec![value]).unwrap();
        let out = run(text, "cpu", &[p, f32s(&[3.0], &[])]);
        assert_eq!(out, [f32s(&[expected], &[])]);
    }
}

#[test]
fn one_computation_called_twice_keeps_both_results() {
    let text = "HloModule calls
f { p = f32[2] parameter(0)
  ROOT r = f32[2] multiply(p, p) }
ENTRY e {
  a = f32[2] parameter(0)
  x = f32[2] call(a), to_apply=f
  y = f32[2] call(x), to_apply=f
  ROOT t = (f32[2], f32[2]) tuple(x, y)
}";
    let out = run(text, "cpu", &[f32s(&[2.0, 3.0], &[2])]);
    assert_eq!(out[0], f32s(&[4.0, 9.0], &[2]));
    assert_eq!(out[1], f32s(&[16.0, 81.0], &[2]));
}
