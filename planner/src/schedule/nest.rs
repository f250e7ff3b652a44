//! Orders in which donated arguments come back in the reverse of the order in which they went.
//!
//! The bytes of a donated argument are free between its last read and the instruction that writes its output.
//! While several of these gaps overlap, what lies in them is easiest to place if they are nested: what left first
//! comes back last. Where two gaps cross, the packer must keep room for both arguments beside everything that
//! is live in between, which no count of live bytes tells.
//!
//! ```text
//! a -----|       |-----        a -----|     |-----
//! b ---|     |---------        b ---|         |---      live, over time
//!      crossing                     nested
//! ```

use super::graph::{Forwards, Graph};
use super::greedy::{self, Prefer, ranks};
use super::region::Region;

/// The time in which the bytes of a donated argument are free.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// The last reader of the argument.
    last_read: u32,
    /// What writes it again.
    written: u32,
}

/// Variants of `order` in which fewer gaps cross, none of which needs more than it.
pub(super) fn nested(region: &Region, graph: &Graph, order: &[u32]) -> Vec<Vec<u32>> {
    let place = ranks(order);
    let gaps = gaps(region, &place);
    if !any_cross(&gaps, &place) {
        return Vec::new();
    }
    let peak = graph.peak(order);
    // Last reads in the reverse order of the writes, or writes in the reverse order of the last reads.
    let by_read = dealt(&gaps, &place, |g| g.last_read, |g| g.written);
    let by_write = dealt(&gaps, &place, |g| g.written, |g| g.last_read);
    let variants = [by_read, by_write].into_iter().map(|wanted| {
        let rank = with_places(graph, order, &place, &wanted);
        greedy::order(Forwards::new(graph), &rank, Prefer::Place, 0)
    });
    variants
        .filter(|o| o != order && graph.peak(o) <= peak)
        .collect()
}

/// The gaps of the arguments, by the time of the last read.
fn gaps(region: &Region, place: &[u32]) -> Vec<Gap> {
    let gap = |c: &super::precedence::Rewrite| {
        let readers = region.users.row(c.over).iter().copied();
        let last_read = readers
            .filter(|&u| u != c.instr)
            .max_by_key(|&u| place[u as usize])?;
        let gap = Gap {
            last_read,
            written: c.instr,
        };
        (place[last_read as usize] < place[c.instr as usize]).then_some(gap)
    };
    let mut gaps: Vec<Gap> = region.carried.iter().filter_map(gap).collect();
    gaps.sort_by_key(|g| (place[g.last_read as usize], g.last_read, g.written));
    gaps
}

/// Whether one gap starts inside another and ends outside.
fn any_cross(gaps: &[Gap], place: &[u32]) -> bool {
    // Ends of the gaps that are open, the innermost last.
    let mut open: Vec<u32> = Vec::new();
    for g in gaps {
        let (start, end) = (place[g.last_read as usize], place[g.written as usize]);
        while open.last().is_some_and(|&e| e < start) {
            open.pop();
        }
        if open.last().is_some_and(|&e| e < end) {
            return true;
        }
        open.push(end);
    }
    false
}

/// The places of the instructions that `moved` gives, dealt to them anew in the reverse order of those that
/// `fixed` gives.
fn dealt(
    gaps: &[Gap],
    place: &[u32],
    moved: impl Fn(&Gap) -> u32,
    fixed: impl Fn(&Gap) -> u32,
) -> Vec<(u32, u32)> {
    let mut places: Vec<u32> = gaps.iter().map(|g| place[moved(g) as usize]).collect();
    places.sort_unstable();
    let mut order: Vec<&Gap> = gaps.iter().collect();
    order.sort_by_key(|g| std::cmp::Reverse(place[fixed(g) as usize]));
    order.into_iter().map(moved).zip(places).collect()
}

/// The places of `order` with those of some instructions changed; what they need comes no later.
fn with_places(graph: &Graph, order: &[u32], place: &[u32], wanted: &[(u32, u32)]) -> Vec<u32> {
    let mut rank = place.to_vec();
    for &(i, at) in wanted {
        rank[i as usize] = at;
    }
    for &i in order.iter().rev() {
        for &p in graph.before.row(i) {
            rank[p as usize] = rank[p as usize].min(rank[i as usize]);
        }
    }
    rank
}
