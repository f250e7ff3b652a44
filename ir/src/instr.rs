//! Instructions.

use smallvec::SmallVec;

use crate::attr::{Attr, AttrName, AttrValue, OperandAlias, PaddingDim, SliceDim, WindowDim};
use crate::attr::{ConvDimLabels, ReplicaGroups};
use crate::entity::{CompId, InstrId, ShapeId};
use crate::opcode::Opcode;
use crate::strings::Str;

/// What stands between the parentheses where it is not a list of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Nothing: the operands are instructions.
    None,
    /// `parameter(N)`.
    Parameter(u32),
    /// `constant(...)`: the literal as text, `{...}` where it was elided.
    Literal(Str),
}

/// One instruction of a computation.
#[derive(Clone, Debug)]
pub struct Instr {
    /// Name without `%`, unique in its computation (and, in compiled modules, in the module).
    pub name: Str,
    /// Operation.
    pub opcode: Opcode,
    /// Shape of the result.
    pub shape: ShapeId,
    /// Computation this instruction belongs to.
    pub computation: CompId,
    /// Operands, defined earlier in the same computation.
    pub operands: SmallVec<[InstrId; 3]>,
    /// Parameter number or literal.
    pub payload: Payload,
    /// Attributes in the order of the text.
    pub attrs: Vec<Attr>,
}

impl Instr {
    /// The value of attribute `name`, if present.
    pub fn attr(&self, name: AttrName) -> Option<&AttrValue> {
        self.attrs.iter().find(|a| a.name == name).map(|a| &a.value)
    }

    /// An integer attribute.
    pub fn int(&self, name: AttrName) -> Option<i64> {
        match self.attr(name) {
            Some(AttrValue::Int(n)) => Some(*n),
            _ => None,
        }
    }

    /// A boolean attribute; absent means false.
    pub fn flag(&self, name: AttrName) -> bool {
        matches!(self.attr(name), Some(AttrValue::Bool(true)))
    }

    /// A list of integers; absent means empty.
    pub fn ints(&self, name: AttrName) -> &[i64] {
        match self.attr(name) {
            Some(AttrValue::Ints(v)) => v,
            _ => &[],
        }
    }

    /// A word or number kept as text.
    pub fn ident(&self, name: AttrName) -> Option<Str> {
        match self.attr(name) {
            Some(AttrValue::Ident(s)) => Some(*s),
            _ => None,
        }
    }

    /// Text kept verbatim, with its delimiters.
    pub fn raw(&self, name: AttrName) -> Option<Str> {
        match self.attr(name) {
            Some(AttrValue::Raw(s)) => Some(*s),
            _ => None,
        }
    }

    /// The computation of one attribute.
    pub fn comp(&self, name: AttrName) -> Option<CompId> {
        match self.attr(name) {
            Some(AttrValue::Comp(c)) => Some(*c),
            _ => None,
        }
    }

    /// Every computation this instruction names, in the order of its attributes; the branches of
    /// a conditional in branch order.
    pub fn called_computations(&self) -> impl Iterator<Item = CompId> + '_ {
        self.attrs
            .iter()
            .flat_map(|a| match &a.value {
                AttrValue::Comp(c) => std::slice::from_ref(c),
                AttrValue::Comps(c) => c,
                _ => &[],
            })
            .copied()
    }

    /// The branches of a conditional, branch 0 (or the true branch) first.
    pub fn branches(&self) -> SmallVec<[CompId; 2]> {
        match self.attr(AttrName::BranchComputations) {
            Some(AttrValue::Comps(c)) => c.iter().copied().collect(),
            _ => [AttrName::TrueComputation, AttrName::FalseComputation]
                .into_iter()
                .filter_map(|n| self.comp(n))
                .collect(),
        }
    }

    /// Instructions of the same computation that must run before this one although it does not use them.
    pub fn control_predecessors(&self) -> &[InstrId] {
        match self.attr(AttrName::ControlPredecessors) {
            Some(AttrValue::Instrs(v)) => v,
            _ => &[],
        }
    }

    /// Declared aliases of outputs to operands.
    pub fn operand_aliases(&self) -> &[OperandAlias] {
        match self.attr(AttrName::OutputToOperandAliasing) {
            Some(AttrValue::Aliasing(v)) => v,
            _ => &[],
        }
    }

    /// The window, one entry a spatial dimension; absent means none.
    pub fn window(&self) -> &[WindowDim] {
        match self.attr(AttrName::Window) {
            Some(AttrValue::Window(v)) => v,
            _ => &[],
        }
    }

    /// The dimension labels of a convolution.
    pub fn dim_labels(&self) -> Option<&ConvDimLabels> {
        match self.attr(AttrName::DimLabels) {
            Some(AttrValue::DimLabels(v)) => Some(v),
            _ => None,
        }
    }

    /// The padding of `pad`, one entry a dimension.
    pub fn padding(&self) -> &[PaddingDim] {
        match self.attr(AttrName::Padding) {
            Some(AttrValue::Padding(v)) => v,
            _ => &[],
        }
    }

    /// The bounds of `slice`, one entry a dimension.
    pub fn slice_dims(&self) -> &[SliceDim] {
        match self.attr(AttrName::Slice) {
            Some(AttrValue::Slice(v)) => v,
            _ => &[],
        }
    }

    /// The device groups of a collective.
    pub fn replica_groups(&self) -> Option<&ReplicaGroups> {
        match self.attr(AttrName::ReplicaGroups) {
            Some(AttrValue::ReplicaGroups(v)) => Some(v),
            _ => None,
        }
    }

    /// The number of a parameter.
    pub fn parameter_number(&self) -> Option<u32> {
        match self.payload {
            Payload::Parameter(n) => Some(n),
            _ => None,
        }
    }
}
