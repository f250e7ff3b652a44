//! Exported programs with inputs and the results that JAX computed.

#[path = "../../compiler/tests/cases/elided.rs"]
mod elided;

use std::path::{Path, PathBuf};

use slabplan::config::{CompileConfig, ScheduleMode};
use slabplan::exec::compare::{Tolerance, compare};
use slabplan::exec::io::read_arrays;
use slabplan::exec::{AsyncMode, ExecConfig, Executable, HostArray, reference_plan};
use slabplan::{Compiled, compile, frontend, target};
use slabplan_ir::{Module, Plan};

/// The forms in which a case has its program, and the target each is planned for.
pub const PROGRAMS: [(&str, &str); 5] = [
    ("tpu.after", "tpu-v5e"),
    ("tpu.before", "tpu-v5e"),
    ("cpu.after", "cpu"),
    ("cpu.before", "cpu"),
    ("gpu.before", "cpu"),
];

/// One program of one case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Folder of the case.
    pub folder: PathBuf,
    /// HLO file.
    pub program: PathBuf,
    /// Target to plan for.
    pub target: &'static str,
}

/// All programs of all cases below `folder`.
pub fn cases(folder: &Path) -> Vec<Case> {
    crate::paths::files(folder, &["case.json"])
        .iter()
        .filter_map(|path| path.parent())
        .flat_map(|folder| {
            PROGRAMS.iter().filter_map(|&(name, target)| {
                ["hlo", "hlo.gz", "hlo.pb"]
                    .iter()
                    .map(|ending| folder.join(format!("{name}.{ending}")))
                    .find(|p| p.is_file())
                    .map(|program| Case {
                        folder: folder.to_path_buf(),
                        program,
                        target,
                    })
            })
        })
        .collect()
}

/// How a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// On the slabs of its plan, poisoned, asynchronous operations at their start.
    Slab,
    /// The same with asynchronous operations at their done.
    SlabLate,
    /// The same with asynchronous operations at either, by a seed.
    SlabRandom(u64),
    /// Each value in memory of its own.
    Reference,
}

impl Case {
    /// Plans and proves the program.
    pub fn compile(&self) -> Result<Compiled, String> {
        self.compile_in(ScheduleMode::Keep)
    }

    /// Plans and proves the program in its own order or in a better one.
    pub fn compile_in(&self, schedule: ScheduleMode) -> Result<Compiled, String> {
        let module = self.module()?;
        let target = target::load(self.target).map_err(|e| e.to_string())?;
        let config = CompileConfig {
            schedule,
            ..CompileConfig::default()
        };
        compile(module, &target, &config).map_err(|e| e.to_string())
    }

    /// Runs the program and returns its results.
    pub fn run(&self, compiled: &Compiled, mode: Mode) -> Result<Vec<HostArray>, String> {
        let reference: Plan;
        let plan = if mode == Mode::Reference {
            reference = reference_plan(&compiled.module).map_err(|e| e.to_string())?;
            &reference
        } else {
            compiled.plan()
        };
        let config = ExecConfig {
            poison: true,
            async_mode: match mode {
                Mode::Slab | Mode::Reference => AsyncMode::Start,
                Mode::SlabLate => AsyncMode::Done,
                Mode::SlabRandom(seed) => AsyncMode::Random(seed),
            },
            ..ExecConfig::default()
        };
        let mut executable =
            Executable::new(&compiled.module, plan, config).map_err(|e| e.to_string())?;
        let inputs = read_arrays(
            &self.folder.join("inputs.safetensors"),
            &executable.inputs(),
        )
        .map_err(|e| e.to_string())?;
        let n = inputs.len() / executable.device_count();
        let devices: Vec<&[HostArray]> = (0..executable.device_count())
            .map(|d| &inputs[d * n..(d + 1) * n])
            .collect();
        let outputs = executable
            .execute_devices(&devices)
            .map_err(|e| e.to_string())?;
        Ok(outputs.into_iter().flatten().collect())
    }

    /// Plans, proves, runs in every mode; results must be JAX's within the case's tolerances, and
    /// bit-equal between modes and in another order.
    pub fn check(&self) -> Result<(), String> {
        let compiled = self.compile()?;
        let outputs = self.run(&compiled, Mode::Slab)?;
        self.compare(&compiled, &outputs)?;
        for mode in [
            Mode::SlabLate,
            Mode::SlabRandom(1),
            Mode::SlabRandom(2),
            Mode::Reference,
        ] {
            if self.run(&compiled, mode)? != outputs {
                return Err(format!("{mode:?} gives other bits than the poisoned slab"));
            }
        }
        // What came unscheduled was ordered for memory already.
        if compiled.plan().schedule == "keep" {
            let reordered = self.compile_in(ScheduleMode::Memory)?;
            if self.run(&reordered, Mode::Slab)? != outputs {
                return Err("ordered for memory, the program gives other bits".to_owned());
            }
        }
        Ok(())
    }

    /// The program, with the values that XLA left out of its text as far as `elided.txt` has them.
    fn module(&self) -> Result<Module, String> {
        let mut source =
            frontend::read(&self.program.to_string_lossy()).map_err(|e| e.to_string())?;
        let name = |p: &Path| p.file_name().map(|n| n.to_string_lossy().into_owned());
        let (Some(case), Some(file)) = (name(&self.folder), name(&self.program)) else {
            return Err(format!("{} has no name", self.program.display()));
        };
        // A proto has all values.
        if let Ok(text) = String::from_utf8(source.bytes.clone()) {
            let models = crate::paths::fixtures("models");
            source.bytes = elided::completed(&models, &case, &file, text)?.into_bytes();
        }
        frontend::parse_module(source).map_err(|e| e.to_string())
    }

    fn compare(&self, compiled: &Compiled, outputs: &[HostArray]) -> Result<(), String> {
        let tolerance = self.tolerance()?;
        let executable = Executable::new(&compiled.module, compiled.plan(), ExecConfig::default())
            .map_err(|e| e.to_string())?;
        let specs = executable.outputs();
        let expected = read_arrays(&self.folder.join("expected.safetensors"), &specs)
            .map_err(|e| e.to_string())?;
        let wrong: Vec<String> = specs
            .iter()
            .zip(outputs)
            .zip(&expected)
            .map(|((spec, given), expected)| compare(&spec.name, given, expected, tolerance))
            .filter(|c| !c.is_close())
            .map(|c| c.to_string())
            .collect();
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(wrong.join("\n"))
        }
    }

    fn tolerance(&self) -> Result<Tolerance, String> {
        let path = self.folder.join("case.json");
        let text = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
        let case: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        let number = |key: &str| {
            case[key]
                .as_f64()
                .ok_or_else(|| format!("{}: no number `{key}`", path.display()))
        };
        Ok(Tolerance {
            rtol: number("rtol")?,
            atol: number("atol")?,
        })
    }
}
