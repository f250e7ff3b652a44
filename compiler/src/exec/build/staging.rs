//! Operations and moves: which arrays are brought into dense form in the scratch, and where there.

use slabplan_ir::entity::InstrId;
use slabplan_ir::pieces::piece_order;

use super::Builder;
use crate::exec::ExecError;
use crate::exec::fusion::Fusion;
use crate::exec::program::{
    Access, Body, ByteRange, Cut, CutOut, Leaf, Move, Moves, Op, Operand, ResultLeaf, Step, Way,
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
        let (staged, results_at) = self.stage(&body, &sources, &over);
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
        let body_at = end;
        let (needed, refs) = match &body {
            Body::Kernel(k) => (k.scratch_bytes(), 0),
            Body::Fusion(f) => (f.scratch_bytes(), f.most_refs()),
        };
        end = end.checked_add(needed).ok_or_else(|| self.too_large(id))?;
        let touched = sources.iter().chain(&leaves).copied();
        let scratch = self.scratch(id, end, touched)?;
        let cuts = cuts(&results, scratch);
        let operands = operands(&sources, &staged, &cuts);
        let program = &mut self.program;
        if self.config.poison {
            program.spare = program.spare.max(poisoned);
        }
        program.most_refs = program
            .most_refs
            .max(operands.len())
            .max(results.len())
            .max(cuts.len() + program.slabs.len())
            .max(refs);
        program.ops.push(Op {
            body,
            operands,
            results: results.into(),
            cuts,
            scratch,
            results_at,
            body_at,
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

    /// How the operands are taken, and how many bytes of scratch those take that do not lie as they are
    /// taken; the same array once.
    fn stage(&self, body: &Body, leaves: &[Leaf], over: &[Option<usize>]) -> (Vec<Taken>, usize) {
        let mut seen: indexmap::IndexMap<(u32, usize, u32), usize, rustc_hash::FxBuildHasher> =
            indexmap::IndexMap::default();
        let mut end = 0usize;
        let taken = leaves
            .iter()
            .zip(over)
            .map(|(&leaf, over)| {
                let info = self.program.info(leaf);
                let in_place = body.bytes_in_place(info);
                let dense = info.map.dense_bytes();
                let how = if over.is_some() || dense == 0 {
                    How::Result
                } else if in_place.is_some() {
                    How::InPlace
                } else {
                    let key = (leaf.slab, leaf.offset, leaf.array);
                    How::Staged(*seen.entry(key).or_insert_with(|| {
                        let at = end;
                        end = end.saturating_add(dense).saturating_add(STAGE_ALIGN - 1)
                            / STAGE_ALIGN
                            * STAGE_ALIGN;
                        at
                    }))
                };
                Taken {
                    bytes: in_place.unwrap_or(dense),
                    how,
                }
            })
            .collect();
        (taken, end)
    }

    fn too_large(&self, id: InstrId) -> ExecError {
        self.unsupported(id, "its arrays are too large to stage")
    }

    pub(super) fn add_bytes(
        &self,
        id: InstrId,
        end: usize,
        bytes: usize,
    ) -> Result<usize, ExecError> {
        end.checked_add(bytes)
            .and_then(|n| n.checked_next_multiple_of(STAGE_ALIGN))
            .ok_or_else(|| self.too_large(id))
    }

    /// A step of instruction `owner` that moves values to other places, all read before any is
    /// written; none where they all stay.
    pub(super) fn move_all(
        &mut self,
        owner: InstrId,
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
                end = self.add_bytes(owner, end, bytes)?;
            }
        }
        if moves.is_empty() {
            return Ok(());
        }
        let touched: Vec<Leaf> = moves.iter().flat_map(|m| [m.from, m.to]).collect();
        let scratch = self.scratch(owner, end, touched.into_iter())?;
        let threads = self.threads();
        self.program.moves.push(Moves {
            list: moves.into(),
            scratch,
            threads,
        });
        self.push(Step::Move(self.program.moves.len() as u32 - 1));
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
        let (from, to) = (self.single_leaf(operand)?, self.single_leaf(id)?);
        let (from, to) = (self.program.info(from), self.program.info(to));
        if from.plain && to.plain && from.map != to.map {
            // Into another order of dimensions in one pass, without a dense form in between.
            let fusion = Fusion::of_instr(self.module, id, self.threads())?;
            return self.op(id, Body::Fusion(fusion));
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

/// How an operand is taken.
struct Taken {
    bytes: usize,
    how: How,
}

enum How {
    InPlace,
    /// At this byte of the scratch.
    Staged(usize),
    /// As the memory of a result.
    Result,
}

/// What is cut out of the slabs: results that are written where they lie, and scratch.
fn cuts(results: &[ResultLeaf], scratch: ByteRange) -> Box<[Cut]> {
    let written = results.iter().enumerate();
    let mut cuts: Vec<Cut> = written
        .filter(|(_, r)| r.way == Way::Slab)
        .map(|(n, r)| Cut {
            slab: r.leaf.slab,
            start: r.leaf.offset,
            len: r.bytes,
            to: CutOut::Result(n),
        })
        .chain([Cut {
            slab: scratch.slab,
            start: scratch.start,
            len: scratch.end - scratch.start,
            to: CutOut::Scratch,
        }])
        .filter(|cut| cut.len > 0)
        .collect();
    cuts.sort_by_key(|c| (c.slab, c.start));
    cuts.into()
}

fn operands(sources: &[Leaf], taken: &[Taken], cuts: &[Cut]) -> Box<[Operand]> {
    let operand = |(&leaf, taken): (&Leaf, &Taken)| {
        let (part, start) = part_of(leaf, cuts);
        Operand {
            leaf,
            bytes: taken.bytes,
            access: match taken.how {
                How::InPlace => Access::Slab { part, start },
                How::Staged(at) => Access::Staged { at, part, start },
                How::Result => Access::Result,
            },
        }
    };
    sources.iter().zip(taken).map(operand).collect()
}

/// The part of the slabs between the cuts in which an array lies, and where in it.
fn part_of(leaf: Leaf, cuts: &[Cut]) -> (usize, usize) {
    // One part before each cut, and one at the end of each slab.
    let before = cuts
        .iter()
        .filter(|c| (c.slab, c.start) < (leaf.slab, leaf.offset))
        .collect::<Vec<_>>();
    let start = before
        .last()
        .filter(|c| c.slab == leaf.slab)
        .map_or(0, |c| c.start + c.len);
    (
        before.len() + leaf.slab as usize,
        leaf.offset.saturating_sub(start),
    )
}
