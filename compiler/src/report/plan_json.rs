//! The JSON of `slabplan plan`: fields may be added, never renamed.

use serde_json::{Value, json};
use slabplan_ir::plan::PlanSpace;

use crate::Compiled;

/// One JSON object about a plan.
pub fn plan_json(compiled: &Compiled, parse_seconds: f64) -> Value {
    let plan = compiled.plan();
    let seconds = &compiled.seconds;
    json!({
        "module": plan.module,
        "instructions": compiled.module.instrs.len(),
        "target": plan.target,
        "accounting": plan.accounting,
        "schedule": plan.schedule.split('-').next(),
        "schedule_bound_bytes": compiled.schedule_bound,
        "schedule_optimal": compiled.is_best_schedule(),
        "schedules": compiled.schedule_trials.iter().map(|t| json!({
            "from": t.from,
            "chosen": t.chosen,
            "peak_bytes": t.peak,
            "slab_bytes": t.slab(0),
            "copies_inserted": t.copies,
        })).collect::<Vec<_>>(),
        "spaces": plan.spaces.iter().map(|s| space_json(compiled, s)).collect::<Vec<_>>(),
        "copies_inserted": plan.copies.len(),
        "copies": plan.copies.iter().map(|c| json!({
            "instruction": compiled.module.name_of(c.instr),
            "cause": c.cause,
        })).collect::<Vec<_>>(),
        "donations_not_used": compiled.donations.iter().filter(|d| !d.is_used())
            .map(ToString::to_string).collect::<Vec<_>>(),
        "trials": compiled.trials.iter().map(|t| json!({
            "name": t.name,
            "peaks": t.peaks.iter().map(|(s, b)| json!({ "space": s, "bytes": b })).collect::<Vec<_>>(),
            "slabs": t.slabs.iter().map(|(s, b)| json!({ "space": s, "bytes": b })).collect::<Vec<_>>(),
            "value_bytes": t.value_bytes,
            "kept": t.kept,
        })).collect::<Vec<_>>(),
        "notes": compiled.notes,
        "checked": compiled.check.is_some(),
        "fits": compiled.fits(),
        "seconds": {
            "parse": parse_seconds,
            "analyse": seconds.analyse,
            "schedule": seconds.schedule,
            "pack": seconds.pack,
            "check": seconds.check,
            "total": parse_seconds + seconds.analyse + seconds.schedule + seconds.pack + seconds.check,
        },
    })
}

fn space_json(compiled: &Compiled, space: &PlanSpace) -> Value {
    let buffers = compiled
        .plan()
        .buffers
        .values()
        .filter(|b| b.space == space.space)
        .count();
    let stats = &space.stats;
    json!({
        "space": space.space,
        "name": space.name,
        "capacity_bytes": space.capacity,
        "slab_bytes": space.slab,
        "lower_bound_bytes": space.lower_bound,
        "optimal": space.optimal,
        "temp_bytes": stats.temp,
        "argument_bytes": stats.argument,
        "output_bytes": stats.output,
        "alias_bytes": stats.alias,
        "constant_bytes": stats.constant,
        "logical_bytes_at_peak": stats.logical_at_peak,
        "padded_bytes_at_peak": stats.padded_at_peak,
        "buffers": buffers,
        "peak_instruction": stats.peak_instruction,
        "fits": space.slab <= space.capacity,
    })
}
