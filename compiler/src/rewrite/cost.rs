//! What a chosen node costs: padded bytes that its value takes, by one of two views of the world.

use std::cell::RefCell;

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use slabplan_ir::{ArrayShape, ElementType, Target};
use slabplan_planner::layouts::least_bytes;

use super::lang::{Dims, Facts, Node, Op};

/// How values are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostView {
    /// Every value is kept in memory.
    Values,
    /// Elementwise operations and broadcasts are mostly fused away; moves and reductions are kept.
    Fused,
}

impl CostView {
    /// All views: one candidate is extracted for each.
    pub const ALL: [CostView; 2] = [CostView::Values, CostView::Fused];

    /// Name for people.
    pub const fn name(self) -> &'static str {
        match self {
            CostView::Values => "values",
            CostView::Fused => "fused",
        }
    }
}

/// Prices nodes; remembers the sizes of shapes.
pub(super) struct Prices<'a> {
    target: &'a Target,
    known: RefCell<IndexMap<(ElementType, Dims), u64, FxBuildHasher>>,
}

impl<'a> Prices<'a> {
    pub(super) fn new(target: &'a Target) -> Self {
        Self {
            target,
            known: RefCell::new(IndexMap::default()),
        }
    }

    /// The price of a node whose value has these facts. Every node costs something, so that of two
    /// ways with equal bytes the shorter is taken.
    pub(super) fn of(&self, view: CostView, node: &Node, facts: &Facts) -> u64 {
        let bytes = self.bytes(facts);
        let share = match (view, &node.op) {
            (_, Op::Leaf(_)) => return 0,
            (CostView::Values, _) => bytes,
            (CostView::Fused, Op::Elementwise(_) | Op::Convert(_) | Op::Broadcast { .. }) => {
                bytes / 8
            }
            (CostView::Fused, Op::Reshape(_) | Op::Transpose(_)) => bytes / 4,
            (CostView::Fused, _) => bytes,
        };
        share.saturating_add(64)
    }

    /// Padded bytes in the best order of dimensions.
    fn bytes(&self, facts: &Facts) -> u64 {
        let key = (facts.element, facts.dims.clone());
        if let Some(&bytes) = self.known.borrow().get(&key) {
            return bytes;
        }
        let array = ArrayShape::new(facts.element, &facts.dims);
        let bytes = least_bytes(&array, self.target);
        self.known.borrow_mut().insert(key, bytes);
        bytes
    }
}
