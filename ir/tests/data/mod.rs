//! Where the modules of the tests are.

#![allow(dead_code, unreachable_pub, reason = "each test takes its part")]

use std::io::Read;
use std::path::{Path, PathBuf};

/// The shared data beside the project's root, where it is present.
pub fn shared(part: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let path = root.join(part);
    if path.is_dir() {
        Some(path)
    } else {
        eprintln!("no {} here: nothing of it is checked", path.display());
        None
    }
}

/// All files below `dir` that `wanted` accepts, sorted.
pub fn files(dir: &Path, wanted: impl Fn(&str) -> bool + Copy) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, wanted));
        } else if wanted(path.file_name().unwrap().to_str().unwrap()) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A file's text, unpacked if it is gzipped.
pub fn read(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap();
    let mut text = String::new();
    if path.extension().is_some_and(|e| e == "gz") {
        flate2::read::GzDecoder::new(&bytes[..])
            .read_to_string(&mut text)
            .unwrap();
    } else {
        text = String::from_utf8(bytes).unwrap();
    }
    text
}

/// Whether this is a stage of a module of the corpus.
pub fn is_module_dump(name: &str) -> bool {
    matches!(
        name,
        "before_optimizations.txt.gz"
            | "before_buffer_assignment.txt.gz"
            | "after_optimizations.txt.gz"
    )
}

/// Whether this is a module as plain text.
pub fn is_hlo(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|e| e == "hlo")
}

/// The repository's own fixtures.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures")
}
