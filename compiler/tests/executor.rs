//! Single rules of the executor, on small modules whose results are worked out by hand.

use std::sync::Arc;

use slabplan::exec::{
    AsyncMode, ExecConfig, ExecError, Executable, HostArray, Watch, reference_plan,
};
use slabplan::{CompileConfig, compile, target};
use slabplan_ir::module::Module;
use slabplan_ir::plan::Plan;
use slabplan_ir::{BufferId, ElementType, Offset};

fn parse(text: &str) -> Module {
    slabplan_ir::text::parse(text)
        .into_result()
        .unwrap_or_else(|e| panic!("{e:?}"))
}

fn f32s(values: &[f32], dims: &[u64]) -> HostArray {
    let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    HostArray::new(ElementType::F32, dims, data).unwrap()
}

fn s32s(values: &[i32], dims: &[u64]) -> HostArray {
    let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    HostArray::new(ElementType::S32, dims, data).unwrap()
}

/// Planned for `target_name`, poisoned; and on memory of its own: both must agree.
fn run(text: &str, target_name: &str, inputs: &[HostArray]) -> Vec<HostArray> {
    let module = parse(text);
    let reference = reference_plan(&module).unwrap();
    let mut expected = Executable::new(&module, &reference, ExecConfig::default()).unwrap();
    let expected = expected.execute(inputs).unwrap();
    let target = target::load(target_name).unwrap();
    let compiled = compile(module, &target, &CompileConfig::default()).unwrap();
    for async_mode in [
        AsyncMode::Start,
        AsyncMode::Done,
        AsyncMode::Random(1),
        AsyncMode::Random(7),
    ] {
        let config = ExecConfig {
            poison: true,
            async_mode,
            ..ExecConfig::default()
        };
        let mut planned = Executable::new(&compiled.module, compiled.plan(), config).unwrap();
        // Twice: a run must not depend on what the last one left behind.
        for _ in 0..2 {
            assert_eq!(planned.execute(inputs).unwrap(), expected, "{async_mode:?}");
        }
    }
    expected
}

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

#[test]
fn devices_exchange_data() {
    let text = "HloModule exchange, num_partitions=2
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] add(x, y) }
ENTRY e {
  a = f32[2] parameter(0)
  sum = f32[2] all-reduce(a), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
  all = f32[4] all-gather(a), channel_id=2, replica_groups={{1,0}}, use_global_device_ids=true, dimensions={0}
  part = f32[1] reduce-scatter(a), channel_id=3, replica_groups={{0,1}}, use_global_device_ids=true, dimensions={0}, to_apply=add
  swapped = f32[2] all-to-all(a), channel_id=4, replica_groups={{0,1}}, dimensions={0}
  moved = f32[2] collective-permute(a), channel_id=5, source_target_pairs={{0,1}}
  id = u32[] partition-id()
  ROOT t = (f32[2], f32[4], f32[1], f32[2], f32[2], u32[]) tuple(sum, all, part, swapped, moved, id)
}";
    let module = parse(text);
    let plan = reference_plan(&module).unwrap();
    let mut executable = Executable::new(&module, &plan, ExecConfig::default()).unwrap();
    let inputs = [[f32s(&[1.0, 2.0], &[2])], [f32s(&[10.0, 20.0], &[2])]];
    let out = executable
        .execute_devices(&[&inputs[0], &inputs[1]])
        .unwrap();
    let id = |n: u8| HostArray::new(ElementType::U32, &[], vec![n, 0, 0, 0]).unwrap();
    let expected = |part, swapped: [f32; 2], moved: [f32; 2], n| {
        vec![
            f32s(&[11.0, 22.0], &[2]),
            f32s(&[10.0, 20.0, 1.0, 2.0], &[4]),
            f32s(&[part], &[1]),
            f32s(&swapped, &[2]),
            f32s(&moved, &[2]),
            id(n),
        ]
    };
    assert_eq!(out[0], expected(11.0, [1.0, 10.0], [0.0, 0.0], 0));
    assert_eq!(out[1], expected(22.0, [2.0, 20.0], [1.0, 2.0], 1));
}

#[test]
fn devices_send_pieces_of_different_sizes() {
    // Device 0 keeps its first row and sends the two others; device 1 sends one and keeps none.
    let text = "HloModule ragged, num_partitions=2
ENTRY e {
  x = f32[3,1] parameter(0)
  out = f32[3,1] parameter(1)
  starts = s32[2] parameter(2)
  sizes = s32[2] parameter(3)
  places = s32[2] parameter(4)
  received = s32[2] parameter(5)
  ROOT r = f32[3,1] ragged-all-to-all(x, out, starts, sizes, places, received), channel_id=1, replica_groups={{0,1}}
}";
    let module = parse(text);
    let plan = reference_plan(&module).unwrap();
    let mut executable = Executable::new(&module, &plan, ExecConfig::default()).unwrap();
    let device = |x: [f32; 3], lists: [[i32; 2]; 4]| {
        let mut arrays = vec![f32s(&x, &[3, 1]), f32s(&[-1.0; 3], &[3, 1])];
        arrays.extend(lists.iter().map(|l| s32s(l, &[2])));
        arrays
    };
    let zero = device([1.0, 2.0, 3.0], [[0, 1], [1, 2], [0, 0], [1, 1]]);
    let one = device([10.0, 20.0, 30.0], [[2, 0], [1, 0], [2, 2], [2, 0]]);
    let out = executable.execute_devices(&[&zero, &one]).unwrap();
    assert_eq!(out[0][0], f32s(&[1.0, -1.0, 30.0], &[3, 1]));
    assert_eq!(out[1][0], f32s(&[2.0, 3.0, -1.0], &[3, 1]));
}

#[test]
fn one_device_tells_all_and_gathers_run_at_either_end() {
    let text = "HloModule tell, num_partitions=2, is_scheduled=true
ENTRY e {
  a = f32[2]{0} parameter(0)
  told = f32[2]{0} collective-broadcast(a), channel_id=1, replica_groups={{1,0}}
  s = (f32[2]{0}, f32[4]{0}) all-gather-start(told), channel_id=2, replica_groups={{0,1}}, use_global_device_ids=true, dimensions={0}
  d = f32[4]{0} all-gather-done(s)
  ROOT t = (f32[2]{0}, f32[4]{0}) tuple(told, d)
}";
    let module = parse(text);
    let plan = reference_plan(&module).unwrap();
    for async_mode in [AsyncMode::Start, AsyncMode::Done] {
        let config = ExecConfig {
            async_mode,
            ..ExecConfig::default()
        };
        let mut executable = Executable::new(&module, &plan, config).unwrap();
        let inputs = [[f32s(&[1.0, 2.0], &[2])], [f32s(&[10.0, 20.0], &[2])]];
        let out = executable
            .execute_devices(&[&inputs[0], &inputs[1]])
            .unwrap();
        for result in out {
            assert_eq!(result[0], f32s(&[10.0, 20.0], &[2]));
            assert_eq!(result[1], f32s(&[10.0, 20.0, 10.0, 20.0], &[4]));
        }
    }
}

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

#[test]
fn a_watched_run_stops_when_told() {
    let text = "HloModule forever
c { s = s32[] parameter(0)
  ROOT t = pred[] constant(true) }
b { s = s32[] parameter(0)
  ROOT n = s32[] negate(s) }
ENTRY e { x = s32[] parameter(0)
  ROOT w = s32[] while(x), condition=c, body=b }";
    let module = parse(text);
    let plan = reference_plan(&module).unwrap();
    let watch = Arc::new(Watch::default());
    let config = ExecConfig {
        watch: Some(Arc::clone(&watch)),
        ..ExecConfig::default()
    };
    let mut executable = Executable::new(&module, &plan, config).unwrap();
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            while watch.progress().steps < 1000 {
                std::thread::yield_now();
            }
            watch.stop();
        });
        executable.execute(&[s32s(&[1], &[])]).unwrap_err()
    });
    assert!(
        error
            .to_string()
            .starts_with("stopped on request, before %"),
        "{error}"
    );
}

#[test]
fn devices_that_wait_for_each_other_are_reported() {
    // Device 0 takes part in the sum, device 1 does not.
    let text = "HloModule deadlock, num_partitions=2
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] add(x, y) }
sum { x = f32[] parameter(0)
  ROOT s = f32[] all-reduce(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add }
keep { ROOT x = f32[] parameter(0) }
ENTRY e {
  x = f32[] parameter(0)
  id = u32[] partition-id()
  i = s32[] convert(id)
  ROOT c = f32[] conditional(i, x, x), branch_computations={sum, keep}
}";
    let module = parse(text);
    let plan = reference_plan(&module).unwrap();
    let mut executable = Executable::new(&module, &plan, ExecConfig::default()).unwrap();
    let x = [f32s(&[1.0], &[])];
    let error = executable.execute_devices(&[&x, &x]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "devices wait for each other: device 0 waits at %s, device 1 has ended"
    );
}

const CHAIN: &str = "HloModule chain, is_scheduled=true
ENTRY e {
  a = f32[64] parameter(0)
  b = f32[64] negate(a)
  c = f32[64] add(b, b)
  d = f32[64] multiply(b, c)
  ROOT r = f32[64] add(d, c)
}";

/// Two values in the same bytes although both are needed: the numbers come out wrong, the same way
/// each time. (The checker refuses such a plan; the executor only carries it out.)
#[test]
fn a_wrong_plan_gives_wrong_numbers() {
    let module = parse(CHAIN);
    let mut plan = reference_plan(&module).unwrap();
    let place = |plan: &Plan, name: &str| -> BufferId {
        plan.buffers
            .iter()
            .find(|(_, b)| module.name_of(b.values[0].instr) == name)
            .unwrap()
            .0
    };
    let (b, c) = (place(&plan, "b"), place(&plan, "c"));
    plan.buffers[c].offset = plan.buffers[b].offset;
    let x = [f32s(&[3.0; 64], &[64])];
    let mut executable = Executable::new(&module, &plan, ExecConfig::default()).unwrap();
    // b = -3, c = -6 over b, d = c * c = 36, r = 30; right is -3 * -6 + -6 = 12.
    assert_eq!(executable.execute(&x).unwrap(), [f32s(&[30.0; 64], &[64])]);
}

#[test]
fn a_live_range_that_ends_too_early_is_poisoned() {
    let module = parse(CHAIN);
    let target = target::load("cpu").unwrap();
    let compiled = compile(module, &target, &CompileConfig::default()).unwrap();
    let mut plan = compiled.plan().clone();
    let x = [f32s(&[3.0; 64], &[64])];
    let config = ExecConfig {
        poison: true,
        ..ExecConfig::default()
    };
    let run = |plan: &Plan| {
        Executable::new(&compiled.module, plan, config.clone())
            .unwrap()
            .execute(&x)
            .unwrap()
    };
    assert_eq!(run(&plan), [f32s(&[12.0; 64], &[64])]);
    // Say that no temporary lives longer than its definition.
    for id in plan.buffers.keys().collect::<Vec<_>>() {
        let buffer = &mut plan.buffers[id];
        if buffer
            .values
            .iter()
            .any(|v| compiled.module.name_of(v.instr) == "c")
        {
            for live in &mut buffer.live {
                live.end = live.end.min(3);
            }
        }
    }
    assert_ne!(run(&plan), [f32s(&[12.0; 64], &[64])]);
}

#[test]
fn a_run_that_never_ends_is_stopped() {
    let text = "HloModule forever
cond { s = s32[] parameter(0)
  ROOT yes = pred[] constant(true) }
body { ROOT s = s32[] parameter(0) }
ENTRY e {
  x = s32[] parameter(0)
  ROOT w = s32[] while(x), condition=cond, body=body
}";
    let module = parse(text);
    let plan = reference_plan(&module).unwrap();
    let config = ExecConfig {
        max_steps: Some(1000),
        ..ExecConfig::default()
    };
    let mut executable = Executable::new(&module, &plan, config).unwrap();
    let error = executable.execute(&[s32s(&[1], &[])]).unwrap_err();
    assert!(matches!(error, ExecError::TooManySteps { steps: 1000, .. }));
}

#[test]
fn inputs_and_plans_that_do_not_fit_are_refused() {
    let module = parse(CHAIN);
    let plan = reference_plan(&module).unwrap();
    let load = |plan: &Plan| Executable::new(&module, plan, ExecConfig::default());
    let mut executable = load(&plan).unwrap();
    let message = |r: Result<Vec<HostArray>, ExecError>| r.unwrap_err().to_string();
    assert_eq!(
        message(executable.execute(&[])),
        "the module takes 1 arrays, 0 were given"
    );
    assert_eq!(
        message(executable.execute(&[s32s(&[1; 64], &[64])])),
        "arg0 must be f32[64], but is s32[64]"
    );
    assert_eq!(
        message(executable.execute(&[f32s(&[1.0; 64], &[8, 8])])),
        "arg0 must be f32[64], but is f32[8,8]"
    );

    let first = plan.buffers.keys().next().unwrap();
    let refuse = |change: &dyn Fn(&mut Plan)| {
        let mut plan = plan.clone();
        change(&mut plan);
        load(&plan).unwrap_err().to_string()
    };
    let said = refuse(&|p| p.buffers[first].offset = Offset::new(1 << 40).unwrap());
    assert!(said.contains("past the slab"), "{said}");
    let said = refuse(&|p| p.buffers[first].space = 7);
    assert!(said.contains("unknown space 7"), "{said}");
    let said = refuse(&|p| p.buffers[first].values.clear());
    assert!(said.contains("no place to %a"), "{said}");
    let said = refuse(&|p| p.buffers[first].size = slabplan_ir::Bytes::new(100).unwrap());
    assert!(said.contains("in a buffer of 100 bytes"), "{said}");

    let small = ExecConfig {
        max_bytes: 100,
        ..ExecConfig::default()
    };
    assert!(matches!(
        Executable::new(&module, &plan, small),
        Err(ExecError::OverLimit { limit: 100, .. })
    ));
}

#[test]
fn what_can_not_be_run_is_named() {
    for (line, expected) in [
        (
            "ROOT r = f32[64] custom-call(a), custom_call_target=\"NoSuchThing\"",
            "NoSuchThing",
        ),
        ("ROOT r = f32[64] constant({...})", "its value was left out"),
    ] {
        let text = format!("HloModule m\nENTRY e {{\n  a = f32[64] parameter(0)\n  {line}\n}}");
        let module = parse(&text);
        let plan = reference_plan(&module).unwrap();
        let error = Executable::new(&module, &plan, ExecConfig::default()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
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
    close(element(&one[4], 0), a.iter().map(|&x| f64::from(x)).sum());
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
