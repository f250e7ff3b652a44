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

/// Device `n` gives `2^n`, so that a sum says who took part.
#[test]
fn groups_in_every_form() {
    let one_replica = "num_partitions=4";
    let four_replicas = "replica_count=4";
    let both = "replica_count=2, num_partitions=2";
    let devices = "channel_id=1, use_global_device_ids=true, ";
    for (header, ids, groups, sums) in [
        (one_replica, devices, "{{0,1},{2,3}}", [3, 3, 12, 12]),
        (one_replica, devices, "{{3,0},{1,2}}", [9, 6, 6, 9]),
        (one_replica, devices, "[2,2]<=[4]", [3, 3, 12, 12]),
        (one_replica, devices, "[2,2]<=[2,2]T(1,0)", [5, 10, 5, 10]),
        (
            one_replica,
            devices,
            "mesh['a'=2,'b'=2] {'a'}",
            [5, 10, 5, 10],
        ),
        (
            one_replica,
            devices,
            "mesh['a'=4] {'a':(2)2}",
            [3, 3, 12, 12],
        ),
        // Of different sizes.
        (one_replica, devices, "{{0,1,2},{3}}", [7, 7, 7, 8]),
        (four_replicas, "", "{}", [15, 15, 15, 15]),
        (four_replicas, "", "{{0,1},{2,3}}", [3, 3, 12, 12]),
        // Devices are replica * 2 + partition. Without a channel: replicas, each partition on its own.
        (both, "", "{{0,1}}", [5, 10, 5, 10]),
        // With one: replicas with all their partitions.
        (both, "channel_id=1, ", "{{0},{1}}", [3, 3, 12, 12]),
        (both, devices, "{{0,3},{1,2}}", [9, 6, 6, 9]),
    ] {
        let text = format!(
            "HloModule groups, {header}
add {{ x = s32[] parameter(0)
  y = s32[] parameter(1)
  ROOT r = s32[] add(x, y) }}
ENTRY e {{
  x = s32[1] parameter(0)
  ROOT s = s32[1] all-reduce(x), {ids}replica_groups={groups}, to_apply=add
}}"
        );
        let module = parse(&text);
        let plan = reference_plan(&module).unwrap();
        let mut executable = Executable::new(&module, &plan, ExecConfig::default()).unwrap();
        let inputs = [1, 2, 4, 8].map(|x| [s32s(&[x], &[1])]);
        let lists = inputs.each_ref().map(|x| &x[..]);
        let found = executable.execute_devices(&lists).unwrap();
        let expected = sums.map(|x| vec![s32s(&[x], &[1])]);
        assert_eq!(found, expected, "{header}, {ids}{groups}");
    }
}

#[test]
fn groups_of_devices_that_do_not_exist_are_refused() {
    for (groups, partitions) in [
        ("{{0,2}}", 2),
        ("{{0,0}}", 2),
        ("{{0}}", 2),
        ("{{0,1},{1}}", 2),
        ("{{0,1},{2}}", 4),
        ("[2,2]<=[4]", 2),
        ("mesh['a'=4] {'a'}", 2),
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

#[test]
fn two_senders_to_one_device_are_refused() {
    let text = "HloModule clash, num_partitions=2
ENTRY e {
  x = f32[] parameter(0)
  ROOT p = f32[] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,1}}
}";
    let module = parse(text);
    let plan = reference_plan(&module).unwrap();
    let error = Executable::new(&module, &plan, ExecConfig::default()).unwrap_err();
    assert!(
        error.to_string().contains("two devices send to device 1"),
        "{error}"
    );
}

/// Two devices, and what each does with its number (of type `s32[2]`).
fn transfers(body: &str, recv: &str) -> String {
    let pairs = "channel_id=3, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}";
    let body = body.replace("PAIRS", pairs);
    let recv = recv.replace("PAIRS", pairs);
    format!("HloModule mail, num_partitions=2, is_scheduled=true\n{body}\n{recv}\n}}")
}

const SEND: &str = "ENTRY e {
  x = s32[2]{0} parameter(0)
  t = token[] after-all()
  s = (s32[2]{0}, u32[], token[]) send(x, t), PAIRS
  d = token[] send-done(s), PAIRS";

fn run_mail(text: &str, async_mode: AsyncMode) -> Result<Vec<Vec<HostArray>>, String> {
    let module = parse(text);
    let plan = reference_plan(&module).unwrap();
    let config = ExecConfig {
        async_mode,
        poison: true,
        ..ExecConfig::default()
    };
    let mut executable = Executable::new(&module, &plan, config).map_err(|e| e.to_string())?;
    let (zero, one) = ([s32s(&[1, 2], &[2])], [s32s(&[3, 4], &[2])]);
    executable
        .execute_devices(&[&zero, &one])
        .map_err(|e| e.to_string())
}

#[test]
fn what_one_sends_the_other_receives() {
    let text = transfers(
        SEND,
        "  r = (s32[2]{0}, u32[], token[]) recv(d), PAIRS
  e = (s32[2]{0}, token[]) recv-done(r), PAIRS
  ROOT g = s32[2]{0} get-tuple-element(e), index=0",
    );
    for mode in [AsyncMode::Start, AsyncMode::Done, AsyncMode::Random(7)] {
        // To device 0 nobody sends.
        let expected = [vec![s32s(&[0, 0], &[2])], vec![s32s(&[1, 2], &[2])]];
        assert_eq!(run_mail(&text, mode).unwrap(), expected, "{mode:?}");
    }
}

#[test]
fn transfers_without_their_partner_are_errors() {
    let never_received = transfers(SEND, "  ROOT y = s32[2]{0} negate(x)");
    let never_sent = transfers(
        "ENTRY e {
  x = s32[2]{0} parameter(0)
  d = token[] after-all()",
        "  r = (s32[2]{0}, u32[], token[]) recv(d), PAIRS
  e = (s32[2]{0}, token[]) recv-done(r), PAIRS
  ROOT g = s32[2]{0} get-tuple-element(e), index=0",
    );
    let other_size = transfers(
        SEND,
        "  r = (s32[3]{0}, u32[], token[]) recv(d), PAIRS
  e = (s32[3]{0}, token[]) recv-done(r), PAIRS
  ROOT g = s32[3]{0} get-tuple-element(e), index=0",
    );
    let nobody = never_received.replace("{{0,1}}", "{{0,5}}");
    for (text, words) in [
        (
            never_received,
            "device 0 sends at %s what device 1 never receives",
        ),
        (never_sent, "device 0 has ended, device 1 waits at %r"),
        (other_size, "%s sends 8 bytes, %r receives 12"),
        (nobody, "not pairs of its 2 devices"),
    ] {
        let error = run_mail(&text, AsyncMode::Start).unwrap_err();
        assert!(error.contains(words), "{words}: {error}");
    }
}
