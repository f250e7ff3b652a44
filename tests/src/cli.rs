//! The command-line program under test.

use std::path::PathBuf;
use std::process::{Command, Output};

/// The `slabplan` binary that cargo built beside this test.
///
/// # Panics
/// If it is not there: run the tests of the whole workspace, which builds it.
pub fn binary() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let folder = test
        .parent()
        .and_then(|deps| deps.parent())
        .expect("tests lie in target/PROFILE/deps");
    let binary = folder.join(format!("slabplan{}", std::env::consts::EXE_SUFFIX));
    assert!(
        binary.is_file(),
        "{} is missing: run `cargo build -p slabplan` or test the whole workspace",
        binary.display()
    );
    binary
}

/// Runs `slabplan` in the repository's root.
pub fn slabplan(args: &[&str]) -> Output {
    command(args).output().expect("slabplan starts")
}

/// `slabplan`, to be run in the repository's root.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(args).current_dir(crate::paths::root());
    command
}
