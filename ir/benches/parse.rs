//! Speed of the parser and the printer in MB/s of text, on the corpus where it is present.
//!
//! Each figure is the best of several runs: what the machine can do when nothing disturbs it.

#![allow(missing_docs, reason = "a bench has no readers of its API")]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use slabplan_ir::text::{parse, print};

const RUNS: usize = 7;

/// Bytes of text, seconds to parse, seconds to print.
#[derive(Clone, Copy, Default)]
struct Measured {
    bytes: usize,
    parse: f64,
    print: f64,
}

fn main() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let modules = modules(&corpus);
    if modules.is_empty() {
        eprintln!("no modules in {}: nothing to measure", corpus.display());
        return;
    }
    println!(
        "{:>10} {:>12} {:>12}  module",
        "bytes", "parse MB/s", "print MB/s"
    );
    let mut total = Measured::default();
    for path in modules {
        let one = measure(&read(&path));
        let name = path.parent().and_then(Path::file_name).unwrap_or_default();
        report(one, &name.to_string_lossy());
        total.bytes += one.bytes;
        total.parse += one.parse;
        total.print += one.print;
    }
    report(total, "all");
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
    println!(
        "{:>10} {:>12.1} {:>12.1}  {name}",
        m.bytes,
        mb / m.parse,
        mb / m.print
    );
}
