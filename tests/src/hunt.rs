//! The search for modules that break a promise, and their reduction to small ones.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arbitrary::Unstructured;

use crate::{generate, promises};

/// A module that breaks a promise.
#[derive(Clone, Debug)]
pub struct Found {
    /// The bytes it was made from.
    pub bytes: Vec<u8>,
    /// The module.
    pub text: String,
    /// What is wrong.
    pub message: String,
}

/// The module of a seed.
pub fn module_of(seed: u64) -> String {
    generate::module(&mut Unstructured::new(&bytes_of(seed)))
}

/// Makes the module of a seed and holds it to all promises; a panic breaks one too.
pub fn try_seed(seed: u64) -> Result<(), Found> {
    try_bytes(bytes_of(seed))
}

/// Makes the module of these bytes and holds it to all promises.
pub fn try_bytes(bytes: Vec<u8>) -> Result<(), Found> {
    let text = generate::module(&mut Unstructured::new(&bytes));
    match broken(&text) {
        None => Ok(()),
        Some(message) => Err(Found {
            bytes,
            text,
            message,
        }),
    }
}

/// The promise that a module breaks.
pub fn broken(text: &str) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(|| promises::hold(text))) {
        Ok(held) => held.err(),
        Err(panic) => Some(format!("panic: {}", panic_text(panic.as_ref()))),
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("unknown")
}

/// Bytes of a seed: some hundred, a number that varies with the seed, by splitmix64.
fn bytes_of(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let len = 40 + next() % 600;
    (0..len.div_ceil(8))
        .flat_map(|_| next().to_le_bytes())
        .collect()
}

/// A smaller module that breaks a promise in the same words.
///
/// First fewer and smaller bytes, then fewer lines of the text itself.
pub fn minimise(mut found: Found) -> Found {
    let kind = kind(&found.message);
    let same = |f: &Found| self::kind(&f.message) == kind;
    loop {
        let before = found.text.len();
        let mut width = found.bytes.len() / 2;
        while width > 0 {
            let mut at = 0;
            while at < found.bytes.len() {
                let end = (at + width).min(found.bytes.len());
                let shorter = [&found.bytes[..at], &found.bytes[end..]].concat();
                match try_bytes(shorter) {
                    Err(smaller) if same(&smaller) && smaller.text.len() <= found.text.len() => {
                        found = smaller;
                    }
                    _ => at += width,
                }
            }
            width /= 2;
        }
        if found.text.len() == before {
            break;
        }
    }
    fewer_lines(found, &kind)
}

/// What a message says apart from names and numbers.
fn kind(message: &str) -> String {
    message
        .split(|c: char| !c.is_alphabetic() && c != ' ')
        .next_back()
        .map_or_else(String::new, |_| {
            let words = message
                .split_whitespace()
                .filter(|w| w.len() > 2 && w.chars().all(|c| c.is_ascii_alphabetic() || c == '-'));
            words.take(6).collect::<Vec<_>>().join(" ")
        })
}

/// Drops lines and computations as long as the same promise breaks.
fn fewer_lines(mut found: Found, kind: &str) -> Found {
    loop {
        let lines: Vec<&str> = found.text.lines().collect();
        let smaller = [8, 4, 2, 1].into_iter().find_map(|width| {
            (0..lines.len()).rev().find_map(|at| {
                let end = (at + width).min(lines.len());
                let text = [&lines[..at], &lines[end..]].concat().join("\n") + "\n";
                let message = broken(&text)?;
                (self::kind(&message) == kind).then_some((text, message))
            })
        });
        let Some((text, message)) = smaller else {
            return found;
        };
        found.text = text;
        found.message = message;
    }
}
