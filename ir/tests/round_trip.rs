//! Every module that XLA printed comes back byte for byte.

mod data;

use std::path::PathBuf;

use data::{files, is_hlo, is_module_dump, read, shared};
use slabplan_ir::text::{parse, print};

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
    check_identity(&files(&dir, is_hlo));
}
