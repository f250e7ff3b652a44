//! Every module that XLA printed comes back byte for byte; our own print is a fixpoint.

mod data;

use std::path::PathBuf;

use data::{files, fixtures, is_hlo, is_module_dump, read, shared};
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

/// Panics with what `check` says about each file.
fn check_all(paths: &[PathBuf], check: impl Fn(&str) -> Result<(), String>) {
    assert!(!paths.is_empty());
    let failures: Vec<String> = paths
        .iter()
        .filter_map(|path| Some(format!("{}: {}", path.display(), check(&read(path)).err()?)))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The print of a text that XLA wrote is that text.
fn check_identity(source: &str) -> Result<(), String> {
    let module = parse(source)
        .into_result()
        .map_err(|errors| errors[0].to_string())?;
    first_difference(source, &print(&module)).map_or(Ok(()), Err)
}

/// The print of any text parses, to a module that prints the same.
fn check_fixpoint(source: &str) -> Result<(), String> {
    let module = parse(source)
        .into_result()
        .map_err(|errors| errors[0].to_string())?;
    let text = print(&module);
    let again = parse(&text)
        .into_result()
        .map_err(|errors| format!("the print does not parse: {}\n{text}", errors[0]))?;
    if again.instrs.len() != module.instrs.len() {
        return Err("the print has another number of instructions".to_owned());
    }
    first_difference(&text, &print(&again)).map_or(Ok(()), Err)
}

/// Whether this is a module as text, plain or gzipped.
fn is_hlo_text(name: &str) -> bool {
    is_hlo(name.strip_suffix(".gz").unwrap_or(name))
}

#[test]
fn corpus() {
    if let Some(dir) = shared("corpus") {
        check_all(&files(&dir, is_module_dump), check_identity);
    }
}

#[test]
fn cpu_corpus() {
    if let Some(dir) = shared("corpus_cpu") {
        check_all(&files(&dir, is_module_dump), check_identity);
    }
}

#[test]
fn run_cases() {
    if let Some(dir) = shared("run") {
        check_all(&files(&dir, is_hlo_text), check_identity);
    }
}

#[test]
fn exported_models() {
    check_all(
        &files(&fixtures().join("models"), is_hlo_text),
        check_identity,
    );
}

#[test]
fn every_construct_of_the_grammar() {
    check_all(
        &files(&fixtures().join("grammar"), is_hlo_text),
        check_fixpoint,
    );
}

#[test]
fn hand_written_modules() {
    check_all(
        &files(&fixtures().join("rules"), is_hlo_text),
        check_fixpoint,
    );
}
