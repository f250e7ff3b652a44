//! Positions: one (instruction, shape index) pair, numbered densely.
//!
//! Analyses that say something about every part of every result (which value
//! lives there, where its bytes are) are vectors over positions. Parts are
//! numbered in preorder: the position of a result itself comes first, then its
//! tuple elements.

use crate::entity::{EntityId, InstrId, PosId, SecondaryMap, ShapeId};
use crate::module::Module;
use crate::shape::{Shape, ShapeIndex};

/// Numbering of all positions of a module.
///
/// O(sum of the parts of all result shapes) in time and space.
#[derive(Clone, Debug)]
pub struct Positions {
    first: Vec<u32>,
    instr: Vec<InstrId>,
    shape: Vec<ShapeId>,
}

impl Positions {
    /// Numbers the positions of every instruction of `module`.
    pub fn new(module: &Module) -> Self {
        let mut this = Self {
            first: Vec::with_capacity(module.instrs.len() + 1),
            instr: Vec::with_capacity(module.instrs.len()),
            shape: Vec::with_capacity(module.instrs.len()),
        };
        for (id, instr) in module.instrs.iter() {
            this.first.push(this.instr.len() as u32);
            if module.shapes.tuple(instr.shape).is_some() {
                for part in module.shapes.preorder(instr.shape) {
                    this.instr.push(id);
                    this.shape.push(part);
                }
            } else {
                this.instr.push(id);
                this.shape.push(instr.shape);
            }
        }
        this.first.push(this.instr.len() as u32);
        this
    }

    /// How many positions there are.
    pub fn len(&self) -> usize {
        self.instr.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.instr.is_empty()
    }

    /// A fact for every position, all equal to `value`.
    pub fn filled<V: Clone>(&self, value: V) -> SecondaryMap<PosId, V> {
        SecondaryMap::filled(self.len(), value)
    }

    /// The position of the whole result of `instr`.
    pub fn root(&self, instr: InstrId) -> PosId {
        PosId::from_index(self.first[instr.index()] as usize)
    }

    /// All positions of `instr`, in preorder of its shape.
    pub fn of(
        &self,
        instr: InstrId,
    ) -> impl DoubleEndedIterator<Item = PosId> + ExactSizeIterator + use<> {
        let range = self.first[instr.index()] as usize..self.first[instr.index() + 1] as usize;
        range.map(PosId::from_index)
    }

    /// The position `node` parts after the root of `instr`.
    pub fn node(&self, instr: InstrId, node: u32) -> PosId {
        PosId::from_index((self.first[instr.index()] + node) as usize)
    }

    /// The position of `instr` at `index`, if its shape has one.
    pub fn at(&self, module: &Module, instr: InstrId, index: &[u32]) -> Option<PosId> {
        let node = module
            .shapes
            .node_of_index(module.instrs[instr].shape, index)?;
        Some(self.node(instr, node))
    }

    /// The instruction of a position.
    pub fn instr(&self, pos: PosId) -> InstrId {
        self.instr[pos.index()]
    }

    /// Which part of its instruction's shape a position is (0 is the whole).
    pub fn node_of(&self, pos: PosId) -> u32 {
        pos.index() as u32 - self.first[self.instr(pos).index()]
    }

    /// The shape at a position.
    pub fn shape(&self, pos: PosId) -> ShapeId {
        self.shape[pos.index()]
    }

    /// The shape index of a position. O(size of the shape).
    pub fn index(&self, module: &Module, pos: PosId) -> ShapeIndex {
        let instr = self.instr(pos);
        module
            .shapes
            .index_of_node(module.instrs[instr].shape, self.node_of(pos))
    }

    /// Whether the position holds an array (or the address of one), and so needs bytes.
    pub fn has_bytes(&self, module: &Module, pos: PosId) -> bool {
        matches!(
            module.shapes.get(self.shape(pos)),
            Shape::Array(_) | Shape::Buffer(_)
        )
    }

    /// Prints a position as XLA does: `%name` or `%name{1,0}`.
    pub fn display(&self, module: &Module, pos: PosId) -> String {
        let instr = self.instr(pos);
        let name = module.name_of(instr);
        if module.shapes.tuple(module.instrs[instr].shape).is_none() {
            return format!("%{name}");
        }
        let index = self.index(module, pos);
        format!("%{name}{}", crate::shape::DisplayIndex(&index))
    }
}
