//! Wrong plans and inputs, runs without end.

use std::sync::Arc;

use super::{f32s, parse, s32s};
use slabplan::exec::{ExecConfig, ExecError, Executable, HostArray, Watch, reference_plan};
use slabplan::{CompileConfig, compile, target};
use slabplan_ir::plan::Plan;
use slabplan_ir::{BufferId, Offset};

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
        max_bytes: Some(100),
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
