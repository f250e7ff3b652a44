//! Any text: the parser must not panic, and what it accepts must print to a fixpoint.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| slabplan_tests::fuzz::text(data));
