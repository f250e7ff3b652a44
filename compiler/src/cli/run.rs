//! `slabplan run`.

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use slabplan_ir::{Bytes, Module, Target};

use super::load::{ModuleArg, PlanningArgs, TargetArgs};
use super::progress::watched;
use super::simulate::Switch;
use super::size::{parse_fraction, parse_size, parse_threads, parse_tolerance};
use super::{Answer, CliError};
use crate::exec::compare::{Comparison, Tolerance, compare};
use crate::exec::io::{ArraySpec, read_arrays, write_arrays};
use crate::exec::{
    AsyncMode, ExecConfig, ExecError, Executable, HostArray, Watch, device_count, machine_threads,
    reference_plan,
};
use crate::{CompileConfig, Compiled, compile, output, report};

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    module: ModuleArg,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    planning: PlanningArgs,
    /// Arguments: `.safetensors` or `.npz` with arg0, arg1, ... in flattened order (dev0.arg0, ... for several devices).
    #[arg(long, value_name = "FILE")]
    inputs: Option<PathBuf>,
    /// Expected results, named out0, out1, ...; a difference beyond the tolerances ends with status 1.
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
    /// Relative tolerance of --expect.
    #[arg(long, value_name = "R", default_value_t = 1e-3, value_parser = parse_tolerance)]
    rtol: f64,
    /// Absolute tolerance of --expect.
    #[arg(long, value_name = "A", default_value_t = 1e-4, value_parser = parse_tolerance)]
    atol: f64,
    /// Fill every byte that holds no live value with a pattern that spoils results.
    #[arg(long)]
    poison: bool,
    /// Give each value its own memory instead of its place in the plan.
    #[arg(long)]
    reference: bool,
    /// When asynchronous operations are carried out.
    #[arg(
        long = "async",
        value_enum,
        value_name = "WHEN",
        default_value = "start"
    )]
    async_mode: AsyncArg,
    /// Seed of --async random.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Part of the device's memory (space 0) that programs may take.
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = parse_fraction)]
    memory_fraction: f64,
    /// Whether what operations work in besides their operands and results is part of the plan, or lies in
    /// memory of its own.
    #[arg(long, value_enum, value_name = "on|off", default_value = "on")]
    scratch: Switch,
    /// Take all of that at once, or only what the program needs.
    #[arg(long, value_enum, value_name = "on|off", default_value = "off")]
    preallocate: Switch,
    /// Devices to run on, by name (tpu:0,tpu:1 or cpu:0); as many as the module needs from number 0 on if left out.
    /// A module that does not say how many it is for runs on all that are named.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    devices: Vec<String>,
    /// Stop after this many steps (instructions, jumps, calls).
    #[arg(long, value_name = "N")]
    max_steps: Option<u64>,
    /// Most threads for one operation; as many as the machine runs at once if not given.
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<NonZeroUsize>,
    /// Most of this machine's memory that slabs, arguments and results may take; what is free if not given.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    host_memory: Option<Bytes>,
    /// Run so many times; the times of all runs are in the JSON output, results are of the last.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Where to write the results: `.safetensors` or `.npz`.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// One JSON object on standard output instead of the summary.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum AsyncArg {
    Start,
    Done,
    /// Either, by --seed, for each operation.
    Random,
}

pub(super) fn run(args: &Args) -> Result<Answer, CliError> {
    let mut target = args.target.load()?;
    let (mut module, origin) = args.module.load()?;
    let devices = device_names(args, &target.name, &mut module)?;
    take_fraction(&mut target, args.memory_fraction);
    let config = CompileConfig {
        scratch: match (args.scratch, args.reference) {
            (Switch::On, false) => Some(args.threads.unwrap_or_else(machine_threads)),
            _ => None,
        },
        ..args.planning.config()
    };
    let compiled =
        compile(module, &target, &config).map_err(|e| CliError::from_compile(e, &origin))?;
    if !compiled.fits() {
        let text = if args.json {
            format!("{}\n", report::plan_json(&compiled, origin.parse_seconds))
        } else {
            report::plan_summary(&compiled)
        };
        output::write("-", text.as_bytes())?;
        return Ok(Answer::No);
    }
    let watch = Arc::new(Watch::default());
    let mut executable =
        load(args, &compiled, &watch).map_err(|e| CliError::from_exec(e, &origin))?;
    let inputs = read_inputs(args, &executable.inputs())?;
    let per_device = inputs.len() / executable.device_count();
    let lists: Vec<&[HostArray]> = (0..executable.device_count())
        .map(|d| &inputs[d * per_device..(d + 1) * per_device])
        .collect();
    let mut times = Vec::new();
    let mut outputs: Vec<HostArray> = Vec::new();
    for _ in 0..args.repeat {
        let results = watched(&watch, || executable.execute_devices(&lists))
            .map_err(|e| CliError::from_exec(e, &origin))?;
        times.push(executable.run_seconds());
        outputs = results.into_iter().flatten().collect();
    }
    let seconds = times.iter().copied().fold(f64::INFINITY, f64::min);
    let specs = executable.outputs();
    let comparisons = compare_outputs(args, &specs, &outputs)?;
    write_outputs(args, &specs, &outputs)?;
    let text = if args.json {
        let json = run_json(
            &compiled,
            &devices,
            &specs,
            &comparisons,
            &times,
            executable.unplanned_scratch_bytes(),
        );
        format!("{json}\n")
    } else {
        run_summary(args, &compiled, &devices, &specs, &comparisons, seconds)
    };
    output::write("-", text.as_bytes())?;
    let equal = comparisons.iter().all(Comparison::is_close);
    Ok(if equal { Answer::Yes } else { Answer::No })
}

/// The devices to run on: those named, or the first ones of the target's kind. A module that does not say
/// how many it is for, as JAX's before compilation, is for those named.
fn device_names(args: &Args, target: &str, module: &mut Module) -> Result<Vec<String>, CliError> {
    if module.replica_count == 1 && module.num_partitions == 1 && !args.devices.is_empty() {
        module.num_partitions = args.devices.len() as u64;
    }
    let needed = device_count(module).map_err(anyhow::Error::from)?;
    let kind = target.split('-').next().unwrap_or(target);
    if args.devices.is_empty() {
        return Ok((0..needed).map(|n| format!("{kind}:{n}")).collect());
    }
    for (n, name) in args.devices.iter().enumerate() {
        let number = name.strip_prefix(kind).and_then(|n| n.strip_prefix(':'));
        if number.is_none_or(|n| n.is_empty() || !n.bytes().all(|b| b.is_ascii_digit())) {
            return Err(CliError::new(format!(
                "target {target} has no device `{name}`; its devices are {kind}:0, {kind}:1, ..."
            )));
        }
        if args.devices[..n].contains(name) {
            return Err(CliError::new(format!("device {name} is named twice")));
        }
    }
    if args.devices.len() as u64 != needed {
        return Err(CliError::new(format!(
            "the module runs on {needed} devices ({} replicas of {} partitions), but --devices names {}: {}",
            module.replica_count,
            module.num_partitions,
            args.devices.len(),
            args.devices.join(", ")
        )));
    }
    Ok(args.devices.clone())
}

/// Leaves programs only a part of memory space 0.
fn take_fraction(target: &mut Target, fraction: f64) {
    for space in target.spaces.iter_mut().filter(|s| s.id == 0) {
        let bytes = (space.capacity.get() as f64 * fraction) as u64;
        space.capacity = Bytes::new(bytes).unwrap_or(space.capacity);
    }
}

/// Loads the program onto its slabs, or onto memory of their own for every value.
fn load(args: &Args, compiled: &Compiled, watch: &Arc<Watch>) -> Result<Executable, ExecError> {
    let config = ExecConfig {
        poison: args.poison,
        async_mode: match args.async_mode {
            AsyncArg::Start => AsyncMode::Start,
            AsyncArg::Done => AsyncMode::Done,
            AsyncArg::Random => AsyncMode::Random(args.seed),
        },
        max_steps: args.max_steps,
        reserve_bytes: match args.preallocate {
            Switch::On => compiled.plan().space(0).map_or(0, |s| s.capacity.get()),
            Switch::Off => 0,
        },
        watch: Some(Arc::clone(watch)),
        max_bytes: args.host_memory.map(Bytes::get),
        threads: args.threads,
    };
    if args.reference {
        let plan = reference_plan(&compiled.module)?;
        Executable::new(&compiled.module, &plan, config)
    } else {
        Executable::new(&compiled.module, compiled.plan(), config)
    }
}

fn read_inputs(args: &Args, specs: &[ArraySpec]) -> Result<Vec<HostArray>, CliError> {
    match &args.inputs {
        Some(path) => Ok(read_arrays(path, specs).map_err(anyhow::Error::from)?),
        None if specs.is_empty() => Ok(Vec::new()),
        None => {
            let list: Vec<String> = specs
                .iter()
                .map(|s| format!("{} {}", s.name, s.type_name()))
                .collect();
            Err(CliError::new(format!(
                "the module takes {} arrays: give them with --inputs FILE.safetensors or FILE.npz\n  {}",
                specs.len(),
                list.join("\n  ")
            )))
        }
    }
}

fn compare_outputs(
    args: &Args,
    specs: &[ArraySpec],
    outputs: &[HostArray],
) -> Result<Vec<Comparison>, CliError> {
    let Some(path) = &args.expect else {
        return Ok(Vec::new());
    };
    let expected = read_arrays(path, specs).map_err(anyhow::Error::from)?;
    let tolerance = Tolerance {
        rtol: args.rtol,
        atol: args.atol,
    };
    Ok(specs
        .iter()
        .zip(outputs)
        .zip(&expected)
        .map(|((spec, given), expected)| compare(&spec.name, given, expected, tolerance))
        .collect())
}

fn write_outputs(args: &Args, specs: &[ArraySpec], outputs: &[HostArray]) -> Result<(), CliError> {
    let Some(path) = &args.output else {
        return Ok(());
    };
    let named: Vec<(String, HostArray)> = specs
        .iter()
        .map(|s| s.name.clone())
        .zip(outputs.iter().cloned())
        .collect();
    Ok(write_arrays(Path::new(path), &named).map_err(anyhow::Error::from)?)
}

fn run_json(
    compiled: &Compiled,
    devices: &[String],
    specs: &[ArraySpec],
    comparisons: &[Comparison],
    times: &[f64],
    unplanned_scratch: u64,
) -> Value {
    json!({
        "module": compiled.plan().module,
        "devices": devices,
        "outputs": specs.iter().map(|s| json!({ "name": s.name, "type": s.type_name() })).collect::<Vec<_>>(),
        "slab_bytes": compiled.plan().spaces.iter().map(|s| json!({ "space": s.space, "bytes": s.slab })).collect::<Vec<_>>(),
        "scratch_bytes": compiled.plan().space(0).map_or(0, |s| s.stats.scratch.get()),
        "unplanned_scratch_bytes": unplanned_scratch,
        "checked": compiled.check.is_some(),
        "run_seconds": times.iter().copied().fold(f64::INFINITY, f64::min),
        "runs_seconds": times,
        "compared": comparisons.iter().map(|c| json!({
            "name": c.name, "elements": c.elements, "different": c.different, "equal": c.is_close(),
        })).collect::<Vec<_>>(),
        "equal": comparisons.iter().all(Comparison::is_close),
    })
}

fn run_summary(
    args: &Args,
    compiled: &Compiled,
    devices: &[String],
    specs: &[ArraySpec],
    comparisons: &[Comparison],
    seconds: f64,
) -> String {
    let mut out = report::plan_summary(compiled);
    let total = compiled
        .plan()
        .spaces
        .iter()
        .try_fold(Bytes::ZERO, |sum, s| sum.checked_add(s.slab))
        .unwrap_or(Bytes::ZERO);
    let place = match (args.reference, args.poison) {
        (true, _) => "each value in memory of its own".to_owned(),
        (false, true) => format!("{total} of slabs, bytes without a live value poisoned"),
        (false, false) => format!("{total} of slabs"),
    };
    let on = match devices {
        [] | [_] => String::new(),
        [first, .., last] => format!(" on {first} to {last}"),
    };
    let _ = writeln!(out, "\nran{on} in {:.1} ms on {place}", 1e3 * seconds);
    if comparisons.is_empty() {
        for s in specs {
            let _ = writeln!(out, "  {} {}", s.name, s.type_name());
        }
        return out;
    }
    for c in comparisons {
        let _ = writeln!(out, "  {c}");
    }
    let wrong = comparisons.iter().filter(|c| !c.is_close()).count();
    if wrong == 0 {
        let _ = writeln!(out, "all {} results are as expected", comparisons.len());
    } else {
        let _ = writeln!(out, "{wrong} of {} results differ", comparisons.len());
    }
    out
}
