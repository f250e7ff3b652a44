//! Single rules of the executor, on small modules whose results are worked out by hand.

mod control_flow;
mod devices;
mod operations;
mod placement;
mod scratch;
mod wrong;

use slabplan::exec::{
    AsyncMode, ExecConfig, Executable, HostArray, machine_threads, reference_plan,
};
use slabplan::{CompileConfig, compile, target};
use slabplan_ir::ElementType;
use slabplan_ir::module::Module;

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
    let config = CompileConfig {
        scratch: Some(machine_threads()),
        ..CompileConfig::default()
    };
    let compiled = compile(module, &target, &config).unwrap();
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
