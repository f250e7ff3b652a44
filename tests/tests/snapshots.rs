//! A snapshot of every stage for a few modules: a change shows where it began.

use slabplan::config::CompileConfig;
use slabplan::{compile, frontend, target};
use slabplan_tests::{paths, stages};

/// Modules from `fixtures`, each for a target.
const MODULES: [(&str, &str, &str); 9] = [
    ("while", "rules/h02_carry_modified.hlo", "cpu"),
    ("swapped", "rules/h04_swapped_carries.hlo", "cpu"),
    ("nested", "rules/h09_nested_while.hlo", "cpu"),
    ("branches", "rules/h11_branches_share_memory.hlo", "cpu"),
    ("async", "rules/h17_copy_start.hlo", "tpu-v5e"),
    ("update", "rules/h22_update_operand_read_later.hlo", "cpu"),
    ("donated", "rules/h35_hole_in_donated_argument.hlo", "cpu"),
    ("adam", "models/adam_mlp_step/tpu.after.hlo", "tpu-v5e"),
    (
        "adam_before",
        "models/adam_mlp_step/tpu.before.hlo",
        "tpu-v5e",
    ),
];

#[test]
fn every_stage() {
    for (name, path, target_name) in MODULES {
        let path = paths::fixtures("").join(path);
        let module = frontend::load_module(&path.to_string_lossy())
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let target = target::load(target_name).unwrap();
        let compiled = compile(module, &target, &CompileConfig::default())
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        for (stage, text) in stages::stages(&compiled) {
            insta::assert_snapshot!(format!("{name}-{stage}"), text);
        }
    }
}
