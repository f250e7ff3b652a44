//! When every value's bytes are needed, exactly, in program order.
//!
//! A value is live from the instruction that defines it to its last use, both included. Because one
//! number line holds the inside of loops and branches too, the range of a value has holes:
//!
//! * What is used inside a loop but defined outside it is live through the whole loop, since the
//!   next iteration reads it again.
//! * A loop's carry is live from the start of the condition to its last read in the body, and again
//!   from the while on; between that read and the definition of the next one its bytes are free.
//! * Branches of a conditional exclude each other: what only branch 1 reads is dead in branch 0.
//! * Operands and results of an asynchronous operation are live until its done. So are the bytes of
//!   all values inside it, though these follow one another as in any computation.
//!
//! Forwarding instructions (tuple, get-tuple-element, bitcast, ...) read no bytes and are no uses.

use fixedbitset::FixedBitSet;
use smallvec::SmallVec;

use slabplan_ir::attr::AttrName;
use slabplan_ir::entity::SecondaryMap;
use slabplan_ir::plan::LiveInterval;
use slabplan_ir::{CompId, InstrId, Module, Opcode};

use crate::dataflow::{Dataflow, ValueId, ValueKind, is_forwarding};
use crate::inplace::in_place_pairs;
use crate::order::{ProgramOrder, Span};
use crate::ports::Ports;

/// The tails of one value.
type Tails = SmallVec<[Tail; 1]>;

/// Half-open intervals of program order, ascending and disjoint.
pub type Ranges = SmallVec<[LiveInterval; 2]>;

/// What an asynchronous operation adds to the live ranges of the values inside it: the time from its
/// end in program order to its done, since it may run at any moment before that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The computation of the operation.
    pub operation: CompId,
    /// From the end of the computation to one past the done.
    pub interval: LiveInterval,
}

/// A value defined inside an asynchronous operation.
#[derive(Clone, Debug)]
struct Inside {
    value: ValueId,
    comp: CompId,
    /// Its live range without the tails.
    in_sequence: Ranges,
}

/// Live ranges of all values of a module.
#[derive(Clone, Debug)]
pub struct Liveness {
    of: SecondaryMap<ValueId, Ranges>,
    /// Values inside asynchronous operations, ascending.
    inside: Vec<Inside>,
    /// The tails of the operations around each computation, innermost first.
    tails: SecondaryMap<CompId, Tails>,
    /// Values that a computation returns or hands on, sorted.
    live_out: Vec<(CompId, ValueId)>,
}

impl Liveness {
    /// Computes the live range of every value.
    ///
    /// O(uses + values, each times the computations it is handed through) apart from sorting.
    pub fn new(module: &Module, order: &ProgramOrder, flow: &Dataflow, ports: &Ports) -> Self {
        let in_flight = InFlight::new(module, order, flow);
        let mut uses = Uses::new(module, order, flow, &in_flight);
        for &instr in order.sequence() {
            uses.add_instr(instr);
        }
        for &comp in &uses.planned.clone() {
            uses.add_root(comp);
        }
        let mut live_out = std::mem::take(&mut uses.live_out);
        live_out.sort_unstable();
        live_out.dedup();

        let mut of = SecondaryMap::filled(flow.values.len(), Ranges::new());
        let mut inside = Vec::new();
        let mut apart = later_branches(module, order);
        apart.extend(in_flight.tail_starts());
        let mut climb = Climb::new(module, order, flow, ports, &uses.planned);
        for (value, comp, end) in uses.last() {
            climb.add(value, comp, end, &mut of[value]);
        }
        for value in flow.values.keys() {
            let ranges = &mut of[value];
            climb.add_definition(value, ranges);
            if ports.is_pinned(value) {
                ranges.push(interval(0, order.len()));
            }
            join_apart(ranges, &apart);
            let comp = module.instrs[flow.instr_of(value)].computation;
            let tails = &in_flight.tails[comp];
            if !tails.is_empty() {
                inside.push(Inside {
                    value,
                    comp,
                    in_sequence: ranges.clone(),
                });
                ranges.extend(tails.iter().map(|t| t.interval));
                join_apart(ranges, &apart);
            }
        }
        Self {
            of,
            inside,
            tails: in_flight.tails,
            live_out,
        }
    }

    /// The live range of `value`.
    pub fn of(&self, value: ValueId) -> &[LiveInterval] {
        &self.of[value]
    }

    /// The live range of `value` as other values inside the same asynchronous operation see it:
    /// without the time from the operation's end to its done. Of all others the live range.
    pub fn in_sequence(&self, value: ValueId) -> &[LiveInterval] {
        match self.inside(value) {
            Some(inside) => &inside.in_sequence,
            None => &self.of[value],
        }
    }

    /// What the asynchronous operations around `value` add to its live range.
    pub fn tails(&self, value: ValueId) -> &[Tail] {
        self.inside(value).map_or(&[], |i| &self.tails[i.comp])
    }

    /// When instruction number `at` of computation `comp` may run: then, or later on if it belongs to an
    /// asynchronous operation.
    pub(crate) fn running(&self, comp: CompId, at: u32) -> Ranges {
        let mut ranges = Ranges::new();
        ranges.push(interval(at, at + 1));
        ranges.extend(self.tails[comp].iter().map(|t| t.interval));
        ranges
    }

    fn inside(&self, value: ValueId) -> Option<&Inside> {
        let at = self.inside.binary_search_by_key(&value, |i| i.value);
        at.ok().map(|k| &self.inside[k])
    }

    /// Whether `comp` returns `value`, or hands it on as a loop's condition does a carry: it is then needed past the end
    /// of the computation.
    pub fn is_live_out(&self, comp: CompId, value: ValueId) -> bool {
        self.live_out.binary_search(&(comp, value)).is_ok()
    }
}

/// `[start, end)`.
pub(crate) fn interval(start: u32, end: u32) -> LiveInterval {
    LiveInterval { start, end }
}

/// Sorts and joins intervals that overlap or touch; drops empty ones.
pub(crate) fn normalise(ranges: &mut Ranges) {
    join(ranges, |_| true);
}

/// As [`normalise`], but an interval that ends with one branch and one that starts with the next stay
/// apart: the branches exclude each other, so the value may be dead at the end of the first. Likewise
/// where an asynchronous operation ends.
fn join_apart(ranges: &mut Ranges, apart: &FixedBitSet) {
    join(ranges, |start| !apart.contains(start as usize));
}

/// Joins intervals that overlap, and those that touch where `joins` says so of the border.
fn join(ranges: &mut Ranges, joins: impl Fn(u32) -> bool) {
    ranges.retain(|r| r.start < r.end);
    ranges.sort_unstable();
    let mut kept = 0;
    for k in 1..ranges.len() {
        let (start, end) = (ranges[k].start, ranges[kept].end);
        if start < end || (start == end && joins(start)) {
            ranges[kept].end = end.max(ranges[k].end);
        } else {
            kept += 1;
            ranges[kept] = ranges[k];
        }
    }
    ranges.truncate(kept + 1);
}

/// The numbers at which branches other than the first of a conditional begin.
fn later_branches(module: &Module, order: &ProgramOrder) -> FixedBitSet {
    let mut starts = FixedBitSet::with_capacity(order.len() as usize + 1);
    for &instr in order.sequence() {
        for &branch in module.instrs[instr].branches().iter().skip(1) {
            starts.insert(order.span(branch).start as usize);
        }
    }
    starts
}

/// Collects uses: (value, computation of the use, one past the moment of the use).
struct Uses<'a> {
    module: &'a Module,
    order: &'a ProgramOrder,
    flow: &'a Dataflow,
    in_flight: &'a InFlight,
    planned: Vec<CompId>,
    found: Vec<(ValueId, CompId, u32)>,
    /// Values that a computation returns or hands on.
    live_out: Vec<(CompId, ValueId)>,
}

impl<'a> Uses<'a> {
    fn new(
        module: &'a Module,
        order: &'a ProgramOrder,
        flow: &'a Dataflow,
        in_flight: &'a InFlight,
    ) -> Self {
        Self {
            module,
            order,
            flow,
            in_flight,
            planned: module.planned_computations(),
            found: Vec::new(),
            live_out: Vec::new(),
        }
    }

    fn add_instr(&mut self, instr: InstrId) {
        use Opcode as O;
        let i = &self.module.instrs[instr];
        let after = self.order.at(instr) + 1;
        match i.opcode {
            _ if is_forwarding(self.module, instr) => {}
            O::While => self.add_while(instr, i.operands[0]),
            // The operands are handed over as the callee begins; what happens to them inside counts there.
            O::Conditional => {
                let entry = self.order.entry_of(self.module, instr);
                self.add_leaves(instr, i.operands[0], after);
                for &operand in i.operands.iter().skip(1) {
                    self.add_leaves(instr, operand, entry);
                }
            }
            O::Call => {
                let entry = self.order.entry_of(self.module, instr);
                for &operand in &i.operands {
                    self.add_leaves(instr, operand, entry);
                }
            }
            O::AsyncStart | O::AsyncUpdate | O::AsyncDone => {
                for &operand in &i.operands {
                    for (_, value) in self.flow.leaves(operand) {
                        if !self.in_flight.overwrites(self.module, instr, value) {
                            self.found.push((value, i.computation, after));
                        }
                    }
                }
            }
            _ => {
                for &operand in &i.operands {
                    self.add_leaves(instr, operand, after);
                }
            }
        }
    }

    /// What the loop changes is handed over at its start; what it passes through stays needed. The condition hands its
    /// carries on to the body and to the result, whether it reads them or not.
    fn add_while(&mut self, instr: InstrId, init: InstrId) {
        let i = &self.module.instrs[instr];
        let comp = i.computation;
        let condition = i.comp(AttrName::Condition);
        let entry = self.order.entry_of(self.module, instr);
        let carried = self.flow.positions.of(instr).map(|p| self.flow.at(p));
        let initial = self.flow.positions.of(init).map(|p| self.flow.at(p));
        for (value, carry) in initial.zip(carried) {
            let Some(value) = value else { continue };
            if carry == Some(value) {
                self.found.push((value, comp, self.order.at(instr)));
                continue;
            }
            self.found.push((value, comp, entry));
            if let (Some(carry), Some(condition)) = (carry, condition) {
                self.add_live_out(condition, carry);
            }
        }
    }

    fn add_leaves(&mut self, user: InstrId, operand: InstrId, end: u32) {
        let comp = self.module.instrs[user].computation;
        for (_, value) in self.flow.leaves(operand) {
            self.found.push((value, comp, end));
        }
    }

    fn add_root(&mut self, comp: CompId) {
        for (_, value) in self.flow.leaves(self.module.computations[comp].root) {
            self.add_live_out(comp, value);
        }
    }

    fn add_live_out(&mut self, comp: CompId, value: ValueId) {
        self.found.push((value, comp, self.order.span(comp).end));
        self.live_out.push((comp, value));
    }

    /// The last use of every value in every computation, sorted by value.
    fn last(mut self) -> Vec<(ValueId, CompId, u32)> {
        self.found.sort_unstable();
        let mut last: Vec<(ValueId, CompId, u32)> = Vec::with_capacity(self.found.len());
        for f in self.found {
            match last.last_mut() {
                Some(l) if (l.0, l.1) == (f.0, f.1) => l.2 = f.2,
                _ => last.push(f),
            }
        }
        last
    }
}

/// Turns a use into live intervals by climbing from the computation of the use to that of the definition.
struct Climb<'a> {
    module: &'a Module,
    order: &'a ProgramOrder,
    flow: &'a Dataflow,
    ports: &'a Ports,
    /// The outermost computation whose result holds what a computation returns, as it is.
    returns_to: SecondaryMap<CompId, CompId>,
    /// The last value with which a climb left a computation: from there on, all its climbs are the same.
    left_with: SecondaryMap<CompId, Option<ValueId>>,
}

impl<'a> Climb<'a> {
    fn new(
        module: &'a Module,
        order: &'a ProgramOrder,
        flow: &'a Dataflow,
        ports: &'a Ports,
        planned: &[CompId],
    ) -> Self {
        let mut returns_to = SecondaryMap::filled(module.computations.len(), module.entry);
        // Callers come before what they call.
        let mut outer_first = planned.to_vec();
        outer_first.sort_by_key(|&c| (order.span(c).start, std::cmp::Reverse(order.span(c).end)));
        for comp in outer_first {
            returns_to[comp] = match order.caller(comp).map(|c| &module.instrs[c]) {
                Some(i) if returns_values_themselves(i.opcode) => returns_to[i.computation],
                _ => comp,
            };
        }
        Self {
            module,
            order,
            flow,
            ports,
            returns_to,
            left_with: SecondaryMap::filled(module.computations.len(), None),
        }
    }

    /// The value is live at its definition even if nobody uses it. A loop's carry always is used: its condition hands it
    /// on.
    fn add_definition(&self, value: ValueId, out: &mut Ranges) {
        if !matches!(self.flow.values[value].kind, ValueKind::LoopCarry(_)) {
            out.push(interval(self.start(value), self.start(value) + 1));
        }
    }

    /// Where a value other than a loop's carry begins. An argument's bytes are taken from the start
    /// of the program.
    fn start(&self, value: ValueId) -> u32 {
        if self.ports.is_parameter(value) {
            0
        } else {
            self.order.at(self.flow.instr_of(value))
        }
    }

    /// Adds the use of `value` in `comp` up to `end`. The uses of one value must be added one after another.
    fn add(&mut self, value: ValueId, mut comp: CompId, mut end: u32, out: &mut Ranges) {
        let (module, order) = (self.module, self.order);
        let carry = match self.flow.values[value].kind {
            ValueKind::LoopCarry(w) => Some(w),
            _ => None,
        };
        let home = match carry {
            Some(w) => module.instrs[w].computation,
            None => module.instrs[self.flow.instr_of(value)].computation,
        };
        loop {
            if self.is_visible_from(home, comp) {
                let start = carry.map_or_else(|| self.start(value), |w| order.at(w));
                return out.push(interval(start, end));
            }
            let Some(caller) = order.caller(comp) else {
                return out.push(interval(0, end));
            };
            let span = order.span(comp);
            if carry == Some(caller) {
                return out.push(interval(span.start, end));
            }
            let entry = order.entry_of(module, caller);
            if module.instrs[caller].opcode == Opcode::While {
                out.push(interval(entry, order.at(caller)));
            } else {
                out.push(interval(span.start, end));
            }
            if self.left_with[comp].replace(value) == Some(value) {
                return;
            }
            comp = module.instrs[caller].computation;
            end = entry;
        }
    }

    /// Whether `comp` is `home`, or calls it by instructions that return the value itself.
    fn is_visible_from(&self, home: CompId, comp: CompId) -> bool {
        let (span, inner) = (self.order.span(comp), self.order.span(home));
        let outer = self.order.span(self.returns_to[home]);
        let holds = |a: Span, b: Span| a.start <= b.start && b.end <= a.end;
        holds(span, inner) && holds(outer, span)
    }
}

/// Whether what a called computation returns is the caller's result as it is: of a conditional with
/// one branch it is.
fn returns_values_themselves(caller: Opcode) -> bool {
    matches!(
        caller,
        Opcode::Call | Opcode::AsyncStart | Opcode::Conditional
    )
}

/// Asynchronous operations: what is defined inside their computation is live until the done.
struct InFlight {
    /// The operation that an async-start, -update or -done belongs to.
    start_of: SecondaryMap<InstrId, Option<InstrId>>,
    /// What every computation inside asynchronous operations owes to them, innermost first.
    tails: SecondaryMap<CompId, Tails>,
    /// Values from outside that an operation writes over, by its computation, sorted.
    overwritten: Vec<(CompId, ValueId)>,
}

impl InFlight {
    fn new(module: &Module, order: &ProgramOrder, flow: &Dataflow) -> Self {
        let (start_of, done) = starts_and_dones(module, order);
        let mut this = Self {
            start_of,
            tails: SecondaryMap::filled(module.computations.len(), Tails::new()),
            overwritten: Vec::new(),
        };
        // Callers before callees, so that what an asynchronous computation calls is in flight with it.
        for comp in module.planned_computations().into_iter().rev() {
            let Some(caller) = order.caller(comp) else {
                continue;
            };
            let mut tails = this.tails[module.instrs[caller].computation].clone();
            if module.instrs[caller].opcode == Opcode::AsyncStart {
                let end = done[caller].map_or(order.len(), |d: InstrId| order.at(d) + 1);
                let tail = Tail {
                    operation: comp,
                    interval: interval(order.span(comp).end, end),
                };
                tails.insert(0, tail);
                this.note_overwritten(module, flow, comp);
            }
            this.tails[comp] = tails;
        }
        this.overwritten.sort_unstable();
        this
    }

    /// The bytes of an operand that is written in place belong to the result from then on, and the
    /// result holds them until the done.
    fn note_overwritten(&mut self, module: &Module, flow: &Dataflow, comp: CompId) {
        for &instr in &module.computations[comp].instrs {
            for (_, over) in in_place_pairs(module, instr) {
                let operand = module.instrs[instr].operands.get(over.operand as usize);
                let pos = operand.and_then(|&o| flow.positions.at(module, o, &over.index));
                self.overwritten
                    .extend(pos.and_then(|p| flow.at(p)).map(|v| (comp, v)));
            }
        }
    }

    /// Whether the operation that `instr` starts or ends writes over `value`.
    fn overwrites(&self, module: &Module, instr: InstrId, value: ValueId) -> bool {
        let operand = module.instrs[instr].operands.first();
        let start = self.start_of[instr].or_else(|| self.start_of[*operand?]);
        start
            .and_then(|s| module.instrs[s].comp(AttrName::Calls))
            .is_some_and(|c| self.overwritten.binary_search(&(c, value)).is_ok())
    }

    /// Where the tails begin.
    fn tail_starts(&self) -> impl Iterator<Item = usize> {
        let tails = self.tails.iter().flat_map(|(_, t)| t);
        tails.map(|t| t.interval.start as usize)
    }
}

/// The operation of every async instruction, and the async-done of every async-start, found through async-updates.
fn starts_and_dones(
    module: &Module,
    order: &ProgramOrder,
) -> (
    SecondaryMap<InstrId, Option<InstrId>>,
    SecondaryMap<InstrId, Option<InstrId>>,
) {
    let mut start_of = SecondaryMap::filled(module.instrs.len(), None);
    let mut done = SecondaryMap::filled(module.instrs.len(), None);
    for &instr in order.sequence() {
        let i = &module.instrs[instr];
        match i.opcode {
            Opcode::AsyncStart => start_of[instr] = Some(instr),
            Opcode::AsyncUpdate => start_of[instr] = start_of[i.operands[0]],
            Opcode::AsyncDone => {
                if let Some(start) = start_of[i.operands[0]] {
                    done[start] = Some(instr);
                }
            }
            _ => {}
        }
    }
    (start_of, done)
}
