//! Modules that the parser would refuse, made from a good one.

use std::fmt::Write;

use super::{ErrorKind, VerifyError, check, errors, module, verify};
use crate::entity::EntityId;
use crate::instr::Payload;
use crate::module::Module;

const CHAIN: &str = "HloModule m

callee {
  q = f32[4] parameter(0)
  ROOT s = f32[4] negate(q)
}

ENTRY main {
  x = f32[4] parameter(0)
  a = f32[4] negate(x)
  b = f32[4] negate(a)
  ROOT c = f32[4] call(b), to_apply=callee
}
";

/// Changes a good module into one that the parser would refuse, and looks for the first error.
fn broken(change: impl FnOnce(&mut Module)) -> VerifyError {
    let mut m = module(CHAIN);
    assert_eq!(errors(&m), []);
    change(&mut m);
    let found = errors(&m);
    assert!(!found.is_empty(), "the change is not noticed");
    found[0].clone()
}

fn named(m: &Module, name: &str) -> crate::InstrId {
    m.instrs.keys().find(|&i| m.name_of(i) == name).unwrap()
}

#[test]
fn ids_and_ownership() {
    let far = crate::InstrId::from_index(1000);
    let e = broken(|m| {
        let a = named(m, "a");
        m.instrs[a].operands[0] = far;
    });
    assert_eq!(
        (e.kind, e.message.as_str()),
        (ErrorKind::Ids, "%a: an operand is out of range")
    );
    let e = broken(|m| m.entry = crate::CompId::from_index(9));
    assert_eq!(e.kind, ErrorKind::Ids);
    let e = broken(|m| {
        let a = named(m, "a");
        m.instrs[a].shape = crate::ShapeId::from_index(1000);
    });
    assert_eq!(e.message, "%a: the shape is out of range");
    let e = broken(|m| {
        let (entry, a) = (m.entry, named(m, "a"));
        m.computations[entry].instrs.push(a);
    });
    assert_eq!(
        (e.kind, e.line_column(CHAIN)),
        (ErrorKind::Ids, Some((10, 3)))
    );
    let e = broken(|m| {
        let entry = m.entry;
        m.computations[entry].root = named(m, "s");
    });
    assert!(e.message.contains("root"));
    let e = broken(|m| {
        let c = named(m, "c");
        m.instrs[c].attrs[0].value = crate::attr::AttrValue::Comp(crate::CompId::from_index(77));
    });
    assert_eq!(e.message, "%c: to_apply is out of range");
}

#[test]
fn names_and_parameters() {
    let e = broken(|m| {
        let (a, b) = (named(m, "a"), named(m, "b"));
        m.instrs[b].name = m.instrs[a].name;
    });
    assert_eq!(e.kind, ErrorKind::Name);
    let e = broken(|m| {
        let x = named(m, "x");
        m.instrs[x].payload = Payload::Parameter(1);
    });
    assert_eq!(
        (e.kind, e.line_column(CHAIN)),
        (ErrorKind::Parameter, Some((9, 3)))
    );
    let e = broken(|m| {
        let a = named(m, "a");
        m.instrs[a].payload = Payload::Parameter(1);
    });
    assert_eq!(e.kind, ErrorKind::Parameter);
    let e = broken(|m| {
        let entry = m.entry;
        m.computations[entry].params.clear();
    });
    assert_eq!(e.kind, ErrorKind::Parameter);
}

#[test]
fn order_and_cycles() {
    let e = broken(|m| {
        let entry = m.entry;
        m.computations[entry].instrs.swap(1, 2);
    });
    assert_eq!(e.message, "%b: operand %a comes later");
    let e = broken(|m| {
        let (b, q) = (named(m, "b"), named(m, "q"));
        m.instrs[b].operands[0] = q;
    });
    assert_eq!(
        e.message,
        "%b: operand %q is in another computation, %callee"
    );

    // x -> a -> b -> c, and b before a.
    let wait = |m: &mut Module, later: &str, earlier: &str| {
        let before = named(m, earlier);
        let after = named(m, later);
        m.instrs[after].attrs.push(crate::attr::Attr {
            name: crate::attr::AttrName::ControlPredecessors,
            value: crate::attr::AttrValue::Instrs(Box::new([before])),
        });
    };
    let e = broken(|m| wait(m, "a", "c"));
    assert_eq!(e.kind, ErrorKind::Cycle);
    assert!(
        [
            "%a -> %b -> %c -> %a",
            "%b -> %c -> %a -> %b",
            "%c -> %a -> %b -> %c"
        ]
        .iter()
        .any(|c| e.message.contains(c)),
        "{e}"
    );
    let e = broken(|m| wait(m, "a", "a"));
    assert!(e.message.ends_with("%a -> %a"), "{e}");

    // A control predecessor later in the text is a cycle only if it depends on its successor.
    let text = "HloModule m\n\nENTRY e {\n  x = f32[4] parameter(0)\n  a = f32[4] negate(x)\n  \
                b = f32[4] negate(x)\n  ROOT c = f32[4] add(a, b)\n}\n";
    let mut m = module(text);
    wait(&mut m, "a", "b");
    assert_eq!(errors(&m), []);
    m.is_scheduled = true;
    assert_eq!(
        errors(&m)[0].message,
        "%a: control predecessor %b comes later"
    );
}

#[test]
fn calls() {
    let e = broken(|m| {
        let (c, main) = (named(m, "c"), m.entry);
        m.instrs[c].attrs[0].value = crate::attr::AttrValue::Comp(main);
    });
    assert_eq!(e.kind, ErrorKind::Call);
    assert!(e.message.contains("%main -> %main"), "{e}");
    let e = broken(|m| m.entry = m.instrs[named(m, "s")].computation);
    assert_eq!(
        e.message,
        "computation %callee: the entry is called by %main"
    );
    check(
        "HloModule m

wrapped {
  p = f32[4] parameter(0)
  ROOT r = f32[4] negate(p)
}

ENTRY main {
  x = f32[4] parameter(0)
  s = ((f32[4]), f32[4]) async-start(x), calls=wrapped
  d = f32[4] async-done(s)
  t2 = ((f32[4]), f32[4]) async-start(x), calls=wrapped // error: Call: starts %wrapped, which %s starts too
  d2 = f32[4] async-done(t2)
  ROOT t = (f32[4], f32[4]) tuple(d, d2)
}
",
    );
}

#[test]
fn missing_attributes_and_operands() {
    let e = broken(|m| {
        let c = named(m, "c");
        m.instrs[c].attrs.clear();
    });
    assert_eq!(
        (e.kind, e.message.as_str()),
        (ErrorKind::Attribute, "%c: call needs attribute to_apply")
    );
    assert_eq!(e.remedy, "add to_apply=...");
    let e = broken(|m| {
        let a = named(m, "a");
        m.instrs[a].operands.clear();
    });
    assert_eq!(e.message, "%a: negate takes 1 operand(s), given 0");
}

#[test]
fn every_error_is_reported_up_to_a_bound() {
    let mut body = String::from("x = f32[4] parameter(0)\n");
    for i in 0..150 {
        writeln!(body, "y{i} = f32[5] negate(x)").unwrap();
    }
    let text = format!("HloModule m\n\nENTRY main {{\n{body}ROOT r = f32[4] negate(x)\n}}\n");
    let found = verify(&module(&text)).unwrap_err();
    assert_eq!((found.errors.len(), found.suppressed), (100, 50));
    assert!(found.errors.windows(2).all(|w| w[0].offset < w[1].offset));
}
