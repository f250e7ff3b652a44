//! A compiled module of the corpus planned in XLA's order and in ours.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use slabplan::config::ScheduleMode;
use slabplan::{CompileConfig, Compiled, compile, frontend, target};
use slabplan_ir::plan::BufferKind;
use slabplan_ir::{Module, Opcode};

use crate::clock::cpu_seconds;
use crate::paths;

/// Scheduled, nothing moved to other memories yet.
pub const BEFORE: &str = "before_buffer_assignment";

/// After memory-space assignment.
pub const AFTER: &str = "after_optimizations";

/// What the two plans need. Bytes are of HBM where nothing else is said.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Instructions.
    pub instructions: usize,
    /// The slab in XLA's order.
    pub keep: u64,
    /// The slab in ours.
    pub memory: u64,
    /// The certificate: what every order needs, as the plan in our order states it.
    pub bound: u64,
    /// The same, as the plan in XLA's order states it.
    pub keep_bound: u64,
    /// Bytes that no order changes: constants, and arguments that are not donated.
    pub fixed: u64,
    /// Other memory spaces in which our order needs more than XLA's: space, XLA's order, ours.
    pub grown: Vec<(u32, u64, u64)>,
    /// Other memory spaces in which our order needs more than XLA's own heap has: space, XLA's heap, ours.
    pub above_xla: Vec<(u32, u64, u64)>,
    /// Instructions that XLA has between the start and the done of an asynchronous operation and we have not.
    pub moved_out: usize,
    /// What our order was found from.
    pub from: &'static str,
    /// Processor time of the pass that schedules, trial plans included.
    pub schedule_seconds: f64,
}

/// The corpus's folders, one a module.
pub fn folders() -> Vec<PathBuf> {
    let corpus = paths::shared("corpus");
    let entries = corpus.and_then(|c| std::fs::read_dir(c).ok());
    let mut folders: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.join("xla.json").is_file())
        .collect();
    folders.sort();
    folders
}

/// Plans the module of `folder` at `stage` both ways, with default effort.
///
/// # Errors
/// If there is no such module, or it can't be planned.
pub fn compare(folder: &Path, stage: &str) -> anyhow::Result<Comparison> {
    let path = folder.join(format!("{stage}.txt.gz"));
    let json = std::fs::read_to_string(folder.join("xla.json"))?;
    let json: serde_json::Value = serde_json::from_str(&json)?;
    let chip = json["chip"].as_str().context("xla.json names no chip")?;
    let chip = chip.split('-').next().unwrap_or(chip);
    let target = target::load(&format!("tpu-{chip}"))?;
    let plan = |schedule| -> anyhow::Result<(Compiled, f64)> {
        let module = frontend::load_module(&path.to_string_lossy())?;
        let config = CompileConfig {
            schedule,
            ..CompileConfig::default()
        };
        let (start, cpu) = (Instant::now(), cpu_seconds());
        let compiled = compile(module, &target, &config)?;
        // Stages are timed by the wall clock; on a busy machine they are scaled to processor time.
        let scale = (cpu_seconds() - cpu) / start.elapsed().as_secs_f64();
        let seconds = compiled.seconds.schedule * scale;
        Ok((compiled, seconds))
    };
    let (keep, _) = plan(ScheduleMode::Keep)?;
    let (memory, schedule_seconds) = plan(ScheduleMode::Memory)?;
    let others = memory.plan().spaces.iter().filter(|s| s.space != 0);
    let others: Vec<(u32, u64)> = others.map(|s| (s.space, s.slab.get())).collect();
    let above = |limit: &dyn Fn(u32) -> Option<u64>| {
        let limits = others.iter().map(|&(s, ours)| (s, limit(s), ours));
        limits
            .filter_map(|(s, limit, ours)| Some((s, limit?, ours)).filter(|&(_, l, o)| o > l))
            .collect()
    };
    let chosen = memory.schedule_trials.iter().find(|t| t.chosen);
    Ok(Comparison {
        instructions: keep.module.instrs.len(),
        keep: slab(&keep, 0),
        memory: slab(&memory, 0),
        bound: memory.schedule_bound.get(),
        keep_bound: keep.schedule_bound.get(),
        fixed: fixed(&keep),
        grown: above(&|s| Some(slab(&keep, s))),
        above_xla: above(&|s| json["xla_heaps"][s.to_string()]["heap_bytes"].as_u64()),
        moved_out: moved_out(&keep.module, &memory.module),
        from: chosen.map_or("-", |t| t.from),
        schedule_seconds,
    })
}

impl Comparison {
    /// Bytes over the certificate.
    pub fn ratio(&self, bytes: u64) -> f64 {
        bytes as f64 / self.bound as f64
    }

    /// The part of XLA's distance from the certificate that is gone. `None` if there was none but what lies within a few
    /// steps of the alignment.
    pub fn closed(&self) -> Option<f64> {
        let distance = self.keep.saturating_sub(self.bound);
        (distance > 16 << 10).then(|| (self.keep - self.memory) as f64 / distance as f64)
    }

    /// What a schedule promises and this one breaks.
    pub fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        if self.memory > self.keep {
            broken.push(format!("{} bytes, XLA's order {}", self.memory, self.keep));
        }
        for (space, keep, ours) in &self.grown {
            broken.push(format!("space {space}: {ours} bytes, XLA's order {keep}"));
        }
        for bound in [self.bound, self.keep_bound] {
            let least = self.memory.min(self.keep);
            if bound > least {
                broken.push(format!("certificate {bound}, a slab of {least}"));
            }
        }
        if self.moved_out > 0 {
            broken.push(format!(
                "{} instructions left asynchronous operations",
                self.moved_out
            ));
        }
        broken
    }
}

fn slab(compiled: &Compiled, space: u32) -> u64 {
    let spaces = &compiled.plan().spaces;
    let found = spaces.iter().find(|s| s.space == space);
    found.map_or(0, |s| s.slab.get())
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

/// Counts what takes time between start and done of an asynchronous operation in `old` and is elsewhere in `new`.
fn moved_out(old: &Module, new: &Module) -> usize {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for comp in new.planned_computations() {
        for (place, &i) in new.computations[comp].instrs.iter().enumerate() {
            places.insert(new.name_of(i), place);
        }
    }
    let place = |i| places.get(old.name_of(i)).copied();
    let mut count = 0;
    for comp in old.planned_computations() {
        let order = &old.computations[comp].instrs;
        let mut at: BTreeMap<_, usize> = BTreeMap::new();
        for (d, &done) in order.iter().enumerate() {
            at.insert(done, d);
            let i = &old.instrs[done];
            let (true, Some(start)) = (i.opcode.name().ends_with("-done"), i.operands.first())
            else {
                continue;
            };
            let (Some(&s), Some(first), Some(last)) = (at.get(start), place(*start), place(done))
            else {
                continue;
            };
            let between = order[s + 1..d].iter().filter(|&&i| takes_time(old, i));
            count += between
                .filter_map(|&i| place(i))
                .filter(|p| !(first..last).contains(p))
                .count();
        }
    }
    count
}

fn takes_time(module: &Module, instr: slabplan_ir::InstrId) -> bool {
    use Opcode as O;
    !matches!(
        module.instrs[instr].opcode,
        O::Bitcast
            | O::Tuple
            | O::GetTupleElement
            | O::Parameter
            | O::Constant
            | O::AddDependency
            | O::OptimizationBarrier
            | O::Domain
            // Inserted by the planner as well, under other names.
            | O::Copy
    )
}
