//! Loops and branches: what their computations need counts where they run.

use super::{Candidate, ScheduleConfig, best, module, order_of, schedule, target, with};
use crate::PlanError;

const LOOP: &str = "HloModule m

cond {
  p = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT more = pred[] compare(i, n), direction=LT
}

body {
  p = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[64] get-tuple-element(p), index=1
  wide = f32[256] custom-call(x), custom_call_target=\"t\"
  narrow = f32[64] custom-call(wide), custom_call_target=\"t\"
  ROOT next = (s32[], f32[64]) tuple(i, narrow)
}

ENTRY main {
  i = s32[] parameter(0)
  y = f32[16] parameter(1)
  x = f32[64] custom-call(y), custom_call_target=\"t\"
  held = f32[32] custom-call(y), custom_call_target=\"t\"
  init = (s32[], f32[64]) tuple(i, x)
  loop = (s32[], f32[64]) while(init), condition=cond, body=body
  out = f32[64] get-tuple-element(loop), index=1
  ROOT r = (f32[64], f32[32]) tuple(out, held)
}
";

#[test]
fn what_a_loop_needs_counts_where_it_runs() {
    let m = module(LOOP);
    let found = best(&m);
    let names: Vec<&str> = found
        .computations
        .iter()
        .map(|c| m.comp_name(c.computation))
        .collect();
    assert_eq!(names, ["cond", "body", "main"]);
    // i passes through: pinned, the program's argument. x and wide: 256 + 1024; then wide and narrow.
    assert_eq!(found.computations[1].peak.get(), 256 + 1024);
    // Arguments 4 + 64 and the constant 4 are always there; in the loop its state and wide.
    let in_loop = 4 + 64 + 4 + 256 + 1024;
    assert_eq!(found.peak().get(), in_loop);
    // For that, `held` is made after the loop; the text has it before.
    assert_eq!(order_of(&m, &found, &["loop", "held"]), ["loop", "held"]);
    assert_eq!(with(&m, &[Candidate::Text]).peak().get(), in_loop + 128);
}

#[test]
fn branches_count_their_most_and_not_their_sum() {
    let m = module(
        "HloModule m

small {
  p = f32[16] parameter(0)
  t = f32[32] custom-call(p), custom_call_target=\"t\"
  ROOT r = f32[16] custom-call(t), custom_call_target=\"t\"
}

large {
  p = f32[16] parameter(0)
  t = f32[64] custom-call(p), custom_call_target=\"t\"
  ROOT r = f32[16] custom-call(t), custom_call_target=\"t\"
}

ENTRY main {
  which = s32[] parameter(0)
  y = f32[16] parameter(1)
  x = f32[16] custom-call(y), custom_call_target=\"t\"
  ROOT c = f32[16] conditional(which, x, x), branch_computations={small, large}
}
",
    );
    // Arguments 4 + 64; x 64 and the larger temporary 256. The result 64 comes when x is dead.
    let found = best(&m);
    assert_eq!(found.peak().get(), 68 + 64 + 256);
    assert_eq!(found.bound(), found.peak());
}

/// What a loop gives to a branch alone may be overwritten there, by every order and in the bound.
#[test]
fn a_branch_writes_over_what_a_loop_handed_it() {
    let m = module(
        "HloModule m

cond {
  s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(1)
  ROOT c = pred[] compare(i, n), direction=LT
}

body {
  s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64] get-tuple-element(s), index=1
  y = f32[64] negate(x)
  ROOT r = (s32[], f32[64]) tuple(i, y)
}

minus {
  p = f32[64] parameter(0)
  ROOT m = f32[64] negate(p)
}

wave {
  p = f32[64] parameter(0)
  ROOT w = f32[64] cosine(p)
}

ENTRY main {
  i = s32[] parameter(0)
  y = f32[64] parameter(1)
  x = f32[64] custom-call(y), custom_call_target=\"t\"
  init = (s32[], f32[64]) tuple(i, x)
  loop = (s32[], f32[64]) while(init), condition=cond, body=body
  out = f32[64] get-tuple-element(loop), index=1
  ROOT c = f32[64] conditional(i, out, out), branch_computations={minus, wave}
}
",
    );
    let found = best(&m);
    // Arguments 4 + 256 and the constant 4 are always there, x in each of its forms; the loop's condition needs a byte more.
    let needed = 4 + 256 + 4 + 256 + 1;
    assert_eq!(found.peak().get(), needed);
    assert_eq!(found.bound().get(), needed);
}

#[test]
fn shared_computations_are_refused() {
    let m = module(
        "HloModule m

f {
  p = f32[4] parameter(0)
  ROOT r = f32[4] negate(p)
}

ENTRY main {
  x = f32[4] parameter(0)
  a = f32[4] call(x), to_apply=f
  ROOT b = f32[4] call(a), to_apply=f
}
",
    );
    let refused = schedule(&m, &target(), &ScheduleConfig::default());
    assert!(
        matches!(refused, Err(PlanError::SharedComputation { .. })),
        "{refused:?}"
    );
}
