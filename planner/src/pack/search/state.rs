//! The changing part of a search: what is placed, how low everything else can go, and how to take steps back.
//!
//! ```text
//!   capacity ----------------------------
//!                    slack
//!            [ what is not placed yet  ]      slack = capacity - floor - rest, never negative
//!      floor . . . . . . . . . . . . . .      nothing that is not placed can start lower here
//!                    waste
//!        top -------                          highest end of a placed piece
//! ```

use super::space::Space;

/// Too high for anything.
pub(super) const NEVER: u64 = u64::MAX / 4;

/// The weight of a section at first, and what each failure there adds.
const WEIGHT: u32 = 8;

/// A change, with what is needed to take it back.
enum Change {
    Floor {
        section: u32,
        floor: u64,
        top: u64,
        watch: u32,
    },
    Least {
        unit: u32,
        least: u64,
        ground: u64,
    },
    Place {
        unit: u32,
    },
}

/// The state of a search over a [`Space`].
pub(super) struct State<'a> {
    pub(super) space: &'a Space,
    /// By section.
    pub(super) floor: Vec<u64>,
    pub(super) top: Vec<u64>,
    /// Sum of the sizes of the pieces that are not placed.
    pub(super) rest: Vec<u64>,
    /// Number of pieces that are not placed.
    pub(super) open: Vec<u32>,
    /// A unit that is not placed and could start at the floor.
    watch: Vec<u32>,
    /// Units not placed that are live on both sides of the start of the section.
    pub(super) crossing: Vec<u32>,
    /// How often the section ran out of slack: where the problem is hard.
    pub(super) weight: Vec<u32>,
    /// By unit: not placed yet.
    pub(super) free: Vec<bool>,
    /// No packing in this branch has the unit lower; its offset once it is placed.
    pub(super) least: Vec<u64>,
    /// The lowest offset above everything placed that the unit meets, alignment apart.
    ground: Vec<u64>,
    /// Real capacity, and the same rounded up to the granule.
    limit: u64,
    pub(super) capacity: u64,
    changes: Vec<Change>,
    /// Units whose least offset changed, or that were placed, since the last propagation.
    dirty: Vec<u32>,
    raised: Vec<u32>,
}

impl<'a> State<'a> {
    pub(super) fn new(space: &'a Space) -> Self {
        let mut state = Self {
            space,
            floor: vec![0; space.sections],
            top: vec![0; space.sections],
            rest: vec![0; space.sections],
            open: vec![0; space.sections],
            watch: vec![0; space.sections],
            crossing: vec![0; space.sections + 1],
            weight: vec![WEIGHT; space.sections],
            free: vec![true; space.units],
            least: vec![0; space.units],
            ground: vec![0; space.units],
            limit: 0,
            capacity: 0,
            changes: Vec::new(),
            dirty: Vec::new(),
            raised: Vec::new(),
        };
        for unit in 0..space.units as u32 {
            state.count(unit, true);
        }
        state
    }

    /// Empties the slab and sets the capacity; false when that is too little at once.
    pub(super) fn reset(&mut self, capacity: u64) -> bool {
        self.undo_to(0);
        for weight in &mut self.weight {
            // Old failures count for less and less.
            *weight = WEIGHT + (*weight - WEIGHT).min(1000) * 7 / 8;
        }
        self.limit = capacity;
        self.capacity = capacity.next_multiple_of(self.space.granule);
        for unit in 0..self.space.units {
            self.least[unit] =
                self.space.fixed[unit].unwrap_or_else(|| self.space.residue[unit].at_least(0));
        }
        for section in 0..self.space.sections {
            (self.floor[section], self.top[section]) = (0, 0);
            (self.floor[section], self.watch[section]) = self.lowest(section);
        }
        let fits = |unit: usize| self.least[unit] + self.space.height[unit] <= self.limit;
        (0..self.space.units).all(fits)
            && (0..self.space.sections)
                .all(|it| self.open[it] == 0 || self.floor[it] + self.rest[it] <= self.capacity)
    }

    pub(super) fn mark(&self) -> usize {
        self.changes.len()
    }

    /// Takes back every change since `mark`.
    pub(super) fn undo_to(&mut self, mark: usize) {
        while self.changes.len() > mark {
            match self.changes.pop() {
                Some(Change::Floor {
                    section,
                    floor,
                    top,
                    watch,
                }) => {
                    let section = section as usize;
                    (self.floor[section], self.top[section], self.watch[section]) =
                        (floor, top, watch);
                }
                Some(Change::Least {
                    unit,
                    least,
                    ground,
                }) => {
                    (self.least[unit as usize], self.ground[unit as usize]) = (least, ground);
                }
                Some(Change::Place { unit }) => {
                    self.free[unit as usize] = true;
                    self.count(unit, true);
                }
                None => break,
            }
        }
    }

    /// Unused bytes that the section can still afford.
    pub(super) fn slack(&self, section: usize) -> u64 {
        self.capacity - self.floor[section] - self.rest[section]
    }

    /// Puts a unit at its least offset. False when something else then has no place.
    pub(super) fn place(&mut self, unit: u32) -> bool {
        let space = self.space;
        let offset = self.least[unit as usize];
        self.free[unit as usize] = false;
        self.count(unit, false);
        self.changes.push(Change::Place { unit });
        for piece in space.pieces(unit) {
            let top = offset + piece.delta + piece.size;
            for section in piece.begin..piece.end {
                self.note_floor(section as usize);
                (self.floor[section as usize], self.top[section as usize]) = (top, top);
            }
        }
        self.dirty.push(unit);
        let mut fits = true;
        for meeting in space.meetings.of(unit as usize) {
            let ground = offset.saturating_add_signed(meeting.push);
            if self.free[meeting.unit as usize] && self.ground[meeting.unit as usize] < ground {
                fits &= self.raise(meeting.unit, ground, ground);
            }
        }
        fits && self.propagate()
    }

    /// Forbids each of the units to be where it is lowest. False when one of them then has no place.
    pub(super) fn forbid(&mut self, units: &[u32]) -> bool {
        let next: Vec<u64> = units.iter().map(|&unit| self.next_rest(unit)).collect();
        let mut fits = true;
        for (&unit, least) in units.iter().zip(next) {
            fits &= self.raise(
                unit,
                least.max(self.least[unit as usize] + 1),
                self.ground[unit as usize],
            );
        }
        fits && self.propagate()
    }

    /// True when the unit at its least offset would rest on something, as every unit of some best packing does.
    pub(super) fn is_supported(&self, unit: u32) -> bool {
        self.space.fixed[unit as usize].is_some()
            || self.drop_height(unit) == self.least[unit as usize]
    }

    /// The lowest permitted offset above everything placed.
    fn drop_height(&self, unit: u32) -> u64 {
        self.space.residue[unit as usize].at_least(self.ground[unit as usize])
    }

    /// True when the unit at its least offset lies on the floor of every section it covers.
    pub(super) fn is_flush(&self, unit: u32) -> bool {
        let least = self.least[unit as usize];
        self.space.pieces(unit).iter().all(|piece| {
            self.floor[piece.begin as usize..piece.end as usize]
                .iter()
                .all(|&floor| floor == least + piece.delta)
        })
    }

    /// The lowest offset at which the unit rests on one that is not placed yet.
    pub(super) fn next_rest(&self, unit: u32) -> u64 {
        let meetings = self
            .space
            .meetings
            .of(unit as usize)
            .iter()
            .filter(|it| self.free[it.unit as usize]);
        let rests =
            meetings.map(|it| self.least[it.unit as usize].saturating_add_signed(it.least_above));
        rests.min().map_or(NEVER, |rest| {
            self.space.residue[unit as usize].at_least(rest)
        })
    }

    /// Raises a unit's least offset to `offset` unless it is higher already, and its ground to `ground`. False when the
    /// unit no longer fits.
    fn raise(&mut self, unit: u32, offset: u64, ground: u64) -> bool {
        let it = unit as usize;
        self.changes.push(Change::Least {
            unit,
            least: self.least[it],
            ground: self.ground[it],
        });
        self.ground[it] = ground;
        if self.least[it] >= offset {
            return true;
        }
        self.least[it] = if offset >= NEVER {
            NEVER
        } else {
            self.space.residue[it].at_least(offset)
        };
        self.dirty.push(unit);
        self.space.fixed[it].is_none() && self.least[it] + self.space.height[it] <= self.limit
    }

    /// Raises floors to the lowest place where anything can start. False when a section runs out of slack, or when the
    /// waste below a floor is room enough for some unit: lowering that unit gives a packing of another branch.
    fn propagate(&mut self) -> bool {
        let space = self.space;
        self.raised.clear();
        let mut dirty = std::mem::take(&mut self.dirty);
        let fits = dirty.iter().all(|&unit| {
            space.pieces(unit).iter().all(|piece| {
                (piece.begin..piece.end).all(|section| self.raise_floor(unit, section))
            })
        });
        dirty.clear();
        self.dirty = dirty;
        fits && !(0..self.raised.len()).any(|it| self.has_wasted_room(self.raised[it] as usize))
    }

    /// Restores the invariant of one section after a change of `unit`: the floor is the lowest start of what is free.
    fn raise_floor(&mut self, unit: u32, section: u32) -> bool {
        let it = section as usize;
        if self.watch[it] != unit || self.open[it] == 0 {
            return true;
        }
        let (lowest, watch) = self.lowest(it);
        if lowest > self.floor[it] {
            self.note_floor(it);
            self.floor[it] = lowest;
            self.raised.push(section);
        }
        self.watch[it] = watch;
        let fits = lowest + self.rest[it] <= self.capacity;
        self.weight[it] += if fits { 0 } else { WEIGHT };
        fits
    }

    /// Lowest start of anything free in the section, but no lower than the floor, and whose it is.
    fn lowest(&self, section: usize) -> (u64, u32) {
        let (mut lowest, mut whose) = (NEVER, 0);
        for cover in self.space.covers.of(section) {
            let start = self.least[cover.unit as usize] + cover.delta;
            if start < lowest && self.free[cover.unit as usize] {
                (lowest, whose) = (start, cover.unit);
                if start == self.floor[section] {
                    break;
                }
            }
        }
        (lowest, whose)
    }

    fn has_wasted_room(&self, section: usize) -> bool {
        let waste = self.floor[section] - self.top[section];
        self.space.covers.of(section).iter().any(|cover| {
            let unit = cover.unit;
            self.free[unit as usize]
                && self.space.fixed[unit as usize].is_none()
                && self.space.height[unit as usize] <= waste + cover.delta
                && self.ground[unit as usize] < self.least[unit as usize]
                && self.fits_below_floors(unit)
        })
    }

    fn fits_below_floors(&self, unit: u32) -> bool {
        let offset = self.drop_height(unit);
        offset < self.least[unit as usize]
            && self.space.pieces(unit).iter().all(|piece| {
                let end = offset + piece.delta + piece.size;
                self.floor[piece.begin as usize..piece.end as usize]
                    .iter()
                    .all(|&floor| end <= floor)
            })
    }

    fn note_floor(&mut self, section: usize) {
        let (floor, top, watch) = (self.floor[section], self.top[section], self.watch[section]);
        self.changes.push(Change::Floor {
            section: section as u32,
            floor,
            top,
            watch,
        });
    }

    /// Counts a unit among those that are not placed, or no longer.
    fn count(&mut self, unit: u32, is_free: bool) {
        let space = self.space;
        for piece in space.pieces(unit) {
            for section in piece.begin as usize..piece.end as usize {
                if is_free {
                    self.rest[section] += piece.size;
                    self.open[section] += 1;
                } else {
                    self.rest[section] -= piece.size;
                    self.open[section] -= 1;
                }
            }
        }
        let (begin, end) = space.hull[unit as usize];
        for section in begin as usize + 1..end as usize {
            if is_free {
                self.crossing[section] += 1;
            } else {
                self.crossing[section] -= 1;
            }
        }
    }
}
