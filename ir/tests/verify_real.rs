//! Modules that XLA printed are never refused.

mod data;

use std::path::PathBuf;

use data::{files, is_hlo, is_module_dump, read, shared};
use slabplan_ir::text::parse;
use slabplan_ir::verify::verify;

fn accept_all(paths: &[PathBuf]) {
    let mut failures = Vec::new();
    for path in paths {
        let module = parse(&read(path)).into_result().unwrap();
        if let Err(errors) = verify(&module) {
            failures.push(format!("{}:\n{errors}", path.display()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    eprintln!("{} modules accepted", paths.len());
}

#[test]
fn corpus() {
    let Some(dir) = shared("corpus") else { return };
    accept_all(&files(&dir, is_module_dump));
}

#[test]
fn cpu_corpus() {
    let Some(dir) = shared("corpus_cpu") else {
        return;
    };
    accept_all(&files(&dir, is_module_dump));
}

#[test]
fn run_cases() {
    let Some(dir) = shared("run") else { return };
    accept_all(&files(&dir, is_hlo));
}

#[test]
fn fixtures() {
    let root = data::fixtures();
    let mut paths = files(&root.join("models"), is_hlo);
    paths.extend(files(&root.join("rules"), is_hlo));
    assert!(
        paths.len() > 100,
        "only {} modules in {root:?}",
        paths.len()
    );
    accept_all(&paths);
}
