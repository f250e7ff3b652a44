//! A plan as JSON or text for one of a few modules: read, judged, and written again, without a panic.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| slabplan_tests::fuzz::plan(data));
