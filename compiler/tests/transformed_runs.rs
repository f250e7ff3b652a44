//! Every exported program with every transform, whether or not its plan is better, gives JAX's
//! numbers on the slabs of its plan, with everything poisoned that is not live.

mod cases;

use std::collections::BTreeSet;

use cases::{Case, all_cases};
use slabplan::exec::ExecConfig;
use slabplan::pass::{Unit, run_passes};
use slabplan::passes::{FlattenCallGraph, MemoryPlanning, PREPARE};
use slabplan::rewrite::{RewriteLimits, candidates};
use slabplan::{CompileConfig, FuseMode, LayoutMode, Transforms, check, compile, target};
use slabplan_ir::{Module, Target};
use slabplan_planner::layouts::EntryOrder;
use slabplan_planner::pack::Effort;

const LAYOUTS: Transforms = Transforms {
    layouts: LayoutMode::Memory,
    ..Transforms::NONE
};
const FUSE: Transforms = Transforms {
    fuse: FuseMode::Careful,
    ..Transforms::NONE
};
const BOTH: Transforms = Transforms {
    fuse: FuseMode::Eager,
    ..LAYOUTS
};
const BOTH_FREE: Transforms = Transforms {
    entry: EntryOrder::Free,
    ..BOTH
};

fn failures(stage: &str, transforms: &[(&str, Transforms)], rewrite: bool) -> Vec<String> {
    let target = target::load("tpu-v5e").unwrap();
    let mut failures = Vec::new();
    let mut ran = 0;
    for case in all_cases() {
        let Some(module) = case.module(stage) else {
            continue;
        };
        let modules = if rewrite {
            rewritten(&module, &target)
        } else {
            vec![module]
        };
        // Where two ways give one program, it runs once.
        let mut seen = BTreeSet::new();
        for module in modules {
            for (name, transforms) in transforms {
                ran += 1;
                if let Err(e) = run(&case, module.clone(), &target, *transforms, &mut seen) {
                    failures.push(format!("{} {stage}, {name}: {e}", case.name));
                }
            }
        }
    }
    assert!(ran > 0, "no case has {stage}");
    failures
}

/// All candidates of the equality saturation.
fn rewritten(module: &Module, target: &Target) -> Vec<Module> {
    let config = CompileConfig::default();
    let mut unit = Unit::new(module.clone(), target, &config);
    run_passes(&[&FlattenCallGraph], &mut unit).unwrap();
    candidates(&unit.module, target, RewriteLimits::default())
        .candidates
        .into_iter()
        .map(|c| c.unwrap().module)
        .collect()
}

/// Plans with these transforms, better or not, checks the plan and runs on it, unless that program was `seen`.
fn run(
    case: &Case,
    module: Module,
    target: &Target,
    transforms: Transforms,
    seen: &mut BTreeSet<String>,
) -> Result<(), String> {
    let config = CompileConfig {
        transforms,
        effort: Effort::Fast,
        ..CompileConfig::default()
    };
    let mut unit = Unit::new(module, target, &config);
    run_passes(PREPARE, &mut unit).map_err(|e| e.to_string())?;
    if !seen.insert(slabplan_ir::text::print(&unit.module)) {
        return Ok(());
    }
    run_passes(&[&MemoryPlanning], &mut unit).map_err(|e| e.to_string())?;
    let plan = unit.planned.unwrap().plan;
    check(&unit.module, &plan, target).map_err(|e| e.to_string())?;
    let config = ExecConfig {
        poison: true,
        ..ExecConfig::default()
    };
    case.run(&unit.module, &plan, config).map(|_| ())
}

#[track_caller]
fn assert_none(failures: &[String]) {
    let all = failures.join("\n");
    assert!(failures.is_empty(), "{} failed:\n{all}", failures.len());
}

#[test]
fn layouts_and_fusion_keep_results() {
    let all = [
        ("careful fusion", FUSE),
        ("layouts, fusion", BOTH),
        ("free layouts, fusion", BOTH_FREE),
    ];
    assert_none(&failures("tpu.before.hlo", &all, false));
}

#[test]
fn rewrites_keep_results() {
    let all = [("rewrite and all", BOTH_FREE)];
    assert_none(&failures("tpu.before.hlo", &all, true));
}

#[test]
fn other_layouts_for_compiled_programs_keep_results() {
    let all = [("layouts", LAYOUTS), ("free layouts", BOTH_FREE)];
    assert_none(&failures("tpu.after.hlo", &all, false));
}

#[test]
fn what_is_kept_is_never_larger() {
    let target = target::load("tpu-v5e").unwrap();
    let config = CompileConfig {
        transforms: Transforms {
            rewrite: true,
            ..BOTH
        },
        effort: Effort::Fast,
        ..CompileConfig::default()
    };
    let as_given = CompileConfig {
        effort: Effort::Fast,
        ..CompileConfig::default()
    };
    let mut smaller = 0;
    for case in all_cases() {
        let Some(module) = case.module("tpu.before.hlo") else {
            continue;
        };
        let compiled = compile(module.clone(), &target, &config).unwrap();
        let kept = compiled.trials.iter().find(|t| t.kept).unwrap();
        let base = &compiled.trials[0];
        assert!(kept.value_bytes <= base.value_bytes, "{}", case.name);
        let plain = compile(module, &target, &as_given).unwrap();
        for space in &compiled.plan().spaces {
            let mut before = plain.plan().spaces.iter();
            let before = before.find(|s| s.space == space.space).unwrap();
            assert!(space.slab <= before.slab, "{}", case.name);
        }
        smaller += usize::from(kept.hbm_peak() < base.hbm_peak());
    }
    assert!(smaller > 0, "no program gains anything");
}
