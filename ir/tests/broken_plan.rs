//! Plans as JSON and as text that are cut off or spoiled: an error with its place, or a plan that the
//! checker judges; no panic, no long wait.

mod check_support;
mod data;
mod numbers;

use std::path::{Path, PathBuf};

use check_support::target;
use data::{files, fixtures, read};
use numbers::Numbers;
use slabplan_ir::Module;
use slabplan_ir::check::check;
use slabplan_ir::plan::{from_json, from_text, to_json, to_text};

/// A plan of `fixtures/corrupt` in both forms, with its module.
struct Case {
    module: Module,
    json: String,
    text: String,
}

fn cases() -> Vec<Case> {
    let plans = files(&fixtures().join("corrupt"), |_| true);
    let is_plan = |p: &&PathBuf| p.extension().is_some_and(|e| e == "plan");
    plans
        .iter()
        .filter(is_plan)
        .filter_map(|p| case(p))
        .collect()
}

/// Plans that name what their module does not have can't be read, and are left out.
fn case(path: &Path) -> Option<Case> {
    let text = read(path);
    let module = text.lines().find_map(|l| l.strip_prefix("# module: "))?;
    let module = read(&path.with_file_name(module.trim()));
    let module = slabplan_ir::text::parse(&module).into_result().unwrap();
    let plan = from_text(&module, &text).ok()?;
    Some(Case {
        json: to_json(&module, &plan),
        text: to_text(&module, &plan),
        module,
    })
}

/// Reads anything; what is read has both forms, and the checker has an answer.
fn judge_json(module: &Module, json: &str) {
    if let Ok(plan) = from_json(module, json) {
        assert_eq!(
            from_json(module, &to_json(module, &plan)).as_ref(),
            Ok(&plan)
        );
        let _ = check(module, &plan, &target(64));
    }
}

fn judge_text(module: &Module, text: &str) {
    if let Ok(plan) = from_text(module, text) {
        assert_eq!(
            from_text(module, &to_text(module, &plan)).as_ref(),
            Ok(&plan)
        );
        let _ = check(module, &plan, &target(64));
    }
}

#[test]
fn there_are_plans_to_spoil() {
    assert!(cases().len() > 30);
}

#[test]
fn every_prefix() {
    for case in cases().iter().step_by(5) {
        for end in (0..case.json.len()).filter(|&i| case.json.is_char_boundary(i)) {
            judge_json(&case.module, &case.json[..end]);
        }
        for end in (0..case.text.len()).filter(|&i| case.text.is_char_boundary(i)) {
            judge_text(&case.module, &case.text[..end]);
        }
    }
}

/// Bytes replaced, dropped and doubled; numbers made absurd.
fn spoiled(source: &str, numbers: &mut Numbers) -> Option<String> {
    const MARKS: &[u8] = b"{}()[]<>=,:%\"'\\-.0123456789eE \n\0";
    const ABSURD: &[&str] = &[
        "18446744073709551616",
        "9223372036854775807",
        "-1",
        "1e300",
        "null",
        "\"\"",
        "[]",
        "{}",
    ];
    let mut bytes = source.as_bytes().to_vec();
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(bytes.len());
        match numbers.below(4) {
            0 => bytes[at] = MARKS[numbers.below(MARKS.len())],
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, MARKS[numbers.below(MARKS.len())]),
            _ => {
                let digits = bytes[at..]
                    .iter()
                    .take_while(|b| b.is_ascii_digit())
                    .count();
                let absurd = ABSURD[numbers.below(ABSURD.len())].bytes();
                bytes.splice(at..at + digits, absurd);
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[test]
fn spoiled_plans() {
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    for case in cases() {
        for _ in 0..60 {
            if let Some(json) = spoiled(&case.json, &mut numbers) {
                judge_json(&case.module, &json);
            }
            if let Some(text) = spoiled(&case.text, &mut numbers) {
                judge_text(&case.module, &text);
            }
        }
    }
}

/// A plan read for another module is refused, or judged, as any other.
#[test]
fn plans_of_other_modules() {
    let cases = cases();
    for (n, case) in cases.iter().enumerate() {
        let other = &cases[(n + 7) % cases.len()];
        judge_json(&other.module, &case.json);
        judge_text(&other.module, &case.text);
    }
}

#[test]
fn deep_json() {
    let case = &cases()[0];
    for deep in ["[".repeat(100_000), "{\"a\":".repeat(100_000)] {
        assert!(from_json(&case.module, &deep).is_err());
    }
}
