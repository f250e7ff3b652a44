//! Reading plans that are not as they should be.

mod check_support;

use check_support::{parse, plan_apart, target};
use slabplan_ir::Module;
use slabplan_ir::plan::{from_json, from_text, to_json, to_text};

const MODULE: &str = "HloModule m, is_scheduled=true

%f (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %n = f32[4]{0} negate(%p)
}

ENTRY %main (p: (f32[4], f32[4])) -> f32[4] {
  %p = (f32[4]{0}, f32[4]{0}) parameter(0)
  %q = f32[4]{0} get-tuple-element(%p), index=1
  ROOT %c = f32[4]{0} call(%q), to_apply=%f
}
";

fn module() -> Module {
    parse(MODULE)
}

fn text() -> String {
    to_text(&module(), &plan_apart(&module(), &target(64)))
}

fn json() -> String {
    to_json(&module(), &plan_apart(&module(), &target(64)))
}

#[track_caller]
fn refuses_text(from: &str, to: &str, error: &str) {
    let text = text();
    assert!(text.contains(from), "{text}");
    let found = from_text(&module(), &text.replacen(from, to, 1)).unwrap_err();
    assert_eq!(found.to_string(), error);
}

#[track_caller]
fn refuses_json(from: &str, to: &str, error: &str) {
    let json = json();
    assert!(json.contains(from), "{json}");
    let found = from_json(&module(), &json.replacen(from, to, 1)).unwrap_err();
    assert_eq!(found.to_string(), error);
}

#[test]
fn names_are_qualified_where_two_computations_have_them() {
    let text = text();
    assert!(text.contains(": %main/%p{0}\n"), "{text}");
    assert!(text.contains(": %n\n"), "{text}");
    assert_eq!(
        from_text(&module(), &text),
        Ok(plan_apart(&module(), &target(64)))
    );
}

#[test]
fn text_errors_have_line_and_column() {
    refuses_text(
        "size=16 kind=output",
        "size=x kind=output",
        "line 12, column 31: `x` is not a number of at most 64 bits",
    );
    refuses_text(
        ": %n",
        ": %m",
        "line 12, column 48: the module has no instruction `%m`",
    );
    refuses_text(
        "%main/%p{0}",
        "%p{0}",
        "line 13, column 59: several computations have an instruction `%p`: write `%computation/%p`",
    );
    refuses_text(
        "buffer space",
        "bufer space",
        "line 11, column 1: `bufer` is not `space`, `buffer` or `copy`",
    );
    refuses_text(
        "slabplan-plan 1",
        "slabplan-plan 7",
        "the plan has version 7, this program reads version 1: make the plan again",
    );
    assert_eq!(
        from_text(&module(), "").unwrap_err().to_string(),
        "line 1, column 1: the plan ends before its `module` line"
    );
}

#[test]
fn json_errors_have_a_place() {
    refuses_json(
        "[\"%n\"]",
        "[\"%m\"]",
        "buffers[1].values[0]: the module has no instruction `%m`",
    );
    refuses_json(
        "\"version\":1",
        "\"version\":2",
        "the plan has version 2, this program reads version 1: make the plan again",
    );
    let cut = &json()[..100];
    let error = from_json(&module(), cut).unwrap_err().to_string();
    assert!(error.starts_with("line 1, column 100: EOF"), "{error}");
}

#[test]
fn unknown_fields_are_passed_over() {
    let plan = plan_apart(&module(), &target(64));
    let text = text()
        .replace("buffer space", "buffer colour=red note=\"a b\" space")
        .replace("slabplan-plan 1\n", "slabplan-plan 1\n\n# a comment\n");
    assert_eq!(from_text(&module(), &text).as_ref(), Ok(&plan));
    let json = json().replace(
        "{\"space\":0,\"offset\"",
        "{\"colour\":[1,{}],\"space\":0,\"offset\"",
    );
    assert_eq!(from_json(&module(), &json).as_ref(), Ok(&plan));
    let parts = json.replace(
        "\"%main/%p{0}\"",
        "{\"instruction\":\"p\",\"computation\":\"main\",\"index\":[0]}",
    );
    assert_ne!(parts, json);
    assert_eq!(from_json(&module(), &parts).as_ref(), Ok(&plan));
}

#[test]
fn plan_for_another_module() {
    let other = parse(&MODULE.replace("negate", "cosine"));
    let error = from_text(&other, &text()).unwrap_err().to_string();
    assert!(
        error.starts_with("the plan is for module `m` with fingerprint "),
        "{error}"
    );
    let error = from_json(&other, &json()).unwrap_err().to_string();
    assert!(error.ends_with(": make the plan again"), "{error}");
}

/// Cut off anywhere, or with any byte replaced, a plan is read or refused; never a panic.
#[test]
fn broken_plans_are_refused() {
    let (text, json, module) = (text(), json(), module());
    for (form, source) in [("text", &text), ("json", &json)] {
        let read = |s: &str| match form {
            "text" => from_text(&module, s).is_ok(),
            _ => from_json(&module, s).is_ok(),
        };
        for n in (0..source.len()).step_by(3) {
            read(&source[..n]);
            for c in ["\"", "{", "9", "é", ""] {
                let mut broken = source.clone();
                broken.replace_range(n..=n, c);
                read(&broken);
            }
        }
    }
}
