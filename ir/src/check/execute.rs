//! Abstract execution: what every byte holds at every point of program order.

use std::collections::BTreeMap;

use super::flow::{Flow, Role};
use super::form::{Slots, check_size};
use super::memory::{Memory, Place, Sym};
use super::message::{buffer_name, culprit_clause, reader_clause, space_name};
use super::violation::{Culprit, Reader, ViolationKind as K, Violations};
use super::{InPlace, Promised, invariant, scratch};
use crate::entity::{BufferId, CompId, InstrId, PosId, SecondaryMap};
use crate::module::Module;
use crate::opcode::Opcode;
use crate::pieces::{is_concat_bitcast, piece_order};
use crate::plan::Plan;
use crate::shape::ArrayShape;
use crate::units::Extent;

/// What execution found.
pub(super) struct Run {
    /// Place of every position that got one.
    pub(super) bound: SecondaryMap<PosId, Option<Bound>>,
    /// Points of program order.
    pub(super) points: u32,
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) promised: Vec<Promised>,
    /// Constants and parameters that are not donated, by place; disjoint where the plan is right.
    pub(super) read_only: Vec<(Place, PosId)>,
}

impl Run {
    /// The first read-only bytes in `place`, and what they hold. O(log n).
    pub(super) fn read_only_in(&self, place: Place) -> Option<(Extent, PosId)> {
        let first = self
            .read_only
            .partition_point(|(p, _)| (p.space, p.extent.end) <= (place.space, place.extent.start));
        let &(p, owner) = self.read_only.get(first)?;
        Some((overlap(p, place)?, owner))
    }
}

/// Where a value is and what its bytes must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    pub(super) buffer: BufferId,
    pub(super) place: Place,
    pub(super) sym: Sym,
}

/// Executes the entry computation and all it reaches. O((reads + writes) · log n).
pub(super) fn run(
    flow: &Flow<'_>,
    plan: &Plan,
    slots: &Slots,
    in_place: InPlace,
    violations: &mut Violations,
) -> Run {
    let module = flow.module;
    let mut machine = Machine {
        flow,
        plan,
        slots,
        in_place,
        violations,
        memory: Memory::new(plan.spaces.len()),
        symbols: Vec::new(),
        handed_on: invariant::handed_on(flow),
        entered: SecondaryMap::filled(module.computations.len(), false),
        pending: Vec::new(),
        scratch: scratch::by_instruction(flow, plan),
        misstated: SecondaryMap::filled(plan.buffers.len(), false),
        point: 0,
        run: Run {
            bound: flow.positions.filled(None),
            points: 0,
            reads: 0,
            writes: 0,
            promised: Vec::new(),
            read_only: Vec::new(),
        },
    };
    machine.load();
    machine.execute();
    machine.run.points = machine.point;
    machine.run
}

/// What a symbol stands for.
#[derive(Clone, Debug)]
pub(super) struct Symbol {
    pub(super) kind: SymbolKind,
    /// Point of program order at which it was written.
    pub(super) at: u32,
    /// The symbol of a larger value that these bytes became a part of, unchanged.
    pub(super) part_of: Option<Sym>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum SymbolKind {
    /// A value: defined there, carried by a while, or joined by a conditional.
    Value(PosId),
    /// Whatever a branch of this conditional left.
    Branches(InstrId),
    /// Working bytes of this async operation.
    InFlight(InstrId),
    /// What this instruction leaves in its scratch.
    Scratch(InstrId),
}

/// Working bytes that must stay as they are until an async operation is done.
pub(super) struct Pending {
    pub(super) start: InstrId,
    pub(super) places: Vec<(Place, Sym)>,
    /// What the bytes may hold: working bytes, or results.
    pub(super) allowed: Vec<Sym>,
}

pub(super) struct Machine<'a, 'm> {
    pub(super) flow: &'a Flow<'m>,
    pub(super) plan: &'a Plan,
    pub(super) slots: &'a Slots,
    pub(super) violations: &'a mut Violations,
    pub(super) in_place: InPlace,
    pub(super) memory: Memory,
    pub(super) symbols: Vec<Symbol>,
    /// Which part of a while's result the body hands on at each part of it.
    pub(super) handed_on: SecondaryMap<PosId, Option<PosId>>,
    pub(super) entered: SecondaryMap<CompId, bool>,
    pub(super) pending: Vec<Pending>,
    /// Buffers that were used when the plan says they are not live, and are reported.
    misstated: SecondaryMap<BufferId, bool>,
    /// The scratch buffers of each instruction.
    pub(super) scratch: BTreeMap<InstrId, Vec<BufferId>>,
    pub(super) point: u32,
    pub(super) run: Run,
}

impl<'m> Machine<'_, 'm> {
    pub(super) fn module(&self) -> &'m Module {
        self.flow.module
    }

    /// The state before the program: parameters and constants are in their bytes.
    fn load(&mut self) {
        let module = self.module();
        let mut loaded: Vec<(Place, PosId)> = Vec::new();
        for comp in module.planned_computations() {
            for &id in &module.computations[comp].instrs {
                let is_argument =
                    module.instrs[id].opcode == Opcode::Parameter && comp == module.entry;
                if !is_argument && module.instrs[id].opcode != Opcode::Constant {
                    continue;
                }
                for pos in self.flow.arrays(id) {
                    let Some((buffer, place)) = self.own_place(pos) else {
                        continue;
                    };
                    let sym = self.new_symbol(SymbolKind::Value(pos));
                    self.memory.write(place, sym);
                    self.bind(pos, Bound { buffer, place, sym });
                    if !place.extent.is_empty() {
                        loaded.push((place, pos));
                    }
                }
            }
        }
        loaded.sort_unstable();
        // The entry that reaches furthest, of those that begin before.
        let mut furthest: Option<(Place, PosId)> = None;
        for &(place, pos) in &loaded {
            if let Some((last, first)) = furthest.filter(|(p, _)| overlap(*p, place).is_some()) {
                let bytes = overlap(last, place).unwrap_or(place.extent);
                let (first, second) = (self.flow.value(first), self.flow.value(pos));
                let kind = K::StartOverlap {
                    first: first.clone(),
                    second: second.clone(),
                    bytes,
                };
                self.report(kind, |this| {
                    format!(
                        "{} and {} must both be in memory when the program starts, but share bytes {bytes} of {}",
                        this.flow.value_name(&first),
                        this.flow.value_name(&second),
                        plan_space(this.plan, place)
                    )
                });
            }
            furthest = Some(further(furthest, (place, pos)));
        }
        self.run.read_only = loaded
            .into_iter()
            .filter(|&(_, pos)| !self.flow.is_donated(pos))
            .collect();
    }

    /// Runs one instruction that calls no computation.
    pub(super) fn straight(&mut self, id: InstrId) {
        let opcode = self.module().instrs[id].opcode;
        match opcode {
            // In memory before the program starts, or bound by the caller.
            Opcode::Parameter | Opcode::Constant => {}
            Opcode::CustomCall if is_concat_bitcast(self.module(), id) => self.concatenate(id),
            _ => {
                if reads_operands(self.module(), id) {
                    for operand in self.module().instrs[id].operands.clone() {
                        for pos in self.arrays(operand) {
                            self.read(Reader::Instr(id), pos);
                        }
                    }
                }
                if opcode == Opcode::AsyncDone {
                    self.finish_async(id);
                }
                self.use_scratch(id);
                self.define(id);
            }
        }
        self.point = self.point.saturating_add(1);
    }

    /// The parts of a result that hold arrays, as a list that does not borrow the machine.
    pub(super) fn arrays(&self, id: InstrId) -> Vec<PosId> {
        self.flow.arrays(id).collect()
    }

    /// Binds what the instruction forwards and writes what it defines.
    pub(super) fn define(&mut self, id: InstrId) {
        let mut written: Vec<(Place, PosId, BufferId)> = Vec::new();
        for pos in self.arrays(id) {
            match self.flow.role(pos) {
                Role::Forwards(from) => self.forward(pos, from),
                Role::Defines => {
                    if let Some((buffer, place)) = self.own_place(pos) {
                        written.push((place, pos, buffer));
                    }
                }
                Role::Control => {}
                Role::Unknown => self.not_understood(id),
            }
        }
        if written.is_empty() {
            return;
        }
        written.sort_unstable();
        self.check_results(&written);
        self.check_operands(id, &written);
        self.check_aliases(id);
        let mut last: Option<(Place, Sym)> = None;
        for (place, pos, buffer) in written {
            // Several results may be declared to lie on one operand: they are one value.
            let sym = match last {
                Some((before, sym)) if before == place && !place.extent.is_empty() => sym,
                _ => self.write(pos, place),
            };
            last = Some((place, sym));
            self.bind(pos, Bound { buffer, place, sym });
        }
        self.follow_in_place(id);
    }

    /// A part that forwards an operand which a result of the same instruction replaced in place
    /// stands for the result from now on.
    fn follow_in_place(&mut self, id: InstrId) {
        let opcode = self.module().instrs[id].opcode;
        if opcode != Opcode::CollectivePermuteStart {
            return;
        }
        let parts = self.arrays(id);
        for &pos in &parts {
            let Role::Forwards(_) = self.flow.role(pos) else {
                continue;
            };
            let Some(bound) = self.run.bound[pos] else {
                continue;
            };
            let result = parts.iter().find_map(|&p| {
                let b = self.run.bound[p]?;
                (self.flow.role(p) == Role::Defines && b.place == bound.place).then_some(b)
            });
            if let Some(result) = result {
                self.run.bound[pos] = Some(result);
            }
        }
    }

    /// `ConcatBitcast`: the result is its operands side by side, in the order of the slices that they
    /// are; nothing is written.
    fn concatenate(&mut self, id: InstrId) {
        let result = self.flow.positions.root(id);
        let operands = self.module().instrs[id].operands.clone();
        for &operand in &operands {
            for pos in self.arrays(operand) {
                self.read(Reader::Instr(id), pos);
            }
        }
        let Some((buffer, place)) = self.own_place(result) else {
            return;
        };
        let mut next = place.extent.start;
        let mut pieces = Vec::with_capacity(operands.len());
        for number in piece_order(self.module(), id) {
            let piece = self.flow.positions.root(operands[number]);
            if !self.flow.positions.has_bytes(self.module(), piece) {
                return self.not_understood(id);
            }
            let Some(bound) = self.run.bound[piece] else {
                return;
            };
            let is_next = bound.place.space == place.space && bound.place.extent.start == next;
            next = bound.place.extent.end;
            pieces.push(bound.sym);
            let is_last = pieces.len() == operands.len();
            if !is_next || is_last && next != place.extent.end {
                let (result, piece) = (self.flow.value(result), self.flow.value(piece));
                let kind = K::PiecesApart {
                    result: result.clone(),
                    piece: piece.clone(),
                };
                self.report(kind, |this| {
                    format!(
                        "{} at {} is its operands side by side, but {} lies at {}",
                        this.flow.value_name(&result),
                        show_place(this.plan, place),
                        this.flow.value_name(&piece),
                        show_place(this.plan, bound.place)
                    )
                });
                break;
            }
        }
        let sym = self.new_symbol(SymbolKind::Value(result));
        for piece in pieces {
            self.symbols[piece.0 as usize].part_of = Some(sym);
        }
        self.memory.write(place, sym);
        self.bind(result, Bound { buffer, place, sym });
    }

    /// Gives `pos` the value and place of `from`.
    pub(super) fn forward(&mut self, pos: PosId, from: PosId) {
        if let Some(bound) = self.run.bound[from] {
            self.bind(pos, bound);
        }
    }

    /// Records where `pos` is; checks what layout, size and plan say of it.
    pub(super) fn bind(&mut self, pos: PosId, bound: Bound) {
        self.run.bound[pos] = Some(bound);
        let space = self.plan.spaces[bound.place.space as usize].space;
        let layout = self.flow.array(pos).map_or(0, ArrayShape::memory_space);
        if layout != space {
            let value = self.flow.value(pos);
            let kind = K::WrongSpace {
                value: value.clone(),
                layout,
                found: space,
            };
            self.report(kind, |this| {
                format!(
                    "the layout of {} says memory space {layout}, but its bytes are in {}",
                    this.flow.value_name(&value),
                    space_name(this.plan, space)
                )
            });
        }
        let own = self.slots.buffer(pos);
        if own == Some(bound.buffer) {
            return;
        }
        check_size(self.flow, self.plan, (bound.buffer, pos), self.violations);
        let Some((_, place)) = self.own_place(pos) else {
            return;
        };
        if (place.space, place.extent.start) != (bound.place.space, bound.place.extent.start) {
            let value = self.flow.value(pos);
            let kind = K::ForwardElsewhere {
                value: value.clone(),
            };
            self.report(kind, |this| {
                format!(
                    "the plan puts {} at {}, but it forwards a value at {}",
                    this.flow.value_name(&value),
                    show_place(this.plan, place),
                    show_place(this.plan, bound.place)
                )
            });
        }
    }

    /// The place that the plan gives `pos`.
    pub(super) fn own_place(&self, pos: PosId) -> Option<(BufferId, Place)> {
        let bytes = self.flow.bytes(pos).ok()?;
        self.slots.place(self.plan, pos, bytes)
    }

    pub(super) fn new_symbol(&mut self, kind: SymbolKind) -> Sym {
        let sym = Sym(self.symbols.len() as u32);
        self.symbols.push(Symbol {
            kind,
            at: self.point,
            part_of: None,
        });
        sym
    }

    /// Writes the value `pos` to `place`; checks that the bytes may be written.
    fn write(&mut self, pos: PosId, place: Place) -> Sym {
        self.run.writes += 1;
        if let Some((bytes, owner)) = self.run.read_only_in(place) {
            let at = self.point;
            let (value, writer) = (self.flow.value(owner), self.flow.value(pos));
            let kind = K::ReadOnlyWritten {
                value: value.clone(),
                writer: writer.clone(),
                bytes,
                at,
            };
            self.report(kind, |this| {
                let what = match this.module().instrs[value.instr].opcode {
                    Opcode::Constant => "constant",
                    _ => "parameter that is not donated",
                };
                format!(
                    "{} (at {at}) overwrites bytes {bytes} of {}, a {what}",
                    this.flow.value_name(&writer),
                    this.flow.value_name(&value),
                )
            });
        }
        if let Some(buffer) = self.slots.buffer(pos) {
            self.check_live(buffer, pos, "written");
        }
        let sym = self.new_symbol(SymbolKind::Value(pos));
        self.memory.write(place, sym);
        sym
    }

    /// Checks that the plan says of a buffer that it is live now, if it says anything; each buffer is reported once. What
    /// is handed over between two instructions is live before or after.
    fn check_live(&mut self, buffer: BufferId, pos: PosId, used: &str) {
        let (live, at) = (&self.plan.buffers[buffer].live, self.point);
        let next = live.partition_point(|l| l.end < at);
        let is_live = live.get(next).is_some_and(|l| l.start <= at);
        if is_live || live.is_empty() || std::mem::replace(&mut self.misstated[buffer], true) {
            return;
        }
        let value = self.flow.value(pos);
        self.report(K::BadLiveRange { buffer }, |this| {
            format!(
                "{} is {used} at {at}, when {} is not live by the plan",
                this.flow.value_name(&value),
                buffer_name(this.plan, buffer)
            )
        });
    }

    /// Checks that the value at `pos` is in its bytes.
    pub(super) fn read(&mut self, reader: Reader, pos: PosId) {
        let Some(bound) = self.run.bound[pos] else {
            return;
        };
        self.run.reads += 1;
        self.check_live(bound.buffer, pos, "read");
        let symbols = &self.symbols;
        let bad = self
            .memory
            .first_bad(bound.place, |found| holds(symbols, found, bound.sym));
        let Some(bad) = bad else {
            return;
        };
        let at = self.point;
        let culprit = self.culprit(bad.found);
        let value = self.flow.value(pos);
        let kind = K::Lost {
            reader,
            value: value.clone(),
            bytes: bad.extent,
            culprit: culprit.clone(),
            at,
        };
        self.report(kind, |this| {
            format!(
                "{} (at {at}), but bytes {} of {} {}",
                reader_clause(this.flow, reader, &value),
                bad.extent,
                plan_space(this.plan, bound.place),
                culprit_clause(this.flow, &culprit)
            )
        });
    }

    pub(super) fn culprit(&self, found: Option<Sym>) -> Culprit {
        let Some(sym) = found else {
            return Culprit::Nothing;
        };
        let symbol = &self.symbols[sym.0 as usize];
        match symbol.kind {
            SymbolKind::Value(pos) => Culprit::Value(self.flow.value(pos), symbol.at),
            SymbolKind::Branches(conditional) => Culprit::Branches(conditional),
            SymbolKind::InFlight(start) => Culprit::InFlight(start),
            SymbolKind::Scratch(instr) => Culprit::Scratch(instr, symbol.at),
        }
    }

    /// Adds a violation; the sentence is made only if it is kept.
    pub(super) fn report(&mut self, kind: K, message: impl FnOnce(&Self) -> String) {
        let text = if self.violations.has_room() {
            message(self)
        } else {
            String::new()
        };
        self.violations.push(kind, || text);
    }

    pub(super) fn not_understood(&mut self, instr: InstrId) {
        self.report(K::NotUnderstood { instr }, |this| {
            format!(
                "{} ({}) is of a form that the checker can't follow",
                this.flow.name(instr),
                this.module().instrs[instr].opcode
            )
        });
    }
}

/// Whether bytes that hold `found` hold `wanted`: they do, or `wanted` became a part of it.
pub(super) fn holds(symbols: &[Symbol], found: Sym, wanted: Sym) -> bool {
    let mut sym = wanted;
    loop {
        if sym == found {
            return true;
        }
        match symbols[sym.0 as usize].part_of {
            // A value becomes part of a later one only, so the walk ends.
            Some(whole) if sym < whole => sym = whole,
            _ => return false,
        }
    }
}

/// Whether an instruction looks at the bytes of its operands, rather than passing them on.
fn reads_operands(module: &Module, id: InstrId) -> bool {
    use Opcode as O;
    let instr = &module.instrs[id];
    match instr.opcode {
        O::Tuple
        | O::GetTupleElement
        | O::Bitcast
        | O::AddDependency
        | O::OptimizationBarrier
        | O::Domain
        | O::AfterAll => false,
        O::Copy => module.shapes.tuple(instr.shape).is_none(),
        _ => true,
    }
}

/// The bytes two places share.
pub(super) fn overlap(a: Place, b: Place) -> Option<Extent> {
    let start = a.extent.start.max(b.extent.start);
    let end = a.extent.end.min(b.extent.end);
    (a.space == b.space && start < end).then_some(Extent { start, end })
}

/// Of entries in order of their begins, the one that reaches furthest once `next` has come.
pub(super) fn further(furthest: Option<(Place, PosId)>, next: (Place, PosId)) -> (Place, PosId) {
    let end = |(place, _): (Place, PosId)| (place.space, place.extent.end);
    furthest.filter(|&it| end(it) > end(next)).unwrap_or(next)
}

/// `bytes [0, 128) of hbm`.
pub(super) fn show_place(plan: &Plan, place: Place) -> String {
    format!("bytes {} of {}", place.extent, plan_space(plan, place))
}

pub(super) fn plan_space(plan: &Plan, place: Place) -> String {
    space_name(plan, plan.spaces[place.space as usize].space)
}
