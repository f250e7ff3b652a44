//! Program order: every instruction of the planned computations in the one sequence in which they run.
//!
//! The numbering is XLA's (`HloLiveRange`): computations are flattened at the instruction that calls
//! them, callees first. A `while` comes after its condition and its body, in this order; a
//! `conditional` after its branches, branch 0 first; a `call` or an `async-start` after its callee.
//!
//! ```text
//! 0 %init            entry            span of entry [0, 6)
//! 1   %c.param         condition      span [1, 3)
//! 2   %c.root
//! 3   %b.param         body           span [3, 5)
//! 4   %b.root
//! 5 %while
//! ```

use smallvec::SmallVec;

use slabplan_ir::entity::SecondaryMap;
use slabplan_ir::{CompId, InstrId, Module, Opcode};

use crate::error::PlanError;

/// Number of an instruction that no planned computation holds.
const UNPLANNED: u32 = u32::MAX;

/// Half-open span of program order that a computation occupies, its callees included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Number of the first instruction of the computation or of its first callee.
    pub start: u32,
    /// One past the number of its last instruction.
    pub end: u32,
}

/// Program order of a scheduled module.
#[derive(Clone, Debug)]
pub struct ProgramOrder {
    number: SecondaryMap<InstrId, u32>,
    sequence: Vec<InstrId>,
    span: SecondaryMap<CompId, Span>,
    caller: SecondaryMap<CompId, Option<InstrId>>,
}

impl ProgramOrder {
    /// Flattens the planned computations of `module`, in the order that their instruction lists have.
    ///
    /// Fails where a computation has more than one caller: such a module must be flattened (each call
    /// given its own clone) before planning. O(instructions).
    pub fn new(module: &Module) -> Result<Self, PlanError> {
        let mut this = Self {
            number: SecondaryMap::filled(module.instrs.len(), UNPLANNED),
            sequence: Vec::with_capacity(module.instrs.len()),
            span: SecondaryMap::filled(module.computations.len(), Span { start: 0, end: 0 }),
            caller: SecondaryMap::filled(module.computations.len(), None),
        };
        this.flatten(module)?;
        Ok(this)
    }

    /// Walks the call tree with an explicit stack: nesting depth is the input's choice.
    fn flatten(&mut self, module: &Module) -> Result<(), PlanError> {
        struct Frame {
            comp: CompId,
            next: usize,
            callees: SmallVec<[CompId; 2]>,
            next_callee: usize,
        }
        let frame = |comp| Frame {
            comp,
            next: 0,
            callees: SmallVec::new(),
            next_callee: 0,
        };
        let mut entered = SecondaryMap::filled(module.computations.len(), false);
        entered[module.entry] = true;
        let mut stack = vec![frame(module.entry)];
        while let Some(top) = stack.last_mut() {
            let instrs = &module.computations[top.comp].instrs;
            let Some(&instr) = instrs.get(top.next) else {
                self.span[top.comp].end = self.sequence.len() as u32;
                stack.pop();
                continue;
            };
            if top.next_callee == 0 {
                top.callees = callees_in_order(module, instr);
            }
            if let Some(&callee) = top.callees.get(top.next_callee) {
                top.next_callee += 1;
                if entered[callee] {
                    return Err(PlanError::SharedComputation {
                        computation: module.comp_name(callee).to_owned(),
                        caller: module.name_of(instr).to_owned(),
                    });
                }
                entered[callee] = true;
                self.caller[callee] = Some(instr);
                self.span[callee].start = self.sequence.len() as u32;
                stack.push(frame(callee));
            } else {
                top.next += 1;
                top.next_callee = 0;
                self.number[instr] = self.sequence.len() as u32;
                self.sequence.push(instr);
            }
        }
        Ok(())
    }

    /// How many instructions there are: program order is `0..len()`.
    pub fn len(&self) -> u32 {
        self.sequence.len() as u32
    }

    /// Whether the module has no instructions.
    pub fn is_empty(&self) -> bool {
        self.sequence.is_empty()
    }

    /// All planned instructions in program order.
    pub fn sequence(&self) -> &[InstrId] {
        &self.sequence
    }

    /// The number of `instr`, or `None` where its computation runs inside another instruction.
    pub fn number(&self, instr: InstrId) -> Option<u32> {
        Some(self.number[instr]).filter(|&n| n != UNPLANNED)
    }

    /// The number of a planned instruction.
    ///
    /// # Panics
    /// Where `instr` is not planned.
    pub fn at(&self, instr: InstrId) -> u32 {
        self.number(instr).expect("the instruction is planned")
    }

    /// The instruction with number `n`.
    pub fn instr(&self, n: u32) -> InstrId {
        self.sequence[n as usize]
    }

    /// The span of a planned computation.
    pub fn span(&self, comp: CompId) -> Span {
        self.span[comp]
    }

    /// The instruction that calls `comp`; `None` for the entry and for what is not planned.
    pub fn caller(&self, comp: CompId) -> Option<InstrId> {
        self.caller[comp]
    }

    /// The number at which the callees of `instr` begin, or its own number if it has none: the
    /// moment at which its operands are handed over.
    pub fn entry_of(&self, module: &Module, instr: InstrId) -> u32 {
        callees_in_order(module, instr)
            .first()
            .map_or_else(|| self.at(instr), |&c| self.span(c).start)
    }
}

/// The planned computations `instr` calls, in the order in which they are flattened.
pub fn callees_in_order(module: &Module, instr: InstrId) -> SmallVec<[CompId; 2]> {
    use slabplan_ir::attr::AttrName;
    let i = &module.instrs[instr];
    match i.opcode {
        Opcode::While => [AttrName::Condition, AttrName::Body]
            .into_iter()
            .filter_map(|n| i.comp(n))
            .collect(),
        Opcode::Conditional => i.branches(),
        _ if i.calls_planned_computations() => i.called_computations().collect(),
        _ => SmallVec::new(),
    }
}
