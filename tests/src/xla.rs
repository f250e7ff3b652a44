//! XLA's own plans and ours in XLA's form.

use std::collections::BTreeSet;

use slabplan::frontend::assignment::{Assignment, load_assignment, parse_assignment, to_plan};
use slabplan::frontend::{Source, parse_module};
use slabplan::{Compiled, report};
use slabplan_ir::check::{CheckReport, InPlace, check_with};
use slabplan_ir::plan::{Accounting, Plan, PlanValue};
use slabplan_ir::{Module, Target};

use crate::xprof;

/// Where a plan puts every value: value, memory space, first byte, bytes of its buffer.
pub type Placements = BTreeSet<(PlanValue, u32, u64, u64)>;

/// Where `plan` puts every value.
pub fn placements(plan: &Plan) -> Placements {
    plan.buffers
        .values()
        .flat_map(|b| {
            let place = (b.space, b.offset.get(), b.size.get());
            b.values
                .iter()
                .map(move |v| (v.clone(), place.0, place.1, place.2))
        })
        .collect()
}

/// Reads an assignment.
pub fn load(path: &str) -> Result<Assignment, String> {
    load_assignment(path, None).map_err(|e| e.to_string())
}

/// Judges XLA's plan of `module`; results in place on its word are not violations.
pub fn judge(
    module: &Module,
    assignment: &Assignment,
    target: &Target,
) -> Result<(Plan, CheckReport), String> {
    let judged = to_plan(module, assignment, target).map_err(|e| e.to_string())?;
    let report = check_with(module, &judged.plan, target, InPlace::Promise);
    let report = report.map_err(|v| v.to_string())?;
    Ok((judged.plan, report))
}

/// Writes our plan as a proto and reads it back: the module's text, every value's place, what the
/// checker says, and what XProf's memory viewer shows must be the plan's own.
pub fn round_trip(compiled: &Compiled, target: &Target) -> Result<(), String> {
    let plan = compiled.plan();
    let proto = report::plan_proto(&compiled.module, &compiled.planned)?;
    let source = || Source {
        name: "plan.pb".to_owned(),
        bytes: proto.bytes.clone(),
    };
    let module = parse_module(source()).map_err(|e| format!("read back: {e}"))?;
    same_text(&compiled.module, &module)?;
    let assignment = parse_assignment(&source(), None).map_err(|e| e.to_string())?;
    let (again, _) = judge(&module, &assignment, target)?;
    // Instructions are numbered as listed, in both.
    if placements(plan) != placements(&again) {
        return Err("read back, the proto's plan puts values elsewhere".to_owned());
    }
    let views = xprof::view(&proto.bytes)?;
    for space in &plan.spaces {
        let view = views
            .get(&i64::from(space.space))
            .cloned()
            .unwrap_or_default();
        let (heap, most) = match plan.accounting {
            Accounting::Slab => (space.slab, space.stats.padded_at_peak),
            Accounting::Xla => (space.stats.temp, space.stats.temp),
        };
        let exact = plan.accounting == Accounting::Slab;
        let right = if exact {
            view.peak == most.get()
        } else {
            view.peak <= most.get()
        };
        if view.heap > heap.get() || !right {
            return Err(format!(
                "{}: the viewer shows {view:?}; the plan has a heap of {heap:?} and at most {most:?} in use",
                space.name
            ));
        }
    }
    Ok(())
}

/// The header's attributes that XLA keeps beside the module's proto.
const NOT_IN_PROTO: [&str; 2] = [
    "allow_spmd_sharding_propagation_to_parameters",
    "allow_spmd_sharding_propagation_to_output",
];

fn same_text(a: &Module, b: &Module) -> Result<(), String> {
    let (a, b) = (slabplan_ir::text::print(a), slabplan_ir::text::print(b));
    let cut = |line: &str| {
        let mut line = line.to_owned();
        for name in NOT_IN_PROTO {
            if let Some(start) = line.find(&format!(", {name}=")) {
                let end = line[start..]
                    .find('}')
                    .map_or(line.len(), |n| start + n + 1);
                line.replace_range(start..end, "");
            }
        }
        line
    };
    if a.lines().count() != b.lines().count() {
        return Err("read back, the module has other lines".to_owned());
    }
    for (n, (x, y)) in a.lines().zip(b.lines()).enumerate() {
        let same = if n == 0 { cut(x) == cut(y) } else { x == y };
        if !same {
            let at = x
                .bytes()
                .zip(y.bytes())
                .position(|(p, q)| p != q)
                .unwrap_or(0);
            let from = at.saturating_sub(40);
            let shown = |s: &str| s.chars().skip(from).take(160).collect::<String>();
            return Err(format!(
                "read back, line {} differs:\n  {}\n  {}",
                n + 1,
                shown(x),
                shown(y)
            ));
        }
    }
    Ok(())
}
