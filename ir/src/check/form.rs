//! The plan as data: every value that needs bytes has one slot, and every slot is a lawful place.

use std::collections::BTreeMap;

use super::SpaceReport;
use super::flow::{Flow, Role};
use super::memory::Place;
use super::message::{buffer_name, space_name};
use super::violation::{ViolationKind as K, Violations};
use crate::entity::{BufferId, PosId, SecondaryMap};
use crate::plan::{Plan, PlanBuffer, PlanSpace, PlanValue};
use crate::target::Target;
use crate::units::{Alignment, Bytes, Extent};

/// Where the plan puts values.
pub(super) struct Slots {
    /// Buffer of every position that the plan names and that has bytes.
    buffer: SecondaryMap<PosId, Option<BufferId>>,
    /// Number of every buffer's space in the plan's list.
    space: SecondaryMap<BufferId, Option<u32>>,
}

impl Slots {
    /// The buffer of a position.
    pub(super) fn buffer(&self, pos: PosId) -> Option<BufferId> {
        self.buffer[pos]
    }

    /// The first `bytes` bytes of the buffer that holds `pos`.
    pub(super) fn place(&self, plan: &Plan, pos: PosId, bytes: u64) -> Option<(BufferId, Place)> {
        let id = self.buffer[pos]?;
        Some((id, self.start_of(plan, id, bytes)?))
    }

    /// All bytes of a buffer.
    pub(super) fn whole(&self, plan: &Plan, id: BufferId) -> Option<Place> {
        self.start_of(plan, id, plan.buffers[id].size.get())
    }

    /// The first `bytes` bytes of a buffer.
    fn start_of(&self, plan: &Plan, id: BufferId, bytes: u64) -> Option<Place> {
        let start = plan.buffers[id].offset.get();
        let extent = Extent {
            start,
            end: start.checked_add(bytes)?,
        };
        let space = self.space[id]?;
        Some(Place { space, extent })
    }
}

/// Checks section "Form" except what needs the places of forwarded values. O(n log n).
pub(super) fn check(
    flow: &Flow<'_>,
    plan: &Plan,
    target: &Target,
    violations: &mut Violations,
) -> Slots {
    let mut slots = Slots {
        buffer: flow.positions.filled(None),
        space: SecondaryMap::filled(plan.buffers.len(), None),
    };
    let spaces = space_numbers(plan);
    if spaces.len() < plan.spaces.len() {
        let mut listed = plan.spaces.iter().enumerate();
        if let Some((_, again)) = listed.find(|(n, s)| spaces[&s.space] != *n) {
            let space = again.space;
            violations.push(K::DuplicateSpace { space }, || {
                format!("the plan lists memory space {space} twice")
            });
        }
    }
    for (id, buffer) in plan.buffers.iter() {
        let space = spaces.get(&buffer.space).copied();
        slots.space[id] = space.map(|n| n as u32);
        let planned = space.map(|n| &plan.spaces[n]);
        check_place(plan, planned, target, id, violations);
        check_live(plan, id, violations);
        for value in &buffer.values {
            match position(flow, value) {
                Err(why) => {
                    let kind = K::UnknownValue {
                        buffer: id,
                        value: value.clone(),
                    };
                    violations.push(kind, || {
                        let value = flow.value_name(value);
                        format!("{} holds {value}, {why}", buffer_name(plan, id))
                    });
                }
                Ok(pos) => assign(flow, plan, &mut slots, (id, pos), violations),
            }
        }
    }
    check_slabs(plan, &spaces, violations);
    for (id, _) in flow
        .module
        .instrs
        .iter()
        .filter(|(i, _)| flow.is_planned(*i))
    {
        for pos in flow.arrays(id) {
            check_slot(flow, &slots, pos, violations);
        }
    }
    slots
}

/// How far each space is used, and whether its slab fits the target.
pub(super) fn space_reports(plan: &Plan, target: &Target) -> Vec<SpaceReport> {
    let ends = slab_ends(plan);
    plan.spaces
        .iter()
        .zip(ends)
        .map(|(space, used)| {
            let capacity = target
                .space(space.space)
                .map_or(space.capacity, |s| s.capacity);
            SpaceReport {
                space: space.space,
                used: Bytes::new(used).unwrap_or_default(),
                capacity,
                fits: space.slab <= capacity,
            }
        })
        .collect()
}

/// The position that a plan's value names, or why it can't have bytes.
fn position(flow: &Flow<'_>, value: &PlanValue) -> Result<PosId, &'static str> {
    if flow.module.instrs.get(value.instr).is_none() {
        return Err("which the module does not have");
    }
    if !flow.is_planned(value.instr) {
        return Err("which runs inside one instruction and has no bytes of its own");
    }
    let pos = flow
        .positions
        .at(flow.module, value.instr, &value.index)
        .ok_or("but its shape has no such part")?;
    if !flow.positions.has_bytes(flow.module, pos) {
        return Err("which is not an array and has no bytes");
    }
    Ok(pos)
}

/// Enters a value into its slot; checks that it has only one, and its size.
fn assign(
    flow: &Flow<'_>,
    plan: &Plan,
    slots: &mut Slots,
    (id, pos): (BufferId, PosId),
    violations: &mut Violations,
) {
    if let Some(first) = slots.buffer[pos] {
        let kind = K::DuplicateSlot {
            value: flow.value(pos),
            first,
            second: id,
        };
        violations.push(kind, || {
            format!(
                "{} is in {} and again in {}",
                flow.value_name(&flow.value(pos)),
                buffer_name(plan, first),
                buffer_name(plan, id)
            )
        });
        return;
    }
    slots.buffer[pos] = Some(id);
    check_size(flow, plan, (id, pos), violations);
}

/// Checks that a buffer has room for a value that lies in it.
pub(super) fn check_size(
    flow: &Flow<'_>,
    plan: &Plan,
    (buffer, pos): (BufferId, PosId),
    violations: &mut Violations,
) {
    let size = plan.buffers[buffer].size.get();
    let Ok(needed) = flow.bytes(pos) else {
        return;
    };
    if size < needed {
        let value = flow.value(pos);
        let kind = K::TooSmall {
            buffer,
            value: value.clone(),
            needed,
        };
        violations.push(kind, || {
            format!(
                "{} holds {size} bytes, but {} takes {needed} with padding",
                buffer_name(plan, buffer),
                flow.value_name(&value)
            )
        });
    }
}

/// The place of every memory space in the plan's list.
fn space_numbers(plan: &Plan) -> BTreeMap<u32, usize> {
    let mut numbers = BTreeMap::new();
    for (n, space) in plan.spaces.iter().enumerate() {
        numbers.entry(space.space).or_insert(n);
    }
    numbers
}

fn check_place(
    plan: &Plan,
    planned: Option<&PlanSpace>,
    target: &Target,
    id: BufferId,
    violations: &mut Violations,
) {
    let PlanBuffer {
        space,
        offset,
        size,
        ..
    } = plan.buffers[id];
    let (Some(planned), Some(machine)) = (planned, target.space(space)) else {
        violations.push(K::UnknownSpace { buffer: id, space }, || {
            let owner = if planned.is_none() {
                "the plan's list of spaces"
            } else {
                "the target"
            };
            format!(
                "{} lies in memory space {space}, which {owner} does not have",
                buffer_name(plan, id)
            )
        });
        return;
    };
    let alignment = planned.alignment.max(machine.alignment);
    if !size.is_zero() && !alignment.is_aligned(offset) {
        let alignment = alignment.get();
        violations.push(
            K::Misaligned {
                buffer: id,
                alignment,
            },
            || {
                format!(
                    "{} does not start at a multiple of {alignment}",
                    buffer_name(plan, id)
                )
            },
        );
    }
    let slab = planned.slab.get();
    let fits = Extent::new(offset, size).is_ok_and(|e| e.end <= slab);
    if !fits {
        violations.push(K::OutsideSlab { buffer: id, slab }, || {
            format!(
                "{} reaches beyond its slab of {slab} bytes",
                buffer_name(plan, id)
            )
        });
    }
}

fn check_live(plan: &Plan, id: BufferId, violations: &mut Violations) {
    let live = &plan.buffers[id].live;
    let ordered = live.windows(2).all(|w| w[0].end <= w[1].start);
    if !ordered || live.iter().any(|l| l.end <= l.start) {
        violations.push(K::BadLiveRange { buffer: id }, || {
            format!(
                "the live intervals of {} are empty, overlapping or out of order",
                buffer_name(plan, id)
            )
        });
    }
}

/// Per space, the end of its last buffer.
fn slab_ends(plan: &Plan) -> Vec<u64> {
    let mut ends = vec![0; plan.spaces.len()];
    let numbers = space_numbers(plan);
    for buffer in plan.buffers.values() {
        if let Some(&n) = numbers.get(&buffer.space)
            && let Ok(extent) = Extent::new(buffer.offset, buffer.size)
        {
            ends[n] = extent.end.max(ends[n]);
        }
    }
    ends
}

fn check_slabs(plan: &Plan, spaces: &BTreeMap<u32, usize>, violations: &mut Violations) {
    let ends = slab_ends(plan);
    for &n in spaces.values() {
        let (space, end) = (&plan.spaces[n], ends[n]);
        let rounded = round_up(space.alignment, end);
        let slab = space.slab.get();
        if slab > rounded {
            let kind = K::LooseSlab {
                space: space.space,
                slab,
                end,
            };
            violations.push(kind, || {
                format!(
                    "the slab of {} is {slab} bytes, but its last buffer ends at {end}",
                    space_name(plan, space.space)
                )
            });
        }
    }
}

fn round_up(alignment: Alignment, n: u64) -> u64 {
    Bytes::new(n)
        .and_then(|b| alignment.round_up(b))
        .map_or(u64::MAX, Bytes::get)
}

/// Whether a position that needs a slot has one, of the right space.
fn check_slot(flow: &Flow<'_>, slots: &Slots, pos: PosId, violations: &mut Violations) {
    if flow.role(pos) != Role::Defines {
        return;
    }
    let value = flow.value(pos);
    if let Err(error) = flow.bytes(pos) {
        violations.push(
            K::NoSize {
                value: value.clone(),
            },
            || format!("{} has no size: {error}", flow.value_name(&value)),
        );
    } else if slots.buffer(pos).is_none() {
        violations.push(
            K::MissingSlot {
                value: value.clone(),
            },
            || {
                format!(
                    "{} needs bytes and is in no buffer",
                    flow.value_name(&value)
                )
            },
        );
    }
}
