//! Bytes that pass from an operand to a result within one instruction.

use std::collections::BTreeMap;

use slabplan_ir::plan::PlanBuffer;

/// The bytes of one memory space that come into use at one point of program order.
#[derive(Clone, Debug, Default)]
pub(super) struct Begun {
    /// End by start. Buffers that come into use together are disjoint.
    extents: BTreeMap<u64, u64>,
}

impl Begun {
    /// Adds a buffer that comes into use.
    pub(super) fn add(&mut self, buffer: &PlanBuffer) {
        let start = buffer.offset.get();
        self.extents.insert(start, start + buffer.size.get());
    }

    /// Whether one of them takes bytes of `buffer`, which is used last at this point: then the two are
    /// an operand and a result in its place, and its bytes count once. O(log n).
    pub(super) fn takes_from(&self, buffer: &PlanBuffer) -> bool {
        let start = buffer.offset.get();
        let end = start + buffer.size.get();
        let below = self.extents.range(..end).next_back();
        below.is_some_and(|(_, &e)| start < e)
    }
}
