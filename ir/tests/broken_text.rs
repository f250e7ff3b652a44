//! Text that is cut off, spoiled or absurd: errors with their place, no panic, no long wait.

mod data;
mod numbers;

use data::{files, fixtures, is_hlo, read};
use numbers::Numbers;
use slabplan_ir::text::{Diagnostic, parse};

/// Parses anything; what comes back must be consistent.
fn check(source: &str) -> Vec<Diagnostic> {
    let parsed = parse(source);
    assert_eq!(parsed.module.is_none(), !parsed.diagnostics.is_empty());
    for d in &parsed.diagnostics {
        assert!(source.get(d.span.clone()).is_some(), "{d:?}");
        assert!(0 < d.line && 0 < d.column, "{d:?}");
        assert!(d.message.len() < 2000, "{d:?}");
    }
    parsed.diagnostics
}

/// The first error of a text that must have one.
#[track_caller]
fn first_error(source: &str) -> Diagnostic {
    let errors = check(source);
    errors.into_iter().next().expect("an error")
}

#[test]
fn every_prefix_of_a_module() {
    for path in files(&fixtures().join("grammar"), is_hlo) {
        let source = read(&path);
        for end in (0..source.len()).filter(|&i| source.is_char_boundary(i)) {
            check(&source[..end]);
        }
    }
}

#[test]
fn modules_with_spoiled_bytes() {
    const MARKS: &[u8] = b"{}()[]<>=,:*%\"'/\\x0-.?\n\0";
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for path in files(&fixtures().join("grammar"), is_hlo) {
        let source = read(&path);
        for _ in 0..200 {
            let mut bytes = source.clone().into_bytes();
            for _ in 0..=numbers.below(3) {
                let at = numbers.below(bytes.len());
                match numbers.below(3) {
                    0 => bytes[at] = MARKS[numbers.below(MARKS.len())],
                    1 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, MARKS[numbers.below(MARKS.len())]),
                }
            }
            check(&String::from_utf8_lossy(&bytes));
        }
    }
}

#[test]
fn lines_swapped_or_dropped() {
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    for path in files(&fixtures().join("grammar"), is_hlo) {
        let source = read(&path);
        for _ in 0..50 {
            let mut lines: Vec<&str> = source.lines().collect();
            let (a, b) = (numbers.below(lines.len()), numbers.below(lines.len()));
            if numbers.below(2) == 0 {
                lines.swap(a, b);
            } else {
                lines.remove(a);
            }
            check(&lines.join("\n"));
        }
    }
}

#[test]
fn no_text_and_other_files() {
    assert!(first_error("").message.contains("end of the text"));
    assert!(
        first_error(" \n // nothing\n")
            .message
            .contains("end of the text")
    );
    first_error("\u{feff}HloModule m");
    first_error("PK\u{3}\u{4}\0\0");
    first_error("{\"json\": [1, 2, 3]}");
    first_error("<html><body>not found</body></html>");
    first_error("日本語のテキスト");
    assert!(first_error("HloModule m\0").message.contains("\\0"));
}

#[test]
fn ten_megabytes_of_parentheses() {
    let open = "(".repeat(10 << 20);
    first_error(&open);
    for before in [
        "ENTRY e { x = ",
        "ENTRY e { x = f32[] add(",
        "ENTRY e { x = f32[] constant(",
        "HloModule m, entry_computation_layout={",
    ] {
        let error = first_error(&format!("{before}{open}"));
        assert!(error.span.end < 10_000, "{error}");
    }
}

#[test]
fn a_million_nested_tuples() {
    let depth = 1_000_000;
    let shape = format!("{}f32[]{}", "(".repeat(depth), ")".repeat(depth));
    let error = first_error(&format!("ENTRY e {{ x = {shape} parameter(0) }}"));
    assert!(error.message.contains("nest deeper"), "{error}");
    // As deep as is allowed.
    let shape = format!("{}f32[]{}", "(".repeat(100), ")".repeat(100));
    assert!(check(&format!("ENTRY e {{ x = {shape} parameter(0) }}")).is_empty());
}

#[test]
fn other_deep_nests() {
    let n = 100_000;
    let nested = |open: &str, close: &str| format!("{}{}", open.repeat(n), close.repeat(n));
    for (text, words) in [
        (
            format!("ENTRY e {{ x = f32[] {} }}", nested("negate(f32[] ", ")")),
            "nest deeper",
        ),
        (
            format!(
                "ENTRY e {{ x = f32[] {}",
                "call(), to_apply={ ROOT y = f32[] ".repeat(n)
            ),
            "nest deeper",
        ),
        (
            format!("ENTRY e {{ x = f32[1] constant({}) }}", nested("{", "}")),
            "expected",
        ),
        (
            format!("ENTRY e {{ x = {} parameter(0) }}", nested("b(", ")")),
            "nest deeper",
        ),
    ] {
        let errors = check(&text);
        let first = errors.first().expect("an error");
        assert!(first.message.contains(words), "{first}");
    }
    // Text that is kept as it is nests without recursion.
    let config = format!(
        "ENTRY e {{ x = f32[] parameter(0), backend_config={} }}",
        nested("{", "}")
    );
    assert!(check(&config).is_empty());
}

#[test]
fn inferred_shapes_do_not_explode() {
    let mut text = "ENTRY e {\n t0 = f32[] parameter(0)\n".to_owned();
    for i in 1..100 {
        text += &[
            "  t",
            &i.to_string(),
            " = tuple(t",
            &(i - 1).to_string(),
            ", t",
            &(i - 1).to_string(),
            ")\n",
        ]
        .concat();
    }
    let error = first_error(&(text + "}"));
    assert!(error.message.contains("inferred shapes"), "{error}");
}

#[test]
fn absurd_numbers() {
    for (text, words) in [
        (
            "ENTRY e { x = f32[99999999999999999999] parameter(0) }",
            "does not fit 64 bits",
        ),
        ("ENTRY e { x = f32[-1] parameter(0) }", "negative"),
        ("ENTRY e { x = f32[2] parameter(4294967296) }", "too large"),
        (
            "ENTRY e { x = f32[2] parameter(4294967295) }",
            "no parameter has number 0",
        ),
        (
            "ENTRY e { x = f32[2]{0:S(99999999999)} parameter(0) }",
            "too large",
        ),
        (
            "HloModule m, replica_count=-3 ENTRY e { x = f32[] parameter(0) }",
            "negative",
        ),
    ] {
        let error = first_error(text);
        assert!(error.message.contains(words), "{error}");
    }
    // Sizes are the verifier's business: 2^62 elements are a shape.
    assert!(check("ENTRY e { x = f32[4611686018427387904] parameter(0) }").is_empty());
}

#[test]
fn many_errors_are_cut_short() {
    let mut text = "ENTRY e {\n".to_owned();
    text += &"  x = f32[] frobnicate()\n".repeat(1000);
    let errors = check(&text);
    assert_eq!(errors.len(), 65);
    assert!(errors.last().unwrap().message.contains("giving up"));
}

#[test]
fn long_names_stay_out_of_messages() {
    let name = "n".repeat(5 << 20);
    check(&format!("ENTRY e {{ x = f32[] negate({name}) }}"));
    check(&format!("ENTRY e {{ x = f32[] {name}() }}"));
    check(&format!("ENTRY e {{ x = {name}[] parameter(0) }}"));
    check(&format!("ENTRY e {{ x = f32[] constant({name}) }}"));
    check(&format!("ENTRY e {{ x = f32[] parameter(0), {name}=1 }}"));
}

#[test]
fn a_huge_computation_does_not_slow_many_small_ones() {
    use std::fmt::Write;
    let mut text = String::new();
    text += "big {\n";
    for i in 0..50_000 {
        writeln!(text, "x{i} = f32[] parameter({i})").unwrap();
    }
    text += "}\n";
    for i in 0..50_000 {
        writeln!(text, "c{i} {{ x = f32[] parameter(0) }}").unwrap();
    }
    assert!(check(&format!("HloModule m\n{text}")).is_empty());
}
