//! What the fuzz targets do, on every crash that was found and on fixtures with a few bytes changed.
//!
//! A fixed number of mutants from fixed numbers: quick, and the same in every run. libFuzzer goes on from here
//! (`fuzz/README.md`).

use slabplan_tests::{fuzz, paths};

/// A small deterministic generator (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

/// Runs a target on each seed as it is, then on `mutants` changed ones.
fn run(target: fn(&[u8]), seeds: &[Vec<u8>], mutants: usize) {
    assert!(!seeds.is_empty());
    for seed in seeds {
        target(seed);
    }
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for _ in 0..mutants {
        let mut bytes = seeds[numbers.below(seeds.len())].clone();
        for _ in 0..=numbers.below(4) {
            change(&mut bytes, &mut numbers);
        }
        target(&bytes);
    }
}

/// One byte or one stretch replaced, removed, doubled or cut off.
fn change(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    let at = numbers.below(bytes.len());
    let end = (at + 1 + numbers.below(12)).min(bytes.len());
    match numbers.below(6) {
        _ if bytes.is_empty() => bytes.push(numbers.below(256) as u8),
        0 => bytes[at] = numbers.below(256) as u8,
        1 => bytes[at] ^= 1 << numbers.below(8),
        2 => drop(bytes.drain(at..end)),
        3 => {
            let part = bytes[at..end].to_vec();
            let to = numbers.below(bytes.len());
            bytes.splice(to..to, part);
        }
        4 => bytes.truncate(at),
        _ => bytes[at] = b"0129{}()[],=\"'\n\x00\xff"[numbers.below(17)],
    }
}

fn contents(folder: &str, endings: &[&str]) -> Vec<Vec<u8>> {
    paths::files(&paths::fixtures(folder), endings)
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

#[test]
fn text() {
    run(fuzz::text, &contents("grammar", &[".hlo"]), 1500);
}

#[test]
fn proto() {
    run(fuzz::proto, &contents("protos", &[".pb"]), 3000);
}

#[test]
fn plan() {
    let seeds = contents("corrupt", &[".plan"]);
    let seeds: Vec<Vec<u8>> = seeds.iter().filter_map(|plan| with_module(plan)).collect();
    run(fuzz::plan, &seeds, 1500);
}

/// A plan of `fixtures/corrupt` behind the byte for the module that it names; nothing where the target lacks that.
fn with_module(plan: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(plan).unwrap();
    let mut lines = text.lines();
    let file = lines.find_map(|line| line.strip_prefix("# module: "));
    let byte = fuzz::module_byte(file.expect("every plan names its module"))?;
    Some([&[byte][..], plan].concat())
}

#[test]
fn assignment() {
    run(fuzz::assignment, &contents("assignments", &[".txt"]), 3000);
}

/// What once broke a promise; the file's name begins with the target's.
#[test]
fn crashes_that_were_found() {
    let crashes = paths::files(&paths::fixtures("crashes"), &[".hlo", ".bin"]);
    assert!(!crashes.is_empty());
    for path in crashes {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let data = std::fs::read(&path).unwrap();
        match name.split('_').next() {
            Some("text") => fuzz::text(&data),
            Some("proto") => fuzz::proto(&data),
            Some("plan") => fuzz::plan(&data),
            Some("assignment") => fuzz::assignment(&data),
            Some("generated") => fuzz::generated(&data),
            _ => panic!("{name} names no target"),
        }
    }
}
