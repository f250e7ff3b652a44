//! Depth-first search for a packing within a capacity, without recursion.
//!
//! A node is a stretch of sections that no free unit leaves. When the placed units separate the free ones in time, the
//! stretch falls apart, and its parts are searched one by one; one that succeeds is never taken up again, and one that
//! fails refutes the choice that made it.

use super::branch::{Choice, Chooser, is_second_twin};
use super::space::Space;
use super::state::State;
use std::ops::Range;

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Outcome {
    /// There is a packing; it is in the state.
    Found,
    /// There is none within the capacity.
    Impossible,
    /// The search is through without a packing, but it had to leave branches out: there is no proof, and no use in
    /// another search at this capacity.
    Unproved,
    /// The budget of nodes is spent, or the caller stopped the search.
    Undecided,
}

/// A stretch still to be searched.
struct Goal {
    stretch: Range<usize>,
    /// Number of open choices when the stretch came up. Those added since belong to its finished siblings.
    choices: usize,
}

/// A decision with ways left.
struct Frame {
    stretch: Range<usize>,
    section: usize,
    /// Changes before the node, and before its first way.
    entry: usize,
    mark: usize,
    goals: usize,
    key: u64,
    /// The candidates, in `Engine::candidates`; `next` is the one to try.
    candidates: Range<usize>,
    next: usize,
    may_waste: bool,
    is_exhaustive: bool,
}

/// A search over one space, to be run at several capacities and in several orders. What it learns stays with it:
/// the weights of sections, and which situations have no packing.
pub(in super::super) struct Engine<'a> {
    state: State<'a>,
    chooser: Chooser,
    goals: Vec<Goal>,
    frames: Vec<Frame>,
    candidates: Vec<u32>,
    /// Keys of refuted situations, by their low bits; the newest stays.
    refuted: Vec<u64>,
    salt: u64,
    /// Nodes visited so far.
    pub(in super::super) nodes: u64,
}

/// Entries of the table of refuted situations.
const REFUTED: usize = 1 << 18;

impl<'a> Engine<'a> {
    pub(in super::super) fn new(space: &'a Space) -> Self {
        Self {
            state: State::new(space),
            chooser: Chooser::new(space.sections, space.units),
            goals: Vec::new(),
            frames: Vec::new(),
            candidates: Vec::new(),
            refuted: vec![0; REFUTED],
            salt: 0,
            nodes: 0,
        }
    }

    /// Offsets by unit, after [`Outcome::Found`].
    pub(in super::super) fn offsets(&self) -> &[u64] {
        &self.state.least
    }

    /// Searches for a packing no higher than `capacity`, with the candidates of a decision in the order of `rank`.
    /// `keep_on` is asked at every node whether to go on.
    pub(in super::super) fn search(
        &mut self,
        capacity: u64,
        rank: &[u32],
        mut keep_on: impl FnMut(u64) -> bool,
    ) -> Outcome {
        self.goals.clear();
        self.frames.clear();
        self.candidates.clear();
        if !self.state.reset(capacity) {
            return Outcome::Impossible;
        }
        // What has no packing within one capacity may have one within another.
        self.salt = mix(capacity ^ 0x9e37_79b9_7f4a_7c15);
        let mut is_exhaustive = true;
        self.add_goals(0..self.state.space.sections);
        while let Some(goal) = self.goals.pop() {
            for frame in self.frames.drain(goal.choices..) {
                self.candidates
                    .truncate(frame.candidates.start.min(self.candidates.len()));
            }
            self.nodes += 1;
            if !keep_on(self.nodes) {
                return Outcome::Undecided;
            }
            self.enter(goal.stretch, rank);
            if !self.advance(&mut is_exhaustive) {
                return if is_exhaustive {
                    Outcome::Impossible
                } else {
                    Outcome::Unproved
                };
            }
        }
        Outcome::Found
    }

    /// Opens a decision for a stretch, or leaves none when the stretch is refuted at once.
    fn enter(&mut self, stretch: Range<usize>, rank: &[u32]) {
        let entry = self.state.mark();
        let key = self.key(stretch.clone());
        if self.refuted[key as usize % REFUTED] == key {
            return;
        }
        let Choice::At {
            section,
            valley,
            may_waste,
            is_exhaustive,
        } = self.chooser.choose(&mut self.state, stretch.clone())
        else {
            self.state.undo_to(entry);
            self.refuted[key as usize % REFUTED] = key;
            return;
        };
        let first = self.candidates.len();
        let (state, space) = (&self.state, self.state.space);
        let floor = state.floor[section];
        for &(unit, piece) in (valley.start..=section).flat_map(|it| space.starts.of(it)) {
            let is_candidate = piece.end as usize > section
                && state.free[unit as usize]
                && state.least[unit as usize] + piece.delta == floor
                && !is_second_twin(state, unit);
            if is_candidate {
                self.candidates.push(unit);
            }
        }
        self.candidates[first..].sort_unstable_by_key(|&unit| rank[unit as usize]);
        self.frames.push(Frame {
            stretch,
            section,
            entry,
            mark: self.state.mark(),
            goals: self.goals.len(),
            key,
            candidates: first..self.candidates.len(),
            next: first,
            may_waste,
            is_exhaustive,
        });
    }

    /// Takes the next way of the newest decision that has one; false when none has.
    fn advance(&mut self, is_exhaustive: &mut bool) -> bool {
        while let Some(frame) = self.frames.last_mut() {
            self.state.undo_to(frame.mark);
            self.goals.truncate(frame.goals);
            let stretch = frame.stretch.clone();
            if frame.next < frame.candidates.end {
                frame.next += 1;
                let unit = self.candidates[frame.next - 1];
                if self.state.place(unit) {
                    self.add_goals(stretch);
                    return true;
                }
            } else if frame.may_waste {
                frame.may_waste = false;
                if self.waste(self.frames.len() - 1) {
                    self.add_goals(stretch);
                    return true;
                }
            } else {
                *is_exhaustive &= frame.is_exhaustive;
                // Without exhaustion nothing is refuted, neither here nor further up.
                if *is_exhaustive {
                    self.refuted[frame.key as usize % REFUTED] = frame.key;
                }
                self.candidates.truncate(frame.candidates.start);
                self.state.undo_to(frame.entry);
                self.frames.pop();
            }
        }
        false
    }

    /// Leaves the lowest free byte of a decision's section unused.
    fn waste(&mut self, frame: usize) -> bool {
        let section = self.frames[frame].section;
        let state = &mut self.state;
        let floor = state.floor[section];
        let covers = state.space.covers.of(section).iter();
        let lowest = covers.filter(|it| {
            state.free[it.unit as usize] && state.least[it.unit as usize] + it.delta == floor
        });
        let units: Vec<u32> = lowest.map(|it| it.unit).collect();
        state.forbid(&units)
    }

    /// Splits a stretch where no free unit crosses; the part with the least slack comes first.
    fn add_goals(&mut self, stretch: Range<usize>) {
        let (state, choices, first) = (&self.state, self.frames.len(), self.goals.len());
        let mut begin = stretch.start;
        for section in stretch.start + 1..=stretch.end {
            if section == stretch.end || state.crossing[section] == 0 {
                if (begin..section).any(|it| state.open[it] > 0) {
                    self.goals.push(Goal {
                        stretch: begin..section,
                        choices,
                    });
                }
                begin = section;
            }
        }
        if self.goals.len() > first + 1 {
            let slack = |goal: &Goal| {
                goal.stretch
                    .clone()
                    .filter(|&it| state.open[it] > 0)
                    .map(|it| state.slack(it))
                    .min()
            };
            self.goals[first..].sort_by_cached_key(|goal| std::cmp::Reverse(slack(goal)));
        }
    }

    /// A number for the situation in a stretch: floors, tops, and what is free and how low it can go. Two situations
    /// of one number are taken for the same; with 64 bits that has never been seen, and it could only cost a packing.
    fn key(&self, stretch: Range<usize>) -> u64 {
        let state = &self.state;
        let mut key = mix(self.salt ^ ((stretch.start as u64) << 32 | stretch.end as u64));
        for section in stretch {
            if state.open[section] > 0 {
                let floors =
                    state.floor[section].wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ state.top[section];
                key = key.wrapping_add(mix(floors.wrapping_add((section as u64) << 48)));
            }
            for &(unit, _) in state.space.starts.of(section) {
                if state.free[unit as usize] {
                    key = key.wrapping_add(mix(
                        state.least[unit as usize] ^ (u64::from(unit) + 1) << 40
                    ));
                }
            }
        }
        key
    }
}

/// Spreads the bits of a number (the finalizer of splitmix64).
pub(in super::super) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
