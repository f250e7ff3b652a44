//! Any text: the parser must not panic, its errors must lie in the text, and what it accepts must
//! print to a fixpoint.

#![no_main]

use libfuzzer_sys::fuzz_target;
use slabplan_ir::text::{parse, print};

fuzz_target!(|data: &[u8]| {
    let Ok(source) = std::str::from_utf8(data) else {
        return;
    };
    let parsed = parse(source);
    assert_eq!(parsed.module.is_none(), !parsed.diagnostics.is_empty());
    for d in &parsed.diagnostics {
        assert!(source.get(d.span.clone()).is_some(), "{d:?}");
    }
    let Some(module) = parsed.module else {
        return;
    };
    let text = print(&module);
    match parse(&text).into_result() {
        Ok(again) => assert_eq!(print(&again), text),
        Err(errors) => panic!("the print is refused: {}\n{text}", errors[0]),
    }
});
