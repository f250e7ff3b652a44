//! Every exported program, run with memory of its own for each value, gives JAX's numbers.

mod cases;

use cases::{Case, all_cases};
use slabplan::exec::{ExecConfig, Executable, reference_plan};
use slabplan::passes::import_shard_map;

fn run_all(stage: &str) {
    let mut failures = Vec::new();
    let mut ran = 0;
    for case in all_cases() {
        let Some(mut module) = case.module(stage) else {
            continue;
        };
        // Else it has the shapes of all devices together.
        import_shard_map(&mut module).unwrap();
        ran += 1;
        let result = reference_plan(&module)
            .map_err(|e| e.to_string())
            .and_then(|plan| case.run(&module, &plan, ExecConfig::default()));
        if let Err(problem) = result {
            failures.push(format!("{} {stage}: {problem}", case.name));
        }
    }
    assert!(ran > 0, "no case has {stage}");
    assert!(
        failures.is_empty(),
        "{} of {ran} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn tpu_optimised() {
    run_all("tpu.after.hlo");
}

#[test]
fn tpu_unoptimised() {
    run_all("tpu.before.hlo");
}

#[test]
fn cpu_optimised() {
    run_all("cpu.after.hlo");
}

#[test]
fn cpu_unoptimised() {
    run_all("cpu.before.hlo");
}

#[test]
fn what_jax_has_for_gpus_alone() {
    run_all("gpu.before.hlo");
}

/// The comparison can fail: with other inputs a program must not give the expected outputs.
#[test]
fn outputs_depend_on_inputs() {
    let case = Case::fixture("nested_while");
    let module = case.module("tpu.after.hlo").unwrap();
    let plan = reference_plan(&module).unwrap();
    let mut executable = Executable::new(&module, &plan, ExecConfig::default()).unwrap();
    let mut inputs = case.inputs(&executable);
    for array in &mut inputs {
        array.data.fill(0);
    }
    let outputs = executable.execute(&inputs).unwrap();
    assert!(case.compare(&executable, &outputs).is_err());
}
