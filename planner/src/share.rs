//! Which results may take exactly the bytes of an operand that dies: options of the packer.
//!
//! The rules are XLA's `CanShareOperandBufferWithUser`, each read as a statement about elements: the
//! result may lie on the operand if element `i` of the result is written after the last read of
//! element `i` of the operand. Beyond XLA, values of classes with several values may share too, and which
//! option is taken is left to the packer.

use slabplan_ir::attr::AttrName;
use slabplan_ir::entity::SecondaryMap;
use slabplan_ir::promise::promises;
use slabplan_ir::{CompId, InstrId, Module, Opcode, PosId};

use crate::dataflow::{Dataflow, ValueId, ValueKind};
use crate::inplace::{InPlaceOperand, is_in_place};
use crate::liveness::Liveness;
use crate::order::ProgramOrder;
use crate::ports::Ports;

/// Tells whether a result may be written over an operand.
#[derive(Clone, Debug)]
pub struct ShareRules<'a> {
    module: &'a Module,
    order: &'a ProgramOrder,
    flow: &'a Dataflow,
    ports: &'a Ports,
    live: &'a Liveness,
    /// Fused instructions with a use that reads other elements than the one being computed.
    mixes_elements: SecondaryMap<InstrId, bool>,
    trusts_back_end: bool,
}

impl<'a> ShareRules<'a> {
    /// Prepares the rules. O(instructions).
    pub fn new(
        module: &'a Module,
        order: &'a ProgramOrder,
        flow: &'a Dataflow,
        ports: &'a Ports,
        live: &'a Liveness,
        trusts_back_end: bool,
    ) -> Self {
        let mut this = Self {
            module,
            order,
            flow,
            ports,
            live,
            mixes_elements: SecondaryMap::filled(module.instrs.len(), false),
            trusts_back_end,
        };
        let mut fused = SecondaryMap::filled(module.computations.len(), false);
        for (_, i) in module.instrs.iter() {
            if let (Opcode::Fusion, Some(comp)) = (i.opcode, i.comp(AttrName::Calls)) {
                fused[comp] = true;
            }
        }
        // Computations stand before those that name them, so a nested fusion is done before its user.
        for (_, computation) in module.computations.iter().filter(|(c, _)| fused[*c]) {
            for &instr in computation.instrs.iter().rev() {
                this.note_fused_uses(instr, instr == computation.root);
            }
        }
        this
    }

    /// Notes for every operand of a fused instruction whether this use keeps to its own element.
    fn note_fused_uses(&mut self, user: InstrId, is_root: bool) {
        let i = &self.module.instrs[user];
        for (number, &operand) in i.operands.iter().enumerate() {
            let keeps = (i.opcode == Opcode::Tuple && is_root)
                || (self.is_elementwise_on(user, number) && !self.mixes_elements[user]);
            if !keeps {
                self.mixes_elements[operand] = true;
            }
        }
    }

    /// Whether element `i` of the result depends on element `i` of operand `number` only.
    fn is_elementwise_on(&self, instr: InstrId, number: usize) -> bool {
        let i = &self.module.instrs[instr];
        let elementwise = match i.opcode {
            Opcode::Clamp | Opcode::BitcastConvert | Opcode::Copy => true,
            // Elements that are not updated are those of the operand at the same place.
            Opcode::DynamicUpdateSlice | Opcode::SetDimensionSize => number == 0,
            Opcode::Fusion => self.fusion_is_elementwise_on(instr, number),
            op => op.is_elementwise(),
        };
        // A scalar that is broadcast implicitly is read for every element.
        let dims = |i: InstrId| {
            let shape = self.module.instrs[i].shape;
            self.module.shapes.array(shape).map(|a| &a.dims)
        };
        elementwise && dims(i.operands[number]).is_some() && dims(i.operands[number]) == dims(instr)
    }

    fn fusion_is_elementwise_on(&self, instr: InstrId, number: usize) -> bool {
        let i = &self.module.instrs[instr];
        i.comp(AttrName::Calls)
            .and_then(|c| self.module.computations[c].params.get(number).copied())
            .is_some_and(|param| !self.mixes_elements[param])
    }

    /// Whether the result at `result` may lie on the array that `user` has as part `part` of its
    /// operand `number`. Says nothing about whether that array dies here.
    fn allows(&self, user: InstrId, number: usize, part: PosId, result: PosId) -> bool {
        self.is_proved(user, number, part, result) || self.is_promised(user, number, part, result)
    }

    /// Whether the back end that compiled the module says so (XLA's `MayAlias` hint).
    fn is_promised(&self, user: InstrId, number: usize, part: PosId, result: PosId) -> bool {
        let positions = &self.flow.positions;
        let arrays_before = || {
            positions
                .of(user)
                .take_while(|&p| p != result)
                .filter(|&p| positions.has_bytes(self.module, p))
                .count() as u32
        };
        self.trusts_back_end
            && positions.node_of(part) == 0
            && promises(self.module, user)
                .iter()
                .any(|p| p.operand as usize == number && p.result_array == arrays_before())
    }

    fn is_proved(&self, user: InstrId, number: usize, part: PosId, result: PosId) -> bool {
        let positions = &self.flow.positions;
        let i = &self.module.instrs[user];
        let index = positions.index(self.module, result);
        let over = InPlaceOperand {
            operand: number as u32,
            index: positions.index(self.module, part),
        };
        if is_in_place(self.module, user, &index, &over) {
            return true;
        }
        // Layouts, too, must agree: then an element has the same place in both.
        if positions.shape(part) != positions.shape(result) || positions.node_of(part) != 0 {
            return false;
        }
        match i.opcode {
            Opcode::TriangularSolve => number == 1,
            Opcode::Sort => index.first().is_none_or(|&k| k as usize == number),
            Opcode::Copy => false,
            Opcode::Fusion => {
                self.fusion_is_elementwise_on(user, number)
                    && (self.is_one_loop(user) || self.result_reads(user, number, &index))
            }
            _ => self.is_elementwise_on(user, number),
        }
    }

    /// Whether all results of a fusion are computed element by element in the same loop.
    fn is_one_loop(&self, fusion: InstrId) -> bool {
        let kind = self.module.instrs[fusion].ident(AttrName::Kind);
        kind.is_some_and(|k| matches!(self.module.str(k), "kLoop" | "kInput"))
    }

    /// Whether part `index` of a fusion's result is computed from its parameter `number` element by element.
    fn result_reads(&self, fusion: InstrId, number: usize, index: &[u32]) -> bool {
        let Some(fused) = self.module.instrs[fusion].comp(AttrName::Calls) else {
            return false;
        };
        let fused = &self.module.computations[fused];
        let root = &self.module.instrs[fused.root];
        let from = match (root.opcode, index) {
            (Opcode::Tuple, [k]) => root.operands.get(*k as usize).copied(),
            (Opcode::Tuple, _) => None,
            (_, []) => Some(fused.root),
            _ => None,
        };
        let param = fused.params.get(number);
        let mut seen: Vec<InstrId> = from.into_iter().collect();
        let mut next = 0;
        while let Some(&instr) = seen.get(next) {
            if Some(&instr) == param {
                return true;
            }
            for (k, &operand) in self.module.instrs[instr].operands.iter().enumerate() {
                if self.is_elementwise_on(instr, k) && !seen.contains(&operand) {
                    seen.push(operand);
                }
            }
            next += 1;
        }
        false
    }

    /// Whether `result`, defined by `user`, may lie on the bytes of `operand`: every way in which
    /// `user` reads `operand` must allow it.
    pub(crate) fn allows_value(&self, user: InstrId, operand: ValueId, result: PosId) -> bool {
        let mut uses = 0;
        for (number, &o) in self.module.instrs[user].operands.iter().enumerate() {
            for (part, value) in self.flow.leaves(o) {
                if value == operand {
                    uses += 1;
                    if !self.allows(user, number, part, result) {
                        return false;
                    }
                }
            }
        }
        // A sort, or an operation that writes in place, has one such operand only.
        uses == 1 || (uses > 1 && self.reads_all_first(user))
    }

    fn reads_all_first(&self, user: InstrId) -> bool {
        let op = self.module.instrs[user].opcode;
        op.is_elementwise() || matches!(op, Opcode::Fusion | Opcode::Clamp)
    }

    /// Whether at moment `t` the bytes of `dying` may pass to `born`: `dying` is read for the last
    /// time by the instruction that defines `born`, and that instruction permits it.
    pub fn may_pass(&self, dying: ValueId, born: ValueId, t: u32) -> bool {
        let v = self.flow.values[born];
        let user = self.order.instr(t);
        v.kind == ValueKind::Defined
            && self.flow.positions.instr(v.def) == user
            && self.dies_at(dying, user, t)
            && self.allows_value(user, dying, v.def)
    }

    fn dies_at(&self, value: ValueId, user: InstrId, t: u32) -> bool {
        let comp = self.module.instrs[user].computation;
        let ranges = self.live.in_sequence(value);
        let Some(k) = ranges.iter().position(|r| r.end == t + 1) else {
            return false;
        };
        !self.live.is_live_out(comp, value)
            && !self.ports.is_pinned(value)
            && !ranges[k + 1..]
                .iter()
                .any(|r| self.comes_back(value, r.start, t))
    }

    /// Whether what `value` is at moment `t` may still be needed at the later moment `at`, where a
    /// live interval of it begins. It is not if the value is another by then, as a loop's carry is
    /// after the body, or if a program that passes one of the moments never comes to the other.
    ///
    /// O(nesting depth times branches).
    fn comes_back(&self, value: ValueId, at: u32, t: u32) -> bool {
        if let ValueKind::LoopCarry(w) = self.flow.values[value].kind
            && t < self.order.at(w)
            && at >= self.order.at(w)
        {
            return false;
        }
        let holds = |comp: CompId| {
            let span = self.order.span(comp);
            (span.start..span.end).contains(&t)
        };
        let mut comp = self.module.instrs[self.order.instr(at)].computation;
        while !holds(comp) {
            let Some(caller) = self.order.caller(comp) else {
                break;
            };
            let caller = &self.module.instrs[caller];
            if caller.branches().iter().any(|&b| holds(b)) {
                return false;
            }
            comp = caller.computation;
        }
        true
    }

    /// Calls `found(dying, born, t)` for every pair of values that may pass bytes on.
    ///
    /// O(sum over instructions of operand arrays times result arrays of the same shape).
    pub fn for_each_pass(&self, mut found: impl FnMut(ValueId, ValueId, u32)) {
        for (t, &user) in (0..).zip(self.order.sequence()) {
            for (result, born) in self.flow.leaves(user) {
                if self.flow.values[born].def != result {
                    continue;
                }
                let mut seen: Vec<ValueId> = Vec::new();
                for &operand in &self.module.instrs[user].operands {
                    for (part, dying) in self.flow.leaves(operand) {
                        let same =
                            self.flow.positions.shape(part) == self.flow.positions.shape(result);
                        if same && !seen.contains(&dying) && self.may_pass(dying, born, t) {
                            seen.push(dying);
                            found(dying, born, t);
                        }
                    }
                }
            }
        }
    }
}
