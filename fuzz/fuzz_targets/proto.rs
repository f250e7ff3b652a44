//! Any bytes as a module: refused or read, and what is read prints to text that is read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use slabplan::frontend::{Source, parse_module};
use slabplan_ir::text::{parse, print};

fuzz_target!(|data: &[u8]| {
    let source = Source {
        name: "fuzz".to_owned(),
        bytes: data.to_vec(),
    };
    if let Ok(module) = parse_module(source) {
        let text = print(&module);
        assert!(parse(&text).into_result().is_ok(), "the print is refused:\n{text}");
    }
});
