//! How time and memory grow with the program: `cargo bench -p slabplan-tests --bench scale [-- NAME [TIMES...]]`.
//!
//! Modules of the corpus, their entry computation repeated (see `slabplan_tests::repeat`), go from
//! text to a proved plan. Seconds are processor time of this process; the last column is the largest
//! memory of a process of its own for each row.

use std::process::Command;
use std::time::Instant;

use slabplan::report::Table;
use slabplan::{CompileConfig, compile, frontend, target};
use slabplan_ir::text::{parse, print};
use slabplan_tests::clock::cpu_seconds;
use slabplan_tests::{paths, repeat};

/// What is measured unless names are given.
const MODULES: [(&str, &[usize]); 4] = [
    ("gnn_train", &[1, 10, 100, 1000]),
    ("gpt2s_scan", &[1, 10, 100, 1000]),
    ("lstm_train", &[1, 10, 100, 1000]),
    ("big96_train", &[1, 10]),
];

fn main() {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    match args.as_slice() {
        [flag, name, times] if flag == "--row" => row(name, times.parse().expect("a number")),
        [] => rows(MODULES.iter().map(|(n, t)| (*n, t.to_vec()))),
        [name] => rows([(name.as_str(), vec![1, 10, 100])].into_iter()),
        [name, times @ ..] => {
            let times = times.iter().map(|t| t.parse().expect("a number")).collect();
            rows([(name.as_str(), times)].into_iter());
        }
    }
}

/// One process for each row, so that the memory of one is not that of another.
fn rows<'a>(modules: impl Iterator<Item = (&'a str, Vec<usize>)>) {
    let mut table = Table::new(&[
        "module",
        "times",
        "instructions",
        "MB",
        "parse",
        "verify",
        "passes",
        "schedule",
        "pack",
        "check",
        "total",
        "us/instr",
        "memory",
    ]);
    for (name, times) in modules {
        for n in times {
            let output = Command::new(std::env::current_exe().expect("this program"))
                .args(["--row", name, &n.to_string()])
                .output()
                .expect("this program starts");
            let line = String::from_utf8_lossy(&output.stdout);
            if output.status.success() {
                table.row(line.split_whitespace().map(str::to_owned));
            } else {
                eprintln!("{name} {n}: {}", String::from_utf8_lossy(&output.stderr));
            }
        }
    }
    print!("{table}");
}

/// Measures one module and prints the cells of its row.
fn row(name: &str, times: usize) {
    let Some(corpus) = paths::shared("corpus") else {
        return;
    };
    let path = corpus.join(name).join("after_optimizations.txt.gz");
    let module = frontend::load_module(&path.to_string_lossy()).expect("a corpus module");
    let text = print(&repeat::repeat(&module, times));
    drop(module);
    let before = peak_kilobytes();
    let start = cpu_seconds();
    let module = parse(&text).into_result().expect("the print of a module");
    let parsed = cpu_seconds();
    slabplan_ir::verify::verify(&module).expect("a valid module");
    let verified = cpu_seconds();
    let instructions = module.instrs.len();
    let target = target::load("tpu-v5p").expect("a built-in target");
    let wall = Instant::now();
    let compiled = compile(module, &target, &CompileConfig::default()).expect("a proved plan");
    let wall = wall.elapsed().as_secs_f64();
    let end = cpu_seconds();
    // Stages are timed by the wall clock; on a busy machine they are scaled to processor time.
    let scale = (end - verified) / wall;
    let s = compiled.seconds;
    let total = end - start;
    let cells = [
        s.analyse * scale,
        s.schedule * scale,
        s.pack * scale,
        s.check * scale,
        total,
    ];
    print!(
        "{name} {times} {instructions} {:.1} {:.2} {:.2}",
        text.len() as f64 / 1e6,
        parsed - start,
        verified - parsed,
    );
    for seconds in cells {
        print!(" {seconds:.2}");
    }
    println!(
        " {:.2} {}MiB(text:{}MiB)",
        1e6 * total / instructions as f64,
        peak_kilobytes() / 1024,
        before / 1024,
    );
}

/// The largest resident memory of this process so far.
fn peak_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|l| l.starts_with("VmHWM:"));
    line.and_then(|l| l.split_whitespace().nth(1)?.parse().ok())
        .expect("a number of kilobytes")
}
