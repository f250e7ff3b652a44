//! Bytes choose a valid module; it must keep every promise, from the print to poisoned runs.

#![no_main]

use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use slabplan_tests::{generate, promises};

fuzz_target!(|data: &[u8]| {
    let text = generate::module(&mut Unstructured::new(data));
    if let Err(message) = promises::hold(&text) {
        panic!("{message}\n{text}");
    }
});
