//! Bytes choose a valid module; it must keep every promise, from the print to poisoned runs.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| slabplan_tests::fuzz::generated(data));
