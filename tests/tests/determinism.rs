//! The same input gives the byte-identical plan: twice in one process, and in two processes.

use std::process::Command;

use slabplan_tests::{cli, models, paths};

#[test]
fn two_processes_write_the_same_bytes() {
    let cases = models::cases(&paths::fixtures("models"));
    assert!(!cases.is_empty());
    let folder = tempfile::tempdir().unwrap();
    for case in cases.iter().step_by(5) {
        let plans: Vec<Vec<u8>> = ["a.json", "b.json"]
            .iter()
            .map(|name| {
                let out = folder.path().join(name);
                let status = Command::new(cli::binary())
                    .arg("plan")
                    .arg(&case.program)
                    .args(["--target", case.target, "-o"])
                    .arg(&out)
                    .output()
                    .unwrap();
                assert!(status.status.success(), "{status:?}");
                std::fs::read(out).unwrap()
            })
            .collect();
        assert_eq!(plans[0], plans[1], "{}", case.program.display());
    }
}

#[test]
fn twice_in_one_process() {
    for case in models::cases(&paths::fixtures("models")).iter().step_by(3) {
        let text = || {
            let compiled = case.compile().unwrap();
            slabplan_ir::plan::to_text(&compiled.module, compiled.plan())
        };
        assert_eq!(text(), text(), "{}", case.program.display());
    }
}
