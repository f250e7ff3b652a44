//! Every module that XLA:TPU and XLA:CPU compiled is read, printed back byte for byte, verified,
//! planned and proved; the plan of its proto is the plan of its text. XLA's own plan passes our checker,
//! and our plan goes through XLA's form and back.

use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};
use slabplan::config::CompileConfig;
use slabplan::{compile, frontend, target};
use slabplan_ir::Target;
use slabplan_ir::plan::{Accounting, to_text};
use slabplan_tests::{paths, xla};

fn main() {
    let mut trials = Vec::new();
    for (folder, cpu) in [("corpus", false), ("corpus_cpu", true)] {
        let Some(folder) = paths::shared(folder) else {
            continue;
        };
        for path in paths::files(&folder, &["after_optimizations.txt.gz"]) {
            trials.push(Trial::test(paths::short(&path), move || {
                check(&path, cpu).map_err(Failed::from)
            }));
        }
        for path in paths::files(
            &folder,
            &[
                "before_optimizations.txt.gz",
                "before_buffer_assignment.txt.gz",
            ],
        ) {
            trials.push(Trial::test(paths::short(&path), move || {
                round_trip(&path).map_err(Failed::from).map(drop)
            }));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn check(path: &Path, cpu: bool) -> Result<(), String> {
    let module = round_trip(path)?;
    let folder = path.parent().expect("a file lies in a folder");
    let target_name = if cpu { "cpu".to_owned() } else { chip(folder)? };
    let target = target::load(&target_name).map_err(|e| e.to_string())?;
    judge(folder, &module, &target)?;
    for accounting in [Accounting::Slab, Accounting::Xla] {
        let config = CompileConfig {
            accounting,
            ..CompileConfig::default()
        };
        let compiled = compile(module.clone(), &target, &config).map_err(|e| e.to_string())?;
        if !compiled.plan().copies.is_empty() {
            return Err(format!(
                "XLA inserted the copies it needs, and we more: {:#?}",
                compiled.plan().copies
            ));
        }
        xla::round_trip(&compiled, &target).map_err(|e| format!("{accounting:?}: {e}"))?;
        let proto = folder.join("after_optimizations.hlo.pb.gz");
        if accounting == Accounting::Slab && proto.is_file() {
            let other = load(&proto)?;
            let other = compile(other, &target, &config).map_err(|e| format!("proto: {e}"))?;
            let text = |c: &slabplan::Compiled| to_text(&c.module, c.plan());
            if text(&other) != text(&compiled) {
                return Err("the proto's plan differs from the text's".to_owned());
            }
        }
    }
    Ok(())
}

/// XLA's own plan is right, and says the same as text and as proto.
fn judge(folder: &Path, module: &slabplan_ir::Module, target: &Target) -> Result<(), String> {
    let read = |name: &str| xla::load(&folder.join(name).to_string_lossy());
    let from_text = read("buffer-assignment.txt.gz")?;
    let (plan, report) =
        xla::judge(module, &from_text, target).map_err(|e| format!("XLA's plan: {e}"))?;
    if report.writes == 0 {
        return Err("nothing of XLA's plan was checked".to_owned());
    }
    let proto = folder.join("after_optimizations.hlo.pb.gz");
    if proto.is_file() {
        let from_proto = read("after_optimizations.hlo.pb.gz")?;
        let (other, _) =
            xla::judge(module, &from_proto, target).map_err(|e| format!("XLA's proto: {e}"))?;
        if xla::placements(&plan) != xla::placements(&other) {
            return Err("XLA's assignment differs as text and as proto".to_owned());
        }
    }
    Ok(())
}

/// Reads and verifies a module; its print must be the text it came from.
fn round_trip(path: &Path) -> Result<slabplan_ir::Module, String> {
    let source = frontend::read(&path.to_string_lossy()).map_err(|e| e.to_string())?;
    let text = String::from_utf8(source.bytes.clone()).map_err(|e| e.to_string())?;
    let module = frontend::parse_module(source).map_err(|e| e.to_string())?;
    slabplan_ir::verify::verify(&module).map_err(|e| e.to_string())?;
    let printed = slabplan_ir::text::print(&module);
    match printed.lines().zip(text.lines()).position(|(a, b)| a != b) {
        Some(line) => Err(format!("the print differs from line {}", line + 1)),
        None if printed == text => Ok(module),
        None => Err("the print ends elsewhere".to_owned()),
    }
}

fn load(path: &Path) -> Result<slabplan_ir::Module, String> {
    frontend::load_module(&path.to_string_lossy()).map_err(|e| e.to_string())
}

/// The target of a corpus module, from its `xla.json`: chip `v5e-8` is target `tpu-v5e`.
fn chip(folder: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(folder.join("xla.json")).map_err(|e| e.to_string())?;
    let json: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let chip = json["chip"].as_str().ok_or("xla.json names no chip")?;
    Ok(format!("tpu-{}", chip.split('-').next().unwrap_or(chip)))
}
