//! The JSON of `slabplan compare`: fields may be added, never renamed.

use serde_json::{Value, json};

use super::{Comparison, Held, Share, Side, SpaceComparison};

/// Most buffers listed of one kind.
const LISTED: usize = 1000;

/// One JSON object about two plans.
pub fn comparison_json(comparison: &Comparison) -> Value {
    json!({
        "module": comparison.module,
        "target": comparison.target,
        "spaces": comparison.spaces.iter().map(space).collect::<Vec<_>>(),
        "copies": comparison.copies.iter().map(|(instruction, cause)| json!({
            "instruction": instruction,
            "cause": cause,
        })).collect::<Vec<_>>(),
    })
}

fn space(s: &SpaceComparison) -> Value {
    let (ours_live, xla_live) = s.live_at_one_peak();
    let (ours_shared, xla_shared) = s.shared_in_one();
    let (ours_lodged, xla_lodged) = s.lodged_in_one();
    let causes = s.causes();
    let both = |a: Value, b: Value| json!({ "ours": a, "xla": b });
    json!({
        "space": s.space,
        "name": s.name,
        "ours": side(&s.ours),
        "xla": side(&s.xla),
        "one_slab_bytes": s.one_slab,
        "one_slab_lower_bound_bytes": s.one_slab_bound,
        "causes": {
            "inside_idle_allocations_bytes": causes.lodged,
            "results_on_operands_bytes": causes.shared,
            "live_at_one_peak_bytes": causes.at_one_peak,
            "no_tables_bytes": causes.tables,
            "tighter_packing_bytes": causes.packing,
            "difference_bytes": causes.total(),
        },
        "live_at_one_peak": both(held(&ours_live), held(&xla_live)),
        "shared_in_one": both(shares(&ours_shared), shares(&xla_shared)),
        "lodged_in_one": both(held(&ours_lodged), held(&xla_lodged)),
    })
}

fn side(s: &Side) -> Value {
    json!({
        "total_bytes": s.total,
        "argument_bytes": s.argument,
        "output_bytes": s.output,
        "alias_bytes": s.alias,
        "constant_bytes": s.constant,
        "temp_bytes": s.temp,
        "table_bytes": s.tables,
        "lower_bound_bytes": s.in_use_at_peak,
        "fragmentation_bytes": s.fragmentation(),
        "padding_bytes_at_peak": s.padding_at_peak(),
        "logical_bytes_at_peak": s.logical_at_peak,
        "peak_instruction": s.peak_instruction,
        "buffers_at_peak": s.at_peak.len(),
        "shares": s.shares.len(),
        "lodged": s.lodged.len(),
    })
}

fn held(list: &[&Held]) -> Value {
    let list = list.iter().take(LISTED);
    list.map(|h| {
        json!({
            "value": h.name,
            "bytes": h.size,
            "logical_bytes": h.logical,
            "shape": h.shape,
            "op_name": h.op_name,
        })
    })
    .collect()
}

fn shares(list: &[&Share]) -> Value {
    let list = list.iter().take(LISTED);
    list.map(|s| {
        json!({
            "result": s.result,
            "operand": s.operand,
            "bytes": s.size,
            "instruction": s.at,
        })
    })
    .collect()
}
