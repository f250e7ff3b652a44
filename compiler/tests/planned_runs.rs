//! Every exported program, compiled, planned with its scratch, and run on the slabs of its plan with
//! everything poisoned that is not live, gives JAX's numbers, and bit for bit those of the reference run.

mod cases;

use cases::{Case, all_cases};
use slabplan::exec::{AsyncMode, ExecConfig, Executable, machine_threads, reference_plan};
use slabplan::{CompileConfig, compile, target};
use slabplan_ir::plan::Accounting;

fn run_all(stage: &str, target_name: &str) {
    let target = target::load(target_name).unwrap();
    let mut failures = Vec::new();
    let mut ran = 0;
    for case in all_cases() {
        let Some(module) = case.module(stage) else {
            continue;
        };
        ran += 1;
        for accounting in [Accounting::Slab, Accounting::Xla] {
            let config = CompileConfig {
                accounting,
                scratch: Some(machine_threads()),
                ..CompileConfig::default()
            };
            let result = compile(module.clone(), &target, &config)
                .map_err(|e| e.to_string())
                .and_then(|c| run(&case, &c.module, c.plan()));
            if let Err(problem) = result {
                failures.push(format!("{} {stage} {accounting:?}: {problem}", case.name));
            }
        }
    }
    assert!(ran > 0, "no case has {stage}");
    assert!(
        failures.is_empty(),
        "{} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

fn run(case: &Case, module: &slabplan_ir::Module, plan: &slabplan_ir::Plan) -> Result<(), String> {
    let reference = reference_plan(module).map_err(|e| e.to_string())?;
    let executable = Executable::new(module, plan, ExecConfig::default());
    let outside = executable
        .map_err(|e| e.to_string())?
        .unplanned_scratch_bytes();
    if outside > 0 {
        return Err(format!("{outside} bytes of scratch are not in the plan"));
    }
    let expected = case.run(module, &reference, ExecConfig::default())?;
    for async_mode in [
        AsyncMode::Start,
        AsyncMode::Done,
        AsyncMode::Random(1),
        AsyncMode::Random(2),
    ] {
        let config = ExecConfig {
            poison: true,
            async_mode,
            // A counter that is overwritten must not run for ever.
            max_steps: Some(1_000_000),
            ..ExecConfig::default()
        };
        let outputs = case
            .run(module, plan, config)
            .map_err(|e| format!("async {async_mode:?}: {e}"))?;
        if outputs != expected {
            return Err(format!(
                "async {async_mode:?}: not the bits of the reference run"
            ));
        }
    }
    Ok(())
}

#[test]
fn tpu_optimised() {
    run_all("tpu.after.hlo", "tpu-v5e");
}

#[test]
fn tpu_unoptimised() {
    run_all("tpu.before.hlo", "tpu-v5e");
}

#[test]
fn cpu_optimised() {
    run_all("cpu.after.hlo", "cpu");
}

#[test]
fn cpu_unoptimised() {
    run_all("cpu.before.hlo", "cpu");
}

#[test]
fn what_jax_has_for_gpus_alone() {
    run_all("gpu.before.hlo", "cpu");
}
