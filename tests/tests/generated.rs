//! Generated modules are held to what slabplan promises of every valid module.
//!
//! Fixed seeds, so that a failure repeats; `examples/hunt.rs` goes on for hours where this stops.

use arbtest::arbtest;
use slabplan_tests::hunt::{Found, module_of, try_seed};
use slabplan_tests::{generate, promises};

/// Holds the modules of these seeds to all promises.
fn hold(seeds: std::ops::Range<u64>) {
    let broken: Vec<String> = seeds
        .filter_map(|seed| try_seed(seed).err().map(|f| describe(seed, &f)))
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}

fn describe(seed: u64, found: &Found) -> String {
    format!("seed {seed}: {}\n{}", found.message, found.text)
}

#[test]
fn promises_hold_on_generated_modules_1() {
    hold(0..20);
}

#[test]
fn promises_hold_on_generated_modules_2() {
    hold(20..40);
}

/// Bytes of other lengths than the seeds above have, down to none.
#[test]
fn promises_hold_on_short_modules() {
    for size in 0..24_u64 {
        arbtest(|bytes| {
            let text = generate::module(bytes);
            if let Err(message) = promises::hold(&text) {
                panic!("{message}\n{text}");
            }
            Ok(())
        })
        .seed((size.wrapping_mul(0x9e37_79b9) << 32) | (size * 4))
        .run();
    }
}

/// What the generator is meant to make, it makes.
#[test]
fn every_construct_is_generated() {
    let text: String = (0..400).map(module_of).collect();
    let wanted = [
        "add",
        "add-dependency",
        "after-all",
        "all-gather-done",
        "all-gather-start",
        "all-reduce",
        "all-reduce-done",
        "all-reduce-start",
        "async-done",
        "async-start",
        "async-update",
        "bitcast",
        "broadcast",
        "call",
        "collective-permute-done",
        "collective-permute-start",
        "compare",
        "concatenate",
        "conditional",
        "constant",
        "convert",
        "copy",
        "copy-done",
        "copy-start",
        "dot",
        "dynamic-slice",
        "dynamic-update-slice",
        "dynamic-update-slice-start",
        "fusion",
        "gather",
        "get-tuple-element",
        "iota",
        "opt-barrier",
        "pad",
        "parameter",
        "reduce",
        "reshape",
        "reverse",
        "scatter",
        "select",
        "slice",
        "slice-start",
        "sort",
        "transpose",
        "tuple",
        "while",
    ];
    for opcode in wanted {
        assert!(text.contains(&format!(" {opcode}(")), "no {opcode}");
    }
    for words in [
        "is_scheduled=true",
        "must-alias",
        "may-alias",
        "buffer_donor=",
        "control-predecessors=",
        "branch_computations=",
        "true_computation=",
        "kind=kLoop",
        "kind=kInput",
        "E(4)",
        "S(1)",
        ":T(8,128)(2,1)",
        "{0,1}",
        "ROOT parameter",
        "ROOT constant",
        "ROOT get-tuple-element",
        "ROOT while",
    ] {
        assert!(text.contains(words), "no {words}");
    }
}
