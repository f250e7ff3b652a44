//! Planted faults: right plans, broken one place at a time, to see that the trust chain notices.

use slabplan::config::CompileConfig;
use slabplan::exec::{AsyncMode, ExecConfig, Executable, HostArray};
use slabplan::{compile, target};
use slabplan_ir::check::check;
use slabplan_ir::plan::{BufferKind, Plan, PlanBuffer};
use slabplan_ir::{BufferId, Bytes, Module, Offset};

use crate::promises::{MAX_STEPS, in_one_space, read, reference};

/// What became of the broken plans of a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Plans with two buffers on each other's bytes while both are in use, be it by values that nobody reads.
    pub overlaps: u32,
    /// Of them, those that the checker refuses.
    pub refused: u32,
    /// Of them, those that a run on the poisoned slab shows to be wrong; the checker refuses each.
    pub shown: u32,
    /// Other changed plans, right or wrong.
    pub others: u32,
    /// Changed plans that the checker accepts; each runs right.
    pub accepted: u32,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.overlaps += other.overlaps;
        self.refused += other.refused;
        self.shown += other.shown;
        self.others += other.others;
        self.accepted += other.accepted;
    }
}

/// A changed plan.
struct Mutant {
    what: String,
    plan: Plan,
    /// Two buffers that are in use during two and more instructions together have a byte in common.
    overlaps: bool,
}

/// Changes the plan of a module in every way that `mutants` knows, at most `most` of each kind.
///
/// # Errors
/// A plan that the checker accepts and that runs wrong.
pub fn plant(text: &str, most: usize) -> Result<Tally, String> {
    let module = read(text)?;
    let (inputs, expected) = reference(&module)?;
    let name = if in_one_space(&module) {
        "cpu"
    } else {
        "tpu-v5e"
    };
    let target = target::load(name).map_err(|e| e.to_string())?;
    let compiled =
        compile(module, &target, &CompileConfig::default()).map_err(|e| e.to_string())?;
    let mut tally = Tally::default();
    for mutant in mutants(compiled.plan(), most) {
        let is_accepted = check(&compiled.module, &mutant.plan, &target).is_ok();
        let is_right = runs_right(&compiled.module, &mutant.plan, &inputs, &expected);
        if is_accepted && !is_right {
            return Err(format!("{}: accepted, and runs wrong", mutant.what));
        }
        tally.accepted += u32::from(is_accepted);
        if mutant.overlaps {
            tally.overlaps += 1;
            tally.refused += u32::from(!is_accepted);
            tally.shown += u32::from(!is_right);
        } else {
            tally.others += 1;
        }
    }
    Ok(tally)
}

/// Whether runs on the poisoned slab give what is expected. The checker is not asked.
fn runs_right(module: &Module, plan: &Plan, inputs: &[HostArray], expected: &[HostArray]) -> bool {
    [AsyncMode::Start, AsyncMode::Done]
        .into_iter()
        .all(|async_mode| {
            let config = ExecConfig {
                poison: true,
                async_mode,
                max_steps: Some(MAX_STEPS),
                ..ExecConfig::default()
            };
            let run = Executable::new(module, plan, config).and_then(|mut e| e.execute(inputs));
            run.is_ok_and(|outputs| outputs == expected)
        })
}

/// Plans with one buffer moved onto another, moved by one step of the alignment, or cut.
fn mutants(plan: &Plan, most: usize) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    let alignment = |b: &PlanBuffer| plan.space(b.space).map_or(1, |s| s.alignment.get());
    // Every so many, so that all parts of the program are met.
    let pairs: Vec<(BufferId, BufferId)> = plan
        .buffers
        .iter()
        .flat_map(|(a, buffer)| {
            let others = plan.buffers.iter();
            let others = others.filter(move |(b, other)| {
                *b != a && other.space == buffer.space && !other.size.is_zero()
            });
            others.map(move |(b, _)| (a, b))
        })
        .filter(|&(a, _)| !plan.buffers[a].size.is_zero())
        .collect();
    for &(moved, onto) in pairs.iter().step_by(pairs.len() / most.max(1) + 1) {
        let offset = plan.buffers[onto].offset.get();
        mutants.push(moved_to(plan, moved, offset, format!("{moved} on {onto}")));
    }
    let buffers: Vec<(BufferId, &PlanBuffer)> = plan.buffers.iter().collect();
    for &(id, buffer) in buffers.iter().step_by(buffers.len() / most.max(1) + 1) {
        let step = alignment(buffer);
        let offset = buffer.offset.get();
        mutants.push(moved_to(
            plan,
            id,
            offset + step,
            format!("{id} further by {step}"),
        ));
        if let Some(less) = offset.checked_sub(step) {
            mutants.push(moved_to(plan, id, less, format!("{id} nearer by {step}")));
        }
        if 1 < buffer.size.get() {
            let mut cut = plan.clone();
            cut.buffers[id].size = Bytes::new(buffer.size.get() / 2).expect("less than before");
            mutants.push(Mutant {
                what: format!("{id} cut in half"),
                plan: cut,
                overlaps: false,
            });
        }
    }
    mutants
}

fn moved_to(plan: &Plan, id: BufferId, offset: u64, what: String) -> Mutant {
    let mut moved = plan.clone();
    moved.buffers[id].offset = Offset::new(offset).expect("within the slab or just behind it");
    let end = offset + moved.buffers[id].size.get();
    let space = moved.buffers[id].space;
    for s in moved.spaces.iter_mut().filter(|s| s.space == space) {
        s.slab = s.slab.max(Bytes::new(end).expect("just behind the slab"));
    }
    let overlaps = moved.buffers.iter().any(|(other, b)| {
        other != id
            && have_bytes_in_common(&moved.buffers[id], b)
            && are_in_use_together(&moved.buffers[id], b)
    });
    Mutant {
        what,
        plan: moved,
        overlaps,
    }
}

fn have_bytes_in_common(a: &PlanBuffer, b: &PlanBuffer) -> bool {
    let end = |b: &PlanBuffer| b.offset.get() + b.size.get();
    a.space == b.space && a.offset.get() < end(b) && b.offset.get() < end(a)
}

/// During two instructions and more, so that it is no operand giving its bytes to a result. Arguments and
/// constants hold their bytes from before the first instruction on.
fn are_in_use_together(a: &PlanBuffer, b: &PlanBuffer) -> bool {
    let is_kept = |b: &PlanBuffer| b.kind != BufferKind::Temp;
    if is_kept(a) || is_kept(b) {
        return false;
    }
    a.live.iter().any(|x| {
        b.live
            .iter()
            .any(|y| x.start.max(y.start) + 1 < x.end.min(y.end))
    })
}
