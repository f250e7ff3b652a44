//! Where the parts of a result come from: the checker's own rules of what an instruction defines
//! and what it forwards (HloDataflowAnalysis in XLA).

use std::collections::BTreeSet;

use crate::entity::{CompId, EntityId, InstrId, PosId, SecondaryMap, ShapeId};
use crate::module::{AliasKind, Module};
use crate::opcode::Opcode;
use crate::padding::{self, SizeError};
use crate::position::Positions;
use crate::shape::{ArrayShape, Shape};

/// How one part of a result gets its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The instruction writes it to bytes of its own.
    Defines,
    /// It is this part of an operand: the same value in the same bytes.
    Forwards(PosId),
    /// Control flow decides: results of while, conditional, call and of async wrapped
    /// computations, and the parameters of the computations they run.
    Control,
    /// The instruction is not of a form that the checker understands.
    Unknown,
}

/// Positions of a module and the facts about each that need no plan.
pub(super) struct Flow<'m> {
    pub(super) module: &'m Module,
    pub(super) positions: Positions,
    /// Padded bytes of every shape.
    bytes: Vec<Result<u64, SizeError>>,
    /// For every tuple shape, the part at which each element begins.
    element_starts: Vec<Box<[u32]>>,
    is_planned: SecondaryMap<CompId, bool>,
    /// Outputs that take the bytes of a part of an entry parameter, with that part.
    pub(super) aliases: Vec<(PosId, PosId)>,
    donated: BTreeSet<PosId>,
}

impl<'m> Flow<'m> {
    pub(super) fn new(module: &'m Module) -> Self {
        let mut is_planned = SecondaryMap::filled(module.computations.len(), false);
        for comp in module.planned_computations() {
            is_planned[comp] = true;
        }
        let positions = Positions::new(module);
        let aliases = aliases(module, &positions);
        Self {
            module,
            donated: donated(module, &positions, &aliases),
            aliases,
            positions,
            bytes: module
                .shapes
                .ids()
                .map(|s| padding::shape_bytes(&module.shapes, s).map(crate::Bytes::get))
                .collect(),
            element_starts: module
                .shapes
                .ids()
                .map(|s| element_starts(module, s))
                .collect(),
            is_planned,
        }
    }

    /// Whether the instruction belongs to a computation whose values have bytes.
    pub(super) fn is_planned(&self, instr: InstrId) -> bool {
        self.is_planned[self.module.instrs[instr].computation]
    }

    /// Whether the caller gives the bytes of this part of an entry parameter away.
    pub(super) fn is_donated(&self, pos: PosId) -> bool {
        self.donated.contains(&pos)
    }

    /// Padded bytes of the array at `pos`.
    pub(super) fn bytes(&self, pos: PosId) -> Result<u64, SizeError> {
        self.bytes[self.positions.shape(pos).index()]
    }

    /// The array shape at `pos`, through `b(..)`.
    pub(super) fn array(&self, pos: PosId) -> Option<&ArrayShape> {
        let mut shape = self.positions.shape(pos);
        loop {
            match self.module.shapes.get(shape) {
                Shape::Array(a) => return Some(a),
                Shape::Buffer(inner) => shape = *inner,
                _ => return None,
            }
        }
    }

    /// The parts of `instr` that hold arrays.
    pub(super) fn arrays(&self, instr: InstrId) -> impl Iterator<Item = PosId> + '_ {
        self.positions
            .of(instr)
            .filter(|&p| self.positions.has_bytes(self.module, p))
    }

    /// The part where element `element` of a tuple shape begins.
    pub(super) fn element_start(&self, shape: ShapeId, element: usize) -> Option<u32> {
        self.element_starts[shape.index()].get(element).copied()
    }

    /// Splits part `node` of a tuple shape into (element, part of that element).
    pub(super) fn split(&self, shape: ShapeId, node: u32) -> Option<(usize, u32)> {
        let starts = &self.element_starts[shape.index()];
        let element = starts.partition_point(|&s| s <= node).checked_sub(1)?;
        Some((element, node - starts[element]))
    }

    /// How the part `pos` (an array) gets its bytes. O(log of the tuple's width).
    pub(super) fn role(&self, pos: PosId) -> Role {
        use Opcode as O;
        let id = self.positions.instr(pos);
        let node = self.positions.node_of(pos);
        let instr = &self.module.instrs[id];
        match instr.opcode {
            O::Bitcast
            | O::AddDependency
            | O::OptimizationBarrier
            | O::Domain
            | O::AllReduceDone => self.forward(id, 0, node),
            O::Copy if node > 0 => self.forward(id, 0, node),
            O::GetTupleElement => {
                let index = instr.int(crate::attr::AttrName::Index).unwrap_or(-1);
                self.forward_element(id, usize::try_from(index).unwrap_or(usize::MAX), node)
            }
            O::Tuple => match self.split(instr.shape, node) {
                Some((element, rest)) => self.forward(id, element, rest),
                None => Role::Unknown,
            },
            O::Parameter if instr.computation == self.module.entry => Role::Defines,
            O::Parameter | O::While | O::Conditional | O::Call => Role::Control,
            O::AsyncStart => match self.split(instr.shape, node) {
                Some((0, rest)) => self.forward_operands(id, rest),
                Some((1, _)) => Role::Control,
                Some(_) => Role::Defines,
                None => Role::Unknown,
            },
            O::AsyncUpdate => self.forward(id, 0, node),
            O::AsyncDone | O::AllGatherDone | O::CollectivePermuteDone => {
                self.forward_element(id, 1, node)
            }
            O::CopyDone => self.forward_element(id, 0, node),
            O::CopyStart => match self.split(instr.shape, node) {
                Some((1, rest)) => self.forward(id, 0, rest),
                Some(_) => Role::Defines,
                None => Role::Unknown,
            },
            O::AllGatherStart | O::CollectivePermuteStart => match self.split(instr.shape, node) {
                Some((0, rest)) => self.forward_operands(id, rest),
                Some(_) => Role::Defines,
                None => Role::Unknown,
            },
            O::Send => match self.split(instr.shape, node) {
                Some((0, rest)) => self.forward(id, 0, rest),
                Some(_) => Role::Defines,
                None => Role::Unknown,
            },
            O::RecvDone => match self.split(instr.shape, node) {
                Some((0, rest)) => self.forward_element(id, 0, rest),
                _ => Role::Unknown,
            },
            _ => Role::Defines,
        }
    }

    /// Part `node` of operand `operand`.
    fn forward(&self, id: InstrId, operand: usize, node: u32) -> Role {
        match self.module.instrs[id].operands.get(operand) {
            Some(&o) if node < self.module.shapes.node_count(self.module.instrs[o].shape) => {
                Role::Forwards(self.positions.node(o, node))
            }
            _ => Role::Unknown,
        }
    }

    /// Part `node` of element `element` of operand 0.
    fn forward_element(&self, id: InstrId, element: usize, node: u32) -> Role {
        let Some(&o) = self.module.instrs[id].operands.first() else {
            return Role::Unknown;
        };
        match self.element_start(self.module.instrs[o].shape, element) {
            Some(start) => self.forward(id, 0, start.saturating_add(node)),
            None => Role::Unknown,
        }
    }

    /// Part `node` of the tuple of operands that begins an async result: the tuple is left out
    /// where there is one operand.
    fn forward_operands(&self, id: InstrId, node: u32) -> Role {
        let shape = self.module.instrs[id].shape;
        let first = self.module.shapes.tuple(shape).and_then(|e| e.first());
        let Some(&first) = first else {
            return Role::Unknown;
        };
        let operands = &self.module.instrs[id].operands;
        let is_operand = operands.first().is_some_and(|&o| {
            self.module
                .shapes
                .compatible(self.module.instrs[o].shape, first)
        });
        if is_operand {
            return self.forward(id, 0, node);
        }
        match self.split(first, node) {
            Some((operand, rest)) => self.forward(id, operand, rest),
            None => Role::Unknown,
        }
    }
}

/// What `input_output_alias` asks for: (output, part of an entry parameter whose bytes it takes).
///
/// A may-alias is a wish: where the two need other numbers of bytes, or memory spaces, it can't hold,
/// and the caller keeps the argument.
fn aliases(module: &Module, positions: &Positions) -> Vec<(PosId, PosId)> {
    let root = module.entry().root;
    let bytes = |p| padding::shape_bytes(&module.shapes, positions.shape(p));
    let space = |p| match module.shapes.get(positions.shape(p)) {
        Shape::Array(a) => Some(a.memory_space()),
        _ => None,
    };
    module
        .input_output_alias
        .iter()
        .filter_map(|alias| {
            let &param = module.entry().params.get(alias.parameter as usize)?;
            let output = positions.at(module, root, &alias.output_index)?;
            let parameter = positions.at(module, param, &alias.parameter_index)?;
            let fits = bytes(output) == bytes(parameter) && space(output) == space(parameter);
            (fits || alias.kind == AliasKind::Must).then_some((output, parameter))
        })
        .collect()
}

/// The parts of entry parameters that `input_output_alias` or `buffer_donor` names.
fn donated(module: &Module, positions: &Positions, aliases: &[(PosId, PosId)]) -> BTreeSet<PosId> {
    let given = module.buffer_donors.iter().filter_map(|d| {
        let &param = module.entry().params.get(d.parameter as usize)?;
        positions.at(module, param, &d.parameter_index)
    });
    aliases.iter().map(|a| a.1).chain(given).collect()
}

fn element_starts(module: &Module, shape: ShapeId) -> Box<[u32]> {
    let mut next = 1u32;
    module
        .shapes
        .tuple(shape)
        .unwrap_or_default()
        .iter()
        .map(|&e| {
            let start = next;
            next = next.saturating_add(module.shapes.node_count(e));
            start
        })
        .collect()
}
