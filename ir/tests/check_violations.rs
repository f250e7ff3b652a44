//! Each plan in `fixtures/corrupt` is wrong in exactly the ways it says.
//!
//! A plan file begins with comments: what is wrong, `# module: FILE`, perhaps
//! `# order %computation: %a %b ...` (another schedule than the module's), and
//! `# violates: KIND ...`. With `SLABPLAN_BLESS=1` the fingerprints are
//! brought up to date; the expectations never are.

mod check_support;

use std::path::PathBuf;

use check_support::{parse, target};
use slabplan_ir::Module;
use slabplan_ir::check::{Violations, check};
use slabplan_ir::plan::{fingerprint, from_json, from_text, to_json, to_text};

fn dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/corrupt")
}

/// A plan file, and what its comments say.
struct Case {
    name: String,
    module: Module,
    plan: String,
    violates: Vec<String>,
}

impl Case {
    fn read(path: &std::path::Path) -> Self {
        let mut plan = std::fs::read_to_string(path).unwrap();
        let comment = |key: &str| {
            let start = format!("# {key}");
            let line = plan.lines().find_map(|l| l.strip_prefix(&start))?;
            Some(line.trim().to_owned())
        };
        let file = comment("module: ").expect("a plan names its module");
        let violates = comment("violates: ").expect("a plan names what it violates");
        let order = comment("order ");
        let mut module = parse(&std::fs::read_to_string(dir().join(file)).unwrap());
        if std::env::var_os("SLABPLAN_BLESS").is_some() {
            let start = plan.find("fingerprint=").unwrap() + "fingerprint=".len();
            plan.replace_range(start..start + 16, &format!("{:016x}", fingerprint(&module)));
            std::fs::write(path, &plan).unwrap();
        }
        if let Some(order) = order {
            reorder(&mut module, &order);
            // The plan is for the module; the schedule is what is corrupt.
            let digest = format!("{:016x}", fingerprint(&module));
            let start = plan.find("fingerprint=").unwrap() + "fingerprint=".len();
            plan.replace_range(start..start + 16, &digest);
        }
        Self {
            name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
            module,
            plan,
            violates: violates.split(' ').map(str::to_owned).collect(),
        }
    }
}

/// `%computation: %a %b`: the computation lists these instructions.
fn reorder(module: &mut Module, order: &str) {
    let (comp, names) = order.split_once(':').unwrap();
    let comp = module
        .computations
        .keys()
        .find(|&c| module.comp_name(c) == comp.trim_start_matches('%'))
        .unwrap();
    let listed = module.computations[comp].instrs.clone();
    module.computations[comp].instrs = names
        .split_whitespace()
        .map(|name| {
            let name = name.trim_start_matches('%');
            *listed.iter().find(|&&i| module.name_of(i) == name).unwrap()
        })
        .collect();
}

fn cases() -> Vec<Case> {
    let mut paths: Vec<_> = std::fs::read_dir(dir())
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "plan"))
        .collect();
    paths.sort();
    paths.iter().map(|p| Case::read(p)).collect()
}

fn kinds(violations: &Violations) -> Vec<&'static str> {
    violations.list.iter().map(|v| v.kind.name()).collect()
}

#[test]
fn corrupt_plans_are_rejected_for_what_is_wrong() {
    let mut wrong = Vec::new();
    for case in cases() {
        let plan = match from_text(&case.module, &case.plan) {
            Ok(plan) => plan,
            Err(e) => panic!("{}: {e}", case.name),
        };
        match check(&case.module, &plan, &target(64)) {
            Ok(_) => wrong.push(format!("{}: accepted", case.name)),
            Err(v) if kinds(&v) == case.violates => {}
            Err(v) => wrong.push(format!("{}: {v}", case.name)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The list of kinds is spelled out, so that a new kind without a fixture fails here.
#[test]
fn every_kind_has_a_fixture() {
    const KINDS: [&str; 33] = [
        "alias-dropped",
        "async-unpaired",
        "bad-live-range",
        "branches-disagree",
        "carry-moved",
        "duplicate-slot",
        "duplicate-space",
        "forward-elsewhere",
        "loose-slab",
        "lost",
        "misaligned",
        "missing-slot",
        "no-size",
        "not-permutation",
        "not-understood",
        "out-of-order",
        "output-not-on-parameter",
        "output-read-only",
        "outputs-overlap",
        "outside-slab",
        "partial-overlap",
        "pieces-apart",
        "read-only-written",
        "results-overlap",
        "shared-computation",
        "start-overlap",
        "too-small",
        "unknown-space",
        "unknown-value",
        "unsafe-in-place",
        "wrong-kind",
        "wrong-space",
        "wrong-statistic",
    ];
    let mut found: Vec<String> = cases().into_iter().flat_map(|c| c.violates).collect();
    found.sort();
    found.dedup();
    assert_eq!(found, KINDS);
}

#[test]
fn both_forms_come_back() {
    for case in cases() {
        let plan = from_text(&case.module, &case.plan).unwrap();
        let text = to_text(&case.module, &plan);
        assert_eq!(from_text(&case.module, &text).as_ref(), Ok(&plan), "{text}");
        let json = to_json(&case.module, &plan);
        assert_eq!(from_json(&case.module, &json).as_ref(), Ok(&plan), "{json}");
    }
}
