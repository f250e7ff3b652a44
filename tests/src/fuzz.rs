//! What the fuzz targets do with their bytes. Each panics where a promise is broken.

use std::sync::LazyLock;

use arbitrary::Unstructured;
use slabplan::frontend::assignment::{parse_assignment, to_plan};
use slabplan::frontend::{Source, module_proto, parse_module};
use slabplan_ir::check::{InPlace, check, check_with};
use slabplan_ir::plan::{from_json, from_text, to_json, to_text};
use slabplan_ir::text::{parse, print};
use slabplan_ir::{Module, Target};

use crate::{generate, promises};

/// Any text: errors lie in the text, and what is accepted prints to a fixpoint.
///
/// # Panics
/// If that does not hold.
pub fn text(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else {
        return;
    };
    let parsed = parse(source);
    assert_eq!(parsed.module.is_none(), !parsed.diagnostics.is_empty());
    for d in &parsed.diagnostics {
        assert!(source.get(d.span.clone()).is_some(), "{d:?}");
    }
    if let Some(module) = parsed.module {
        prints_to_a_fixpoint(&module);
    }
}

fn prints_to_a_fixpoint(module: &Module) {
    let text = print(module);
    match parse(&text).into_result() {
        Ok(again) => assert_eq!(print(&again), text),
        Err(errors) => panic!("the print is refused: {}\n{text}", errors[0]),
    }
}

/// Any bytes as a module: refused, or read, and then written as a proto that is read again.
///
/// # Panics
/// If that does not hold.
pub fn proto(data: &[u8]) {
    let Ok(module) = parse_module(source(data)) else {
        return;
    };
    prints_to_a_fixpoint(&module);
    if let Ok(proto) = module_proto(&module)
        && let Err(e) = parse_module(source(&proto.bytes))
    {
        panic!("what is written is refused: {e}\n{}", print(&module));
    }
}

/// A module of `fixtures/corrupt`: its name and its text.
macro_rules! corrupt {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../fixtures/corrupt/", $name)),
        )
    };
}

/// The modules of `fixtures/corrupt` that plans are read for: of three operations, and with an asynchronous operation,
/// branches, a loop, donation and a fusion.
const MODULES: [(&str, &str); 6] = [
    corrupt!("copy_started.hlo"),
    corrupt!("branches.hlo"),
    corrupt!("loop.hlo"),
    corrupt!("donated.hlo"),
    corrupt!("fused.hlo"),
    corrupt!("chain.hlo"),
];

static PLANNED: LazyLock<Vec<Module>> =
    LazyLock::new(|| MODULES.iter().map(|(_, text)| module(text)).collect());

/// The byte by which [`plan`] chooses the module of a file of `fixtures/corrupt`, if it has it.
pub fn module_byte(file: &str) -> Option<u8> {
    let found = MODULES.iter().position(|(name, _)| *name == file)?;
    u8::try_from(found).ok()
}

static CHAIN: LazyLock<Module> =
    LazyLock::new(|| module(include_str!("../../fixtures/assignments/chain.hlo")));

static TPU: LazyLock<Target> = LazyLock::new(|| target("tpu-v5e"));

static CPU: LazyLock<Target> = LazyLock::new(|| target("cpu"));

/// A byte that chooses a module, then a plan of it as JSON or text: what is read survives its own forms, and the
/// checker has an answer.
///
/// # Panics
/// If that does not hold.
pub fn plan(data: &[u8]) {
    let Some((&which, rest)) = data.split_first() else {
        return;
    };
    let Ok(source) = std::str::from_utf8(rest) else {
        return;
    };
    let module = &PLANNED[which as usize % MODULES.len()];
    if let Ok(plan) = from_json(module, source) {
        assert_eq!(
            from_json(module, &to_json(module, &plan)).as_ref(),
            Ok(&plan)
        );
        let _ = check(module, &plan, &TPU);
    }
    if let Ok(plan) = from_text(module, source) {
        assert_eq!(
            from_text(module, &to_text(module, &plan)).as_ref(),
            Ok(&plan)
        );
        let _ = check(module, &plan, &TPU);
    }
}

/// Any bytes as XLA's buffer assignment of `fixtures/assignments/chain.hlo`: refused, or read and judged.
pub fn assignment(data: &[u8]) {
    let Ok(assignment) = parse_assignment(&source(data), None) else {
        return;
    };
    if let Ok(judged) = to_plan(&CHAIN, &assignment, &CPU) {
        let _ = check_with(&CHAIN, &judged.plan, &CPU, InPlace::Promise);
    }
}

/// Bytes choose a valid module; it must keep every promise, from the print to poisoned runs.
///
/// # Panics
/// If it does not.
pub fn generated(data: &[u8]) {
    let text = generate::module(&mut Unstructured::new(data));
    if let Err(message) = promises::hold(&text) {
        panic!("{message}\n{text}");
    }
}

fn source(data: &[u8]) -> Source {
    Source {
        name: "fuzz".to_owned(),
        bytes: data.to_vec(),
    }
}

fn module(text: &str) -> Module {
    parse(text).into_result().expect("the fixture is a module")
}

fn target(name: &str) -> Target {
    slabplan::target::load(name).expect("a built-in target")
}
