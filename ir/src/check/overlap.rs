//! How the results of one instruction may lie to each other and to its operands.

use super::execute::{Machine, further, overlap, plan_space, show_place};
use super::flow::Role;
use super::memory::Place;
use super::violation::ViolationKind as K;
use super::{InPlace, Promised, in_place};
use crate::entity::{BufferId, InstrId, PosId};
use crate::units::Extent;

impl Machine<'_, '_> {
    /// Results of one instruction are disjoint, unless declared to lie on one operand.
    pub(super) fn check_results(&mut self, written: &[(Place, PosId, BufferId)]) {
        let mut furthest: Option<(Place, PosId)> = None;
        for &(place, pos, _) in written {
            if let Some((before, first)) = furthest
                && let Some(bytes) = overlap(before, place)
                && !(before == place && self.on_one_operand(first, pos))
            {
                let at = self.point;
                let (first, second) = (self.flow.value(first), self.flow.value(pos));
                let kind = K::ResultsOverlap {
                    first: first.clone(),
                    second: second.clone(),
                    bytes,
                    at,
                };
                self.report(kind, |this| {
                    format!(
                        "{} and {} are written by one instruction (at {at}), but share bytes {bytes} of {}",
                        this.flow.value_name(&first),
                        this.flow.value_name(&second),
                        plan_space(this.plan, place)
                    )
                });
            }
            furthest = Some(further(furthest, (place, pos)));
        }
    }

    /// Whether two results are declared to lie on the same part of an operand. Two updates that a
    /// fusion implies are two values, even where both are of one parameter.
    fn on_one_operand(&self, a: PosId, b: PosId) -> bool {
        let pairs = in_place::own_pairs(self.flow, self.flow.positions.instr(a));
        let of = |pos| {
            let node = self.flow.positions.node_of(pos);
            pairs
                .iter()
                .find(|p| p.output == node)
                .map(|p| (p.operand, p.operand_node))
        };
        of(a).is_some() && of(a) == of(b)
    }

    /// A result touches an operand on exactly the same bytes and in step, or not at all.
    pub(super) fn check_operands(&mut self, id: InstrId, written: &[(Place, PosId, BufferId)]) {
        let operands = self.module().instrs[id].operands.clone();
        for (number, &operand) in operands.iter().enumerate() {
            for from in self.arrays(operand) {
                let Some(read) = self.seen_place(from) else {
                    continue;
                };
                // `written` is sorted and disjoint up to what `check_results` reported.
                let first = written.partition_point(|(p, ..)| {
                    (p.space, p.extent.end) <= (read.space, read.extent.start)
                });
                for &(place, result, _) in &written[first..] {
                    if (place.space, place.extent.start) >= (read.space, read.extent.end) {
                        break;
                    }
                    if let Some(bytes) = overlap(place, read) {
                        self.check_pair(number, (result, from), place == read, bytes);
                    }
                }
            }
        }
    }

    /// The bytes of a value as the shape at `pos` sees them: a bitcast may see more or fewer than
    /// were written.
    pub(super) fn seen_place(&self, pos: PosId) -> Option<Place> {
        let Place { space, extent } = self.run.bound[pos]?.place;
        let bytes = self.flow.bytes(pos).ok()?;
        let extent = Extent {
            start: extent.start,
            end: extent.start.checked_add(bytes)?,
        };
        Some(Place { space, extent })
    }

    /// `result` overlaps operand part `from` of its own instruction.
    fn check_pair(
        &mut self,
        number: usize,
        (result, from): (PosId, PosId),
        same: bool,
        bytes: Extent,
    ) {
        let declared = || {
            let id = self.flow.positions.instr(result);
            let pair = in_place::Pair {
                output: self.flow.positions.node_of(result),
                operand: number as u32,
                operand_node: self.flow.positions.node_of(from),
            };
            self.starts_alike(result, from) && in_place::must_pairs(self.flow, id).contains(&pair)
        };
        if same && in_place::may_replace(self.flow, result, number, from) || declared() {
            return;
        }
        let at = self.point;
        let in_text = same && in_place::is_promised(self.flow, result, number, from);
        let trusted = in_text || same && self.in_place == InPlace::Promise;
        let (result, operand) = (self.flow.value(result), self.flow.value(from));
        if trusted {
            self.run.promised.push(Promised {
                result,
                operand,
                in_text,
            });
            return;
        }
        let (kind, what) = if same {
            let kind = K::UnsafeInPlace {
                result: result.clone(),
                operand: operand.clone(),
                bytes,
                at,
            };
            (
                kind,
                "replaces its operand, of which it may still read other elements,",
            )
        } else {
            let kind = K::PartialOverlap {
                result: result.clone(),
                operand: operand.clone(),
                bytes,
                at,
            };
            (kind, "partly overlaps its operand")
        };
        self.report(kind, |this| {
            format!(
                "{} (at {at}) {what} {} in bytes {bytes}",
                this.flow.value_name(&result),
                this.flow.value_name(&operand),
            )
        });
    }

    /// Whether a result lies at the start of the bytes of an operand part.
    fn starts_alike(&self, result: PosId, from: PosId) -> bool {
        let place = self.own_place(result).map(|(_, p)| p);
        let operand = self.run.bound[from].map(|b| b.place);
        matches!((place, operand), (Some(a), Some(b))
            if (a.space, a.extent.start) == (b.space, b.extent.start))
    }

    /// What is written in place lies on its operand.
    pub(super) fn check_aliases(&mut self, id: InstrId) {
        for pair in in_place::must_pairs(self.flow, id) {
            let instr = &self.module().instrs[id];
            let Some(&operand) = instr.operands.get(pair.operand as usize) else {
                continue;
            };
            let in_shape = |i: InstrId, node| {
                node < self
                    .module()
                    .shapes
                    .node_count(self.module().instrs[i].shape)
            };
            if !in_shape(id, pair.output) || !in_shape(operand, pair.operand_node) {
                continue;
            }
            let result = self.flow.positions.node(id, pair.output);
            let from = self.flow.positions.node(operand, pair.operand_node);
            let (Some((_, place)), Some(read)) = (self.own_place(result), self.run.bound[from])
            else {
                continue;
            };
            if self.flow.role(result) != Role::Defines
                || place.extent.is_empty()
                || self.starts_alike(result, from)
            {
                continue;
            }
            let (result, operand) = (self.flow.value(result), self.flow.value(from));
            let kind = K::AliasDropped {
                result: result.clone(),
                operand: operand.clone(),
            };
            self.report(kind, |this| {
                format!(
                    "{} is written in place and must lie on {} ({}), but lies at {}",
                    this.flow.value_name(&result),
                    this.flow.value_name(&operand),
                    show_place(this.plan, read.place),
                    show_place(this.plan, place)
                )
            });
        }
    }
}
