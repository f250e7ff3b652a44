//! What a scheduler knows of a module as a whole: its values and their bytes.

use slabplan_ir::entity::SecondaryMap;
use slabplan_ir::padding::shape_bytes;
use slabplan_ir::{CompId, InstrId, Module, Opcode, Target};

use crate::buffers::space_of;
use crate::dataflow::{Dataflow, ValueId, ValueKind, is_forwarding};
use crate::donation::donations;
use crate::error::PlanError;
use crate::liveness::Liveness;
use crate::order::ProgramOrder;
use crate::ports::Ports;
use crate::share::ShareRules;

/// What is known of the module as a whole.
pub(super) struct Model<'a> {
    pub(super) module: &'a Module,
    pub(super) order: ProgramOrder,
    pub(super) flow: Dataflow,
    pub(super) ports: Ports,
    pub(super) live: Liveness,
    /// The memory spaces that occur; space 0 first.
    pub(super) spaces: Vec<u32>,
    /// The fewest bytes of a buffer in the last step of the alignment that it occupies.
    pub(super) least_tail: u64,
    /// Bytes of each value, the most that any of its positions needs, and its space's number above.
    pub(super) sizes: SecondaryMap<ValueId, (u64, u8)>,
    only_user: SecondaryMap<ValueId, Option<InstrId>>,
    /// Whether a computation has side effects, itself or in what it calls.
    has_side_effects: SecondaryMap<CompId, bool>,
}

impl<'a> Model<'a> {
    pub(super) fn new(module: &'a Module, target: &Target) -> Result<Self, PlanError> {
        let order = ProgramOrder::new(module)?;
        let flow = Dataflow::new(module, &order);
        let ports = Ports::new(module, &flow, &donations(module));
        let live = Liveness::new(module, &order, &flow, &ports);
        let mut this = Self {
            module,
            spaces: vec![0],
            least_tail: u64::MAX,
            sizes: SecondaryMap::filled(flow.values.len(), (0, 0)),
            only_user: SecondaryMap::filled(flow.values.len(), None),
            has_side_effects: SecondaryMap::filled(module.computations.len(), false),
            order,
            flow,
            ports,
            live,
        };
        this.find_sizes(target)?;
        this.find_side_effects();
        this.find_only_users();
        Ok(this)
    }

    /// Bytes are rounded up to the alignment of their space, as the packer does.
    fn find_sizes(&mut self, target: &Target) -> Result<(), PlanError> {
        let shapes = &self.module.shapes;
        for &instr in self.order.sequence() {
            for (pos, value) in self.flow.leaves(instr) {
                let shape = self.flow.positions.shape(pos);
                let bytes = shape_bytes(shapes, shape).map_err(|error| PlanError::Size {
                    value: self.flow.positions.display(self.module, pos),
                    error,
                })?;
                let space = space_of(shapes, shape);
                let step = target.space(space).map_or(1, |s| s.alignment.get());
                let bytes = bytes.get();
                if bytes > 0 {
                    self.least_tail = self.least_tail.min((bytes - 1) % step + 1);
                }
                let bytes = bytes.next_multiple_of(step);
                let number = self.spaces.iter().position(|&s| s == space);
                let number = number.unwrap_or_else(|| {
                    self.spaces.push(space);
                    self.spaces.len() - 1
                });
                let size = &mut self.sizes[value];
                if self.flow.values[value].def == pos {
                    size.1 = number as u8;
                }
                size.0 = size.0.max(bytes);
            }
        }
        Ok(())
    }

    fn find_side_effects(&mut self) {
        // Callees stand before callers.
        for comp in self.module.planned_computations() {
            let instrs = &self.module.computations[comp].instrs;
            self.has_side_effects[comp] = instrs.iter().any(|&i| self.has_side_effect(i));
        }
    }

    /// Who may take whose bytes.
    pub(super) fn share_rules(&self) -> ShareRules<'_> {
        ShareRules::new(
            self.module,
            &self.order,
            &self.flow,
            &self.ports,
            &self.live,
            true,
        )
    }

    /// Whether `instr` must keep its place among others with side effects.
    pub(super) fn has_side_effect(&self, instr: InstrId) -> bool {
        let i = &self.module.instrs[instr];
        self.module.has_side_effect(instr)
            || i.called_computations().any(|c| self.has_side_effects[c])
            // The end of an asynchronous operation is as much in order as its start.
            || (matches!(i.opcode, Opcode::AsyncDone | Opcode::AsyncUpdate)
                && i.operands.first().is_some_and(|&o| self.has_side_effect(o)))
    }

    /// Whether nothing but `caller`, in its computation, has to do with `value`: its callee then gets it for good.
    pub(super) fn is_handed_over(&self, value: ValueId, caller: InstrId) -> bool {
        let home = self.module.instrs[caller].computation;
        let definer = self.definer(value);
        self.module.instrs[definer].computation == home
            && self.module.instrs[definer].opcode != Opcode::Parameter
            && self.only_user[value] == Some(caller)
            && !self.live.is_live_out(home, value)
    }

    /// The instruction that gives `value` to the computation it is first seen in: of a loop's carry, the while.
    fn definer(&self, value: ValueId) -> InstrId {
        match self.flow.values[value].kind {
            ValueKind::LoopCarry(caller) => caller,
            ValueKind::Defined | ValueKind::BranchResult => self.flow.instr_of(value),
        }
    }

    /// Of every value, the only instruction of its own computation that reads it, if there is one only.
    fn find_only_users(&mut self) {
        let mut users: SecondaryMap<ValueId, (Option<InstrId>, bool)> =
            SecondaryMap::filled(self.flow.values.len(), (None, false));
        for &instr in self.order.sequence() {
            let i = &self.module.instrs[instr];
            if is_forwarding(self.module, instr) {
                continue;
            }
            for (_, value) in i.operands.iter().flat_map(|&o| self.flow.leaves(o)) {
                let definer = self.definer(value);
                if self.module.instrs[definer].computation == i.computation {
                    let user = &mut users[value];
                    user.1 |= user.0.is_some_and(|u| u != instr);
                    user.0 = Some(instr);
                }
            }
        }
        for (value, &(user, several)) in users.iter() {
            self.only_user[value] = user.filter(|_| !several);
        }
    }

    /// Whether the bytes of `value` are never free for others.
    pub(super) fn is_pinned(&self, value: ValueId) -> bool {
        self.ports.is_pinned(value)
    }
}
