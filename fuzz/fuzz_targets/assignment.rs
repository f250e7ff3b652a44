//! Any bytes as XLA's buffer assignment of a small module: refused or judged, without a panic.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| slabplan_tests::fuzz::assignment(data));
