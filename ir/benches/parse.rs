//! Speed of the parser and the printer in MB/s of text, on the corpus where it is present.
//!
//! Each figure is the best of several runs: what the machine can do when nothing disturbs it. With
//! `PYTHON=python3 cargo bench -p slabplan-ir --bench parse`, where that Python has jaxlib, XLA's own
//! parser reads the same files in the same run, and the last column says how many times as fast ours is.

#![allow(missing_docs, reason = "a bench has no readers of its API")]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use slabplan_ir::text::{parse, print};

const RUNS: usize = 7;

/// Bytes of text, seconds to parse, seconds to print, seconds of XLA's parser if they are known.
#[derive(Clone, Copy, Default)]
struct Measured {
    bytes: usize,
    parse: f64,
    print: f64,
    xla: Option<f64>,
}

fn main() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let modules = modules(&corpus);
    if modules.is_empty() {
        eprintln!("no modules in {}: nothing to measure", corpus.display());
        return;
    }
    let xla = xla_seconds(&modules);
    println!(
        "{:>10} {:>12} {:>12} {:>12} {:>8}  module",
        "bytes", "parse MB/s", "print MB/s", "XLA MB/s", "ratio"
    );
    let mut total = Measured {
        xla: xla.as_ref().map(|_| 0.0),
        ..Measured::default()
    };
    for (n, path) in modules.iter().enumerate() {
        let one = Measured {
            xla: xla.as_ref().map(|x| x[n]),
            ..measure(&read(path))
        };
        let name = path.parent().and_then(Path::file_name).unwrap_or_default();
        report(one, &name.to_string_lossy());
        total.bytes += one.bytes;
        total.parse += one.parse;
        total.print += one.print;
        total.xla = total.xla.zip(one.xla).map(|(a, b)| a + b);
    }
    report(total, "all");
}

/// Seconds of XLA's parser for each file, by the Python that `PYTHON` names; absent without it.
fn xla_seconds(modules: &[PathBuf]) -> Option<Vec<f64>> {
    let python = std::env::var_os("PYTHON")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/xla_parse_speed.py");
    let output = Command::new(python)
        .arg(script)
        .args(modules)
        .output()
        .expect("a Python interpreter");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let seconds = |line: &str| line.split_once(' ')?.0.parse().ok();
    lines.lines().map(seconds).collect()
}

fn modules(corpus: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(corpus) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries
        .filter_map(|e| Some(e.ok()?.path().join("after_optimizations.txt.gz")))
        .filter(|p| p.is_file())
        .collect();
    found.sort();
    found
}

fn read(path: &Path) -> String {
    let bytes = std::fs::read(path).expect("a readable file");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..])
        .read_to_string(&mut text)
        .expect("gzipped text");
    text
}

fn measure(source: &str) -> Measured {
    let mut best = Measured {
        bytes: source.len(),
        parse: f64::INFINITY,
        print: f64::INFINITY,
        xla: None,
    };
    for _ in 0..RUNS {
        let start = Instant::now();
        let module = parse(source).into_result().expect("a module of XLA");
        best.parse = best.parse.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let text = print(&module);
        best.print = best.print.min(start.elapsed().as_secs_f64());
        assert_eq!(text.len(), source.len());
    }
    best
}

fn report(m: Measured, name: &str) {
    let mb = m.bytes as f64 / 1e6;
    let (speed, ratio) = match m.xla {
        Some(seconds) => (
            format!("{:.1}", mb / seconds),
            format!("{:.1}", seconds / m.parse),
        ),
        None => ("-".to_owned(), "-".to_owned()),
    };
    println!(
        "{:>10} {:>12.1} {:>12.1} {speed:>12} {ratio:>8}  {name}",
        m.bytes,
        mb / m.parse,
        mb / m.print
    );
}
