//! What a program and a plan are.
