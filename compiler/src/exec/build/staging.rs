//! Operations and moves: which arrays are brought into the arena, and where there.

use slabplan_ir::entity::InstrId;
use slabplan_ir::pieces::piece_order;

use super::Builder;
use crate::exec::ExecError;
use crate::exec::program::{
    Access, Body, Cut, Leaf, Move, Moves, Op, Operand, ResultLeaf, Step, Way,
};
use crate::exec::run::STAGE_ALIGN;

impl Builder<'_> {
    pub(super) fn op(&mut self, id: InstrId, mut body: Body) -> Result<(), ExecError> {
        let sources = self.leaves_of_all(&self.module.instrs[id].operands)?;
        let leaves = self.leaves_of(id)?;
        let mut results = Vec::with_capacity(leaves.len());
        let mut over = vec![None; sources.len()];
        for (n, &leaf) in leaves.iter().enumerate() {
            let way = self.way(&mut body, n, leaf, &leaves[..n], &sources, &mut over);
            let info = self.program.info(leaf);
            let bytes = body.bytes_in_place(info);
            results.push(ResultLeaf {
                leaf,
                bytes: bytes.unwrap_or_else(|| info.map.dense_bytes()),
                way,
            });
        }
        let mut cuts: Vec<Cut> = results
            .iter()
            .enumerate()
            .filter(|(_, r)| r.way == Way::Slab)
            .map(|(result, r)| Cut {
                slab: r.leaf.slab,
                start: r.leaf.offset,
                len: r.bytes,
                result,
            })
            .filter(|cut| cut.len > 0)
            .collect();
        cuts.sort_by_key(|c| (c.slab, c.start));
        let (operands, results_at) = self.operands(&body, &sources, &over, &cuts);
        let (mut end, mut poisoned) = (results_at, 0);
        for result in &mut results {
            let info = self.program.info(result.leaf);
            if let Way::Raw(at) | Way::Dense(at) = &mut result.way {
                *at = end;
                end = self.add_bytes(id, end, result.bytes)?;
            }
            // Padding is poisoned through the dense form.
            poisoned = poisoned.max(info.map.dense_bytes());
        }
        let (scratch, refs) = match &body {
            Body::Kernel(k) => (k.scratch_bytes(), 0),
            Body::Fusion(f) => (f.scratch_bytes(), f.most_refs()),
        };
        let scratch_at = end;
        if self.config.poison {
            end = self.add_bytes(id, end, scratch.max(poisoned))?;
        } else {
            end = self.add_bytes(id, end, scratch)?;
        }
        let program = &mut self.program;
        program.arena = program.arena.max(end);
        program.most_refs = program
            .most_refs
            .max(operands.len())
            .max(results.len())
            .max(cuts.len() + program.slabs.len())
            .max(refs);
        program.ops.push(Op {
            body,
            operands: operands.into(),
            results: results.into(),
            cuts: cuts.into(),
            results_at,
            scratch_at,
            scratch,
        });
        self.push(Step::Op(self.program.ops.len() as u32 - 1));
        Ok(())
    }

    /// How result `n` is written. The memory of an operand is written over only where the body
    /// can do that, which then knows.
    fn way(
        &self,
        body: &mut Body,
        n: usize,
        leaf: Leaf,
        earlier: &[Leaf],
        sources: &[Leaf],
        over: &mut [Option<usize>],
    ) -> Way {
        let info = self.program.info(leaf);
        if body.bytes_in_place(info).is_none() {
            return Way::Dense(0);
        }
        if info.map.dense_bytes() == 0 {
            return Way::Slab;
        }
        let bytes = |l: Leaf| (l.offset, l.offset + self.program.info(l).map.padded_bytes());
        let (start, end) = bytes(leaf);
        let meets = |l: &Leaf| {
            let (s, e) = bytes(*l);
            l.slab == leaf.slab && s < end && start < e
        };
        if earlier.iter().any(meets) {
            return Way::Raw(0);
        }
        let met: Vec<usize> = (0..sources.len()).filter(|&o| meets(&sources[o])).collect();
        // All operands there must be this very array.
        let same = |o: &usize| {
            let l = sources[*o];
            let other = self.program.info(l);
            l.offset == leaf.offset
                && (l.array == leaf.array
                    || (other.map == info.map && other.element_type == info.element_type))
                && body.bytes_in_place(other).is_some()
                && body.may_overwrite(*o, n)
        };
        if !met.iter().all(same) {
            return Way::Raw(0);
        }
        for o in met {
            body.overwrite(o, n);
            over[o] = Some(n);
        }
        Way::Slab
    }

    /// Where the operands are found; those that do not lie as they are taken get a place in the
    /// arena, the same array once. Returns also how many bytes of it they take.
    fn operands(
        &self,
        body: &Body,
        leaves: &[Leaf],
        over: &[Option<usize>],
        cuts: &[Cut],
    ) -> (Vec<Operand>, usize) {
        let mut seen: indexmap::IndexMap<(u32, usize, u32), usize, rustc_hash::FxBuildHasher> =
            indexmap::IndexMap::default();
        let mut end = 0usize;
        let operands = leaves
            .iter()
            .zip(over)
            .map(|(&leaf, over)| {
                let info = self.program.info(leaf);
                let taken = body.bytes_in_place(info);
                let dense = info.map.dense_bytes();
                let access = if over.is_some() || dense == 0 {
                    Access::Result
                } else if taken.is_some() {
                    part_of(leaf, cuts)
                } else {
                    let key = (leaf.slab, leaf.offset, leaf.array);
                    Access::Arena(*seen.entry(key).or_insert_with(|| {
                        let at = end;
                        end = end.saturating_add(dense).saturating_add(STAGE_ALIGN - 1)
                            / STAGE_ALIGN
                            * STAGE_ALIGN;
                        at
                    }))
                };
                Operand {
                    leaf,
                    bytes: taken.unwrap_or(dense),
                    access,
                }
            })
            .collect();
        (operands, end)
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
            let (from_info, to_info) = (self.program.info(from), self.program.info(to));
            let padded = to_info.map.padded_bytes() > to_info.map.dense_bytes();
            let raw = from_info.map == to_info.map && !(self.config.poison && padded);
            moves.push(Move {
                from,
                to,
                stage: None,
                raw,
            });
        }
        // One value that keeps its form goes there at once.
        if moves.len() > 1 || moves.iter().any(|m| !m.raw) {
            for m in &mut moves {
                m.stage = Some(end);
                let map = &self.program.info(m.from).map;
                let bytes = if m.raw {
                    map.padded_bytes()
                } else {
                    map.dense_bytes()
                };
                end = self.add_bytes(id, end, bytes)?;
            }
        }
        if !moves.is_empty() {
            self.program.arena = self.program.arena.max(end);
            self.program.moves.push(Moves(moves.into()));
            self.push(Step::Move(self.program.moves.len() as u32 - 1));
        }
        Ok(())
    }

    /// Whether both are the same array at the same place.
    fn same_bytes(&self, a: Leaf, b: Leaf) -> bool {
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

/// The part of the slabs between the results in which an operand lies.
fn part_of(leaf: Leaf, cuts: &[Cut]) -> Access {
    // One part before each cut, and one at the end of each slab.
    let before = cuts
        .iter()
        .filter(|c| (c.slab, c.start) < (leaf.slab, leaf.offset))
        .collect::<Vec<_>>();
    let start = before
        .last()
        .filter(|c| c.slab == leaf.slab)
        .map_or(0, |c| c.start + c.len);
    Access::Slab {
        part: before.len() + leaf.slab as usize,
        start: leaf.offset.saturating_sub(start),
    }
}
