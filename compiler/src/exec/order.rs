//! Program order: the planned computations flattened into one sequence.

use slabplan_ir::Opcode;
use slabplan_ir::attr::AttrName;
use slabplan_ir::entity::{CompId, InstrId, SecondaryMap};
use slabplan_ir::module::Module;

/// One event of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visit {
    /// An instruction that calls planned computations, before those.
    Enter(InstrId),
    /// Any instruction, after the computations it calls.
    Leave(InstrId),
}

/// The planned computations from the entry on: each once, at its first caller.
///
/// The n-th [`Visit::Leave`] is number n of program order, as live ranges count it: condition,
/// body, then the while; branches, then the conditional; callee, then the call; wrapped
/// computation, then the async-start.
#[derive(Clone, Debug)]
pub(crate) struct ProgramOrder {
    /// The walk.
    pub(crate) visits: Vec<Visit>,
    /// Number of every instruction; `None` outside planned computations.
    pub(crate) number: SecondaryMap<InstrId, Option<u32>>,
    /// Number of the first instruction of every planned computation, its callees included.
    start: SecondaryMap<CompId, u32>,
    /// Instructions in planned computations.
    pub(crate) len: u32,
    /// Whether each computation has one caller.
    pub(crate) flat: bool,
}

impl ProgramOrder {
    /// Walks `module`. O(instructions), without recursion.
    pub(crate) fn new(module: &Module) -> Self {
        enum Task {
            Computation(CompId),
            Visit(Visit),
        }
        let mut this = Self {
            visits: Vec::with_capacity(module.instrs.len()),
            number: SecondaryMap::filled(module.instrs.len(), None),
            start: SecondaryMap::filled(module.computations.len(), 0),
            len: 0,
            flat: true,
        };
        let mut seen = SecondaryMap::filled(module.computations.len(), false);
        let mut tasks = vec![Task::Computation(module.entry)];
        while let Some(task) = tasks.pop() {
            match task {
                Task::Computation(comp) if seen[comp] => this.flat = false,
                Task::Computation(comp) => {
                    seen[comp] = true;
                    this.start[comp] = this.len;
                    for &i in module.computations[comp].instrs.iter().rev() {
                        let calls = module.instrs[i].calls_planned_computations();
                        tasks.push(Task::Visit(if calls {
                            Visit::Enter(i)
                        } else {
                            Visit::Leave(i)
                        }));
                    }
                }
                Task::Visit(Visit::Enter(i)) => {
                    this.visits.push(Visit::Enter(i));
                    tasks.push(Task::Visit(Visit::Leave(i)));
                    let callees = callees(module, i);
                    tasks.extend(callees.into_iter().rev().map(Task::Computation));
                }
                Task::Visit(Visit::Leave(i)) => {
                    this.visits.push(Visit::Leave(i));
                    this.number[i] = Some(this.len);
                    this.len += 1;
                }
            }
        }
        this
    }

    /// Pairs of numbers that follow each other in a run although they are not neighbours: into
    /// branches and out of them, from a while's body back to its condition and out of that.
    /// Ascending.
    pub(crate) fn jumps(&self, module: &Module) -> Vec<(u32, u32)> {
        let mut jumps = Vec::new();
        for visit in &self.visits {
            let Visit::Enter(instr) = *visit else {
                continue;
            };
            let Some(own) = self.number[instr] else {
                continue;
            };
            let spans: Vec<(u32, u32)> = callees(module, instr)
                .into_iter()
                .map(|c| (self.start[c], self.last(module, c)))
                .collect();
            match (module.instrs[instr].opcode, spans.as_slice()) {
                (Opcode::While, &[(condition, condition_last), (_, body_last)]) => {
                    jumps.extend([(condition_last, own), (body_last, condition)]);
                }
                (Opcode::Conditional, branches) => {
                    for &(start, last) in branches {
                        jumps.push((last, own));
                        if let Some(before) = branches[0].0.checked_sub(1) {
                            jumps.push((before, start));
                        }
                    }
                }
                _ => {}
            }
        }
        jumps.sort_unstable();
        jumps
    }

    /// Number of the last instruction of a planned computation.
    fn last(&self, module: &Module, comp: CompId) -> u32 {
        let last = module.computations[comp].instrs.last();
        last.and_then(|&i| self.number[i]).unwrap_or(0)
    }
}

/// The planned computations that `instr` calls, in the order in which they are numbered.
pub(crate) fn callees(module: &Module, instr: InstrId) -> Vec<CompId> {
    let i = &module.instrs[instr];
    if i.opcode == Opcode::While {
        return [AttrName::Condition, AttrName::Body]
            .into_iter()
            .filter_map(|n| i.comp(n))
            .collect();
    }
    i.called_computations().collect()
}
