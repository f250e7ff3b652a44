//! Time to read, plan and prove compiled modules: `cargo bench -p slabplan --bench plan [-- NAME...]`.
//!
//! Medians of five runs in one process; the last column is the largest memory of the process so far.

use std::path::Path;
use std::time::Instant;

use slabplan::report::Table;
use slabplan::{CompileConfig, Compiled, compile, frontend, target};

/// What is measured unless names are given: the modules with stated limits, and a small one.
const MODULES: [(&str, &str); 3] = [
    ("gpt2s_unrolled", "tpu-v5e"),
    ("big96_train", "tpu-v5p"),
    ("gnn_train", "tpu-v5e"),
];

const RUNS: usize = 5;

fn main() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    if !corpus.is_dir() {
        println!("../shared/corpus is absent: nothing to measure");
        return;
    }
    let mut table = Table::new(&[
        "module",
        "instructions",
        "read",
        "passes",
        "pack",
        "check",
        "total",
        "slab",
        "memory",
    ]);
    for (name, target_name) in MODULES {
        let path = corpus.join(name).join("after_optimizations.txt.gz");
        let mut runs: Vec<[f64; 5]> = (0..RUNS).map(|_| measure(&path, target_name).0).collect();
        runs.sort_by(|a, b| a[4].total_cmp(&b[4]));
        let median = runs[RUNS / 2];
        let (_, compiled) = measure(&path, target_name);
        let mut row = vec![name.to_owned(), compiled.module.instrs.len().to_string()];
        row.extend(median.iter().map(|s| format!("{:.1} ms", 1e3 * s)));
        row.push(compiled.plan().spaces[0].slab.to_string());
        row.push(peak_memory().unwrap_or_else(|| "-".to_owned()));
        table.row(row);
    }
    print!("{table}");
}

/// Seconds of reading, passes, packing, checking, and their sum.
fn measure(path: &Path, target_name: &str) -> ([f64; 5], Compiled) {
    let start = Instant::now();
    let module = frontend::load_module(&path.to_string_lossy()).expect("a corpus module");
    let read = start.elapsed().as_secs_f64();
    let target = target::load(target_name).expect("a built-in target");
    let compiled = compile(module, &target, &CompileConfig::default()).expect("a plan");
    let total = start.elapsed().as_secs_f64();
    let s = compiled.seconds;
    (
        [read, s.analyse + s.schedule, s.pack, s.check, total],
        compiled,
    )
}

/// The kernel's figure for the largest resident memory of this process.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    Some(line.trim_start_matches("VmHWM:").trim().to_owned())
}
