//! `slabplan`: plans, checks and runs compiled programs from the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    slabplan::cli::main()
}
