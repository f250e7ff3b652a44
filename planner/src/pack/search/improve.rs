//! Lowers the height of a packing step by step: searches at capacities between the bound and the best height, in
//! restarts of growing length over many orders, until the two meet or the budget is spent.

use super::engine::{Engine, Outcome};
use super::ranks::{NAMED, Ranks};
use super::space::Space;

/// Where the improvement stands.
#[derive(Clone, Debug)]
pub(in super::super) struct Standing {
    /// Best height so far.
    pub(in super::super) height: u64,
    /// No packing of this space is lower.
    pub(in super::super) bound: u64,
    /// Offsets by unit, once the search has found some.
    pub(in super::super) offsets: Option<Vec<u64>>,
}

/// Searches until `standing.height` meets `standing.bound` or `keep_on` (asked at every node, with the number of nodes
/// so far) says no. As long as the best height is above `enough`, that is aimed at first of all. Each `variation` tries
/// other orders.
///
/// Each round has two searches in one order: one at the bound, for a success there ends everything, and one in between,
/// that aims lower after a success and higher after a failure. They learn apart from each other.
pub(in super::super) fn improve(
    space: &Space,
    standing: &mut Standing,
    enough: Option<u64>,
    variation: u32,
    mut keep_on: impl FnMut(&Standing, u64) -> bool,
) {
    let ranks = Ranks::new(space);
    let mut engines = [Engine::new(space), Engine::new(space)];
    let mut length = 200 + space.units as u64;
    let mut eighths = 4;
    let mut nodes = 0;
    // Searches below this are done with, proved or not.
    let mut lowest = standing.bound;
    // The first variation starts with the orders without disturbance.
    for number in (variation as usize) << 16.. {
        let rank = ranks.rank(number);
        for (which, engine) in engines.iter_mut().enumerate() {
            if lowest >= standing.height {
                return;
            }
            let between = lowest + (standing.height - lowest) / 8 * eighths;
            let target = match (which, enough.filter(|&enough| standing.height > enough)) {
                (0, _) => lowest,
                (_, Some(enough)) => enough,
                (_, None) => between.min(standing.height - 1),
            };
            if which == 1 && target <= lowest {
                continue;
            }
            let (before, mut is_stopped) = (nodes, false);
            let end = engine.nodes + length;
            let start = engine.nodes;
            let outcome = engine.search(target, &rank, |now| {
                nodes = before + now - start;
                is_stopped |= !keep_on(standing, nodes);
                now < end && !is_stopped
            });
            match outcome {
                Outcome::Found => {
                    let offsets = engine.offsets();
                    let ends = offsets
                        .iter()
                        .zip(&space.height)
                        .map(|(offset, height)| offset + height);
                    standing.height = ends.max().unwrap_or(0);
                    standing.offsets = Some(offsets.to_vec());
                }
                Outcome::Impossible => {
                    let next = (target + 1).min(standing.height);
                    standing.bound = standing.bound.max(next);
                    lowest = lowest.max(next);
                }
                Outcome::Unproved => lowest = lowest.max(target + 1),
                Outcome::Undecided => {}
            }
            if is_stopped {
                return;
            }
            if which == 1 {
                eighths = if outcome == Outcome::Found {
                    eighths.max(2) - 1
                } else {
                    eighths.min(6) + 1
                };
            }
        }
        if number % NAMED == NAMED - 1 {
            length = length.saturating_mul(2);
        }
    }
}
