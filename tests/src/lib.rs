//! Cross-crate test harness.
