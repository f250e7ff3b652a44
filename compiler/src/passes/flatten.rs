//! Gives every call site of a planned computation a copy of its own.
//!
//! Values of a computation that two instructions call would need two places at
//! once; with one caller each, a value has one place and one live range.

use slabplan_ir::attr::AttrValue;
use slabplan_ir::edit::Names;
use slabplan_ir::{CompId, EntityId, InstrId, Module, SecondaryMap};

use crate::pass::{Changed, Pass, PassError, Property, Unit};

/// Instructions a module may grow by; past it the input is hostile (calls that double at every level).
const MAX_ADDED: usize = 1_000_000;

/// Clones computations that several instructions call.
pub struct FlattenCallGraph;

impl Pass for FlattenCallGraph {
    fn name(&self) -> &'static str {
        "flatten-call-graph"
    }

    fn description(&self) -> &'static str {
        "give every call, while, conditional and async operation computations of its own"
    }

    fn ensures(&self) -> &'static [Property] {
        &[Property::FlatCallGraph]
    }

    fn run(&self, unit: &mut Unit<'_>) -> Result<Changed, PassError> {
        flatten(&mut unit.module).map(Changed)
    }
}

/// Whether every planned computation has exactly one calling instruction (the entry none).
pub fn is_flat(module: &Module) -> bool {
    let mut called = SecondaryMap::filled(module.computations.len(), false);
    called[module.entry] = true;
    for comp in module.planned_computations() {
        for &i in &module.computations[comp].instrs {
            if !module.instrs[i].calls_planned_computations() {
                continue;
            }
            for callee in module.instrs[i].called_computations() {
                if std::mem::replace(&mut called[callee], true) {
                    return false;
                }
            }
        }
    }
    true
}

/// Clones as needed, callers first; returns whether any was.
fn flatten(module: &mut Module) -> Result<bool, PassError> {
    let mut claimed = vec![false; module.computations.len()];
    claimed[module.entry.index()] = true;
    let mut work = vec![module.entry];
    let mut clones = 0;
    let mut names = Names::new(module);
    let limit = module.instrs.len() + MAX_ADDED;
    while let Some(comp) = work.pop() {
        for i in planned_call_sites(module, comp) {
            for slot in call_slots(module, i) {
                let mut callee = slot.get(module, i);
                let index = callee.index();
                if claimed[index] {
                    callee = module.clone_computation(callee, &mut names);
                    slot.set(module, i, callee);
                    claimed.push(true);
                    clones += 1;
                    if module.instrs.len() > limit {
                        return Err(PassError::TooManyClones { copies: clones });
                    }
                } else {
                    claimed[index] = true;
                }
                work.push(callee);
            }
        }
    }
    Ok(clones > 0)
}

fn planned_call_sites(module: &Module, comp: CompId) -> Vec<InstrId> {
    let instrs = &module.computations[comp].instrs;
    instrs
        .iter()
        .copied()
        .filter(|&i| module.instrs[i].calls_planned_computations())
        .collect()
}

/// Where an instruction names one computation: attribute number, and place in its list.
#[derive(Clone, Copy)]
struct CallSlot {
    attr: usize,
    element: usize,
}

impl CallSlot {
    fn get(self, module: &Module, instr: InstrId) -> CompId {
        match &module.instrs[instr].attrs[self.attr].value {
            AttrValue::Comp(c) => *c,
            AttrValue::Comps(list) => list[self.element],
            _ => unreachable!("a call slot names a computation"),
        }
    }

    fn set(self, module: &mut Module, instr: InstrId, comp: CompId) {
        match &mut module.instrs[instr].attrs[self.attr].value {
            AttrValue::Comp(c) => *c = comp,
            AttrValue::Comps(list) => list[self.element] = comp,
            _ => unreachable!("a call slot names a computation"),
        }
    }
}

fn call_slots(module: &Module, instr: InstrId) -> Vec<CallSlot> {
    let mut slots = Vec::new();
    for (attr, a) in module.instrs[instr].attrs.iter().enumerate() {
        let n = match &a.value {
            AttrValue::Comp(_) => 1,
            AttrValue::Comps(list) => list.len(),
            _ => 0,
        };
        slots.extend((0..n).map(|element| CallSlot { attr, element }));
    }
    slots
}
