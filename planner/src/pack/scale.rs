//! Problems in which every size is a multiple of the one alignment, counted in steps of it.
//!
//! The same problem without alignment: ranges touch exactly, which is what the algorithms are quickest at.

use super::packing::{Packing, Progress};
use super::problem::{Buffer, Problem, Tie};

/// An equivalent problem in steps of the one alignment.
pub(super) struct Scaled {
    pub(super) problem: Problem,
    step: u64,
}

impl Scaled {
    /// The problem in steps; none where alignments differ or anything is no multiple of the one. O(n).
    pub(super) fn new(problem: &Problem) -> Option<Self> {
        let step = problem.buffers.first()?.alignment;
        let fits = |n: u64| n.is_multiple_of(step);
        let is_buffer_whole =
            |b: &Buffer| b.alignment == step && fits(b.size) && b.fixed.is_none_or(fits);
        let is_tie_whole = |t: &Tie| fits(t.distance.unsigned_abs());
        let is_whole = step > 1
            && problem.buffers.iter().all(is_buffer_whole)
            && problem.ties.iter().all(is_tie_whole);
        if !is_whole {
            return None;
        }
        let tie = |t: &Tie| Tie {
            distance: t.distance / step as i64,
            ..*t
        };
        let problem = Problem {
            buffers: problem.buffers.iter().map(|b| in_steps(b, step)).collect(),
            may_share: problem.may_share.clone(),
            ties: problem.ties.iter().map(tie).collect(),
            capacity: problem.capacity.map(|c| c / step),
        };
        Some(Self { problem, step })
    }

    /// Progress in bytes.
    pub(super) fn progress(&self, p: &Progress) -> Progress {
        Progress {
            height: p.height.saturating_mul(self.step),
            lower_bound: p.lower_bound * self.step,
            ..*p
        }
    }

    /// A packing in bytes.
    pub(super) fn packing(&self, mut packing: Packing) -> Packing {
        for offset in &mut packing.offsets {
            *offset *= self.step;
        }
        packing.height *= self.step;
        packing.lower_bound *= self.step;
        packing
    }
}

fn in_steps(b: &Buffer, step: u64) -> Buffer {
    Buffer {
        size: b.size / step,
        alignment: 1,
        fixed: b.fixed.map(|o| o / step),
        hint: b.hint.map(|o| o / step),
        ..b.clone()
    }
}
