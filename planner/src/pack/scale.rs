//! Problems of one alignment, counted in steps of it.
//!
//! Where every offset is a multiple of `A`, the bytes between a buffer's end and the next multiple serve nobody. Sizes
//! rounded up to `A` and divided by it give an equivalent problem without alignment: ranges touch, so that bounds are
//! tighter and gaps fewer.

use super::packing::{Packing, Progress};
use super::problem::{Buffer, Problem, Tie};

/// An equivalent problem in steps of the one alignment.
pub(super) struct Scaled {
    pub(super) problem: Problem,
    step: u64,
    /// The least that a buffer fills of its last step, in bytes.
    least_tail: u64,
}

impl Scaled {
    /// The problem in steps; none where alignments differ or a distance is no multiple. O(n).
    pub(super) fn new(problem: &Problem) -> Option<Self> {
        let step = problem.buffers.first()?.alignment;
        let fits = |n: u64| n.is_multiple_of(step);
        let is_uniform = step > 1
            && problem
                .buffers
                .iter()
                .all(|b| b.alignment == step && b.fixed.is_none_or(fits))
            && problem.ties.iter().all(|t| fits(t.distance.unsigned_abs()));
        if !is_uniform {
            return None;
        }
        let same_size = |&(a, b): &(u32, u32)| {
            problem.buffers[a as usize].size == problem.buffers[b as usize].size
        };
        let filled = problem.buffers.iter().filter(|b| b.size > 0);
        let scaled = Problem {
            buffers: problem.buffers.iter().map(|b| in_steps(b, step)).collect(),
            may_share: problem
                .may_share
                .iter()
                .copied()
                .filter(same_size)
                .collect(),
            ties: problem
                .ties
                .iter()
                .map(|t| Tie {
                    distance: t.distance / step as i64,
                    ..*t
                })
                .collect(),
            capacity: problem.capacity.map(|c| c.div_ceil(step)),
        };
        Some(Self {
            problem: scaled,
            step,
            least_tail: filled.map(|b| (b.size - 1) % step + 1).min().unwrap_or(0),
        })
    }

    /// Progress in bytes.
    pub(super) fn progress(&self, p: &Progress) -> Progress {
        Progress {
            height: p.height.saturating_mul(self.step),
            lower_bound: self.bound(p.lower_bound),
            ..*p
        }
    }

    /// A packing of the scaled problem as one of `problem`.
    ///
    /// It is called optimal if no packing needs fewer steps.
    pub(super) fn packing(&self, problem: &Problem, packing: Packing) -> Packing {
        let offsets: Vec<u64> = packing.offsets.iter().map(|o| o * self.step).collect();
        let ends = problem.buffers.iter().zip(&offsets);
        let height = ends
            .filter(|(b, _)| b.size > 0)
            .map(|(b, o)| o + b.size)
            .max()
            .unwrap_or(0);
        Packing {
            height,
            lower_bound: self.bound(packing.lower_bound).min(height),
            feasible: problem.capacity.is_none_or(|c| height <= c),
            offsets,
            ..packing
        }
    }

    /// Whatever ends highest fills at least `least_tail` bytes of the last step.
    fn bound(&self, steps: u64) -> u64 {
        match steps {
            0 => 0,
            n => (n - 1) * self.step + self.least_tail,
        }
    }
}

fn in_steps(b: &Buffer, step: u64) -> Buffer {
    Buffer {
        size: b.size.div_ceil(step),
        alignment: 1,
        fixed: b.fixed.map(|o| o / step),
        hint: b.hint.map(|o| o / step),
        ..b.clone()
    }
}
