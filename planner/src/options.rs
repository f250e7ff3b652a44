//! The packer's freedom and its bonds: pairs of buffers that may share bytes, and pieces that lie side by side.

use slabplan_ir::Module;
use slabplan_ir::padding::shape_bytes;
use slabplan_ir::pieces::{is_concat_bitcast, piece_order};

use crate::buffers::Buffers;
use crate::dataflow::{Dataflow, ValueId};
use crate::error::PlanError;
use crate::interference::{ClassId, Classes};
use crate::liveness::Ranges;
use crate::order::ProgramOrder;
use crate::share::ShareRules;

/// Two buffers that may occupy exactly the same bytes.
///
/// Finds every pair of classes whose live ranges meet only at instructions where the bytes may pass
/// from one to the other. O(passes log passes + the intervals of the buffers concerned).
pub fn may_share(
    module: &Module,
    rules: &ShareRules<'_>,
    order: &ProgramOrder,
    flow: &Dataflow,
    classes: &Classes,
    buffers: &Buffers,
) -> Vec<(ClassId, ClassId)> {
    let mut passes: Vec<(ClassId, ClassId, u32)> = Vec::new();
    let shape = |v: ValueId| flow.positions.shape(flow.values[v].def);
    rules.for_each_pass(|dying, born, t| {
        let (a, b) = (classes.of(dying), classes.of(born));
        let (x, y) = (&buffers[a], &buffers[b]);
        // A value may be smaller than its buffer, which a bitcast widened; then the places differ.
        let bytes = |v: ValueId| shape_bytes(&module.shapes, shape(v)).ok();
        let fits = a != b
            && x.space == y.space
            && x.size == y.size
            && !x.size.is_zero()
            && bytes(dying) == bytes(born);
        // Another result of this instruction may already lie on the operand.
        let taken = || {
            flow.leaves(order.instr(t))
                .any(|(p, v)| flow.values[v].def == p && classes.of(v) == a)
        };
        if fits && !taken() {
            passes.push((a.min(b), a.max(b), t));
        }
    });
    passes.sort_unstable();
    passes
        .chunk_by(|x, y| (x.0, x.1) == (y.0, y.1))
        .filter(|group| {
            let (a, b, _) = group[0];
            meet_only_at(&buffers[a].live, &buffers[b].live, group)
        })
        .map(|group| (group[0].0, group[0].1))
        .collect()
}

/// Whether two live ranges overlap at moments of `group` only.
fn meet_only_at(a: &Ranges, b: &Ranges, group: &[(ClassId, ClassId, u32)]) -> bool {
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        let start = a[i].start.max(b[j].start);
        let end = a[i].end.min(b[j].end);
        if start < end {
            let passes = end == start + 1 && group.iter().any(|g| g.2 == start);
            if !passes {
                return false;
            }
        }
        if a[i].end <= b[j].end {
            i += 1;
        } else {
            j += 1;
        }
    }
    true
}

/// A piece that lies `distance` bytes after the start of `whole`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The buffer of the joined array.
    pub whole: ClassId,
    /// The buffer of the piece.
    pub piece: ClassId,
    /// Bytes from the start of `whole`.
    pub distance: u64,
    /// Number of the instruction that joins them.
    pub at: u32,
}

/// The pieces of every `ConcatBitcast`: its result is its operands side by side, in the order of the
/// slices that they are.
///
/// Fails where one value is a piece in two places.
pub fn pieces(
    module: &Module,
    order: &ProgramOrder,
    flow: &Dataflow,
    classes: &Classes,
    buffers: &Buffers,
) -> Result<Vec<Piece>, PlanError> {
    let mut found = Vec::new();
    for (at, &instr) in (0..).zip(order.sequence()) {
        if !is_concat_bitcast(module, instr) {
            continue;
        }
        let Some(whole) = flow.at(flow.positions.root(instr)) else {
            continue;
        };
        let mut distance = 0u64;
        for number in piece_order(module, instr) {
            let operand = module.instrs[instr].operands[number];
            let Some(piece) = flow.at(flow.positions.root(operand)) else {
                continue;
            };
            found.push(Piece {
                whole: classes.of(whole),
                piece: classes.of(piece),
                distance,
                at,
            });
            let bytes = buffers[classes.of(piece)].size;
            distance += bytes.get();
        }
    }
    Ok(found)
}
