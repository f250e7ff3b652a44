//! Exported programs with inputs and expected outputs.
#![allow(dead_code, reason = "each test file uses its part")]

mod elided;

use std::path::{Path, PathBuf};

use slabplan::exec::compare::{Tolerance, compare};
use slabplan::exec::io::read_arrays;
use slabplan::exec::{ExecConfig, Executable, HostArray};
use slabplan_ir::module::Module;
use slabplan_ir::plan::Plan;

/// One exported program.
pub(crate) struct Case {
    pub(crate) name: String,
    dir: PathBuf,
    tolerance: Tolerance,
}

/// The project's fixtures, and the cases of `../shared/run` where they are present.
pub(crate) fn all_cases() -> Vec<Case> {
    let root = root();
    let mut cases = Vec::new();
    for dir in [root.join("fixtures/models"), root.join("../shared/run")] {
        let Ok(entries) = std::fs::read_dir(&dir) else {
            eprintln!("{} is absent: its cases are not run", dir.display());
            continue;
        };
        let mut dirs: Vec<PathBuf> = entries
            .map(|e| e.unwrap().path())
            .filter(|d| d.join("case.json").exists())
            .collect();
        dirs.sort();
        cases.extend(dirs.into_iter().map(Case::new));
    }
    let only = std::env::var("SLABPLAN_CASE").unwrap_or_default();
    cases.retain(|c| c.name.contains(&only));
    cases
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

impl Case {
    /// A case of `fixtures/models`.
    pub(crate) fn fixture(name: &str) -> Self {
        Self::new(root().join("fixtures/models").join(name))
    }

    fn new(dir: PathBuf) -> Self {
        let text = std::fs::read_to_string(dir.join("case.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        Self {
            name: dir.file_name().unwrap().to_string_lossy().into_owned(),
            tolerance: Tolerance {
                rtol: json["rtol"].as_f64().unwrap(),
                atol: json["atol"].as_f64().unwrap(),
            },
            dir,
        }
    }

    /// The module of a stage, gzipped or not.
    pub(crate) fn module(&self, stage: &str) -> Option<Module> {
        let plain = self.dir.join(stage);
        let text = if plain.exists() {
            std::fs::read_to_string(plain).unwrap()
        } else {
            let packed = std::fs::File::open(self.dir.join(format!("{stage}.gz"))).ok()?;
            let mut text = String::new();
            let mut reader = flate2::read::GzDecoder::new(packed);
            std::io::Read::read_to_string(&mut reader, &mut text).unwrap();
            text
        };
        let models = root().join("fixtures/models");
        let text = elided::completed(&models, &self.name, stage, text).unwrap();
        Some(slabplan_ir::text::parse(&text).into_result().unwrap())
    }

    /// The inputs.
    pub(crate) fn inputs(&self, executable: &Executable) -> Vec<HostArray> {
        read_arrays(&self.dir.join("inputs.safetensors"), &executable.inputs()).unwrap()
    }

    /// Runs `module` and compares its outputs with the expected ones.
    pub(crate) fn run(
        &self,
        module: &Module,
        plan: &Plan,
        config: ExecConfig,
    ) -> Result<Vec<HostArray>, String> {
        let mut executable = Executable::new(module, plan, config).map_err(|e| e.to_string())?;
        let inputs = self.inputs(&executable);
        let devices = executable.device_count();
        let per_device = inputs.len() / devices;
        let lists: Vec<&[HostArray]> = (0..devices)
            .map(|d| &inputs[d * per_device..(d + 1) * per_device])
            .collect();
        let outputs = executable
            .execute_devices(&lists)
            .map_err(|e| e.to_string())?
            .concat();
        self.compare(&executable, &outputs)?;
        Ok(outputs)
    }

    /// Compares outputs with the expected ones.
    pub(crate) fn compare(
        &self,
        executable: &Executable,
        outputs: &[HostArray],
    ) -> Result<(), String> {
        let specs = executable.outputs();
        let expected = read_arrays(&self.dir.join("expected.safetensors"), &specs)
            .map_err(|e| e.to_string())?;
        let differences: Vec<String> = specs
            .iter()
            .zip(outputs.iter().zip(&expected))
            .map(|(spec, (given, expected))| compare(&spec.name, given, expected, self.tolerance))
            .filter(|c| !c.is_close())
            .map(|c| c.to_string())
            .collect();
        if differences.is_empty() {
            Ok(())
        } else {
            Err(differences.join("; "))
        }
    }
}
