//! The comparison, for people and scripts.

use std::fmt::Write;

use serde_json::{Value, json};
use slabplan_ir::{Bytes, Module};

use super::replay::{Failure, Replay, replay};
use super::{Growth, Kind, Trace};
use crate::Compiled;
use crate::report::{Table, thousands};

/// More than any device has: for learning what a program would need.
const UNLIMITED: u64 = 1 << 60;

/// What the allocators' blocks are multiples of, at most.
const LARGEST_STEP: u64 = 512;

/// Allocators beside the static plan, on one memory space.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The memory space.
    pub space: u32,
    /// Its name.
    pub name: String,
    /// Bytes that the allocators had.
    pub capacity: u64,
    /// Bytes of the plan's slab.
    pub slab: u64,
    /// What was replayed.
    pub trace: Trace,
    /// What each allocator made of it.
    pub rows: Vec<Row>,
}

/// One allocator.
#[derive(Clone, Debug)]
pub struct Row {
    /// Which.
    pub kind: Kind,
    /// Its replay.
    pub replay: Replay,
    /// Where it ran out of memory: what it would have reserved of an unlimited device.
    pub needs: Option<u64>,
}

impl Row {
    /// The part of what was reserved that was never in use at once, 0 to 1.
    pub fn fragmentation(&self) -> f64 {
        unused(self.replay.peak_used, self.replay.peak_reserved)
    }
}

/// Replays the allocations of `compiled` in memory space `space` through `kinds`, which have
/// `capacity` bytes.
pub fn simulate(
    compiled: &Compiled,
    space: u32,
    capacity: u64,
    growth: Growth,
    kinds: &[Kind],
    assumed: u64,
) -> Simulation {
    let trace = Trace::new(compiled, space);
    let rows = kinds
        .iter()
        .map(|&kind| {
            let run = |capacity, growth| {
                replay(&trace, kind.allocator(capacity, growth).as_mut(), assumed)
            };
            let replay = run(capacity, growth);
            let needs = replay
                .failure
                .is_some()
                .then(|| run(UNLIMITED, Growth::Regions).peak_reserved);
            Row {
                kind,
                replay,
                needs,
            }
        })
        .collect();
    let planned = compiled.plan().space(space);
    Simulation {
        space,
        name: planned.map_or_else(|| format!("S({space})"), |s| s.name.clone()),
        capacity,
        slab: planned.map_or(0, |s| s.slab.get()),
        trace,
        rows,
    }
}

impl Simulation {
    /// Whether every allocator got through.
    pub fn fits(&self) -> bool {
        self.rows.iter().all(|r| r.replay.failure.is_none())
    }

    /// The comparison as a table, with what it rests on.
    pub fn table(&self, compiled: &Compiled) -> String {
        let mut table = Table::new(&[
            self.name.as_str(),
            "reserved",
            "used",
            "fragmentation",
            "allocations",
            "frees",
            "device calls",
            "over the plan",
        ]);
        table.row([
            "static plan".to_owned(),
            human(self.slab),
            human(self.trace.peak),
            percent(unused(self.trace.peak, self.slab)),
            "0".to_owned(),
            "0".to_owned(),
            u8::from(self.slab > 0).to_string(),
            String::new(),
        ]);
        for row in &self.rows {
            let r = &row.replay;
            table.row([
                row.kind.name().to_owned(),
                human(r.peak_reserved),
                human(r.peak_used),
                percent(row.fragmentation()),
                thousands(r.allocations as usize),
                thousands(r.frees as usize),
                thousands(r.device_calls as usize),
                match r.failure {
                    Some(_) => "out of memory".to_owned(),
                    None => over(r.peak_reserved, self.slab),
                },
            ]);
        }
        let mut out = table.to_string();
        out.push('\n');
        self.write_alignment(&mut out, compiled);
        self.write_loops(&mut out, &compiled.module);
        self.write_branches(&mut out, &compiled.module);
        for row in &self.rows {
            self.write_failure(&mut out, row, compiled);
        }
        out
    }

    /// Small arrays take more of a plan with large steps than of any allocator.
    fn write_alignment(&self, out: &mut String, compiled: &Compiled) {
        let space = compiled.plan().space(self.space);
        let alignment = space.map_or(1, |s| s.alignment.get());
        if alignment > LARGEST_STEP {
            let _ = writeln!(
                out,
                "the plan begins every array at a multiple of {}, as the target asks; the allocators' steps are {} at most",
                human(alignment),
                human(LARGEST_STEP)
            );
        }
    }

    fn write_loops(&self, out: &mut String, module: &Module) {
        for (n, l) in self.trace.loops.iter().enumerate() {
            if self.rows.iter().any(|r| r.replay.failure.is_some()) {
                break;
            }
            let of = |row: &Row| row.replay.loops[n].replayed;
            let replayed = self.rows.iter().map(of).max().unwrap_or(0);
            let settled = self.rows.iter().all(|r| r.replay.loops[n].settled);
            let runs = if let Some(count) = l.trip_count {
                format!("runs {} times", thousands(count as usize))
            } else {
                let assumed = self
                    .rows
                    .first()
                    .map_or(0, |r| r.replay.loops[n].trip_count);
                format!("has no known trip count, calls are counted for {assumed}")
            };
            let peak = if settled {
                "after which every allocator was in a state in which it had been before: the peaks hold for any number"
            } else {
                "the allocators' states did not repeat: more iterations may need more"
            };
            let _ = writeln!(
                out,
                "loop %{} {runs}; {replayed} replayed, {peak}",
                module.name_of(l.instr)
            );
        }
    }

    fn write_branches(&self, out: &mut String, module: &Module) {
        for b in self.trace.branches.iter().filter(|b| b.of > 1) {
            let _ = writeln!(
                out,
                "conditional %{}: branch {} of {} is replayed, the one with most bytes in use",
                module.name_of(b.instr),
                b.taken,
                b.of
            );
        }
    }

    fn write_failure(&self, out: &mut String, row: &Row, compiled: &Compiled) {
        let Some(f) = &row.replay.failure else {
            return;
        };
        let _ = writeln!(
            out,
            "{} runs out of memory at %{}: it asks for {}{}; of {} it holds {}, {} of that in use, largest free block {}; without a limit it would hold {}",
            row.kind.name(),
            instr_name(compiled, f),
            human(f.bytes),
            self.block_name(compiled, f),
            human(self.capacity),
            human(f.reserved),
            human(f.in_use),
            human(f.largest_free),
            human(row.needs.unwrap_or(0)),
        );
    }

    fn block_name(&self, compiled: &Compiled, failure: &Failure) -> String {
        let buffer = &compiled.plan().buffers[self.trace.blocks[failure.block].buffer];
        buffer.values.first().map_or_else(String::new, |v| {
            format!(" for %{}", compiled.module.name_of(v.instr))
        })
    }

    /// The comparison as one JSON object. Sizes are bytes.
    pub fn json(&self, compiled: &Compiled) -> Value {
        let module = &compiled.module;
        let row = |row: &Row| {
            let r = &row.replay;
            json!({
                "allocator": row.kind.name(),
                "peak_reserved_bytes": r.peak_reserved,
                "peak_used_bytes": r.peak_used,
                "peak_rounded_bytes": r.peak_in_use,
                "fragmentation": row.fragmentation(),
                "allocations": r.allocations,
                "frees": r.frees,
                "calls": r.allocations.saturating_add(r.frees),
                "device_calls": r.device_calls,
                "fits": r.failure.is_none(),
                "out_of_memory": r.failure.as_ref().map(|f| json!({
                    "instruction": instr_name(compiled, f),
                    "bytes": f.bytes,
                    "reserved_bytes": f.reserved,
                    "in_use_bytes": f.in_use,
                    "largest_free_bytes": f.largest_free,
                    "needs_bytes": row.needs,
                })),
                "loops": r.loops.iter().map(|l| json!({
                    "instruction": module.name_of(l.instr),
                    "trip_count": l.trip_count,
                    "trip_count_known": l.known,
                    "replayed": l.replayed,
                    "settled": l.settled,
                })).collect::<Vec<_>>(),
            })
        };
        json!({
            "module": compiled.plan().module,
            "target": compiled.plan().target,
            "space": self.space,
            "name": self.name,
            "capacity_bytes": self.capacity,
            "blocks": self.trace.blocks.len(),
            "static": {
                "peak_reserved_bytes": self.slab,
                "peak_used_bytes": self.trace.peak,
                "fragmentation": unused(self.trace.peak, self.slab),
                "calls": 0,
                "device_calls": u8::from(self.slab > 0),
            },
            "allocators": self.rows.iter().map(row).collect::<Vec<_>>(),
            "conditionals": self.trace.branches.iter().map(|b| json!({
                "instruction": module.name_of(b.instr),
                "branch_replayed": b.taken,
                "branches": b.of,
            })).collect::<Vec<_>>(),
        })
    }
}

fn instr_name<'a>(compiled: &'a Compiled, failure: &Failure) -> &'a str {
    let order = &compiled.planned.analysis.order;
    compiled.module.name_of(order.instr(failure.instr))
}

fn unused(used: u64, reserved: u64) -> f64 {
    if reserved == 0 {
        return 0.0;
    }
    1.0 - used.min(reserved) as f64 / reserved as f64
}

fn percent(part: f64) -> String {
    format!("{:.1}%", 100.0 * part)
}

fn over(reserved: u64, slab: u64) -> String {
    if slab == 0 {
        return "-".to_owned();
    }
    format!("{:+.1}%", 100.0 * (reserved as f64 / slab as f64 - 1.0))
}

fn human(bytes: u64) -> String {
    Bytes::new(bytes).unwrap_or(Bytes::ZERO).to_string()
}
