//! Where operations work: in the plan's scratch buffers, or in a slab of its own where the plan has none.

use std::collections::BTreeMap;

use slabplan_ir::entity::InstrId;
use slabplan_ir::plan::{BufferKind, Plan};

use super::Builder;
use crate::exec::ExecError;
use crate::exec::program::{ByteRange, Leaf};

/// The scratch buffers of `plan` that lie within their slabs.
pub(super) fn planned(plan: &Plan) -> BTreeMap<InstrId, ByteRange> {
    let mut scratch = BTreeMap::new();
    for buffer in plan.buffers.values() {
        let BufferKind::Scratch { instr } = buffer.kind else {
            continue;
        };
        let slab = plan.spaces.iter().position(|s| s.space == buffer.space);
        let end = buffer.offset.get().checked_add(buffer.size.get());
        if let (Some(slab), Some(end)) = (slab, end)
            && end <= plan.spaces[slab].slab.get()
        {
            let range = ByteRange {
                slab: slab as u32,
                start: buffer.offset.get() as usize,
                end: end as usize,
            };
            scratch.insert(instr, range);
        }
    }
    scratch
}

impl Builder<'_> {
    /// The `bytes` bytes that a step of instruction `owner` works in; `touched` is what else it uses.
    pub(super) fn scratch(
        &mut self,
        owner: InstrId,
        bytes: usize,
        touched: impl Iterator<Item = Leaf>,
    ) -> Result<ByteRange, ExecError> {
        if bytes == 0 {
            return Ok(ByteRange::default());
        }
        let most = self.program.requests.entry(owner).or_default();
        *most = (*most).max(bytes);
        let planned = self.scratch.get(&owner).copied();
        let Some(range) = planned.filter(|r| r.end - r.start >= bytes) else {
            let slab = self.program.slabs.len() - 1;
            let outside = &mut self.program.slabs[slab].bytes;
            *outside = (*outside).max(bytes);
            return Ok(ByteRange {
                slab: slab as u32,
                start: 0,
                end: bytes,
            });
        };
        let range = ByteRange {
            end: range.start + bytes,
            ..range
        };
        for leaf in touched {
            let other = self.program.bytes_of(leaf);
            if leaf.slab == range.slab && other.start < range.end && range.start < other.end {
                return Err(ExecError::BadPlace {
                    value: format!("the scratch of %{}", self.module.name_of(owner)),
                    bytes: bytes as u64,
                    problem: "on the bytes of an operand or result".to_owned(),
                });
            }
        }
        Ok(range)
    }
}
