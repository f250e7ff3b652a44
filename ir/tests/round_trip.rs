//! Every module that XLA printed comes back byte for byte.

use std::io::Read;
use std::path::{Path, PathBuf};

use slabplan_ir::text::{parse, print};

/// The shared data beside the project's root, where it is present.
fn shared(part: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let path = root.join(part);
    if path.is_dir() {
        Some(path)
    } else {
        eprintln!("no {} here: nothing of it is checked", path.display());
        None
    }
}

/// All files below `dir` that `wanted` accepts, sorted.
fn files(dir: &Path, wanted: impl Fn(&str) -> bool + Copy) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, wanted));
        } else if wanted(path.file_name().unwrap().to_str().unwrap()) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap();
    let mut text = String::new();
    if path.extension().is_some_and(|e| e == "gz") {
        flate2::read::GzDecoder::new(&bytes[..])
            .read_to_string(&mut text)
            .unwrap();
    } else {
        text = String::from_utf8(bytes).unwrap();
    }
    text
}

/// Where two texts differ first, for a message.
fn first_difference(left: &str, right: &str) -> Option<String> {
    if left == right {
        return None;
    }
    let at = left
        .bytes()
        .zip(right.bytes())
        .position(|(a, b)| a != b)
        .unwrap_or(left.len().min(right.len()));
    let around = |s: &str| {
        let (from, to) = (at.saturating_sub(80), (at + 80).min(s.len()));
        String::from_utf8_lossy(&s.as_bytes()[from..to]).into_owned()
    };
    Some(format!(
        "at byte {at}:\n  source: {}\n  print:  {}",
        around(left),
        around(right)
    ))
}

fn check_identity(paths: &[PathBuf]) {
    let mut failures = Vec::new();
    for path in paths {
        let source = read(path);
        match parse(&source).into_result() {
            Ok(module) => {
                if let Some(difference) = first_difference(&source, &print(&module)) {
                    failures.push(format!("{}: {difference}", path.display()));
                }
            }
            Err(errors) => failures.push(format!("{}: {}", path.display(), errors[0])),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    eprintln!("{} modules printed back byte for byte", paths.len());
}

fn is_module_dump(name: &str) -> bool {
    matches!(
        name,
        "before_optimizations.txt.gz"
            | "before_buffer_assignment.txt.gz"
            | "after_optimizations.txt.gz"
    )
}

#[test]
fn corpus() {
    let Some(dir) = shared("corpus") else { return };
    check_identity(&files(&dir, is_module_dump));
}

#[test]
fn cpu_corpus() {
    let Some(dir) = shared("corpus_cpu") else {
        return;
    };
    check_identity(&files(&dir, is_module_dump));
}

#[test]
fn run_cases() {
    let Some(dir) = shared("run") else { return };
    check_identity(&files(&dir, |name| {
        name.split('.').next_back() == Some("hlo")
    }));
}
