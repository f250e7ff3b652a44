//! The judge of packings, in the plainest way there is.

use super::problem::{Buffer, Problem, ProblemError};
use thiserror::Error;

/// What is wrong with a packing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Invalid {
    /// The problem itself makes no sense.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// There must be one offset for each buffer.
    #[error("{offsets} offsets for {buffers} buffers")]
    Count {
        /// Offsets given.
        offsets: usize,
        /// Buffers of the problem.
        buffers: usize,
    },
    /// The offset plus the size exceeds 2^64.
    #[error("buffer {0}: its end is beyond the address space")]
    Overflow(usize),
    /// Not at a multiple of the alignment.
    #[error("buffer {0}: misaligned")]
    Misaligned(usize),
    /// Not at its fixed offset.
    #[error("buffer {0}: not at its fixed offset")]
    NotFixed(usize),
    /// Tied buffers are not at their distance.
    #[error("buffers {0} and {1}: not at the distance that ties them")]
    Untied(usize, usize),
    /// Two buffers in the same bytes at the same time.
    #[error("buffers {0} and {1}: live together in overlapping bytes")]
    Overlap(usize, usize),
}

/// Checks every buffer and every pair of buffers of a packing, and returns its height: O(n²), and obviously right.
pub fn validate(problem: &Problem, offsets: &[u64]) -> Result<u64, Invalid> {
    problem.check()?;
    let height = check_each(problem, offsets)?;
    let buffers = &problem.buffers;
    let tied = tied_groups(problem);
    let mut shares = problem.may_share.clone();
    shares.extend(problem.may_share.iter().map(|&(a, b)| (b, a)));
    shares.sort_unstable();
    for (i, a) in buffers.iter().enumerate() {
        for (j, b) in buffers.iter().enumerate().skip(i + 1) {
            let same = offsets[i] == offsets[j] && a.size == b.size;
            if bytes_overlap(a, offsets[i], b, offsets[j])
                && tied[i] != tied[j]
                && a.overlaps_in_time(b)
                && !(same && shares.binary_search(&(i as u32, j as u32)).is_ok())
            {
                return Err(Invalid::Overlap(i, j));
            }
        }
    }
    Ok(height)
}

/// The part that looks at one buffer or tie at a time; returns the height.
pub(super) fn check_each(problem: &Problem, offsets: &[u64]) -> Result<u64, Invalid> {
    let buffers = &problem.buffers;
    if offsets.len() != buffers.len() {
        return Err(Invalid::Count {
            offsets: offsets.len(),
            buffers: buffers.len(),
        });
    }
    let mut height = 0;
    for (i, buffer) in buffers.iter().enumerate() {
        let end = offsets[i]
            .checked_add(buffer.size)
            .ok_or(Invalid::Overflow(i))?;
        height = height.max(end);
        if !offsets[i].is_multiple_of(buffer.alignment) {
            return Err(Invalid::Misaligned(i));
        }
        if buffer.fixed.is_some_and(|fixed| fixed != offsets[i]) {
            return Err(Invalid::NotFixed(i));
        }
    }
    for tie in &problem.ties {
        let (a, b) = (tie.base as usize, tie.member as usize);
        if i128::from(offsets[b]) - i128::from(offsets[a]) != i128::from(tie.distance) {
            return Err(Invalid::Untied(a, b));
        }
    }
    Ok(height)
}

fn bytes_overlap(a: &Buffer, a_offset: u64, b: &Buffer, b_offset: u64) -> bool {
    a.size > 0 && b.size > 0 && a_offset < b_offset + b.size && b_offset < a_offset + a.size
}

/// A number for each buffer, equal for those connected by ties.
fn tied_groups(problem: &Problem) -> Vec<usize> {
    let mut group: Vec<usize> = (0..problem.buffers.len()).collect();
    let mut changed = true;
    while changed {
        changed = false;
        for tie in &problem.ties {
            let (a, b) = (tie.base as usize, tie.member as usize);
            let least = group[a].min(group[b]);
            changed |= group[a] != least || group[b] != least;
            (group[a], group[b]) = (least, least);
        }
    }
    group
}
