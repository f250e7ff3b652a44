//! Which values must occupy the same bytes.
//!
//! XLA's `HloAliasAnalysis`: what flows into a loop's carry or a conditional's result, what an operation
//! writes in place, and outputs that take a parameter's bytes.

use slabplan_ir::{InstrId, Module, PosId};

use crate::dataflow::{Dataflow, ValueId, ValueKind};
use crate::donation::{Donation, Outcome};
use crate::inplace::in_place_pairs;
use crate::order::ProgramOrder;
use crate::ports::{output_value, parameter_value};

/// Why two values must occupy the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The first is written over the second by this instruction.
    InPlace {
        /// The instruction.
        instr: InstrId,
        /// Operand number.
        operand: u32,
    },
    /// The first is a loop's carry, the second what the body returns for it.
    LoopRoot {
        /// The while.
        instr: InstrId,
    },
    /// The first is a loop's carry, the second its initial value.
    LoopInit {
        /// The while.
        instr: InstrId,
    },
    /// The first is a conditional's result, the second what a branch returns for it.
    Branch {
        /// The conditional.
        instr: InstrId,
        /// Branch number.
        branch: u32,
    },
    /// The first is a parameter, the second the output that takes its bytes.
    Output {
        /// Number of the entry in `input_output_alias`.
        alias: u32,
    },
}

impl Why {
    /// One clause for people: `dynamic-update-slice %u writes over its operand 0`.
    pub fn describe(self, module: &Module) -> String {
        let name = |i: InstrId| module.name_of(i);
        match self {
            Why::InPlace { instr, operand } => format!(
                "{} %{} writes over its operand {operand}",
                module.instrs[instr].opcode,
                name(instr)
            ),
            Why::LoopRoot { instr } => {
                format!("carried from iteration to iteration by %{}", name(instr))
            }
            Why::LoopInit { instr } => format!("initial value of a carry of %{}", name(instr)),
            Why::Branch { instr, branch } => {
                format!("returned by branch {branch} of %{}", name(instr))
            }
            Why::Output { alias } => {
                let a = &module.input_output_alias[alias as usize];
                format!(
                    "output {} takes the bytes of parameter {}",
                    slabplan_ir::shape::DisplayIndex(&a.output_index),
                    a.parameter
                )
            }
        }
    }
}

/// Two values that must occupy the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MustAlias {
    /// The value whose bytes are meant.
    pub place: ValueId,
    /// The value that must lie there too.
    pub value: ValueId,
    /// Why.
    pub why: Why,
    /// Where `value` is handed over: the position that the constraint is about.
    pub at: PosId,
}

/// All must-alias constraints of a module, in program order of the instruction they come from.
///
/// O(instructions + results of fusions + merges).
pub fn must_alias(
    module: &Module,
    order: &ProgramOrder,
    flow: &Dataflow,
    donations: &[Donation],
) -> Vec<MustAlias> {
    let mut found = Vec::new();
    for &instr in order.sequence() {
        add_in_place(module, flow, instr, &mut found);
    }
    add_merges(module, flow, &mut found);
    add_outputs(module, flow, donations, &mut found);
    found
}

fn add_in_place(module: &Module, flow: &Dataflow, instr: InstrId, found: &mut Vec<MustAlias>) {
    for (index, over) in in_place_pairs(module, instr) {
        let Some(&operand) = module.instrs[instr].operands.get(over.operand as usize) else {
            continue;
        };
        let result = flow.positions.at(module, instr, &index);
        let part = flow.positions.at(module, operand, &over.index);
        let values = result
            .and_then(|r| flow.at(r))
            .zip(part.and_then(|p| flow.at(p)));
        if let (Some((result, operand)), Some(at)) = (values, part)
            && result != operand
        {
            found.push(MustAlias {
                place: result,
                value: operand,
                why: Why::InPlace {
                    instr,
                    operand: over.operand,
                },
                at,
            });
        }
    }
}

fn add_merges(module: &Module, flow: &Dataflow, found: &mut Vec<MustAlias>) {
    for merge in &flow.merges {
        let instr = merge.instr;
        let i = &module.instrs[instr];
        let node = flow.positions.node_of(flow.values[merge.value].def);
        let is_loop = matches!(flow.values[merge.value].kind, ValueKind::LoopCarry(_));
        for (k, &value) in (0..).zip(&merge.sources) {
            let (why, holder) = match (is_loop, k) {
                (true, 0) => (Why::LoopInit { instr }, i.operands[0]),
                (true, _) => {
                    let body = i.comp(slabplan_ir::attr::AttrName::Body);
                    let Some(body) = body else { continue };
                    (Why::LoopRoot { instr }, module.computations[body].root)
                }
                (false, branch) => {
                    let comp = i.branches()[branch as usize];
                    (
                        Why::Branch { instr, branch },
                        module.computations[comp].root,
                    )
                }
            };
            if value != merge.value {
                found.push(MustAlias {
                    place: merge.value,
                    value,
                    why,
                    at: flow.positions.node(holder, node),
                });
            }
        }
    }
}

fn add_outputs(
    module: &Module,
    flow: &Dataflow,
    donations: &[Donation],
    found: &mut Vec<MustAlias>,
) {
    for donation in donations {
        let Outcome::Output { output, alias } = &donation.outcome else {
            continue;
        };
        let place = parameter_value(module, flow, donation.parameter, &donation.index);
        let value = output_value(module, flow, output);
        let at = flow.positions.at(module, module.entry().root, output);
        if let (Some(place), Some(value), Some(at)) = (place, value, at)
            && place != value
        {
            found.push(MustAlias {
                place,
                value,
                why: Why::Output { alias: *alias },
                at,
            });
        }
    }
}
