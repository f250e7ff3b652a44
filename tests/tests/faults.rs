//! Faults are planted in right plans: what the checker accepts runs right, so that a fault which a poisoned run
//! shows is always refused; nearly all overlaps are refused, and in programs that read what they compute, most
//! show in a run, were there no checker.

use slabplan_tests::faults::{Tally, plant};
use slabplan_tests::hunt::module_of;
use slabplan_tests::paths;

fn plant_in(texts: impl Iterator<Item = (String, String)>, most: usize) -> Tally {
    let mut all = Tally::default();
    for (name, text) in texts {
        all += plant(&text, most).unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
    }
    println!("{all:?}");
    assert!(0 < all.accepted, "nothing is right: {all:?}");
    // The rest is on bytes of values that nobody reads.
    assert!(9 * all.overlaps <= 10 * all.refused, "few refused: {all:?}");
    all
}

fn plant_in_generated(seeds: std::ops::Range<u64>) {
    let texts = seeds.map(|seed| (format!("seed {seed}"), module_of(seed)));
    let all = plant_in(texts, 12);
    assert!(
        40 < all.overlaps && 100 < all.others,
        "few changes: {all:?}"
    );
}

/// Much of what generated modules compute nobody reads, but they have every construct.
#[test]
fn faults_in_generated_modules_1() {
    plant_in_generated(0..15);
}

#[test]
fn faults_in_generated_modules_2() {
    plant_in_generated(15..30);
}

/// Programs that people wrote.
#[test]
fn faults_in_exported_programs() {
    let names = [
        "adam_mlp_step",
        "bf16_norm_mix",
        "cond_in_while",
        "kv_cache_while",
        "nested_while",
        "quantised_matmul",
        "remat_blocks_grad",
        "swapped_carries",
    ];
    let texts = names.iter().map(|name| {
        let path = paths::fixtures("models").join(name).join("cpu.after.hlo");
        ((*name).to_owned(), std::fs::read_to_string(path).unwrap())
    });
    let all = plant_in(texts, 20);
    assert!(20 < all.overlaps, "few changes: {all:?}");
    assert!(all.overlaps < 2 * all.shown, "few shown: {all:?}");
}
