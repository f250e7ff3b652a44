//! Any bytes as a module: refused or read, and what is read is written and read again.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| slabplan_tests::fuzz::proto(data));
