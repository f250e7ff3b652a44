//! The state when the program ends, and what the plan says about itself.

use std::collections::BTreeMap;

use super::execute::{Run, further, overlap, show_place};
use super::flow::Flow;
use super::form::Slots;
use super::memory::Place;
use super::message::{buffer_name, space_name};
use super::violation::{ViolationKind as K, Violations};
use crate::entity::{BufferId, PosId, SecondaryMap};
use crate::opcode::Opcode;
use crate::plan::{BufferKind, Plan, PlanSpace};

/// Checks outputs, aliases, kinds and sums. O(n log n).
pub(super) fn check(
    flow: &Flow<'_>,
    plan: &Plan,
    slots: &Slots,
    run: &Run,
    violations: &mut Violations,
) {
    let outputs: Vec<PosId> = flow.arrays(flow.module.entry().root).collect();
    check_outputs(flow, plan, run, &outputs, violations);
    check_donations(flow, plan, run, violations);
    let roles = roles(flow, plan, slots, run, &outputs);
    check_kinds(flow, plan, &roles, violations);
    check_sums(plan, &roles, violations);
    check_live_ends(plan, run, violations);
    if violations.total == 0 {
        check_complete(flow, run, violations);
    }
}

/// Outputs share no byte and lie on nothing read-only.
fn check_outputs(
    flow: &Flow<'_>,
    plan: &Plan,
    run: &Run,
    outputs: &[PosId],
    violations: &mut Violations,
) {
    let mut placed: Vec<(Place, PosId)> = Vec::new();
    for &pos in outputs {
        let Some(bound) = run.bound[pos] else {
            continue;
        };
        if bound.place.extent.is_empty() {
            continue;
        }
        placed.push((bound.place, pos));
        if let Some((_, source)) = run.read_only_in(bound.place) {
            let (output, source) = (flow.value(pos), flow.value(source));
            let kind = K::OutputReadOnly {
                output: output.clone(),
                source: source.clone(),
            };
            violations.push(kind, || {
                format!(
                    "output {} lies on the read-only bytes of {}: it needs a copy",
                    flow.value_name(&output),
                    flow.value_name(&source)
                )
            });
        }
    }
    placed.sort_unstable();
    let mut furthest: Option<(Place, PosId)> = None;
    for (place, pos) in placed {
        if let Some((before, first)) = furthest
            && let Some(bytes) = overlap(before, place)
        {
            let (first, second) = (flow.value(first), flow.value(pos));
            let kind = K::OutputsOverlap {
                first: first.clone(),
                second: second.clone(),
                bytes,
            };
            violations.push(kind, || {
                format!(
                    "outputs {} and {} share bytes {bytes} of {}",
                    flow.value_name(&first),
                    flow.value_name(&second),
                    space_name(plan, plan.spaces[place.space as usize].space)
                )
            });
        }
        furthest = Some(further(furthest, (place, pos)));
    }
}

/// Outputs named by `input_output_alias` lie on their parameter.
fn check_donations(flow: &Flow<'_>, plan: &Plan, run: &Run, violations: &mut Violations) {
    for &(output, parameter) in &flow.aliases {
        let (Some(end), Some(start)) = (run.bound[output], run.bound[parameter]) else {
            continue;
        };
        let same = end.place.space == start.place.space
            && end.place.extent.start == start.place.extent.start;
        if same || end.place.extent.is_empty() {
            continue;
        }
        let (output, parameter) = (flow.value(output), flow.value(parameter));
        let kind = K::OutputNotOnParameter {
            output: output.clone(),
            parameter: parameter.clone(),
        };
        violations.push(kind, || {
            format!(
                "output {} takes the bytes of parameter {} ({}), but lies at {}",
                flow.value_name(&output),
                flow.value_name(&parameter),
                show_place(plan, start.place),
                show_place(plan, end.place)
            )
        });
    }
}

/// What a buffer is for, by the module.
#[derive(Clone, Copy, Default)]
struct BufferRole {
    parameter: Option<PosId>,
    constant: bool,
    output: bool,
}

fn roles(
    flow: &Flow<'_>,
    plan: &Plan,
    slots: &Slots,
    run: &Run,
    outputs: &[PosId],
) -> SecondaryMap<BufferId, BufferRole> {
    let mut roles = SecondaryMap::filled(plan.buffers.len(), BufferRole::default());
    let module = flow.module;
    for comp in module.planned_computations() {
        for &id in &module.computations[comp].instrs {
            let opcode = module.instrs[id].opcode;
            let is_argument = opcode == Opcode::Parameter && comp == module.entry;
            if !is_argument && opcode != Opcode::Constant {
                continue;
            }
            for pos in flow.arrays(id) {
                let Some(buffer) = slots.buffer(pos) else {
                    continue;
                };
                let role = &mut roles[buffer];
                if is_argument {
                    role.parameter = role.parameter.or(Some(pos));
                } else {
                    role.constant = true;
                }
            }
        }
    }
    for &pos in outputs {
        if let Some(bound) = run.bound[pos] {
            roles[bound.buffer].output = true;
        }
    }
    roles
}

/// Kinds say what the module says. What several buffers share an output's place, any may be called
/// the output.
fn check_kinds(
    flow: &Flow<'_>,
    plan: &Plan,
    roles: &SecondaryMap<BufferId, BufferRole>,
    violations: &mut Violations,
) {
    let mut output_starts: Vec<(u32, u64)> = plan
        .buffers
        .iter()
        .filter(|&(id, _)| roles[id].output)
        .map(|(_, b)| (b.space, b.offset.get()))
        .collect();
    output_starts.sort_unstable();
    for (id, buffer) in plan.buffers.iter() {
        let role = roles[id];
        let holds_output = output_starts
            .binary_search(&(buffer.space, buffer.offset.get()))
            .is_ok();
        let right = match &buffer.kind {
            BufferKind::Parameter {
                number,
                index,
                donated,
            } => role.parameter.is_some_and(|pos| {
                let instr = flow.positions.instr(pos);
                flow.module.instrs[instr].parameter_number() == Some(*number)
                    && flow.positions.index(flow.module, pos) == *index
                    && flow.is_donated(pos) == *donated
            }),
            BufferKind::Constant => role.constant && role.parameter.is_none(),
            BufferKind::Output => holds_output && role.parameter.is_none() && !role.constant,
            BufferKind::Temp => !role.output && role.parameter.is_none() && !role.constant,
            BufferKind::Scratch { instr } => {
                buffer.values.is_empty()
                    && flow.module.instrs.get(*instr).is_some()
                    && flow.is_planned(*instr)
            }
        };
        if !right {
            violations.push(K::WrongKind { buffer: id }, || {
                let found = match (role.parameter, role.constant, role.output) {
                    _ if matches!(buffer.kind, BufferKind::Scratch { .. }) => {
                        "values, or is of no instruction that runs by itself".to_owned()
                    }
                    (Some(pos), ..) => {
                        let given = if flow.is_donated(pos) { "" } else { "not " };
                        format!(
                            "parameter {} ({given}donated)",
                            flow.value_name(&flow.value(pos))
                        )
                    }
                    (_, true, _) => "a constant".to_owned(),
                    (_, _, true) => "an output".to_owned(),
                    _ => "a temporary".to_owned(),
                };
                format!(
                    "the plan calls {} {:?}, but it holds {found}",
                    buffer_name(plan, id),
                    buffer.kind
                )
            });
        }
    }
}

/// The sums of each space are those of its buffers.
fn check_sums(
    plan: &Plan,
    roles: &SecondaryMap<BufferId, BufferRole>,
    violations: &mut Violations,
) {
    #[derive(Default)]
    struct Sums {
        argument: u64,
        output: u64,
        alias: u64,
        constant: u64,
        largest_scratch: u64,
    }
    let mut sums: BTreeMap<u32, Sums> = BTreeMap::new();
    for (id, buffer) in plan.buffers.iter() {
        let role = roles[id];
        let sum = sums.entry(buffer.space).or_default();
        let size = buffer.size.get();
        let add = |is: bool, sum: &mut u64| {
            if is {
                *sum = sum.saturating_add(size);
            }
        };
        add(role.parameter.is_some(), &mut sum.argument);
        add(role.output, &mut sum.output);
        add(role.parameter.is_some() && role.output, &mut sum.alias);
        add(role.constant, &mut sum.constant);
        if matches!(buffer.kind, BufferKind::Scratch { .. }) {
            sum.largest_scratch = sum.largest_scratch.max(size);
        }
    }
    for space in &plan.spaces {
        let none = Sums::default();
        let sum = sums.get(&space.space).unwrap_or(&none);
        let stats = &space.stats;
        let pairs = [
            ("argument_bytes", stats.argument, sum.argument),
            ("output_bytes", stats.output, sum.output),
            ("alias_bytes", stats.alias, sum.alias),
            ("constant_bytes", stats.constant, sum.constant),
            ("scratch_bytes", stats.scratch, sum.largest_scratch),
        ];
        for (name, stated, found) in pairs {
            let stated = stated.get();
            if stated != found {
                let kind = K::WrongStatistic {
                    space: space.space,
                    stated,
                    found,
                };
                violations.push(kind, || {
                    format!(
                        "{name} of {} is stated as {stated}, but by its buffers it is {found}",
                        space_name(plan, space.space)
                    )
                });
            }
        }
        check_bound(plan, space, violations);
    }
}

/// The lower bound is one of the slab, and where the slab is called least, it proves that: in steps of the alignment.
fn check_bound(plan: &Plan, space: &PlanSpace, violations: &mut Violations) {
    let (bound, slab) = (space.lower_bound.get(), space.slab.get());
    let steps = |bytes: u64| bytes.div_ceil(space.alignment.get());
    let says = if slab < bound {
        "more than its slab"
    } else if space.optimal && steps(bound) < steps(slab) {
        "too little to prove, as the plan says, that no slab is smaller than its"
    } else {
        return;
    };
    let kind = K::WrongStatistic {
        space: space.space,
        stated: bound,
        found: slab,
    };
    violations.push(kind, || {
        format!(
            "the lower bound of {} is stated as {bound}, {says} of {slab}",
            space_name(plan, space.space)
        )
    });
}

/// Live intervals lie within the program.
fn check_live_ends(plan: &Plan, run: &Run, violations: &mut Violations) {
    for (id, buffer) in plan.buffers.iter() {
        if buffer.live.iter().any(|l| run.points < l.end) {
            violations.push(K::BadLiveRange { buffer: id }, || {
                format!(
                    "{} is live beyond the program's {} points",
                    buffer_name(plan, id),
                    run.points
                )
            });
        }
    }
}

/// Nothing was passed over: each array of the planned computations got a place.
fn check_complete(flow: &Flow<'_>, run: &Run, violations: &mut Violations) {
    let module = flow.module;
    for comp in module.planned_computations() {
        for &instr in &module.computations[comp].instrs {
            let missed = |&pos: &PosId| run.bound[pos].is_none();
            if flow.arrays(instr).any(|p| missed(&p)) {
                violations.push(K::NotUnderstood { instr }, || {
                    format!("{} was not reached", flow.name(instr))
                });
            }
        }
    }
}
