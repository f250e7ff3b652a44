//! May-share pairs as options of placement: a unit that is being placed may take exactly the bytes that a placed
//! partner leaves or takes over.
//!
//! Nothing is merged beforehand: an operand and a result keep their own times, and whether they share is decided when
//! the second of them is placed, by what is free there and then.

use super::model::{Model, Part};
use super::occupancy::Occupancy;
use super::problem::Problem;
use super::sections::Spans;
use smallvec::SmallVec;
use std::ops::Range;

/// Units at unplaced offsets.
pub(super) const UNPLACED: u64 = u64::MAX;

/// Units of many members are not compared member by member beyond this many pairs.
const MAX_COMPARED: usize = 1 << 12;

/// One way in which two units may share bytes, seen from one of them.
#[derive(Clone, Debug)]
struct Share {
    other: u32,
    /// Offset of this unit less that of the other.
    rise: i64,
    /// What this unit has in common with the other then, in `common`.
    common: Range<u32>,
}

/// For every unit, the ways to share bytes with other units.
#[derive(Clone, Debug, Default)]
pub(super) struct ShareOptions {
    starts: Vec<u32>,
    list: Vec<Share>,
    common: Vec<Part>,
}

/// A pair of buffers seen from one side: (unit, other unit, rise, buffer, other buffer).
type Half = (u32, u32, i64, u32, u32);

impl ShareOptions {
    /// The options between units that may coincide at some distance without any conflict.
    ///
    /// O(pairs log pairs) where units have few members.
    pub(super) fn new(problem: &Problem, model: &Model) -> Self {
        let mut halves: Vec<Half> = Vec::with_capacity(2 * problem.may_share.len());
        for &(a, b) in &problem.may_share {
            let ((u, a_delta), (v, b_delta)) = (model.place_of(a), model.place_of(b));
            let sizes = (
                problem.buffers[a as usize].size,
                problem.buffers[b as usize].size,
            );
            if u != v && sizes.0 == sizes.1 && sizes.0 > 0 {
                let rise = b_delta as i64 - a_delta as i64;
                halves.push((u, v, rise, a, b));
                halves.push((v, u, -rise, b, a));
            }
        }
        if halves.is_empty() {
            return Self::default();
        }
        halves.sort_unstable();
        halves.dedup();
        let mut this = Self {
            starts: vec![0; model.units.len() + 1],
            ..Self::default()
        };
        let spans = Spans::new(problem);
        let members = model.members();
        for way in halves.chunk_by(|x, y| (x.0, x.1, x.2) == (y.0, y.1, y.2)) {
            let (unit, other, rise, ..) = way[0];
            let is_pair = |a: u32, b: u32| way.iter().any(|half| (half.3, half.4) == (a, b));
            let (own, others) = (&members[unit as usize], &members[other as usize]);
            let meets = |a: u32, b: u32| {
                let (a_at, b_at) = (
                    model.place_of(a).1 as i64 + rise,
                    model.place_of(b).1 as i64,
                );
                let size = |it: u32| problem.buffers[it as usize].size as i64;
                a_at < b_at + size(b) && b_at < a_at + size(a) && !spans.common(a, b).is_empty()
            };
            let is_clear = own.len() * others.len() <= MAX_COMPARED
                && own
                    .iter()
                    .all(|&a| others.iter().all(|&b| is_pair(a, b) || !meets(a, b)));
            let first = this.common.len() as u32;
            for &(.., a, b) in way.iter().filter(|_| is_clear) {
                let (delta, size) = (model.place_of(a).1, problem.buffers[a as usize].size);
                let common = spans.common(a, b).into_iter();
                this.common.extend(common.map(|(begin, end)| Part {
                    begin,
                    end,
                    delta,
                    size,
                }));
            }
            let common = first..this.common.len() as u32;
            if !common.is_empty() {
                this.list.push(Share {
                    other,
                    rise,
                    common,
                });
                this.starts[unit as usize + 1] += 1;
            }
        }
        for unit in 0..model.units.len() {
            this.starts[unit + 1] += this.starts[unit];
        }
        this
    }

    /// The lowest offset below `below` at which `unit` lies on a placed partner's bytes and meets nothing else.
    pub(super) fn lowest(
        &self,
        model: &Model,
        occupancy: &mut Occupancy,
        unit: u32,
        offsets: &[u64],
        below: u64,
    ) -> Option<u64> {
        let mut candidates: SmallVec<[u64; 4]> = self
            .of(unit)
            .iter()
            .filter_map(|share| share.offset(offsets))
            .filter(|&offset| {
                offset < below && model.units[unit as usize].residue.at_least(offset) == offset
            })
            .collect();
        candidates.sort_unstable();
        candidates.dedup();
        candidates
            .into_iter()
            .find(|&offset| self.is_free(model, occupancy, unit, offsets, offset))
    }

    /// The offsets at which `unit` lies on a placed partner's bytes; other conflicts are possible there.
    pub(super) fn offsets(&self, unit: u32, offsets: &[u64]) -> impl Iterator<Item = u64> {
        self.of(unit)
            .iter()
            .filter_map(|share| share.offset(offsets))
    }

    /// Whether the two units may lie so that their offsets differ by `rise`, though they meet in time.
    pub(super) fn permits(&self, unit: u32, other: u32, rise: i64) -> bool {
        let key = |it: &Share| (it.other, it.rise);
        self.of(unit)
            .binary_search_by_key(&(other, rise), key)
            .is_ok()
    }

    fn of(&self, unit: u32) -> &[Share] {
        match self.starts.get(unit as usize..unit as usize + 2) {
            Some(range) => &self.list[range[0] as usize..range[1] as usize],
            None => &[],
        }
    }

    /// Whether `unit` at `offset` meets only units that it shares with there.
    fn is_free(
        &self,
        model: &Model,
        occupancy: &mut Occupancy,
        unit: u32,
        offsets: &[u64],
        offset: u64,
    ) -> bool {
        let here = |share: &&Share| share.offset(offsets) == Some(offset);
        let mut rest: SmallVec<[Part; 4]> = model.parts(unit).into();
        let partners: SmallVec<[u32; 4]> = self
            .of(unit)
            .iter()
            .filter(here)
            .map(|share| share.other)
            .collect();
        for share in self.of(unit).iter().filter(here) {
            for common in self.common_of(share) {
                rest = subtract(&rest, common);
            }
            // In those bytes there may also be what the partner shares with.
            let third = self.of(share.other).iter().filter(|it| {
                it.other != unit
                    && it.offset(offsets) == Some(offsets[share.other as usize])
                    && !partners.contains(&it.other)
            });
            for it in third {
                let at = offsets[it.other as usize];
                if overlap(model.parts(unit), offset, model.parts(it.other), at) {
                    return false;
                }
            }
        }
        occupancy.is_free(&rest, offset)
    }

    fn common_of(&self, share: &Share) -> &[Part] {
        &self.common[share.common.start as usize..share.common.end as usize]
    }
}

impl Share {
    /// Where the unit lies when it shares with the other, if that is placed.
    fn offset(&self, offsets: &[u64]) -> Option<u64> {
        let at = offsets[self.other as usize];
        (at != UNPLACED).then(|| at.checked_add_signed(self.rise))?
    }
}

/// The pairs of the problem that share bytes in a packing: each lies where the other lies while both are live.
pub(super) fn shared_pairs(problem: &Problem, offsets: &[u64]) -> Vec<(u32, u32)> {
    let shares = |&(a, b): &(u32, u32)| {
        let (x, y) = (&problem.buffers[a as usize], &problem.buffers[b as usize]);
        offsets[a as usize] == offsets[b as usize]
            && (x.size, x.size > 0) == (y.size, true)
            && x.overlaps_in_time(y)
    };
    problem.may_share.iter().copied().filter(shares).collect()
}

/// Whether two placed units have bytes in common in some section.
fn overlap(a: &[Part], a_offset: u64, b: &[Part], b_offset: u64) -> bool {
    a.iter().any(|p| {
        let low = a_offset + p.delta;
        b.iter().any(|q| {
            let other = b_offset + q.delta;
            p.begin < q.end && q.begin < p.end && low < other + q.size && other < low + p.size
        })
    })
}

/// What is left of `parts` without the stretch of sections and bytes of `hole`.
fn subtract(parts: &[Part], hole: &Part) -> SmallVec<[Part; 4]> {
    let mut rest = SmallVec::new();
    for part in parts {
        let (begin, end) = (part.begin.max(hole.begin), part.end.min(hole.end));
        let low = part.delta.max(hole.delta);
        let high = (part.delta + part.size).min(hole.delta + hole.size);
        if begin >= end || low >= high {
            rest.push(*part);
            continue;
        }
        let pieces = [
            Part {
                end: begin,
                ..*part
            },
            Part {
                begin: end,
                ..*part
            },
            Part {
                begin,
                end,
                delta: part.delta,
                size: low - part.delta,
            },
            Part {
                begin,
                end,
                delta: high,
                size: part.delta + part.size - high,
            },
        ];
        rest.extend(
            pieces
                .into_iter()
                .filter(|it| it.begin < it.end && it.size > 0),
        );
    }
    rest
}
