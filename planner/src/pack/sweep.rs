//! The fast judge: a sweep over time with the live byte ranges in a search tree. O(n log n).

use super::model::Model;
use super::problem::{Problem, ProblemError};
use super::radix;
use super::validate::{Invalid, check_each};
use rustc_hash::FxHashSet;
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;

/// What [`super::validate`] says, in near-linear time. Of several overlaps it may name another one.
pub fn validate_fast(problem: &Problem, offsets: &[u64]) -> Result<u64, Invalid> {
    problem.check()?;
    let height = check_each(problem, offsets)?;
    // Ties hold, so a model can be made and its units are where their first members are.
    let model = Model::new(problem, &[])?;
    let places = model.unit_offsets(offsets);
    match first_overlap(problem, &model, |unit| Some(places[unit as usize])) {
        Some((a, b)) => Err(Invalid::Overlap(a as usize, b as usize)),
        None => Ok(height),
    }
}

/// Refuses buffers that are fixed to overlapping bytes.
pub(super) fn check_fixed(problem: &Problem, model: &Model) -> Result<(), ProblemError> {
    if model.units.iter().all(|unit| unit.fixed.is_none()) {
        return Ok(());
    }
    match first_overlap(problem, model, |unit| model.units[unit as usize].fixed) {
        Some((a, b)) => Err(ProblemError::FixedOverlap { a, b }),
        None => Ok(()),
    }
}

/// Two buffers in conflict, if there are any among the units that have a place.
fn first_overlap(
    problem: &Problem,
    model: &Model,
    place: impl Fn(u32) -> Option<u64>,
) -> Option<(u32, u32)> {
    let boxes = Boxes::new(model, place);
    // Built when the first two units overlap, which seldom happens.
    let mut pairs: Option<Pairs<'_>> = None;
    let mut live: BTreeMap<u64, (u64, SmallVec<[u32; 2]>)> = BTreeMap::new();
    let mut ended = 0;
    for &(begin, index) in &boxes.begins {
        while boxes.ends[ended].0 <= begin {
            let gone = &boxes.list[boxes.ends[ended].1 as usize];
            remove(&mut live, gone);
            ended += 1;
        }
        let new = &boxes.list[index as usize];
        let below = live.range_mut(..new.high).next_back();
        let Some((_, (_, owners))) = below.filter(|(_, it)| it.0 > new.low) else {
            live.insert(new.low, (new.high, smallvec![new.unit]));
            continue;
        };
        // The parts of a unit are disjoint, so these two units have members that overlap.
        let pairs = pairs.get_or_insert_with(|| Pairs::new(problem, model));
        let this = (new.unit, boxes.places[new.unit as usize]);
        for &owner in owners.iter() {
            let conflict = pairs.conflict(model, (owner, boxes.places[owner as usize]), this);
            if conflict.is_some() {
                return conflict;
            }
        }
        owners.push(new.unit);
    }
    None
}

/// Takes one owner out of the live ranges.
fn remove(live: &mut BTreeMap<u64, (u64, SmallVec<[u32; 2]>)>, gone: &ByteRange) {
    if let Some((_, owners)) = live.get_mut(&gone.low) {
        owners.retain(|it| *it != gone.unit);
        if owners.is_empty() {
            live.remove(&gone.low);
        }
    }
}

/// The bytes of one part of a placed unit.
struct ByteRange {
    low: u64,
    high: u64,
    unit: u32,
}

/// All parts of placed units, by begin and by end.
struct Boxes {
    list: Vec<ByteRange>,
    begins: Vec<(u64, u32)>,
    ends: Vec<(u64, u32)>,
    /// By unit.
    places: Vec<Option<u64>>,
}

impl Boxes {
    fn new(model: &Model, place: impl Fn(u32) -> Option<u64>) -> Self {
        let places: Vec<Option<u64>> = (0..model.units.len() as u32).map(place).collect();
        let (mut list, mut begins, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for (unit, place) in (0u32..).zip(&places) {
            let Some(offset) = *place else { continue };
            for part in model.parts(unit) {
                let index = list.len() as u32;
                begins.push((u64::from(part.begin), index));
                ends.push((u64::from(part.end), index));
                let low = offset + part.delta;
                let high = low + part.size;
                list.push(ByteRange { low, high, unit });
            }
        }
        radix::sort_by_key(&mut begins, &mut || false);
        radix::sort_by_key(&mut ends, &mut || false);
        Self {
            list,
            begins,
            ends,
            places,
        }
    }
}

/// Knows the buffers of units, and which of those may share.
struct Pairs<'a> {
    problem: &'a Problem,
    allowed: FxHashSet<(u32, u32)>,
    /// Buffers by unit.
    members: Vec<(u32, u32)>,
}

impl<'a> Pairs<'a> {
    fn new(problem: &'a Problem, model: &Model) -> Self {
        let both = problem
            .may_share
            .iter()
            .flat_map(|&(a, b)| [(a, b), (b, a)]);
        let mut members: Vec<(u32, u32)> = (0..problem.buffers.len() as u32)
            .map(|it| (model.place_of(it).0, it))
            .collect();
        members.sort_unstable();
        Self {
            problem,
            allowed: both.collect(),
            members,
        }
    }

    fn of(&self, unit: u32) -> &[(u32, u32)] {
        let first = self.members.partition_point(|it| it.0 < unit);
        let last = self.members.partition_point(|it| it.0 <= unit);
        &self.members[first..last]
    }

    /// Two buffers of the two placed units that overlap in time and bytes, and are not a pair in the same bytes.
    fn conflict(
        &self,
        model: &Model,
        a: (u32, Option<u64>),
        b: (u32, Option<u64>),
    ) -> Option<(u32, u32)> {
        let (a_offset, b_offset) = (a.1?, b.1?);
        for &(_, first) in self.of(a.0) {
            for &(_, second) in self.of(b.0) {
                let (x, y) = (
                    &self.problem.buffers[first as usize],
                    &self.problem.buffers[second as usize],
                );
                let (low, other) = (
                    a_offset + model.place_of(first).1,
                    b_offset + model.place_of(second).1,
                );
                let meet = x.size > 0
                    && y.size > 0
                    && low < other + y.size
                    && other < low + x.size
                    && x.overlaps_in_time(y);
                if meet
                    && !((low, x.size) == (other, y.size)
                        && self.allowed.contains(&(first, second)))
                {
                    return Some((first, second));
                }
            }
        }
        None
    }
}
