//! What memory-aware orders save on compiled modules: `cargo bench -p slabplan --bench schedule [-- STAGE [NAME...]]`.
//!
//! STAGE is `before_buffer_assignment` (the default: scheduled, nothing moved to VMEM yet) or `after_optimizations`.
//! Each module is planned in XLA's order (keep) and in ours (memory). The bound holds for every order and every
//! packing. The columns *temp* leave out what no order changes: constants and arguments that are not donated.
//! *Closed* is the part of XLA's distance from the bound that is gone.

use std::path::{Path, PathBuf};
use std::time::Instant;

use slabplan::config::ScheduleMode;
use slabplan::report::Table;
use slabplan::{CompileConfig, Compiled, compile, frontend, target};
use slabplan_ir::plan::BufferKind;

fn main() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    if !corpus.is_dir() {
        println!("../shared/corpus is absent: nothing to measure");
        return;
    }
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let stage = arguments
        .first()
        .map_or("before_buffer_assignment", String::as_str);
    let names = arguments.get(1..).unwrap_or_default();
    let mut table = Table::new(&[
        "module",
        "instrs",
        "keep MiB",
        "memory MiB",
        "bound MiB",
        "keep",
        "memory",
        "keep temp",
        "memory temp",
        "closed",
        "gaps kept",
        "schedule s",
        "total s",
        "from",
    ]);
    let mut sums = Sums::default();
    for folder in folders(&corpus) {
        let name = folder
            .file_name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default();
        if names.is_empty() || names.contains(&name) {
            let row = measure(&folder, stage);
            sums.add(&row);
            table.row(row.cells(name));
        }
    }
    print!("{table}");
    print!("{sums}");
}

fn folders(corpus: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(corpus).expect("the corpus can be read");
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.join("xla.json").is_file())
        .collect();
    folders.sort();
    folders
}

struct Row {
    instrs: usize,
    keep: u64,
    memory: u64,
    bound: u64,
    /// Bytes that no order changes.
    fixed: u64,
    /// Whether any other memory space needs more than in XLA's order.
    others_grew: bool,
    /// Of what XLA has between starts and dones, how much is no longer there.
    moved_out: usize,
    schedule_seconds: f64,
    total_seconds: f64,
    from: &'static str,
}

fn measure(folder: &Path, stage: &str) -> Row {
    let path = folder.join(format!("{stage}.txt.gz"));
    let target = target::load(&chip(folder)).expect("a built-in target");
    let plan = |schedule| {
        let module = frontend::load_module(&path.to_string_lossy()).expect("a corpus module");
        let config = CompileConfig {
            schedule,
            ..CompileConfig::default()
        };
        let start = Instant::now();
        let compiled = compile(module, &target, &config).expect("a plan");
        (compiled, start.elapsed().as_secs_f64())
    };
    let (keep, _) = plan(ScheduleMode::Keep);
    let (memory, total_seconds) = plan(ScheduleMode::Memory);
    let others = keep.plan().spaces.iter().zip(&memory.plan().spaces);
    let chosen = memory.schedule_trials.iter().find(|t| t.chosen);
    Row {
        instrs: keep.module.instrs.len(),
        keep: slab(&keep),
        memory: slab(&memory),
        bound: memory.schedule_bound.get(),
        fixed: fixed(&keep),
        others_grew: others
            .into_iter()
            .any(|(k, m)| k.space != 0 && m.slab > k.slab),
        moved_out: moved_out(&keep, &memory),
        schedule_seconds: memory.seconds.schedule,
        total_seconds,
        from: chosen.map_or("-", |t| t.from),
    }
}

fn slab(compiled: &Compiled) -> u64 {
    compiled
        .plan()
        .spaces
        .iter()
        .find(|s| s.space == 0)
        .map_or(0, |s| s.slab.get())
}

fn fixed(compiled: &Compiled) -> u64 {
    let buffers = compiled.plan().buffers.values().filter(|b| b.space == 0);
    let kept = buffers.filter(|b| {
        matches!(
            b.kind,
            BufferKind::Constant | BufferKind::Parameter { donated: false, .. }
        )
    });
    kept.map(|b| b.size.get()).sum()
}

/// Counts instructions between start and done of an asynchronous operation in `keep` that are not in `memory`.
fn moved_out(keep: &Compiled, memory: &Compiled) -> usize {
    let mut count = 0;
    for &comp in &memory.module.planned_computations() {
        let order = &memory.module.computations[comp].instrs;
        let place = |name: &str| order.iter().position(|&i| memory.module.name_of(i) == name);
        let name = memory.module.comp_name(comp);
        let old = keep.module.planned_computations();
        let Some(old) = old.into_iter().find(|&c| keep.module.comp_name(c) == name) else {
            continue;
        };
        let old = &keep.module.computations[old].instrs;
        for (d, &done) in old.iter().enumerate() {
            let i = &keep.module.instrs[done];
            let (true, Some(&start)) = (i.opcode.name().ends_with("-done"), i.operands.first())
            else {
                continue;
            };
            let Some(s) = old.iter().position(|&k| k == start) else {
                continue;
            };
            let at = |k: usize| place(keep.module.name_of(old[k]));
            let (Some(first), Some(last)) = (at(s), at(d)) else {
                continue;
            };
            let works = |k: &usize| {
                let op = keep.module.instrs[old[*k]].opcode.name();
                !matches!(
                    op,
                    "bitcast" | "tuple" | "get-tuple-element" | "parameter" | "constant" | "copy"
                )
            };
            let between = (s + 1..d).filter(works);
            count += between
                .filter_map(at)
                .filter(|&k| k < first || k > last)
                .count();
        }
    }
    count
}

fn chip(folder: &Path) -> String {
    let text = std::fs::read_to_string(folder.join("xla.json")).expect("xla.json");
    let json: serde_json::Value = serde_json::from_str(&text).expect("xla.json is JSON");
    let chip = json["chip"].as_str().unwrap_or_default();
    format!("tpu-{}", chip.split('-').next().unwrap_or_default())
}

impl Row {
    fn ratio(&self, bytes: u64) -> f64 {
        bytes as f64 / self.bound as f64
    }

    fn temp_ratio(&self, bytes: u64) -> f64 {
        (bytes - self.fixed) as f64 / (self.bound.saturating_sub(self.fixed)).max(1) as f64
    }

    /// `None` if there was no distance but what lies within one step of the alignment.
    fn closed(&self) -> Option<f64> {
        let distance = self.keep - self.bound;
        (distance > 16 << 10).then(|| (self.keep - self.memory) as f64 / distance as f64)
    }

    fn cells(&self, name: String) -> Vec<String> {
        let mib = |b: u64| format!("{:.2}", b as f64 / f64::from(1 << 20));
        vec![
            name,
            self.instrs.to_string(),
            mib(self.keep),
            mib(self.memory),
            mib(self.bound),
            format!("{:.4}", self.ratio(self.keep)),
            format!("{:.4}", self.ratio(self.memory)),
            format!("{:.4}", self.temp_ratio(self.keep)),
            format!("{:.4}", self.temp_ratio(self.memory)),
            self.closed()
                .map_or("-".to_owned(), |c| format!("{:.0}%", 100.0 * c)),
            if self.moved_out == 0 {
                "yes".to_owned()
            } else {
                format!("{} out", self.moved_out)
            },
            format!("{:.2}", self.schedule_seconds),
            format!("{:.2}", self.total_seconds),
            self.from.to_owned(),
        ]
    }
}

#[derive(Default)]
struct Sums {
    modules: usize,
    higher: usize,
    others_grew: usize,
    near: usize,
    near_temp: usize,
    far: usize,
    far_half_closed: usize,
    moved_out: usize,
    slowest: f64,
}

impl Sums {
    fn add(&mut self, row: &Row) {
        self.modules += 1;
        self.higher += usize::from(row.memory > row.keep);
        self.others_grew += usize::from(row.others_grew);
        self.near += usize::from(row.ratio(row.memory) <= 1.01);
        self.near_temp += usize::from(row.temp_ratio(row.memory) <= 1.01);
        let far = row.ratio(row.keep) > 1.01;
        self.far += usize::from(far);
        self.far_half_closed += usize::from(far && row.closed().is_some_and(|c| c >= 0.5));
        self.moved_out += row.moved_out;
        self.slowest = self.slowest.max(row.schedule_seconds);
    }
}

impl std::fmt::Display for Sums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "\nmodules: {}", self.modules)?;
        writeln!(
            f,
            "slab above XLA's order: {} in space 0, {} elsewhere",
            self.higher, self.others_grew
        )?;
        writeln!(
            f,
            "within 1.01 of the bound: {}; without what no order changes: {}",
            self.near, self.near_temp
        )?;
        writeln!(
            f,
            "XLA's order above 1.01: {}; at least half of that distance closed: {}",
            self.far, self.far_half_closed
        )?;
        writeln!(
            f,
            "instructions moved out of asynchronous operations: {}",
            self.moved_out
        )?;
        writeln!(f, "slowest scheduling: {:.2} s", self.slowest)
    }
}
