//! Local search with ejections: what finds no place pushes out what is easiest to place again.
//!
//! Guided ejection search (Y. Nagata and O. Bräysy, Operations Research Letters 2009), there to spare a vehicle, here
//! to lower a ceiling: units that end above it are taken out, and each takes the place whose occupants cost least, which
//! are taken out in turn. A unit costs more each time it finds no free place, so that the hard ones settle. A may-share
//! pair at its distance is no conflict: sharing is taken up and dropped as units move.

use super::model::{Model, Part};
use super::radix;
use super::share_options::UNPLACED;
use std::collections::BinaryHeap;

/// Pairs of units that meet in time, above which no search is made: they are all kept.
const MAX_MEETINGS: usize = 1 << 22;

/// Steps of the first searches; each time all policies have had their turn, they get twice as many.
const FIRST_STEPS: u64 = 100_000;

/// Steps between two questions whether to go on.
const ASKING: u64 = 1 << 14;

/// Steps that placing one unit takes, roughly: effort is reported in placements.
pub(super) const STEPS_PER_PLACEMENT: u64 = 64;

/// What a unit costs that is taken out, besides how often it found no place.
#[derive(Clone, Copy, Debug)]
enum Cost {
    Equal,
    Height,
    RootOfHeight,
    RootOfDuration,
}

/// Which of the waiting units is placed next.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// The one of the largest area.
    Area,
    /// The one with the longest life.
    Duration,
    /// The tallest.
    Height,
    /// The tallest, times how often it found no place.
    Hardest,
    /// The one that was taken out last.
    Last,
}

/// Which of several offsets of least cost is taken.
#[derive(Clone, Copy, Debug)]
enum Tie {
    Lowest,
    Highest,
    /// Any of them, by a fixed sequence of numbers.
    Any,
}

const TIES: [Tie; 3] = [Tie::Lowest, Tie::Highest, Tie::Any];

/// No policy is best everywhere: they take turns.
const POLICIES: [(Cost, Next); 8] = [
    (Cost::Height, Next::Hardest),
    (Cost::RootOfDuration, Next::Duration),
    (Cost::Equal, Next::Area),
    (Cost::RootOfHeight, Next::Last),
    (Cost::Height, Next::Area),
    (Cost::Equal, Next::Height),
    (Cost::RootOfHeight, Next::Hardest),
    (Cost::RootOfDuration, Next::Area),
];

/// Where the fixed sequence of numbers starts: by default at the first. Chance has a large part, so that where patience is
/// limited, another start is worth more than waiting.
const STARTS: [u64; 3] = [1, 7, 5];

/// Lowers the packing `offsets` of `model` towards `bound`: `keep_on` is asked, with the steps so far, before each of
/// many short searches, and `found` sees every lower packing. O(steps log n).
pub(super) fn lower(
    model: &Model,
    offsets: &[u64],
    bound: u64,
    keep_on: impl FnMut(u64) -> bool,
    found: impl FnMut(&[u64]),
) {
    lower_again(model, offsets, bound, 0, None, keep_on, found);
}

/// [`lower`] with other numbers for each `variation`. After `patience` steps without gain it begins again with others
/// still, a few times, and `found` may then see packings that are not the lowest so far.
pub(super) fn lower_again(
    model: &Model,
    offsets: &[u64],
    bound: u64,
    variation: u32,
    patience: Option<u64>,
    mut keep_on: impl FnMut(u64) -> bool,
    mut found: impl FnMut(&[u64]),
) {
    let Some(mut search) = Ejection::new(model, &mut || keep_on(0)) else {
        return;
    };
    let (patience, starts) = match patience {
        None => (u64::MAX, &STARTS[..1]),
        Some(steps) => (steps, &STARTS[..]),
    };
    for &start in starts {
        search.begin(start.wrapping_add(variation.into()));
        if !lower_from(
            &mut search,
            offsets.to_vec(),
            bound,
            patience,
            &mut keep_on,
            &mut found,
        ) {
            return;
        }
    }
}

/// One run of [`lower_again`]; true when patience was lost, and not all is over.
fn lower_from(
    search: &mut Ejection<'_>,
    mut offsets: Vec<u64>,
    bound: u64,
    patience: u64,
    keep_on: &mut impl FnMut(u64) -> bool,
    found: &mut impl FnMut(&[u64]),
) -> bool {
    let mut height = search.model.height(&offsets);
    let turns = POLICIES.len() * TIES.len();
    let mut eighths = 4;
    let mut gained_at = search.steps;
    for round in 0.. {
        if height <= bound || !keep_on(search.steps) {
            return false;
        }
        if search.steps - gained_at >= patience {
            return true;
        }
        let (turn, at_bound) = (round / 2, round % 2 == 0);
        search.policy = POLICIES[turn / TIES.len() % POLICIES.len()];
        search.tie = TIES[turn % TIES.len()];
        // At the bound a success ends everything; in between, the aim goes lower after a success, higher after a failure.
        let between = bound + (height - 1 - bound) * eighths / 8;
        let ceiling = if at_bound { bound } else { between };
        let steps = FIRST_STEPS << (turn / turns).min(40);
        let is_found = search.run(&offsets, ceiling, steps, keep_on);
        if is_found {
            offsets.copy_from_slice(&search.offsets);
            height = search.model.height(&offsets);
            gained_at = search.steps;
            found(&offsets);
        }
        if !at_bound {
            eighths = if is_found {
                eighths.max(2) - 1
            } else {
                eighths.min(6) + 1
            };
        }
    }
    false
}

/// A unit that is live with another at some time. They are in conflict when the offset of this one less that of the
/// other is more than `low` and less than `high`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Meeting {
    other: u32,
    low: i64,
    high: i64,
}

/// The search: who meets whom, and where everything lies.
struct Ejection<'a> {
    model: &'a Model,
    starts: Vec<u32>,
    meetings: Vec<Meeting>,
    offsets: Vec<u64>,
    /// How often a unit found no free place, plus one.
    failures: Vec<u64>,
    /// Units without a place, by [`Next`].
    waiting: BinaryHeap<(u64, u32)>,
    policy: (Cost, Next),
    tie: Tie,
    /// Units taken out so far.
    taken_out: u64,
    /// State of the fixed sequence of numbers.
    sequence: u64,
    /// Scratch: offsets at which the cost changes, and by how much.
    changes: Vec<(u64, i64)>,
    /// Bounds of forbidden offsets looked at so far.
    steps: u64,
}

impl<'a> Ejection<'a> {
    /// `None` when too many units meet, or `keep_on` says no. O(meetings log meetings).
    fn new(model: &'a Model, keep_on: &mut dyn FnMut() -> bool) -> Option<Self> {
        let (starts, meetings) = meetings(model, keep_on)?;
        Some(Self {
            model,
            starts,
            meetings,
            offsets: vec![0; model.units.len()],
            failures: vec![1; model.units.len()],
            waiting: BinaryHeap::new(),
            policy: POLICIES[0],
            tie: Tie::Lowest,
            taken_out: 0,
            sequence: 0,
            changes: Vec::new(),
            steps: 0,
        })
    }

    /// Forgets what it learnt, and starts the fixed sequence of numbers.
    fn begin(&mut self, start: u64) {
        self.failures.fill(1);
        self.sequence = start;
    }

    /// Searches from a packing for one of at most `ceiling`, for about so many steps; true when `self.offsets` is one.
    fn run(
        &mut self,
        packing: &[u64],
        ceiling: u64,
        steps: u64,
        keep_on: &mut dyn FnMut(u64) -> bool,
    ) -> bool {
        let end = self.steps.saturating_add(steps);
        let mut asking = self.steps + ASKING;
        self.offsets.copy_from_slice(packing);
        self.waiting.clear();
        for unit in 0..packing.len() as u32 {
            let it = &self.model.units[unit as usize];
            if it.fixed.unwrap_or(it.residue.at_least(0)) + it.height > ceiling {
                return false;
            }
            if packing[unit as usize] + it.height > ceiling {
                self.take_out(unit);
            }
        }
        while let Some((_, unit)) = self.waiting.pop() {
            if self.steps >= asking {
                asking = self.steps + ASKING;
                if !keep_on(self.steps) {
                    return false;
                }
            }
            if self.steps >= end || !self.settle(unit, ceiling) {
                return false;
            }
        }
        true
    }

    fn take_out(&mut self, unit: u32) {
        self.offsets[unit as usize] = UNPLACED;
        self.taken_out += 1;
        let it = &self.model.units[unit as usize];
        let key = match self.policy.1 {
            Next::Area => u64::try_from(self.model.area(unit)).unwrap_or(u64::MAX),
            Next::Duration => it.duration.into(),
            Next::Height => it.height,
            Next::Hardest => self.failures[unit as usize].saturating_mul(it.height),
            Next::Last => self.taken_out,
        };
        self.waiting.push((key, unit));
    }

    /// Puts `unit` where what is in its way costs least, and takes that out; false where only fixed units are.
    fn settle(&mut self, unit: u32, ceiling: u64) -> bool {
        let limit = ceiling - self.model.units[unit as usize].height;
        let (mut offset, mut cost) = self.cheapest(unit, limit);
        let shared: Vec<u64> = self.model.options.offsets(unit, &self.offsets).collect();
        let residue = self.model.units[unit as usize].residue;
        for at in shared {
            if at > limit || residue.at_least(at) != at {
                continue;
            }
            let total = self
                .in_the_way(unit, at)
                .fold(0, |n: i64, it| n.saturating_add(self.cost(it)));
            if total < cost || (total == cost && at < offset) {
                (offset, cost) = (at, total);
            }
        }
        if cost >= FIXED {
            return false;
        }
        if cost > 0 {
            self.failures[unit as usize] += 1;
            let out: Vec<u32> = self.in_the_way(unit, offset).collect();
            for other in out {
                self.take_out(other);
            }
        }
        self.offsets[unit as usize] = offset;
        true
    }

    fn cost(&self, unit: u32) -> i64 {
        let it = &self.model.units[unit as usize];
        if it.fixed.is_some() {
            return FIXED;
        }
        let factor = match self.policy.0 {
            Cost::Equal => 1,
            Cost::Height => it.height,
            Cost::RootOfHeight => it.height.isqrt() + 1,
            Cost::RootOfDuration => u64::from(it.duration).isqrt() + 1,
        };
        let cost = self.failures[unit as usize].saturating_mul(factor);
        i64::try_from(cost).unwrap_or(MOST).min(MOST)
    }

    fn meetings_of(&self, unit: u32) -> &[Meeting] {
        &self.meetings[self.starts[unit as usize] as usize..self.starts[unit as usize + 1] as usize]
    }

    /// Of the offsets up to `limit` at which least is in the way, sharing aside, the one that the policy prefers, and
    /// the cost. Where no permitted offset is free, it may return one that costs more than the least.
    fn cheapest(&mut self, unit: u32, limit: u64) -> (u64, i64) {
        let mut changes = std::mem::take(&mut self.changes);
        changes.clear();
        for it in self.meetings_of(unit) {
            let at = self.offsets[it.other as usize];
            if at == UNPLACED {
                continue;
            }
            let low = (at as i64 + it.low + 1).max(0) as u64;
            let high = (at as i64 + it.high).max(0) as u64;
            if low <= limit && low < high {
                let cost = self.cost(it.other);
                changes.push((low, cost));
                changes.push((high, -cost));
            }
        }
        self.steps += changes.len() as u64 + 1;
        changes.sort_unstable_by_key(|it| it.0);
        let residue = self.model.units[unit as usize].residue;
        let (mut best, mut least, mut equals) = (0, i128::MAX, 0);
        // Many fixed units in the way at once are beyond 64 bits.
        let (mut next, mut at, mut cost) = (0, 0, 0i128);
        loop {
            while let Some(change) = changes.get(next).filter(|it| it.0 == at) {
                cost += i128::from(change.1);
                next += 1;
            }
            let last = changes.get(next).map_or(limit, |it| (it.0 - 1).min(limit));
            let first = residue.at_least(at);
            if first <= last && cost <= least {
                equals = if cost < least { 1 } else { equals + 1 };
                if equals == 1 || self.prefers_next(equals) {
                    let highest = residue.at_most(last);
                    best = if self.takes_highest() { highest } else { first };
                }
                least = cost;
            }
            match changes.get(next) {
                Some(change) if change.0 <= limit => at = change.0,
                _ => break,
            }
        }
        self.changes = changes;
        (best, i64::try_from(least).unwrap_or(i64::MAX))
    }

    /// Whether, of `equals` stretches of equal cost, the last is to be preferred to what was chosen of the others.
    fn prefers_next(&mut self, equals: u64) -> bool {
        match self.tie {
            Tie::Lowest => false,
            Tie::Highest => true,
            Tie::Any => self.number().is_multiple_of(equals),
        }
    }

    fn takes_highest(&mut self) -> bool {
        match self.tie {
            Tie::Lowest => false,
            Tie::Highest => true,
            Tie::Any => self.number() & 1 == 1,
        }
    }

    /// The next of a fixed sequence of numbers (D. Knuth's MMIX generator).
    fn number(&mut self) -> u64 {
        let (factor, summand) = (6_364_136_223_846_793_005, 1_442_695_040_888_963_407);
        self.sequence = self.sequence.wrapping_mul(factor).wrapping_add(summand);
        self.sequence >> 33
    }

    /// The placed units that `unit` at `offset` would be in conflict with.
    fn in_the_way(&self, unit: u32, offset: u64) -> impl Iterator<Item = u32> + '_ {
        let meetings = self.meetings_of(unit);
        let conflicts = meetings.iter().filter(move |it| {
            let at = self.offsets[it.other as usize];
            let rise = offset as i64 - at as i64;
            at != UNPLACED
                && it.low < rise
                && rise < it.high
                && !self.model.options.permits(unit, it.other, rise)
        });
        conflicts.map(|it| it.other)
    }
}

/// The most that a movable unit costs; so many units can be summed.
const MOST: i64 = 1 << 36;

/// What a fixed unit costs: more than any movable ones together.
const FIXED: i64 = 1 << 58;

/// All meetings, by unit; those of one unit by the other, with overlapping ranges of rises united.
fn meetings(model: &Model, keep_on: &mut dyn FnMut() -> bool) -> Option<(Vec<u32>, Vec<Meeting>)> {
    /// Events between two questions.
    const EVENTS: usize = 1 << 10;
    let mut events: Vec<(u32, bool, u32, Part)> = Vec::new();
    for unit in 0..model.units.len() as u32 {
        for part in model.parts(unit) {
            events.push((part.begin, true, unit, *part));
            events.push((part.end, false, unit, *part));
        }
    }
    events.sort_unstable();
    let mut live: Vec<(u32, Part)> = Vec::new();
    let mut found: Vec<(u32, Meeting)> = Vec::new();
    for (at, (_, begins, unit, part)) in events.into_iter().enumerate() {
        if at.is_multiple_of(EVENTS) && !keep_on() {
            return None;
        }
        if !begins {
            let gone = live.iter().position(|it| *it == (unit, part));
            live.swap_remove(gone?);
            continue;
        }
        if found.len() + 2 * live.len() > MAX_MEETINGS {
            return None;
        }
        for &(other, its) in live.iter().filter(|it| it.0 != unit) {
            let low = its.delta as i64 - (part.delta + part.size) as i64;
            let high = (its.delta + its.size) as i64 - part.delta as i64;
            found.push((unit, Meeting { other, low, high }));
            let (low, high) = (-high, -low);
            found.push((
                other,
                Meeting {
                    other: unit,
                    low,
                    high,
                },
            ));
        }
        live.push((unit, part));
    }
    by_unit(model.units.len(), found, keep_on)
}

/// Sorts meetings by unit, and those of one unit by the other; see [`meetings`].
fn by_unit(
    units: usize,
    found: Vec<(u32, Meeting)>,
    keep_on: &mut dyn FnMut() -> bool,
) -> Option<(Vec<u32>, Vec<Meeting>)> {
    let mut found = radix::by_small_key(found, units as u32, |it| it.0, &mut || !keep_on())?;
    let (mut starts, mut meetings) = (vec![0], Vec::<Meeting>::with_capacity(found.len()));
    let mut rest = found.as_mut_slice();
    for unit in 0..units as u32 {
        if unit.is_multiple_of(1 << 8) && !keep_on() {
            return None;
        }
        let count = rest.iter().take_while(|it| it.0 == unit).count();
        let (own, others) = rest.split_at_mut(count);
        rest = others;
        own.sort_unstable();
        let first = meetings.len();
        for (_, it) in own.iter() {
            match meetings[first..].last_mut() {
                Some(last) if last.other == it.other && it.low < last.high => {
                    last.high = last.high.max(it.high);
                }
                _ => meetings.push(*it),
            }
        }
        starts.push(meetings.len() as u32);
    }
    Some((starts, meetings))
}
