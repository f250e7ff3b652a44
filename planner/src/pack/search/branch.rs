//! Where a search decides next: the section with the fewest ways to fill the lowest free byte.
//!
//! Between two walls the floor is flat. Whatever takes the lowest byte of a section there starts exactly at the floor
//! and fits between the walls; or nothing does, and the byte is wasted, which the section's slack must pay for:
//!
//! ```text
//!        ████            ████
//!        ████            ████     candidates: what begins and ends between the walls
//!        ████ · · · · · ·████     <- a corner without slack: only what begins right here
//!        ████████████████████
//! ```
//!
//! Every packing is in exactly one of these branches, so no packing is looked at twice, in whatever order the
//! valleys are filled. Full sections without slack have few ways, often one: the search goes there first and sees
//! mistakes early. Sections that ran out of slack before weigh more (the dom/wdeg rule of constraint programming:
//! Boussemart, Hemery, Lecoutre and Sais, "Boosting systematic search by weighting constraints", 2004).

use super::state::{NEVER, State};
use std::cmp::Ordering;
use std::ops::Range;

/// What a search found out about a stretch of sections.
pub(super) enum Choice {
    /// There is no packing below this point.
    Dead,
    /// Fill the lowest free byte of `section`.
    At {
        section: usize,
        valley: Range<usize>,
        may_waste: bool,
        is_exhaustive: bool,
    },
}

/// Picks sections; holds scratch memory.
pub(super) struct Chooser {
    /// By section: by how much the number of ways changes here.
    change: Vec<i32>,
    /// By section: by how much the number of candidates that hang over lower ground changes here.
    hanging: Vec<i32>,
    /// Candidates that rest on nothing.
    loose: Vec<u32>,
    /// By unit: the lowest offset at which it rests on another free unit, if looked up in this round.
    rest: Vec<(u64, u64)>,
    round: u64,
}

/// How good a section is to decide at.
#[derive(Clone, Copy)]
struct Score {
    ways: u32,
    weight: u32,
    slack: u64,
    floor: u64,
}

impl Score {
    fn cmp(&self, other: &Self) -> Ordering {
        let forced = (self.ways > 1).cmp(&(other.ways > 1));
        let ratio = (u64::from(self.ways) * u64::from(other.weight))
            .cmp(&(u64::from(other.ways) * u64::from(self.weight)));
        forced
            .then(ratio)
            .then(self.slack.cmp(&other.slack))
            .then(self.floor.cmp(&other.floor))
    }
}

impl Chooser {
    pub(super) fn new(sections: usize, units: usize) -> Self {
        Self {
            change: vec![0; sections + 1],
            hanging: vec![0; sections + 1],
            loose: Vec::new(),
            rest: vec![(0, 0); units],
            round: 0,
        }
    }

    /// Picks the section to decide at among those of `stretch`, which no free unit leaves.
    pub(super) fn choose(&mut self, state: &mut State<'_>, stretch: Range<usize>) -> Choice {
        'again: loop {
            self.round += 1;
            let mut best: Option<(Score, usize, Range<usize>, bool)> = None;
            let mut fallback = None;
            let mut valley = 0..stretch.start;
            while let Some(next) = next_valley(state, valley.end..stretch.end, stretch.start) {
                valley = next;
                self.count_ways(state, valley.clone());
                if !self.loose.is_empty() {
                    // In some best packing everything rests on something, so these units are higher.
                    if !state.forbid(&self.loose) {
                        return Choice::Dead;
                    }
                    continue 'again;
                }
                let (mut ways, mut hanging) = (0, 0);
                for section in valley.clone() {
                    ways += self.change[section];
                    hanging += self.hanging[section];
                    if hanging > 0 {
                        let is_lower =
                            fallback
                                .as_ref()
                                .is_none_or(|&(at, _): &(usize, Range<usize>)| {
                                    state.floor[section] < state.floor[at]
                                });
                        if is_lower {
                            fallback = Some((section, valley.clone()));
                        }
                        continue;
                    }
                    let mut score = Score {
                        ways: ways as u32,
                        weight: state.weight[section],
                        slack: state.slack(section),
                        floor: state.floor[section],
                    };
                    let is_better = |score: &Score| {
                        best.as_ref()
                            .is_none_or(|it| score.cmp(&it.0) == Ordering::Less)
                    };
                    if score.ways > 0 && !is_better(&score) {
                        continue;
                    }
                    let may_waste = self.may_waste(state, section);
                    score.ways += u32::from(may_waste);
                    if score.ways == 0 {
                        return Choice::Dead;
                    }
                    if is_better(&score) {
                        best = Some((score, section, valley.clone(), may_waste));
                    }
                }
            }
            return match (best, fallback) {
                (Some((_, section, valley, may_waste)), _) => Choice::At {
                    section,
                    valley,
                    may_waste,
                    is_exhaustive: true,
                },
                (None, Some((section, valley))) => Choice::At {
                    section,
                    valley,
                    may_waste: true,
                    is_exhaustive: false,
                },
                (None, None) => Choice::Dead,
            };
        }
    }

    /// Counts the candidates of each section of a valley, as changes from section to section, and collects those that
    /// rest on nothing.
    fn count_ways(&mut self, state: &State<'_>, valley: Range<usize>) {
        self.loose.clear();
        self.change[valley.start..=valley.end].fill(0);
        self.hanging[valley.start..=valley.end].fill(0);
        let floor = state.floor[valley.start];
        for section in valley {
            for &(unit, piece) in state.space.starts.of(section) {
                if !state.free[unit as usize] || state.least[unit as usize] + piece.delta != floor {
                    continue;
                }
                // What hangs over lower ground may yet get something to rest on.
                let is_hanging = !state.space.is_simple && !state.is_flush(unit);
                if !is_hanging && !state.is_supported(unit) {
                    self.loose.push(unit);
                } else if !is_second_twin(state, unit) {
                    self.change[section] += 1;
                    self.change[piece.end as usize] -= 1;
                    if is_hanging {
                        self.hanging[section] += 1;
                        self.hanging[piece.end as usize] -= 1;
                    }
                }
            }
        }
    }

    /// True unless wasting the lowest byte of the section raises its floor by more than its slack.
    fn may_waste(&mut self, state: &State<'_>, section: usize) -> bool {
        let slack = state.slack(section);
        let floor = state.floor[section];
        slack > 0
            && state
                .space
                .covers
                .of(section)
                .iter()
                .filter(|it| state.free[it.unit as usize])
                .any(|cover| {
                    let least = state.least[cover.unit as usize];
                    let next = if least + cover.delta > floor {
                        least
                    } else {
                        self.next_rest(state, cover.unit)
                    };
                    next.saturating_add(cover.delta) <= floor + slack
                })
    }

    /// The lowest offset above its least one that a unit can have.
    fn next_rest(&mut self, state: &State<'_>, unit: u32) -> u64 {
        let known = &mut self.rest[unit as usize];
        if known.0 != self.round {
            let next = if state.space.fixed[unit as usize].is_some() {
                NEVER
            } else {
                state.next_rest(unit)
            };
            *known = (self.round, next);
        }
        known.1
    }
}

/// True when an equal unit is free as well, and would be tried instead.
pub(super) fn is_second_twin(state: &State<'_>, unit: u32) -> bool {
    state.space.twin[unit as usize].is_some_and(|twin| {
        state.free[twin as usize] && state.least[twin as usize] == state.least[unit as usize]
    })
}

/// The next run of sections of equal floor between higher walls, where something is still to be placed.
fn next_valley(state: &State<'_>, mut from: Range<usize>, start: usize) -> Option<Range<usize>> {
    let level = |section: usize| {
        if state.open[section] == 0 {
            u64::MAX
        } else {
            state.floor[section]
        }
    };
    while from.start < from.end {
        let begin = from.start;
        let floor = level(begin);
        while from.start < from.end && level(from.start) == floor {
            from.start += 1;
        }
        let is_walled = (begin == start || level(begin - 1) > floor)
            && (from.start == from.end || level(from.start) > floor);
        if is_walled && floor != u64::MAX {
            return Some(begin..from.start);
        }
    }
    None
}
