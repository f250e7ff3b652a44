//! Several devices.

use super::{f32s, parse, s32s};
use slabplan::exec::{AsyncMode, ExecConfig, Executable, HostArray, reference_plan};
use slabplan_ir::ElementType;

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

#[test]
fn groups_of_devices_that_do_not_exist_are_refused() {
    for (groups, partitions) in [
        ("{{0,2}}", 2),
        ("{{0,0}}", 2),
        ("{{0}}", 2),
        ("{{0,1},{1}}", 2),
    ] {
        let text = format!(
            "HloModule groups, num_partitions={partitions}
add {{ x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] add(x, y) }}
ENTRY e {{
  x = f32[] parameter(0)
  ROOT s = f32[] all-reduce(x), channel_id=1, replica_groups={groups}, use_global_device_ids=true, to_apply=add
}}"
        );
        let Ok(module) = slabplan_ir::text::parse(&text).into_result() else {
            continue;
        };
        let Ok(plan) = reference_plan(&module) else {
            continue;
        };
        let x = [f32s(&[1.0], &[])];
        let error = Executable::new(&module, &plan, ExecConfig::default())
            .and_then(|mut e| e.execute_devices(&[&x, &x]));
        let error = error.expect_err(groups).to_string();
        assert!(
            error.contains("%s") || error.contains("`s`"),
            "{groups}: {error}"
        );
    }
}
