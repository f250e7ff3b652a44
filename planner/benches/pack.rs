//! The figures of the packer, each beside what is asked of it: `cargo bench -p slabplan-planner --bench pack [FILTER]`.
//!
//! After the table come the deadlines, the growth per buffer, the memory, and a last line of what is missed.
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
    if let Ok(path) = std::env::var(MEASURED) {
        // In a process of its own: see `peak_memory`.
        pack_within(&read(Path::new(&path)), Effort::Default, Duration::MAX);
        println!("{}", status("VmHWM:").unwrap_or_default());
        return;
    }
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
    let mut missed = Vec::new();
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
        results.push((case.name.clone(), row(&case, &path, &mut missed)));
    }
    growth(&results, &mut missed);
    if filter.is_empty() || filter == "deadline" {
        deadlines(&mut missed);
    }
    if filter.is_empty() || filter == "memory" {
        memory(&mut missed);
    }
    let verdict = if missed.is_empty() {
        "nothing is missed".to_owned()
    } else {
        format!("missed: {}", missed.join("; "))
    };
    println!("\n{verdict}");
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
        (10_000u64, (1.0002, 0.1), 20),
        (100_000, (1.0002, 1.0), 5),
        (1_000_000, (1.0001, 10.0), 2),
    ];
    for (n, asked, seeds) in sizes {
        if n == 1_000_000 && !has_large() {
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

/// Names the file to pack when the memory of a process is measured.
const MEASURED: &str = "SLABPLAN_BENCH_MEASURED";

/// Whether the instances of a million buffers are asked for.
fn has_large() -> bool {
    std::env::var_os("PACK_LARGE").is_some()
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
            &mut Vec::new(),
        );
    }
}

fn read(path: &Path) -> Problem {
    let text = std::fs::read_to_string(path).expect("a readable file");
    csv::parse(&text).expect("a well-formed file").problem
}

/// Packs, judges and prints; notes what is `missed`.
fn row(case: &Case, path: &Path, missed: &mut Vec<String>) -> Figures {
    let mut problem = read(path);
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
    if ratio > case.asked.0 {
        missed.push(format!("{} ratio {ratio:.5}", label(case)));
    }
    // A search of a minute may end a little after it: that is what is asked of deadlines.
    let late = if case.effort == Effort::Max {
        LATE
    } else {
        0.0
    };
    if seconds > case.asked.1 + late {
        missed.push(format!("{} {seconds:.3} s", label(case)));
    }
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

/// Public instances at their capacity, the first of the table.
const PUBLIC: usize = 11;

fn is_trace(name: &str) -> bool {
    name.starts_with("train") || name.starts_with("infer")
}

/// How the time per buffer of the traces grows, beside the logarithm of their number; and the totals of A to K.
fn growth(results: &[(String, Figures)], missed: &mut Vec<String>) {
    let public = || {
        results
            .iter()
            .take_while(|it| it.0.ends_with(".1048576"))
            .take(PUBLIC)
    };
    if public().count() == PUBLIC {
        let total = public().map(|it| it.1.seconds).sum::<f64>();
        println!(
            "\nA to K: {total:.3} s in total, {:.3} s of processor time; asked 5 s",
            public().map(|it| it.1.cpu).sum::<f64>()
        );
        if total > 5.0 {
            missed.push(format!("A to K {total:.3} s"));
        }
    }
    if results.iter().any(|it| is_trace(&it.0)) {
        println!(
            "\nmicroseconds of processor time per buffer, median over the seeds, and the same by log2 of the buffers:"
        );
    }
    for kind in ["train", "infer"] {
        let mut before = f64::INFINITY;
        for n in [10_000usize, 100_000, 1_000_000] {
            let mut times: Vec<f64> = results
                .iter()
                .filter(|it| it.0.starts_with(kind) && it.1.buffers == n && it.1.ratio < 1.001)
                .map(|it| it.1.cpu * 1e6 / n as f64)
                .collect();
            times.sort_by(f64::total_cmp);
            if let Some(&median) = times.get(times.len() / 2) {
                let by_log = median / (n as f64).log2();
                println!("  {kind} {n:>8}: {median:.2}, {by_log:.3}");
                if by_log > before {
                    missed.push(format!("{kind} {n}: more than log n"));
                }
                before = by_log;
            }
        }
    }
}

/// Seconds that a packing may come after its deadline.
const LATE: f64 = 0.05;

/// How late packings come, in seconds of the clock and of the processor, for deadlines that count from the start of
/// packing. What is handed over is valid.
fn deadlines(missed: &mut Vec<String>) {
    let mut names: Vec<String> = ["A.1048576", "J.1048576", "cut.500.s1.p0.3"]
        .map(str::to_owned)
        .into();
    let sizes = [10_000, 100_000, 1_000_000];
    for n in &sizes[..if has_large() { 3 } else { 2 }] {
        names.extend(["train", "infer"].map(|kind| format!("{kind}.{n}.s1")));
    }
    println!("\ndeadlines: milliseconds late (of the processor), ratio; asked 50 ms");
    for name in names {
        let Some(path) = instance(&name) else {
            continue;
        };
        let problem = read(&path);
        for effort in [Effort::Default, Effort::Max] {
            print!("{:<24}", format!("{name} {effort:?}"));
            for limit in [0.01, 0.05, 0.1, 0.2, 0.5, 1.0] {
                let (before, start) = (cpu(), Instant::now());
                let packing = pack_within(&problem, effort, Duration::from_secs_f64(limit));
                let (late, busy) = (
                    start.elapsed().as_secs_f64() - limit,
                    cpu() - before - limit,
                );
                assert_eq!(
                    validate_fast(&problem, &packing.offsets),
                    Ok(packing.height)
                );
                let ratio = packing.height as f64 / packing.lower_bound as f64;
                print!(
                    "  {limit}: {:.0} ({:.0}), {ratio:.4}",
                    1e3 * late.max(0.0),
                    1e3 * busy.max(0.0)
                );
                if late > LATE {
                    missed.push(format!(
                        "{name} {effort:?} {limit} s: {:.0} ms late",
                        1e3 * late
                    ));
                }
            }
            println!();
        }
    }
}

/// The most memory that a process takes which reads a trace and packs it, where the system tells.
fn memory(missed: &mut Vec<String>) {
    println!(
        "\nmemory of a process that reads and packs, file and rows included, in MB, and what is asked:"
    );
    let sizes = [(10_000, 50.0), (100_000, 200.0), (1_000_000, 1_500.0)];
    for (n, asked) in &sizes[..if has_large() { 3 } else { 2 }] {
        for kind in ["train", "infer"] {
            let name = format!("{kind}.{n}.s1");
            let peak = instance(&name).and_then(|path| peak_memory(&path));
            let Some(peak) = peak else { continue };
            println!("  {name:<18} {peak:>8.1} {asked:>8.1}");
            if peak > *asked {
                missed.push(format!("{name} {peak:.0} MB"));
            }
        }
    }
}

/// In MB, of this program packing one file.
fn peak_memory(path: &Path) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new(program).env(MEASURED, path).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.trim().parse::<f64>().ok().map(|it| it / 1024.0)
}

/// A number of the system about this process.
fn status(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|it| it.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Seconds of processor time of this thread, where the system tells; it is what a busy machine leaves comparable.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|it| it.parse::<f64>().ok());
    nanoseconds.map_or(f64::NAN, |it| it / 1e9)
}
