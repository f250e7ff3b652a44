//! A plan as JSON or text for one of a few modules: reading must not panic, what is read must
//! survive its own forms, and the checker must have an answer.

#![no_main]

use libfuzzer_sys::fuzz_target;
use slabplan_ir::Module;
use slabplan_ir::check::check;
use slabplan_ir::plan::{from_json, from_text, to_json, to_text};
use slabplan_ir::target::Target;

/// Modules with an asynchronous operation, branches, a loop, donation and a fusion.
const MODULES: [&str; 5] = [
    include_str!("../../fixtures/corrupt/copy_started.hlo"),
    include_str!("../../fixtures/corrupt/branches.hlo"),
    include_str!("../../fixtures/corrupt/loop.hlo"),
    include_str!("../../fixtures/corrupt/donated.hlo"),
    include_str!("../../fixtures/corrupt/fused.hlo"),
];

struct Judge {
    modules: Vec<Module>,
    target: Target,
}

thread_local! {
    static JUDGE: Judge = Judge {
        modules: MODULES
            .iter()
            .map(|text| slabplan_ir::text::parse(text).into_result().expect("a module"))
            .collect(),
        target: slabplan::target::load("tpu-v5e").expect("a built-in target"),
    };
}

fuzz_target!(|data: &[u8]| {
    let Some((&which, rest)) = data.split_first() else {
        return;
    };
    let Ok(source) = std::str::from_utf8(rest) else {
        return;
    };
    JUDGE.with(|judge| {
        let module = &judge.modules[which as usize % MODULES.len()];
        if let Ok(plan) = from_json(module, source) {
            assert_eq!(from_json(module, &to_json(module, &plan)).as_ref(), Ok(&plan));
            let _ = check(module, &plan, &judge.target);
        }
        if let Ok(plan) = from_text(module, source) {
            assert_eq!(from_text(module, &to_text(module, &plan)).as_ref(), Ok(&plan));
            let _ = check(module, &plan, &judge.target);
        }
    });
});
