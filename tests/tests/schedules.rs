//! Orders made for memory keep what they promise on compiled modules: no memory space needs more than in XLA's order,
//! the certificate is above no slab, and asynchronous operations overlap with what they did. Some of the corpus; the
//! bench `schedule` holds all of it to the same.

use libtest_mimic::{Arguments, Failed, Trial};
use slabplan_tests::schedules::{AFTER, BEFORE, compare, folders};

/// Modules that are planned quickly and together have loops, branches, asynchronous copies and collectives,
/// donated arguments and several memory spaces.
const MODULES: [&str; 14] = [
    "ep8_moe_shard_map",
    "flash_attention_train",
    "fsdp8_gpt_scan_train",
    "gpt2s_scan_remat",
    "host_offload_train",
    "linalg_kalman",
    "lstm_train",
    "mlp_train",
    "moe_train",
    "narrow_layouts",
    "quant_int8_infer",
    "random_lifetimes",
    "tiny_softmax",
    "while_cond",
];

fn main() {
    let mut trials = Vec::new();
    for folder in folders() {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let name = name.into_owned();
        if !MODULES.contains(&name.as_str()) {
            continue;
        }
        for stage in [BEFORE, AFTER] {
            let folder = folder.clone();
            trials.push(Trial::test(format!("{name} {stage}"), move || {
                let found = compare(&folder, stage)?;
                let mut broken = found.broken();
                for (space, xla, ours) in &found.above_xla {
                    broken.push(format!("space {space}: {ours} bytes, XLA's heap {xla}"));
                }
                if stage == BEFORE && found.ratio(found.memory) > 1.01 {
                    broken.push(format!("{} bytes, bound {}", found.memory, found.bound));
                }
                if broken.is_empty() {
                    Ok(())
                } else {
                    Err(Failed::from(broken.join("\n")))
                }
            }));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
