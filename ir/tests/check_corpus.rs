//! The checker accepts the simplest plan of every module that XLA:TPU compiled.
//!
//! In that plan every must-alias class has bytes of its own, so a violation is a false alarm: a
//! rule of the checker that real modules do not follow.

mod check_support;

use std::io::Read;
use std::path::{Path, PathBuf};

use check_support::{parse, plan_apart, target};
use slabplan_ir::Bytes;
use slabplan_ir::check::check;

/// Directories of `../shared/PART`, beside the project's root, where it is present.
fn shared(part: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared")
        .join(part);
    let Ok(entries) = std::fs::read_dir(&dir) else {
        eprintln!("no {} here: nothing of it is checked", dir.display());
        return Vec::new();
    };
    let mut paths: Vec<_> = entries
        .map(|e| e.unwrap().path())
        .filter(|p| p.is_dir())
        .collect();
    paths.sort();
    paths
}

fn read(path: &Path) -> String {
    let mut bytes = std::fs::read(path).unwrap();
    if path.extension().is_some_and(|e| e == "gz") {
        let packed = std::mem::take(&mut bytes);
        flate2::read::GzDecoder::new(&packed[..])
            .read_to_end(&mut bytes)
            .unwrap();
    }
    String::from_utf8(bytes).unwrap()
}

fn accepts(file: &Path) {
    let module = parse(&read(file));
    let mut target = target(64);
    for space in &mut target.spaces {
        space.capacity = Bytes::new(1 << 50).unwrap();
    }
    let plan = plan_apart(&module, &target);
    match check(&module, &plan, &target) {
        Ok(report) => assert!(report.fits && report.writes > 0),
        Err(violations) => panic!("{}: {violations}", file.display()),
    }
}

#[test]
fn accepts_values_apart_on_the_run_programs() {
    for dir in shared("run") {
        accepts(&dir.join("tpu.after.hlo"));
        accepts(&dir.join("cpu.after.hlo"));
    }
}

#[test]
fn accepts_values_apart_on_the_corpus() {
    for dir in shared("corpus").into_iter().chain(shared("corpus_cpu")) {
        accepts(&dir.join("after_optimizations.txt.gz"));
    }
}
