//! What operations work in is part of the plan.

use super::{f32s, parse};
use slabplan::exec::{AsyncMode, ExecConfig, Executable, machine_threads, reference_plan};
use slabplan::{CompileConfig, compile, target};
use slabplan_ir::check::{ViolationKind, check};
use slabplan_ir::plan::{BufferKind, LiveInterval, PlanBuffer};
use slabplan_ir::{Offset, Plan};

/// A product packs blocks of its operands, in a loop so that its scratch is used again and again.
const PRODUCT: &str = "HloModule product, is_scheduled=true
ENTRY e {
  a = f32[64,64] parameter(0)
  b = f32[64,64] negate(a)
  c = f32[64,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[64,64] multiply(b, b)
  ROOT r = f32[64,64] add(c, d)
}";

/// A copy into another tiling passes through dense form, at its start or at its done.
const COPY: &str = "HloModule copy, is_scheduled=true
ENTRY e {
  a = f32[20,30]{1,0:T(8,128)} parameter(0)
  s = (f32[20,30]{0,1:T(8,128)S(1)}, f32[20,30]{1,0:T(8,128)}, u32[]{:S(2)}) copy-start(a)
  b = f32[20,30]{1,0:T(8,128)} add(a, a)
  d = f32[20,30]{0,1:T(8,128)S(1)} copy-done(s)
  ROOT t = (f32[20,30]{1,0:T(8,128)}, f32[20,30]{0,1:T(8,128)S(1)}) tuple(b, d)
}";

fn planned(text: &str, target: &str) -> (slabplan::Compiled, slabplan_ir::Target) {
    let target = target::load(target).unwrap();
    let config = CompileConfig {
        scratch: Some(machine_threads()),
        ..CompileConfig::default()
    };
    (compile(parse(text), &target, &config).unwrap(), target)
}

fn scratch(plan: &Plan) -> Vec<&PlanBuffer> {
    let of = |b: &&PlanBuffer| matches!(b.kind, BufferKind::Scratch { .. });
    plan.buffers.values().filter(of).collect()
}

#[test]
fn scratch_lives_while_its_instruction_runs() {
    let (compiled, _) = planned(PRODUCT, "cpu");
    let scratch = scratch(compiled.plan());
    let name = |b: &PlanBuffer| match b.kind {
        BufferKind::Scratch { instr } => compiled.module.name_of(instr).to_owned(),
        _ => unreachable!("filtered"),
    };
    let product = scratch
        .iter()
        .find(|b| name(b) == "c")
        .expect("packs blocks");
    assert_eq!(product.live, [LiveInterval { start: 2, end: 3 }]);
    assert!(product.values.is_empty());
    let most = scratch.iter().map(|b| b.size).max().unwrap();
    assert_eq!(compiled.plan().space(0).unwrap().stats.scratch, most);
}

#[test]
fn scratch_of_an_asynchronous_copy_lives_until_its_done() {
    let (compiled, _) = planned(COPY, "tpu-v5e");
    let scratch = scratch(compiled.plan());
    let start = slabplan_planner::order::ProgramOrder::new(&compiled.module).unwrap();
    let number = |name: &str| {
        let found = start.sequence().iter();
        found
            .clone()
            .position(|&i| compiled.module.name_of(i) == name)
            .unwrap() as u32
    };
    let copy = scratch.iter().find(|b| {
        matches!(b.kind, BufferKind::Scratch { instr } if compiled.module.name_of(instr) == "s")
    });
    let live = LiveInterval {
        start: number("s"),
        end: number("d") + 1,
    };
    assert_eq!(copy.expect("passes through dense form").live, [live]);
}

#[test]
fn a_run_needs_no_memory_but_the_plan_s() {
    for (text, name, dims) in [(PRODUCT, "cpu", [64, 64]), (COPY, "tpu-v5e", [20, 30])] {
        let (compiled, _) = planned(text, name);
        let n = dims[0] * dims[1];
        let values: Vec<f32> = (0..n).map(|i| (i % 17) as f32 - 8.0).collect();
        let x = [f32s(&values, &dims)];
        let reference = reference_plan(&compiled.module).unwrap();
        let mut apart =
            Executable::new(&compiled.module, &reference, ExecConfig::default()).unwrap();
        assert!(apart.unplanned_scratch_bytes() > 0);
        let expected = apart.execute(&x).unwrap();
        for async_mode in [AsyncMode::Start, AsyncMode::Done] {
            let config = ExecConfig {
                poison: true,
                async_mode,
                ..ExecConfig::default()
            };
            let mut executable =
                Executable::new(&compiled.module, compiled.plan(), config).unwrap();
            assert_eq!(executable.unplanned_scratch_bytes(), 0);
            assert_eq!(executable.execute(&x).unwrap(), expected);
        }
    }
}

/// Scratch moved onto an operand of its instruction, or onto a value that is needed later.
#[test]
fn scratch_on_a_live_value_is_refused() {
    let (compiled, target) = planned(PRODUCT, "cpu");
    let plan = compiled.plan();
    let place = |name: &str| {
        let of = |b: &&PlanBuffer| {
            b.values
                .iter()
                .any(|v| compiled.module.name_of(v.instr) == name)
        };
        plan.buffers.values().find(of).unwrap().offset
    };
    let moved = |to: Offset| {
        let mut plan = plan.clone();
        let id = plan.buffers.iter().find(|(_, b)| {
            matches!(b.kind, BufferKind::Scratch { instr } if compiled.module.name_of(instr) == "c")
        });
        let id = id.unwrap().0;
        plan.buffers[id].offset = to;
        // Large enough for wherever it went.
        let end = plan
            .buffers
            .values()
            .map(|b| b.offset.get() + b.size.get())
            .max()
            .unwrap();
        let space = &mut plan.spaces[0];
        space.slab = slabplan_ir::Bytes::new(end).unwrap();
        space.lower_bound = space.lower_bound.min(space.slab);
        plan
    };
    let on_operand = moved(place("a"));
    let violations = check(&compiled.module, &on_operand, &target).unwrap_err();
    let overlap = violations
        .list
        .iter()
        .find(|v| matches!(v.kind, ViolationKind::ScratchOverlap { .. }));
    let message = &overlap.expect("overlaps an operand").message;
    assert!(message.contains("the scratch of %c (at 2)"), "{message}");
    assert!(message.contains("with %a"), "{message}");
    let refused = Executable::new(&compiled.module, &on_operand, ExecConfig::default());
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("the scratch of %c"), "{refused}");
    // On what is read only and not of this instruction.
    let elsewhere = check(&compiled.module, plan, &target);
    assert!(elsewhere.is_ok());
}

#[test]
fn scratch_that_overwrites_a_value_needed_later_is_refused() {
    // `b` is still needed after `n`, which has scratch only if the plan says so.
    let text = "HloModule later, is_scheduled=true
ENTRY e {
  a = f32[64] parameter(0)
  b = f32[64] negate(a)
  n = f32[64] abs(a)
  ROOT r = f32[64] multiply(n, b)
}";
    let (compiled, target) = planned(text, "cpu");
    let named = |name: &str| {
        let ids = compiled.module.instrs.iter();
        ids.map(|(id, _)| id)
            .find(|&id| compiled.module.name_of(id) == name)
            .unwrap()
    };
    let mut plan = compiled.plan().clone();
    let old: Vec<PlanBuffer> = plan.buffers.values().cloned().collect();
    let b = old
        .iter()
        .find(|x| x.values.iter().any(|v| v.instr == named("b")))
        .unwrap();
    plan.buffers.push(PlanBuffer {
        kind: BufferKind::Scratch { instr: named("n") },
        values: Vec::new(),
        live: vec![LiveInterval { start: 2, end: 3 }],
        ..b.clone()
    });
    let largest = scratch(&plan).iter().map(|b| b.size).max().unwrap();
    plan.spaces[0].stats.scratch = largest;
    let violations = check(&compiled.module, &plan, &target).unwrap_err();
    assert!(
        violations
            .list
            .iter()
            .any(|v| v.message.contains("were scratch of %n at point 2")),
        "{violations}"
    );
}
