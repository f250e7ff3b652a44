//! Where test data lies.

use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests crate lies in the repository")
        .to_path_buf()
}

/// A folder of the repository's own fixtures.
pub fn fixtures(folder: &str) -> PathBuf {
    root().join("fixtures").join(folder)
}

/// A folder of the shared reference data beside the repository; says so on standard error where
/// it is absent.
pub fn shared(folder: &str) -> Option<PathBuf> {
    let path = root().join("../shared").join(folder);
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("note: ../shared/{folder} is absent; its tests are left out");
    None
}

/// All files below `folder` with one of these endings, in the order of their names.
pub fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(dir) = folders.pop() {
        let entries = std::fs::read_dir(&dir)
            .unwrap_or_else(|e| panic!("cannot list {}: {e}", dir.display()));
        for entry in entries {
            let path = entry.expect("a readable directory entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if endings.iter().any(|e| path.to_string_lossy().ends_with(e)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// `path` relative to the repository's root, as test names show it.
pub fn short(path: &Path) -> String {
    let root = root();
    let shown = path.strip_prefix(&root).unwrap_or(path);
    shown.to_string_lossy().trim_start_matches("../").to_owned()
}
