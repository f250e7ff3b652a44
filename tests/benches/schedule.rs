//! What memory-aware orders save on compiled modules: `cargo bench -p slabplan-tests --bench schedule [-- STAGE [NAME...]]`.
//!
//! STAGE is `before_buffer_assignment` (the default: scheduled, nothing moved to VMEM yet) or `after_optimizations`.
//! Each module is planned in XLA's order (keep) and in ours (memory). The bound holds for every order and every packing.
//! *Closed* is the part of XLA's distance from the bound that is gone. The table is Markdown, as `docs/schedules.md` has
//! it. Ends with status 1 if a promise is broken (`slabplan_tests::schedules`).

use slabplan_tests::schedules::{BEFORE, Comparison, compare, folders};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let stage = arguments.first().map_or(BEFORE, String::as_str);
    let names = arguments.get(1..).unwrap_or_default();
    println!(
        "| module | instructions | XLA's order, MiB | `memory`, MiB | XLA's / bound | `memory` / bound | closed | from | s |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|---|--:|");
    let mut sums = Sums::default();
    for folder in folders() {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        if names.is_empty() || names.iter().any(|n| *n == name) {
            let row = compare(&folder, stage)?;
            println!("{}", cells(&name, &row));
            sums.add(&name, &row);
        }
    }
    print!("{sums}");
    if !sums.broken.is_empty() {
        std::process::exit(1);
    }
    Ok(())
}

fn cells(name: &str, row: &Comparison) -> String {
    let mib = |b: u64| format!("{:.2}", b as f64 / f64::from(1 << 20));
    let closed = row
        .closed()
        .map_or("-".to_owned(), |c| format!("{:.0} %", 100.0 * c));
    format!(
        "| {name} | {} | {} | {} | {:.4} | {:.4} | {closed} | {} | {:.1} |",
        row.instructions,
        mib(row.keep),
        mib(row.memory),
        row.ratio(row.keep),
        row.ratio(row.memory),
        row.from,
        row.schedule_seconds,
    )
}

#[derive(Default)]
struct Sums {
    modules: usize,
    near: usize,
    xla_near: usize,
    far: usize,
    half_closed: usize,
    above_xla: Vec<String>,
    broken: Vec<String>,
    slowest: f64,
}

impl Sums {
    fn add(&mut self, name: &str, row: &Comparison) {
        self.modules += 1;
        self.near += usize::from(row.ratio(row.memory) <= 1.01);
        self.xla_near += usize::from(row.ratio(row.keep) <= 1.01);
        let far = row.ratio(row.keep) > 1.01;
        self.far += usize::from(far);
        self.half_closed += usize::from(far && row.closed().is_some_and(|c| c >= 0.5));
        for (space, xla, ours) in &row.above_xla {
            self.above_xla
                .push(format!("{name} space {space}: {ours} against {xla}"));
        }
        let broken = row.broken().into_iter();
        self.broken.extend(broken.map(|b| format!("{name}: {b}")));
        self.slowest = self.slowest.max(row.schedule_seconds);
    }
}

impl std::fmt::Display for Sums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "\nwithin 1.01 of the bound: {} of {}; XLA's order: {}",
            self.near, self.modules, self.xla_near
        )?;
        writeln!(
            f,
            "XLA's order above 1.01: {}; at least half of that distance closed: {}",
            self.far, self.half_closed
        )?;
        writeln!(f, "slowest scheduling: {:.2} s", self.slowest)?;
        writeln!(f, "other spaces above XLA's own heap: {:?}", self.above_xla)?;
        writeln!(f, "promises broken: {:?}", self.broken)
    }
}
