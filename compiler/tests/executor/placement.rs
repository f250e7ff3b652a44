//! Where arrays lie: padding, pieces, asynchronous copies, results over operands.

use super::{f32s, parse, run};
use slabplan::exec::{ExecConfig, Executable, reference_plan};
use slabplan::{CompileConfig, compile, target};
use slabplan_ir::BufferId;

#[test]
fn asynchronous_operations_run_at_either_end() {
    let text = "HloModule asynchronous, is_scheduled=true
wrapped { p = f32[300]{0:T(512)} parameter(0)
  ROOT n = f32[300]{0:T(512)} negate(p) }
ENTRY e {
  a = f32[300]{0:T(512)} parameter(0)
  cs = (f32[300]{0:T(512)S(1)}, f32[300]{0:T(512)}, u32[]{:S(2)}) copy-start(a)
  as = ((f32[300]{0:T(512)}), f32[300]{0:T(512)}, s32[]) async-start(a), calls=wrapped
  b = f32[300]{0:T(512)} add(a, a)
  cd = f32[300]{0:T(512)S(1)} copy-done(cs)
  ad = f32[300]{0:T(512)} async-done(as)
  c = f32[300]{0:T(512)} multiply(b, cd)
  ROOT r = f32[300]{0:T(512)} add(c, ad)
}";
    let values: Vec<f32> = (0..300).map(|i| i as f32).collect();
    let expected: Vec<f32> = values.iter().map(|x| 2.0 * x * x - x).collect();
    let out = run(text, "tpu-v5e", &[f32s(&values, &[300])]);
    assert_eq!(out, [f32s(&expected, &[300])]);
}

#[test]
fn padding_of_a_tiled_array_never_reaches_a_result() {
    // A sum over a padded dimension, and a bitcast between a row and a vector.
    let text = "HloModule padding, is_scheduled=true
add { x = f32[]{:T(128)} parameter(0)
  y = f32[]{:T(128)} parameter(1)
  ROOT r = f32[]{:T(128)} add(x, y) }
ENTRY e {
  a = f32[3,5]{0,1:T(8,128)} parameter(0)
  b = f32[3,5]{1,0:T(4,128)} copy(a)
  zero = f32[]{:T(128)} constant(0)
  sum = f32[5]{0:T(128)} reduce(b, zero), dimensions={0}, to_apply=add
  row = f32[1,5]{1,0:T(1,128)} bitcast(sum)
  ROOT r = f32[1,5]{1,0:T(1,128)} negate(row)
}";
    let values: Vec<f32> = (1..=15).map(|i| i as f32).collect();
    let out = run(text, "tpu-v5e", &[f32s(&values, &[3, 5])]);
    // Columns: 1+6+11, 2+7+12, ...
    assert_eq!(out, [f32s(&[-18.0, -21.0, -24.0, -27.0, -30.0], &[1, 5])]);
}

#[test]
fn pieces_of_a_concat_bitcast_lie_side_by_side() {
    let text = "HloModule pieces, is_scheduled=true
ENTRY e {
  a = f32[8,128]{1,0:T(8,128)} parameter(0)
  b = f32[8,128]{1,0:T(8,128)} negate(a)
  c = f32[8,128]{1,0:T(8,128)} add(a, a)
  ROOT r = f32[16,128]{1,0:T(8,128)} custom-call(b, c), custom_call_target=\"ConcatBitcast\"
}";
    let module = parse(text);
    let plan = reference_plan(&module).unwrap();
    let mut executable = Executable::new(&module, &plan, ExecConfig::default()).unwrap();
    let values: Vec<f32> = (0..1024).map(|i| i as f32).collect();
    let out = executable.execute(&[f32s(&values, &[8, 128])]).unwrap();
    let mut expected: Vec<f32> = values.iter().map(|x| -x).collect();
    expected.extend(values.iter().map(|x| x + x));
    assert_eq!(out, [f32s(&expected, &[16, 128])]);
}

/// A prefetch in slices, the second one first, as XLA:TPU writes it: the joined array is the argument.
#[test]
fn pieces_lie_where_their_slices_were() {
    let text = "HloModule pieces, is_scheduled=true
high {
  p = f32[16,128]{1,0:T(8,128)} parameter(0)
  ROOT s = f32[8,128]{1,0:T(8,128)S(1)} slice(p), slice={[8:16], [0:128]}
}
low {
  p = f32[16,128]{1,0:T(8,128)} parameter(0)
  ROOT s = f32[8,128]{1,0:T(8,128)S(1)} slice(p), slice={[0:8], [0:128]}
}
ENTRY e {
  a = f32[16,128]{1,0:T(8,128)} parameter(0)
  start1 = ((f32[16,128]{1,0:T(8,128)}), f32[8,128]{1,0:T(8,128)S(1)}, u32[]{:S(2)}) async-start(a), calls=high
  s0 = ((f32[16,128]{1,0:T(8,128)}), f32[8,128]{1,0:T(8,128)S(1)}, u32[]{:S(2)}) async-start(a), calls=low
  d1 = f32[8,128]{1,0:T(8,128)S(1)} async-done(start1)
  d0 = f32[8,128]{1,0:T(8,128)S(1)} async-done(s0)
  r = f32[16,128]{1,0:T(8,128)S(1)} custom-call(d1, d0), custom_call_target=\"ConcatBitcast\"
  ROOT n = f32[16,128]{1,0:T(8,128)} negate(r)
}";
    let values: Vec<f32> = (0..2048).map(|i| i as f32).collect();
    let out = run(text, "tpu-v5e", &[f32s(&values, &[16, 128])]);
    let expected: Vec<f32> = values.iter().map(|x| -x).collect();
    assert_eq!(out, [f32s(&expected, &[16, 128])]);
}

/// Each step writes one row: neither the array nor a copy of it passes through scratch memory.
#[test]
fn an_update_in_place_touches_only_its_slice() {
    let text = "HloModule rows
cond { s = (s32[], f32[1000,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(1000)
  ROOT lt = pred[] compare(i, n), direction=LT
}
update { array = f32[1000,64] parameter(0)
  i = s32[] parameter(1)
  x = f32[] convert(i)
  row = f32[1,64] broadcast(x), dimensions={}
  zero = s32[] constant(0)
  ROOT u = f32[1000,64] dynamic-update-slice(array, row, i, zero)
}
body { s = (s32[], f32[1000,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  array = f32[1000,64] get-tuple-element(s), index=1
  next = f32[1000,64] fusion(array, i), kind=kLoop, calls=update
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[1000,64]) tuple(j, next)
}
ENTRY e {
  array = f32[1000,64] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[1000,64]) tuple(zero, array)
  w = (s32[], f32[1000,64]) while(init), condition=cond, body=body
  ROOT r = f32[1000,64] get-tuple-element(w), index=1
}";
    let out = run(text, "cpu", &[f32s(&vec![-1.0; 64_000], &[1000, 64])]);
    let expected: Vec<f32> = (0..64_000).map(|i| (i / 64) as f32).collect();
    assert_eq!(out, [f32s(&expected, &[1000, 64])]);
    let target = target::load("cpu").unwrap();
    let compiled = compile(parse(text), &target, &CompileConfig::default()).unwrap();
    let executable =
        Executable::new(&compiled.module, compiled.plan(), ExecConfig::default()).unwrap();
    assert!(
        executable.unplanned_scratch_bytes() < 16_000,
        "{}",
        executable.unplanned_scratch_bytes()
    );
}

/// One result over an operand that the other result was computed from before, and one over an
/// operand that is still read afterwards; in a tiled layout with padding.
#[test]
fn results_over_operands_of_a_fusion_with_several() {
    let text = "HloModule over, is_scheduled=true
f { p0 = f32[5,6]{0,1:T(8,128)} parameter(0)
  p1 = f32[5,6]{0,1:T(8,128)} parameter(1)
  p2 = f32[5,6]{0,1:T(8,128)} parameter(2)
  p3 = f32[5,6]{0,1:T(8,128)} parameter(3)
  m = f32[5,6]{0,1:T(8,128)} multiply(p1, p2)
  x = f32[5,6]{0,1:T(8,128)} add(m, p0)
  y = f32[5,6]{0,1:T(8,128)} multiply(p3, p1)
  ROOT t = (f32[5,6]{0,1:T(8,128)}, f32[5,6]{0,1:T(8,128)}) tuple(x, y)
}
ENTRY e {
  a = f32[5,6]{0,1:T(8,128)} parameter(0)
  p0 = f32[5,6]{0,1:T(8,128)} negate(a)
  p1 = f32[5,6]{0,1:T(8,128)} add(a, a)
  p2 = f32[5,6]{0,1:T(8,128)} multiply(a, a)
  p3 = f32[5,6]{0,1:T(8,128)} abs(a)
  w = (f32[5,6]{0,1:T(8,128)}, f32[5,6]{0,1:T(8,128)}) fusion(p0, p1, p2, p3), kind=kLoop, calls=f
  x = f32[5,6]{0,1:T(8,128)} get-tuple-element(w), index=0
  y = f32[5,6]{0,1:T(8,128)} get-tuple-element(w), index=1
  ROOT r = f32[5,6]{0,1:T(8,128)} subtract(x, y)
}";
    let values: Vec<f32> = (0..30).map(|i| i as f32 - 15.0).collect();
    // 2a * a^2 - a - |a| * 2a
    let expected: Vec<f32> = values
        .iter()
        .map(|a| 2.0 * a * (a * a) - a - a.abs() * (2.0 * a))
        .collect();
    let out = run(text, "tpu-v5e", &[f32s(&values, &[5, 6])]);
    assert_eq!(out, [f32s(&expected, &[5, 6])]);
    // Whatever the plan chose: every pair of results over operands.
    let module = parse(text);
    let plan = reference_plan(&module).unwrap();
    let config = ExecConfig {
        poison: true,
        ..ExecConfig::default()
    };
    let place = |name: &str, index: &[u32]| -> BufferId {
        let named = |b: &slabplan_ir::plan::PlanBuffer| {
            let v = &b.values[0];
            module.name_of(v.instr) == name && v.index.as_slice() == index
        };
        plan.buffers.iter().find(|(_, b)| named(b)).unwrap().0
    };
    for first in ["p0", "p1", "p2", "p3"] {
        for second in ["p0", "p1", "p2", "p3"].into_iter().filter(|&s| s != first) {
            let mut plan = plan.clone();
            plan.buffers[place("w", &[0])].offset = plan.buffers[place(first, &[])].offset;
            plan.buffers[place("w", &[1])].offset = plan.buffers[place(second, &[])].offset;
            let mut executable = Executable::new(&module, &plan, config.clone()).unwrap();
            let out = executable.execute(&[f32s(&values, &[5, 6])]).unwrap();
            assert_eq!(out, [f32s(&expected, &[5, 6])], "over {first} and {second}");
        }
    }
}
