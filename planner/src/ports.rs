//! Where a module meets its caller: arguments, donation, results, constants.

use slabplan_ir::entity::SecondaryMap;
use slabplan_ir::{InstrId, Module, Opcode, PosId};

use crate::dataflow::{Dataflow, ValueId};
use crate::donation::{Donation, Outcome};

/// An array of an entry parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The parameter instruction.
    pub instr: InstrId,
    /// The part of it.
    pub pos: PosId,
    /// Whether the caller gives its bytes away.
    pub donated: bool,
}

/// The role of every value towards the caller.
#[derive(Clone, Debug)]
pub struct Ports {
    argument: SecondaryMap<ValueId, Option<Argument>>,
    constant: SecondaryMap<ValueId, bool>,
    output: SecondaryMap<ValueId, bool>,
}

impl Ports {
    /// Finds the roles. O(values + outputs).
    pub fn new(module: &Module, flow: &Dataflow, donations: &[Donation]) -> Self {
        let n = flow.values.len();
        let mut this = Self {
            argument: SecondaryMap::filled(n, None),
            constant: SecondaryMap::filled(n, false),
            output: SecondaryMap::filled(n, false),
        };
        for (value, v) in flow.values.iter() {
            let instr = flow.positions.instr(v.def);
            let i = &module.instrs[instr];
            match i.opcode {
                Opcode::Constant => this.constant[value] = true,
                Opcode::Parameter if i.computation == module.entry => {
                    this.argument[value] = Some(Argument {
                        instr,
                        pos: v.def,
                        donated: false,
                    });
                }
                _ => {}
            }
        }
        for value in donated(module, flow, donations) {
            if let Some(argument) = &mut this.argument[value] {
                argument.donated = true;
            }
        }
        for (_, value) in flow.leaves(module.entry().root) {
            this.output[value] = true;
        }
        this
    }

    /// The argument that `value` is, if it is one.
    pub fn argument(&self, value: ValueId) -> Option<Argument> {
        self.argument[value]
    }

    /// Whether `value` is an entry parameter's array.
    pub fn is_parameter(&self, value: ValueId) -> bool {
        self.argument[value].is_some()
    }

    /// Whether `value` is a constant.
    pub fn is_constant(&self, value: ValueId) -> bool {
        self.constant[value]
    }

    /// Whether the program returns `value`.
    pub fn is_output(&self, value: ValueId) -> bool {
        self.output[value]
    }

    /// Whether nothing may ever overwrite `value`: constants and arguments that are not donated.
    pub fn is_pinned(&self, value: ValueId) -> bool {
        self.constant[value] || self.argument[value].is_some_and(|a| !a.donated)
    }
}

/// Values whose bytes the caller gives away; where the named output can't take them, they stay the caller's.
fn donated<'a>(
    module: &'a Module,
    flow: &'a Dataflow,
    donations: &'a [Donation],
) -> impl Iterator<Item = ValueId> + 'a {
    donations
        .iter()
        .filter(|d| !matches!(d.outcome, Outcome::Refused { .. }))
        .filter_map(|d| parameter_value(module, flow, d.parameter, &d.index))
}

/// The value of a part of an entry parameter.
pub fn parameter_value(
    module: &Module,
    flow: &Dataflow,
    number: u32,
    index: &[u32],
) -> Option<ValueId> {
    let &param = module.entry().params.get(number as usize)?;
    flow.at(flow.positions.at(module, param, index)?)
}

/// The value of a part of the entry computation's result.
pub fn output_value(module: &Module, flow: &Dataflow, index: &[u32]) -> Option<ValueId> {
    flow.at(flow.positions.at(module, module.entry().root, index)?)
}
