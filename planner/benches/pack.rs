//! The figures of the packer: `cargo bench -p slabplan-planner --bench pack [FILTER]` prints them as a table.

use slabplan_planner::pack::{
    Control, Effort, PackConfig, Problem, csv, pack, validate, validate_fast,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn main() {
    let filter = std::env::args()
        .skip(1)
        .find(|it| !it.starts_with("--"))
        .unwrap_or_default();
    println!(
        "{:<26} {:>8} {:>14} {:>14} {:>8} {:>9} {:>9} {:>10}  how",
        "instance", "buffers", "height", "bound", "ratio", "seconds", "cpu s", "nodes"
    );
    for name in "ABCDEFGHIJK".chars().map(|it| it.to_string()) {
        public(&filter, &format!("{name}.1048576"), Effort::Default, 60);
    }
    for name in ["C", "D", "J"] {
        public(&filter, &format!("{name}.1048576"), Effort::Max, 60);
    }
    for name in std::env::args()
        .skip(1)
        .filter(|it| Path::new(it).extension().is_some_and(|it| it == "csv"))
    {
        for effort in [Effort::Fast, Effort::Default] {
            row(&PathBuf::from(&name), None, effort, 60);
        }
    }
    for n in [50, 100, 150, 200, 300, 500] {
        public(&filter, &format!("cut{n}.1048576"), Effort::Max, 60);
    }
}

fn public(filter: &str, name: &str, effort: Effort, seconds: u64) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/packing")
        .join(format!("{name}.csv"));
    if format!("{name} {effort:?}").contains(filter) {
        row(&path, Some(1 << 20), effort, seconds);
    }
}

fn row(path: &PathBuf, capacity: Option<u64>, effort: Effort, seconds: u64) {
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("{}: not there", path.display());
        return;
    };
    let mut problem = csv::parse(&text).expect("a well-formed file").problem;
    problem.capacity = capacity;
    let name = format!(
        "{} {effort:?}",
        path.file_stem().unwrap_or_default().to_string_lossy()
    );
    measure(&name, &problem, effort, seconds);
}

fn measure(name: &str, problem: &Problem, effort: Effort, seconds: u64) {
    let before = cpu();
    let start = Instant::now();
    let deadline = start + Duration::from_secs(seconds);
    let stop = &mut |_: &_| {
        if Instant::now() < deadline {
            Control::Continue
        } else {
            Control::Stop
        }
    };
    let packing = pack(
        problem,
        &PackConfig {
            effort,
            ..PackConfig::default()
        },
        stop,
    )
    .expect("a sound problem");
    let spent = start.elapsed().as_secs_f64();
    let cpu = cpu() - before;
    let judge = if problem.buffers.len() <= 20_000 {
        validate
    } else {
        validate_fast
    };
    assert_eq!(
        judge(problem, &packing.offsets),
        Ok(packing.height),
        "{name}"
    );
    let ratio = packing.height as f64 / packing.lower_bound as f64;
    println!(
        "{name:<26} {:>8} {:>14} {:>14} {ratio:>8.5} {spent:>9.3} {cpu:>9.3} {:>10}  {}{}",
        problem.buffers.len(),
        packing.height,
        packing.lower_bound,
        packing.effort_spent,
        packing.algorithm,
        if packing.optimal { ", optimal" } else { "" }
    );
}

/// Seconds of processor time of this thread, where the system tells; it is what a busy machine leaves comparable.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|it| it.parse::<f64>().ok());
    nanoseconds.map_or(f64::NAN, |it| it / 1e9)
}
