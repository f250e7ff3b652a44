//! Why a problem does not fit a capacity: a smallest set of buffers that can't be placed together.

use super::bound::{fullest_section, max_load};
use super::model::Model;
use super::problem::{Problem, ProblemError, Tie};
use super::search::{Engine, Outcome, Space};
use super::share_load::sharing_load;
use std::fmt;

/// Buffers that exceed a capacity by themselves. None of them can be left out: without any one, the others fit (or,
/// where `is_smallest` is false, the budget did not suffice to tell).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Indices of the buffers.
    pub buffers: Vec<u32>,
    /// Sum of their sizes.
    pub bytes: u64,
    /// The capacity that they exceed.
    pub capacity: u64,
    /// What is wrong with them.
    pub reason: Reason,
    /// Whether each of them is known to be needed.
    pub is_smallest: bool,
}

/// Why buffers don't fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// One buffer alone ends above the capacity.
    TooLarge,
    /// All are live at one time, and together larger than the capacity.
    LiveTogether {
        /// A point of time at which they are.
        time: u64,
    },
    /// At no time are too many bytes live, but there is no arrangement: an exhaustive search has shown it.
    NoArrangement,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, bytes, capacity) = (self.buffers.len(), self.bytes, self.capacity);
        match self.reason {
            Reason::TooLarge => write!(f, "one buffer alone needs {bytes} bytes of {capacity}"),
            Reason::LiveTogether { time } => write!(
                f,
                "{count} buffers are live together at time {time} and need {bytes} bytes; there are {capacity}"
            ),
            Reason::NoArrangement => write!(
                f,
                "{count} buffers can't be arranged within {capacity} bytes, although no more are ever live together: \
                 every arrangement leaves gaps that nothing fits"
            ),
        }
    }
}

/// Looks for the reason why `problem` does not fit `capacity`, with up to `nodes` search nodes. `None` when it fits, or
/// when the budget does not suffice to show that it doesn't. May-share pairs may share here as in a packing: buffers
/// that exceed the capacity do so in every way of sharing.
pub fn explain_misfit(
    problem: &Problem,
    capacity: u64,
    nodes: u64,
) -> Result<Option<Misfit>, ProblemError> {
    problem.check()?;
    let end = |it: &super::problem::Buffer| it.fixed.unwrap_or(0) + it.size;
    if let Some(index) = problem.buffers.iter().position(|it| end(it) > capacity) {
        let bytes = end(&problem.buffers[index]);
        let reason = Reason::TooLarge;
        return Ok(Some(Misfit {
            buffers: vec![index as u32],
            bytes,
            capacity,
            reason,
            is_smallest: true,
        }));
    }
    let is_simple = problem.may_share.is_empty() && problem.ties.is_empty();
    let model = Model::new(problem, &[])?;
    if is_simple && max_load(&model) > capacity {
        return Ok(Some(live_together(problem, &model, capacity)));
    }
    Ok(no_arrangement(problem, capacity, nodes))
}

/// The largest buffers of the fullest section, as many as exceed the capacity: without any one of them they don't.
fn live_together(problem: &Problem, model: &Model, capacity: u64) -> Misfit {
    let section = fullest_section(model);
    let mut live: Vec<u32> = (0..problem.buffers.len() as u32)
        .filter(|&it| model.covers(model.place_of(it).0, section))
        .collect();
    live.sort_by_key(|&it| std::cmp::Reverse(problem.buffers[it as usize].size));
    let mut bytes = 0;
    let taken = live.iter().take_while(|&&it| {
        let is_needed = bytes <= capacity;
        bytes += if is_needed {
            problem.buffers[it as usize].size
        } else {
            0
        };
        is_needed
    });
    let buffers: Vec<u32> = taken.copied().collect();
    // They have a section in common.
    let time = common_time(problem, &buffers).unwrap_or(0);
    Misfit {
        buffers,
        bytes,
        capacity,
        reason: Reason::LiveTogether { time },
        is_smallest: true,
    }
}

/// A point of time at which all of the buffers are live: the latest of some starts, if any.
fn common_time(problem: &Problem, buffers: &[u32]) -> Option<u64> {
    let spans = |it: u32| {
        let live = problem.buffers[it as usize].live.iter();
        live.filter(|span| !span.is_empty())
    };
    let is_common = |time: u64| {
        let is_live = |&it: &u32| spans(it).any(|span| span.start <= time && time < span.end);
        buffers.iter().all(is_live)
    };
    let starts = |&it: &u32| spans(it).map(|span| span.start).find(|&it| is_common(it));
    buffers.iter().find_map(starts)
}

/// Leaves buffers out, in halves, then quarters, down to single ones, as long as the rest still does not fit.
fn no_arrangement(problem: &Problem, capacity: u64, mut nodes: u64) -> Option<Misfit> {
    let mut kept: Vec<u32> = (0..problem.buffers.len() as u32).collect();
    if refute(problem, &kept, capacity, &mut nodes) != Outcome::Impossible {
        return None;
    }
    let mut is_smallest = true;
    let mut chunk = kept.len().div_ceil(2);
    loop {
        let mut at = 0;
        while at < kept.len() {
            let mut fewer = kept.clone();
            fewer.drain(at..(at + chunk).min(kept.len()));
            // A single try may not use up what the others need.
            let mut share = nodes / 4;
            let before = share;
            let outcome = refute(problem, &fewer, capacity, &mut share);
            nodes = nodes.saturating_sub(before - share);
            if outcome == Outcome::Impossible {
                kept = fewer;
            } else {
                is_smallest &= chunk > 1 || outcome == Outcome::Found;
                at += chunk;
            }
        }
        if chunk == 1 {
            break;
        }
        chunk = chunk.div_ceil(2);
    }
    let part = part(problem, &kept);
    let sum = part.buffers.iter().map(|it| it.size).sum();
    let load = load(&part).filter(|&load| load > capacity && problem.ties.is_empty());
    let time = load.and_then(|load| Some((load, common_time(problem, &kept)?)));
    let (bytes, reason) = time.map_or((sum, Reason::NoArrangement), |(load, time)| {
        (load, Reason::LiveTogether { time })
    });
    Some(Misfit {
        buffers: kept,
        bytes,
        capacity,
        reason,
        is_smallest,
    })
}

/// Bytes that the buffers need at their fullest moment, however they share.
fn load(part: &Problem) -> Option<u64> {
    let model = Model::new(part, &[]).ok()?;
    Some(if part.may_share.is_empty() {
        max_load(&model)
    } else {
        sharing_load(part, &model)
    })
}

/// Pairs up to which every way of sharing is searched.
const FEW_PAIRS: usize = 6;

/// Looks for a packing of some of the buffers in every way of sharing, and takes the nodes off the budget. Where there
/// are many pairs, only the load at the fullest moment is looked at.
fn refute(problem: &Problem, kept: &[u32], capacity: u64, nodes: &mut u64) -> Outcome {
    let part = part(problem, kept);
    let pairs = &part.may_share;
    if !pairs.is_empty() {
        // A bound costs about as much as so many nodes.
        *nodes = nodes.saturating_sub(1 + kept.len() as u64 / 64);
        if load(&part).is_some_and(|load| load > capacity) {
            return Outcome::Impossible;
        }
        if pairs.len() > FEW_PAIRS || *nodes == 0 {
            return Outcome::Undecided;
        }
    }
    let mut all = Outcome::Impossible;
    for ways in 0u32..1 << pairs.len() {
        let is_shared = |it: &(usize, &(u32, u32))| ways >> it.0 & 1 == 1;
        let shared: Vec<(u32, u32)> = pairs
            .iter()
            .enumerate()
            .filter(is_shared)
            .map(|it| *it.1)
            .collect();
        match search(&part, &shared, capacity, nodes) {
            // More than two on the same bytes might be more than is allowed.
            Outcome::Found if shared.len() <= 1 => return Outcome::Found,
            Outcome::Found | Outcome::Unproved | Outcome::Undecided => all = Outcome::Undecided,
            Outcome::Impossible => {}
        }
    }
    all
}

/// Some of the buffers, with what there is between them.
fn part(problem: &Problem, kept: &[u32]) -> Problem {
    let mut place = vec![None; problem.buffers.len()];
    for (at, &index) in (0u32..).zip(kept) {
        place[index as usize] = Some(at);
    }
    let tie = |it: &Tie| {
        let (base, member) = (place[it.base as usize]?, place[it.member as usize]?);
        Some(Tie {
            base,
            member,
            ..*it
        })
    };
    let size = |it: u32| problem.buffers[it as usize].size;
    let pair = |&(a, b): &(u32, u32)| {
        let is_equal = size(a) == size(b);
        is_equal.then_some((place[a as usize]?, place[b as usize]?))
    };
    Problem {
        buffers: kept
            .iter()
            .map(|&it| problem.buffers[it as usize].clone())
            .collect(),
        ties: problem.ties.iter().filter_map(tie).collect(),
        may_share: problem.may_share.iter().filter_map(pair).collect(),
        capacity: None,
    }
}

/// Searches for a packing in one way of sharing, and takes the nodes off the budget.
fn search(part: &Problem, shared: &[(u32, u32)], capacity: u64, nodes: &mut u64) -> Outcome {
    let Ok(model) = Model::new(part, shared) else {
        return Outcome::Undecided;
    };
    let Some(space) = Space::new(&model, 1 << 20) else {
        return Outcome::Undecided;
    };
    let mut engine = Engine::new(&space);
    // In the model's order: the bound matters here, not the luck of finding something.
    let rank: Vec<u32> = (0..model.units.len() as u32).collect();
    let budget = *nodes;
    let outcome = engine.search(capacity, &rank, |now| now < budget);
    *nodes -= engine.nodes.min(budget);
    outcome
}
