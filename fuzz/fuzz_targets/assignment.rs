//! Any bytes as XLA's buffer assignment of a small module: refused or read, and judged without a panic.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use slabplan::frontend::Source;
use slabplan::frontend::assignment::{parse_assignment, to_plan};
use slabplan_ir::check::{InPlace, check_with};
use slabplan_ir::{Module, Target};

static MODULE: LazyLock<Module> = LazyLock::new(|| {
    let text = include_str!("../../fixtures/assignments/chain.hlo");
    slabplan_ir::text::parse(text)
        .into_result()
        .expect("the fixture is a module")
});

static TARGET: LazyLock<Target> =
    LazyLock::new(|| slabplan::target::load("cpu").expect("a built-in target"));

fuzz_target!(|data: &[u8]| {
    let source = Source {
        name: "fuzz".to_owned(),
        bytes: data.to_vec(),
    };
    let Ok(assignment) = parse_assignment(&source, None) else {
        return;
    };
    if let Ok(judged) = to_plan(&MODULE, &assignment, &TARGET) {
        let _ = check_with(&MODULE, &judged.plan, &TARGET, InPlace::Promise);
    }
});
