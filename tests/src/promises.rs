//! What slabplan promises of every valid module, whoever wrote it.

use slabplan::config::CompileConfig;
use slabplan::exec::{
    AsyncMode, ExecConfig, Executable, HostArray, machine_threads, reference_plan,
};
use slabplan::{ScheduleMode, compile, target};
use slabplan_ir::plan::{self, Accounting};
use slabplan_ir::text::{parse, print};
use slabplan_ir::{ElementType, Module};

/// Steps after which a run counts as hanging; generated loops are far shorter.
pub const MAX_STEPS: u64 = 200_000;

/// Ways to plan a module: every accounting with every schedule.
const WAYS: &[(Accounting, ScheduleMode, &str)] = &[
    (Accounting::Slab, ScheduleMode::Keep, "cpu"),
    (Accounting::Slab, ScheduleMode::Memory, "tpu-v5e"),
    (Accounting::Xla, ScheduleMode::Keep, "tpu-v5e"),
    (Accounting::Xla, ScheduleMode::Memory, "cpu"),
];

/// Holds the module to all promises:
///
/// - it is accepted, and its print means the same and prints the same;
/// - in every accounting and schedule there is a plan, and the checker accepts it;
/// - the plan survives its file forms;
/// - runs on the poisoned slab, with asynchronous operations carried out at their start, at their
///   done or at either, give bit for bit what the module gives as it was written, each value in
///   memory of its own.
///
/// # Errors
/// The first promise that is broken, in words.
pub fn hold(text: &str) -> Result<(), String> {
    let module = read(text)?;
    let printed = print(&module);
    let again = read(&printed).map_err(|e| format!("the print is refused: {e}"))?;
    if print(&again) != printed {
        return Err("the print does not print the same".to_owned());
    }
    let inputs_and_outputs = reference(&module)?;
    for &(accounting, schedule, target) in WAYS {
        let target = if in_one_space(&module) {
            target
        } else {
            "tpu-v5e"
        };
        plan_and_run(&module, accounting, schedule, target, &inputs_and_outputs)
            .map_err(|e| format!("{accounting:?}, {schedule:?}, {target}: {e}"))?;
    }
    Ok(())
}

/// Whether all arrays lie in the default memory space, as every target has it.
pub fn in_one_space(module: &Module) -> bool {
    let mut arrays = module.shapes.ids().filter_map(|id| module.shapes.array(id));
    arrays.all(|a| a.memory_space() == 0)
}

/// Reads and verifies a module.
///
/// # Errors
/// The first mistake.
pub fn read(text: &str) -> Result<Module, String> {
    let module = parse(text).into_result().map_err(|d| d[0].to_string())?;
    slabplan_ir::verify::verify(&module).map_err(|e| e.to_string())?;
    Ok(module)
}

/// Some inputs, and what the module makes of them as it is written.
///
/// # Errors
/// The executor does not take the module.
pub fn reference(module: &Module) -> Result<(Vec<HostArray>, Vec<HostArray>), String> {
    let run = || -> Result<_, slabplan::exec::ExecError> {
        let plan = reference_plan(module)?;
        let config = ExecConfig {
            max_steps: Some(MAX_STEPS),
            ..ExecConfig::default()
        };
        let mut executable = Executable::new(module, &plan, config)?;
        let inputs = inputs(&executable);
        let outputs = executable.execute(&inputs)?;
        Ok((inputs, outputs))
    };
    run().map_err(|e| format!("reference run: {e}"))
}

/// Inputs with different values everywhere, none of them special.
fn inputs(executable: &Executable) -> Vec<HostArray> {
    let mut state = 0x9e37_79b9_u32;
    let mut next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 16
    };
    executable
        .inputs()
        .into_iter()
        .map(|spec| {
            let count: u64 = spec.dims.iter().product();
            let data = (0..count)
                .flat_map(|_| element(spec.element_type, next()))
                .collect();
            HostArray::new(spec.element_type, &spec.dims, data).expect("as many bytes as elements")
        })
        .collect()
}

/// The bytes of one element made of 16 random bits.
fn element(element_type: ElementType, bits: u32) -> Vec<u8> {
    use ElementType as E;
    let small = f64::from(bits % 64) / 4.0 - 8.0;
    match element_type {
        E::Pred | E::S1 | E::U1 => vec![(bits & 1) as u8],
        // A sub-byte element lies in the low bits of its byte, sign-extended if signed.
        E::S4 => vec![((bits & 15) as i8 - 8) as u8],
        E::U4 => vec![(bits & 15) as u8],
        E::F64 => small.to_le_bytes().to_vec(),
        E::F32 => (small as f32).to_le_bytes().to_vec(),
        // The upper half of an f32.
        E::Bf16 => (small as f32).to_le_bytes()[2..].to_vec(),
        // Sign, exponents near 1, any mantissa.
        E::F16 => ((bits & 0x83ff | 0x3c00) as u16).to_le_bytes().to_vec(),
        other => i64::from(bits % 32).to_le_bytes()[..other.byte_width() as usize].to_vec(),
    }
}

fn plan_and_run(
    module: &Module,
    accounting: Accounting,
    schedule: ScheduleMode,
    target: &str,
    (inputs, expected): &(Vec<HostArray>, Vec<HostArray>),
) -> Result<(), String> {
    let target = target::load(target).map_err(|e| e.to_string())?;
    let config = CompileConfig {
        accounting,
        schedule,
        scratch: Some(machine_threads()),
        ..CompileConfig::default()
    };
    let compiled = compile(module.clone(), &target, &config).map_err(|e| e.to_string())?;
    file_forms(&compiled.module, compiled.plan())?;
    for async_mode in [AsyncMode::Start, AsyncMode::Done, AsyncMode::Random(1)] {
        let config = ExecConfig {
            poison: true,
            async_mode,
            max_steps: Some(MAX_STEPS),
            ..ExecConfig::default()
        };
        let outputs = Executable::new(&compiled.module, compiled.plan(), config)
            .and_then(|mut e| e.execute(inputs))
            .map_err(|e| format!("run with asynchronous operations at {async_mode:?}: {e}"))?;
        for (n, (found, right)) in outputs.iter().zip(expected).enumerate() {
            if found != right {
                return Err(format!(
                    "with asynchronous operations at {async_mode:?}, output {n} is {:?}, not {:?}",
                    found.data, right.data
                ));
            }
        }
    }
    Ok(())
}

/// A plan written as JSON or text and read again is the same plan.
fn file_forms(module: &Module, plan: &plan::Plan) -> Result<(), String> {
    let json = plan::to_json(module, plan);
    let again = plan::from_json(module, &json).map_err(|e| format!("plan as JSON: {e}"))?;
    if again != *plan {
        return Err("the plan reads differently from its JSON form".to_owned());
    }
    let text = plan::to_text(module, plan);
    let again = plan::from_text(module, &text).map_err(|e| format!("plan as text: {e}"))?;
    if again != *plan {
        return Err("the plan reads differently from its text form".to_owned());
    }
    Ok(())
}
