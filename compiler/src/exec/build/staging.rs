//! Operations and moves: which arrays are brought into the arena, and where there.

use slabplan_ir::entity::InstrId;
use slabplan_ir::pieces::piece_order;

use super::Builder;
use crate::exec::ExecError;
use crate::exec::program::{Body, Leaf, Moves, Op, Staged, Step};
use crate::exec::run::STAGE_ALIGN;

impl Builder<'_> {
    pub(super) fn op(&mut self, id: InstrId, body: Body) -> Result<(), ExecError> {
        let sources = self.leaves_of_all(&self.module.instrs[id].operands)?;
        let results = self.leaves_of(id)?;
        let (operands, staged) = self.stage(&sources);
        let mut end = staged;
        for &leaf in &results {
            end = self.add_bytes(id, end, self.program.info(leaf).map.dense_bytes())?;
        }
        let (scratch, refs) = match &body {
            Body::Kernel(k) => (k.scratch_bytes(), 0),
            Body::Fusion(f) => (f.scratch_bytes(), f.most_refs()),
        };
        end = self.add_bytes(id, end, scratch)?;
        let program = &mut self.program;
        program.arena = program.arena.max(end);
        program.most_refs = program
            .most_refs
            .max(operands.len())
            .max(results.len())
            .max(refs);
        program.ops.push(Op {
            body,
            operands: operands.into(),
            results: results.into(),
            results_at: staged,
            scratch,
        });
        self.push(Step::Op(self.program.ops.len() as u32 - 1));
        Ok(())
    }

    /// Gives each array that is not dense in its slab a place in the arena, the same array once;
    /// returns how many bytes they take.
    pub(super) fn stage(&self, leaves: &[Leaf]) -> (Vec<Staged>, usize) {
        let mut seen: indexmap::IndexMap<(u32, usize, u32), usize, rustc_hash::FxBuildHasher> =
            indexmap::IndexMap::default();
        let mut end = 0usize;
        let staged = leaves
            .iter()
            .map(|&leaf| {
                let map = &self.program.info(leaf).map;
                let stage = (!map.is_dense()).then(|| {
                    let key = (leaf.slab, leaf.offset, leaf.array);
                    *seen.entry(key).or_insert_with(|| {
                        let at = end;
                        end = end
                            .saturating_add(map.dense_bytes())
                            .saturating_add(STAGE_ALIGN - 1)
                            / STAGE_ALIGN
                            * STAGE_ALIGN;
                        at
                    })
                });
                Staged { leaf, stage }
            })
            .collect();
        (staged, end)
    }

    pub(super) fn add_bytes(
        &self,
        id: InstrId,
        end: usize,
        bytes: usize,
    ) -> Result<usize, ExecError> {
        end.checked_add(bytes)
            .and_then(|n| n.checked_next_multiple_of(STAGE_ALIGN))
            .ok_or_else(|| self.unsupported(id, "its arrays are too large to stage"))
    }

    /// A step that moves values to other places, all read before any is written; none where
    /// they all stay.
    pub(super) fn move_all(
        &mut self,
        id: InstrId,
        pairs: Vec<(Leaf, Leaf)>,
    ) -> Result<(), ExecError> {
        let mut end = 0;
        let mut moves = Vec::new();
        for (from, to) in pairs {
            if from == to || self.same_bytes(from, to) {
                continue;
            }
            let stage = Some(end);
            end = self.add_bytes(id, end, self.program.info(from).map.dense_bytes())?;
            moves.push((Staged { leaf: from, stage }, to));
        }
        if !moves.is_empty() {
            self.program.arena = self.program.arena.max(end);
            self.program.moves.push(Moves(moves.into()));
            self.push(Step::Move(self.program.moves.len() as u32 - 1));
        }
        Ok(())
    }

    /// Whether both are the same array at the same place.
    pub(super) fn same_bytes(&self, a: Leaf, b: Leaf) -> bool {
        (a.slab, a.offset) == (b.slab, b.offset)
            && self.program.info(a).map == self.program.info(b).map
    }

    /// Moves the arrays of `from` to the places of `to`.
    pub(super) fn move_instr(
        &mut self,
        id: InstrId,
        from: InstrId,
        to: InstrId,
    ) -> Result<(), ExecError> {
        let (from, to) = (self.leaves_of(from)?, self.leaves_of(to)?);
        self.move_all(id, from.into_iter().zip(to).collect())
    }

    pub(super) fn copy(&mut self, id: InstrId) -> Result<(), ExecError> {
        let operand = self.module.instrs[id].operands[0];
        let shape = self.module.instrs[id].shape;
        if self.module.shapes.array(shape).is_none() {
            return Ok(()); // A tuple's elements forward.
        }
        self.move_instr(id, operand, id)
    }

    /// `ConcatBitcast`: the operands' bytes side by side are the result's. Planned, they lie
    /// there already.
    pub(super) fn concat_bitcast(&mut self, id: InstrId) -> Result<(), ExecError> {
        let result = self.single_leaf(id)?;
        let mut at = result.offset;
        let end = at + self.program.info(result).map.padded_bytes();
        let mut pairs = Vec::new();
        let operands = &self.module.instrs[id].operands;
        let pieces: Vec<_> = piece_order(self.module, id)
            .into_iter()
            .map(|number| operands[number])
            .collect();
        for piece in self.leaves_of_all(&pieces)? {
            let bytes = self.program.info(piece).map.padded_bytes();
            let array = self.byte_array(id, bytes)?;
            let from = Leaf { array, ..piece };
            let to = Leaf {
                array,
                slab: result.slab,
                offset: at,
            };
            pairs.push((from, to));
            at += bytes;
        }
        if at > end {
            return Err(self.unsupported(id, "its operands are larger than its result"));
        }
        self.move_all(id, pairs)
    }
}
