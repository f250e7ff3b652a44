//! The figures of the packer, each beside what is asked of it: `cargo bench -p slabplan-planner --bench pack [FILTER]`.
//!
//! Public instances are read from `../shared/packing`; cuts and traces are made by `gen.py` there, for several seeds,
//! where `python3` runs. `PACK_LARGE=1` adds those of a million buffers. With `MINIMALLOC=path/to/minimalloc` its own
//! time is printed beside ours, where it is a peer. Arguments that end in `.csv` are packed in every effort instead.

use slabplan_planner::pack::{
    Control, Effort, PackConfig, Problem, csv, pack, validate, validate_fast,
};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// One line of the table.
struct Case {
    name: String,
    effort: Effort,
    capacity: Option<u64>,
    /// Seconds after which the search is stopped.
    limit: u64,
    /// Highest ratio of height to bound, and most seconds, that are asked for.
    asked: (f64, f64),
    is_peer: bool,
}

/// What came of it.
struct Figures {
    buffers: usize,
    ratio: f64,
    seconds: f64,
    cpu: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|it| !it.starts_with("--"))
        .collect();
    let (files, filters): (Vec<_>, Vec<_>) = arguments.iter().partition(|it| is_csv(it));
    let filter = filters.first().map_or("", |it| it.as_str());
    println!(
        "{:<24} {:>8} {:>13} {:>13} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9}  how",
        "instance",
        "buffers",
        "height",
        "bound",
        "ratio",
        "asked",
        "seconds",
        "cpu s",
        "asked",
        "minimal.",
        "nodes"
    );
    if !files.is_empty() {
        for file in files {
            all_efforts(Path::new(file));
        }
        return;
    }
    let selected = cases().into_iter().filter(|it| label(it).contains(filter));
    let mut results = Vec::new();
    for case in selected {
        let Some(path) = instance(&case.name) else {
            println!(
                "{:<24} not there: no python3, or no ../shared/packing",
                label(&case)
            );
            continue;
        };
        results.push((case.name.clone(), row(&case, &path)));
    }
    growth(&results);
}

fn is_csv(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|it| it == "csv")
}

fn label(case: &Case) -> String {
    format!("{} {:?}", case.name, case.effort)
}

/// The rows of the table.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |name: String, effort, capacity, limit, asked, is_peer| {
        cases.push(Case {
            name,
            effort,
            capacity,
            limit,
            asked,
            is_peer,
        });
    };
    // Half of the times that were measured of MiniMalloc.
    let public = [
        ("A", 1.75),
        ("B", 1.25),
        ("C", 0.25),
        ("D", 1.0),
        ("E", 1.6),
        ("F", 3.1),
        ("G", 0.65),
        ("H", 0.95),
        ("I", 1.85),
        ("J", 0.5),
        ("K", 0.35),
    ];
    for (name, seconds) in public {
        let ratio = if "CDJ".contains(name) {
            f64::INFINITY
        } else {
            1.0
        };
        add(
            format!("{name}.1048576"),
            Effort::Default,
            Some(1 << 20),
            60,
            (ratio, seconds),
            true,
        );
    }
    for (name, ratio) in [
        ("C", 1.0),
        ("D", 1_039_359.0 / 986_112.0),
        ("J", 1_043_455.0 / 989_184.0),
    ] {
        add(
            format!("{name}.1048576"),
            Effort::Max,
            None,
            60,
            (ratio, 60.0),
            false,
        );
    }
    for n in [50, 100, 150, 200, 300, 500] {
        let asked = if n <= 200 {
            (1.0, 2.0)
        } else if n == 300 {
            (1.0, 60.0)
        } else {
            (1.02, 60.0)
        };
        for seed in 1..=3 {
            for pinwheel in ["0", "0.3", "1"] {
                add(
                    format!("cut.{n}.s{seed}.p{pinwheel}"),
                    Effort::Default,
                    Some(1 << 20),
                    60,
                    asked,
                    seed == 1 && pinwheel == "0.3",
                );
            }
        }
    }
    let sizes = [
        (10_000u64, (1.0002, 0.1), 5),
        (100_000, (1.0002, 1.0), 3),
        (1_000_000, (1.0001, 10.0), 2),
    ];
    for (n, asked, seeds) in sizes {
        if n == 1_000_000 && std::env::var_os("PACK_LARGE").is_none() {
            continue;
        }
        for kind in ["train", "infer"] {
            for seed in 1..=seeds {
                let name = format!("{kind}.{n}.s{seed}");
                add(name.clone(), Effort::Default, None, 60, asked, false);
                if n == 1_000_000 {
                    add(name, Effort::Fast, None, 60, (1.01, 1.5), false);
                }
            }
        }
    }
    cases
}

/// The file of an instance: a public one, or one that is made now.
fn instance(name: &str) -> Option<PathBuf> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/packing");
    let public = shared.join(format!("{name}.csv"));
    if public.exists() {
        return Some(public);
    }
    let made = std::env::temp_dir().join(format!("slabplan-bench-{name}.csv"));
    if made.exists() {
        return Some(made);
    }
    let mut parts = name.splitn(4, '.');
    let (kind, n, seed) = (
        parts.next()?,
        parts.next()?,
        parts.next()?.strip_prefix('s')?,
    );
    let mut python = Command::new("python3");
    python
        .arg(shared.join("gen.py"))
        .args([kind, n])
        .arg(&made)
        .args(["--seed", seed]);
    if let Some(pinwheel) = parts.next().and_then(|it| it.strip_prefix('p')) {
        python.args(["--pinwheel", pinwheel]);
    }
    python
        .stderr(Stdio::null())
        .status()
        .ok()
        .filter(std::process::ExitStatus::success)?;
    Some(made)
}

fn all_efforts(path: &Path) {
    for effort in [Effort::Fast, Effort::Default] {
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let asked = (f64::INFINITY, f64::INFINITY);
        row(
            &Case {
                name,
                effort,
                capacity: None,
                limit: 60,
                asked,
                is_peer: false,
            },
            path,
        );
    }
}

/// Packs, judges and prints.
fn row(case: &Case, path: &Path) -> Figures {
    let text = std::fs::read_to_string(path).expect("a readable file");
    let mut problem = csv::parse(&text).expect("a well-formed file").problem;
    problem.capacity = case.capacity;
    let (before, start) = (cpu(), Instant::now());
    let packing = pack_within(&problem, case.effort, Duration::from_secs(case.limit));
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu() - before);
    let judge = if problem.buffers.len() <= 20_000 {
        validate
    } else {
        validate_fast
    };
    assert_eq!(
        judge(&problem, &packing.offsets),
        Ok(packing.height),
        "{}",
        case.name
    );
    assert!(packing.feasible, "{}: above its capacity", case.name);
    let ratio = packing.height as f64 / packing.lower_bound as f64;
    println!(
        "{:<24} {:>8} {:>13} {:>13} {ratio:>8.5} {:>8.5} {seconds:>8.3} {cpu:>8.3} {:>8.2} {:>8} {:>9}  {}{}",
        label(case),
        problem.buffers.len(),
        packing.height,
        packing.lower_bound,
        case.asked.0,
        case.asked.1,
        minimalloc(case, path).unwrap_or_default(),
        packing.effort_spent,
        packing.algorithm,
        if packing.optimal { ", optimal" } else { "" }
    );
    Figures {
        buffers: problem.buffers.len(),
        ratio,
        seconds,
        cpu,
    }
}

fn pack_within(
    problem: &Problem,
    effort: Effort,
    limit: Duration,
) -> slabplan_planner::pack::Packing {
    let start = Instant::now();
    let config = PackConfig {
        effort,
        ..PackConfig::default()
    };
    let packing = pack(problem, &config, &mut |_| {
        if start.elapsed() < limit {
            Control::Continue
        } else {
            Control::Stop
        }
    });
    packing.expect("a sound problem")
}

/// MiniMalloc's own seconds for the instance at its capacity, or that it took longer than half a minute.
fn minimalloc(case: &Case, path: &Path) -> Option<String> {
    let binary = std::env::var_os("MINIMALLOC").filter(|_| case.is_peer)?;
    let output = std::env::temp_dir().join("slabplan-bench-minimalloc.csv");
    let start = Instant::now();
    let status = Command::new(binary)
        .arg(format!("--capacity={}", case.capacity?))
        .arg(format!("--input={}", path.display()))
        .arg(format!("--output={}", output.display()))
        .arg("--timeout=30s")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .ok()?;
    let seconds = start.elapsed().as_secs_f64();
    Some(if status.success() && seconds < 30.0 {
        format!("{seconds:.3}")
    } else {
        "none".to_owned()
    })
}

/// How the time per buffer of the traces grows, beside the logarithm of their number; and the totals of A to K.
fn growth(results: &[(String, Figures)]) {
    let public = || {
        results
            .iter()
            .take_while(|it| it.0.ends_with(".1048576"))
            .take(11)
    };
    println!(
        "\nA to K: {:.3} s in total, {:.3} s of processor time",
        public().map(|it| it.1.seconds).sum::<f64>(),
        public().map(|it| it.1.cpu).sum::<f64>()
    );
    println!(
        "microseconds of processor time per buffer, median over the seeds, and the same by log2 of the buffers:"
    );
    for kind in ["train", "infer"] {
        for n in [10_000usize, 100_000, 1_000_000] {
            let mut times: Vec<f64> = results
                .iter()
                .filter(|it| it.0.starts_with(kind) && it.1.buffers == n && it.1.ratio < 1.001)
                .map(|it| it.1.cpu * 1e6 / n as f64)
                .collect();
            times.sort_by(f64::total_cmp);
            if let Some(&median) = times.get(times.len() / 2) {
                println!(
                    "  {kind} {n:>8}: {median:.2}, {:.3}",
                    median / (n as f64).log2()
                );
            }
        }
    }
}

/// Seconds of processor time of this thread, where the system tells; it is what a busy machine leaves comparable.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|it| it.parse::<f64>().ok());
    nanoseconds.map_or(f64::NAN, |it| it / 1e9)
}
