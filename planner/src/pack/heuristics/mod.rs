//! Heuristics, each in a file of its own, all with one face.

mod area;
mod conflicts;
mod duration;
mod peak;
mod place;
pub(super) mod size;
mod skyline;
mod squeaky;

use super::model::Model;
use super::packing::Control;
use place::{Fit, place};
pub(super) use squeaky::squeak;

/// A way to place everything once, in near-linear time but for [`Heuristic::Skyline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heuristic {
    /// Largest first, each into the lowest gap.
    SizeFirstFit,
    /// The fullest point of time first, each into the lowest gap.
    PeakFirstFit,
    /// Longest first, each into the lowest gap.
    DurationFirstFit,
    /// Largest size times duration first, each into the lowest gap.
    AreaFirstFit,
    /// Most conflicts first, each into the lowest gap.
    ConflictsFirstFit,
    /// Bottom up: whatever can go lowest is next.
    Skyline,
    /// Largest first, each into the tightest gap.
    SizeBestFit,
    /// Longest first, each into the tightest gap.
    DurationBestFit,
    /// Largest size times duration first, each into the tightest gap.
    AreaBestFit,
    /// Most conflicts first, each into the tightest gap.
    ConflictsBestFit,
}

impl Heuristic {
    /// Every heuristic, in the order in which the packer tries them.
    pub const ALL: [Self; 10] = [
        Self::SizeFirstFit,
        Self::PeakFirstFit,
        Self::DurationFirstFit,
        Self::AreaFirstFit,
        Self::SizeBestFit,
        Self::DurationBestFit,
        Self::AreaBestFit,
        Self::ConflictsFirstFit,
        Self::ConflictsBestFit,
        Self::Skyline,
    ];

    /// So many are tried before the search; the others, where it leaves a gap.
    pub(super) const BEFORE_SEARCH: usize = 7;

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SizeFirstFit => "size, first fit",
            Self::PeakFirstFit => "peak, first fit",
            Self::DurationFirstFit => "duration, first fit",
            Self::AreaFirstFit => "area, first fit",
            Self::ConflictsFirstFit => "conflicts, first fit",
            Self::Skyline => "skyline",
            Self::SizeBestFit => "size, best fit",
            Self::DurationBestFit => "duration, best fit",
            Self::AreaBestFit => "area, best fit",
            Self::ConflictsBestFit => "conflicts, best fit",
        }
    }

    /// Offsets by unit. `tick` hears of every [`TICK`] steps.
    pub(super) fn run(
        self,
        model: &Model,
        tick: &mut dyn FnMut(u64) -> Control,
    ) -> (Vec<u64>, Control) {
        let (order, fit) = match self {
            Self::SizeFirstFit => (size::order(model), Fit::First),
            Self::PeakFirstFit => (peak::order(model), Fit::First),
            Self::DurationFirstFit => (duration::order(model), Fit::First),
            Self::AreaFirstFit => (area::order(model), Fit::First),
            Self::ConflictsFirstFit => (conflicts::order(model), Fit::First),
            Self::SizeBestFit => (size::order(model), Fit::Best),
            Self::DurationBestFit => (duration::order(model), Fit::Best),
            Self::AreaBestFit => (area::order(model), Fit::Best),
            Self::ConflictsBestFit => (conflicts::order(model), Fit::Best),
            Self::Skyline => return skyline::place(model, tick),
        };
        place(model, &order, fit, tick)
    }
}

/// Orders that local search starts from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start {
    Size,
    Peak,
}

impl Start {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Size => "size, squeaky wheel",
            Self::Peak => "peak, squeaky wheel",
        }
    }

    pub(super) fn order(self, model: &Model) -> Vec<u32> {
        match self {
            Self::Size => size::order(model),
            Self::Peak => peak::order(model),
        }
    }
}

/// Steps that are told to the caller at a time.
pub(super) const TICK: u64 = 1024;

/// Steps between two questions whether to go on.
pub(super) const ASKING: u64 = 64;

/// How many steps to tell the caller of after `done` of them; nothing when it is not the time to ask.
pub(super) fn due(done: u64) -> Option<u64> {
    let is_due = done.is_multiple_of(ASKING);
    is_due.then(|| if done.is_multiple_of(TICK) { TICK } else { 0 })
}
