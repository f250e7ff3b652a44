//! The packing problem as plain data.

use smallvec::SmallVec;
use thiserror::Error;

/// A half-open span of time `[start, end)`, in program points or any other unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    /// First point at which the bytes are in use.
    pub start: u64,
    /// First point at which they are free again.
    pub end: u64,
}

impl Interval {
    /// The span `[start, end)`.
    pub const fn new(start: u64, end: u64) -> Self {
        Self { start, end }
    }

    /// True when the span contains no point.
    pub const fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// True when the two spans have a point in common.
    pub fn overlaps(self, other: Self) -> bool {
        self.start.max(other.start) < self.end.min(other.end)
    }
}

/// The times at which a buffer holds its bytes: half-open spans, ascending and disjoint; the time between two spans is a hole.
pub type Live = SmallVec<[Interval; 1]>;

/// One array of bytes that needs an offset.
///
/// A buffer of size zero, or one that is never live, is legal: it conflicts with nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The caller's number, used only to tell buffers apart that are equal in every other respect, so that the
    /// answer does not depend on the order of the rows. Need not be dense; should be unique.
    pub id: u64,
    /// When the bytes are in use.
    pub live: Live,
    /// Size in bytes.
    pub size: u64,
    /// The offset must be a multiple of this; 1 for no demand. Need not be a power of two.
    pub alignment: u64,
    /// The only permitted offset, if there is one.
    pub fixed: Option<u64>,
    /// An offset that a previous plan gave this buffer. A hint never makes the packing taller; it decides between equals.
    pub hint: Option<u64>,
}

impl Buffer {
    /// A movable buffer of `size` bytes, live during `[start, end)`, without alignment.
    pub fn new(id: u64, start: u64, end: u64, size: u64) -> Self {
        Self {
            id,
            live: smallvec::smallvec![Interval::new(start, end)],
            size,
            alignment: 1,
            fixed: None,
            hint: None,
        }
    }

    /// True when some point of time has both buffers live. Linear in the number of spans.
    pub fn overlaps_in_time(&self, other: &Self) -> bool {
        let (mut a, mut b) = (self.live.iter().peekable(), other.live.iter().peekable());
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            if x.overlaps(**y) {
                return true;
            }
            if x.end <= y.end {
                a.next()
            } else {
                b.next()
            };
        }
        false
    }
}

/// Two buffers at a fixed distance: `offset(member) = offset(base) + distance`. Distance 0 forces one offset on both
/// (colocation). Buffers connected by ties are never in conflict with each other: the caller vouches for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tie {
    /// Index of the buffer that the distance is measured from.
    pub base: u32,
    /// Index of the buffer that is `distance` bytes above it.
    pub member: u32,
    /// Bytes from the offset of `base` to the offset of `member`.
    pub distance: i64,
}

/// Buffers to place in one slab. Buffers are named by their index in `buffers`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// What to place.
    pub buffers: Vec<Buffer>,
    /// Pairs that may be live together in the same bytes. Such a pair must have equal offsets and equal sizes, or be
    /// disjoint like any other; a pair of unequal sizes is an ordinary conflict.
    pub may_share: Vec<(u32, u32)>,
    /// Buffers at fixed distances from each other.
    pub ties: Vec<Tie>,
    /// Bytes available. `None` asks for the lowest height; `Some` also asks whether it fits, and the search may stop at
    /// the lower bound only, never at the capacity.
    pub capacity: Option<u64>,
}

impl Problem {
    /// Forces one offset on all of `members`.
    pub fn colocate(&mut self, members: &[u32]) {
        for pair in members.windows(2) {
            self.ties.push(Tie {
                base: pair[0],
                member: pair[1],
                distance: 0,
            });
        }
    }

    /// Finds what makes the problem meaningless, before any packing. O(n log n).
    pub fn check(&self) -> Result<(), ProblemError> {
        let count = u32::try_from(self.buffers.len()).map_err(|_| ProblemError::TooMany)?;
        let mut total = 0u64;
        for (index, buffer) in (0u32..).zip(&self.buffers) {
            if buffer.alignment == 0 {
                return Err(ProblemError::ZeroAlignment { buffer: index });
            }
            if buffer.live.iter().any(|span| span.start > span.end)
                || buffer
                    .live
                    .windows(2)
                    .any(|pair| pair[0].end > pair[1].start)
            {
                return Err(ProblemError::UnsortedLive { buffer: index });
            }
            if let Some(offset) = buffer.fixed {
                if offset % buffer.alignment != 0 {
                    return Err(ProblemError::MisalignedFixed { buffer: index });
                }
                let end = offset
                    .checked_add(buffer.size)
                    .ok_or(ProblemError::Overflow { buffer: index })?;
                total = total
                    .checked_add(end)
                    .ok_or(ProblemError::Overflow { buffer: index })?;
            }
            total = buffer
                .size
                .checked_add(buffer.alignment)
                .and_then(|padded| total.checked_add(padded))
                .filter(|&sum| sum <= MAX_BYTES)
                .ok_or(ProblemError::Overflow { buffer: index })?;
        }
        let pairs = self.may_share.iter().copied();
        for (a, b) in pairs.chain(self.ties.iter().map(|tie| (tie.base, tie.member))) {
            if let Some(index) = [a, b].into_iter().find(|&index| index >= count) {
                return Err(ProblemError::NoSuchBuffer { index });
            }
        }
        Ok(())
    }
}

/// The sum of all sizes and alignments may not exceed this, so that no sum of offsets can overflow.
pub const MAX_BYTES: u64 = 1 << 62;

/// Why a problem can't be packed at all, whatever the capacity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProblemError {
    /// Buffers are counted in 32 bits.
    #[error("more than 4294967295 buffers")]
    TooMany,
    /// An alignment of zero has no multiples but zero; use 1.
    #[error("buffer {buffer}: alignment 0; use 1 for no alignment")]
    ZeroAlignment {
        /// Index of the buffer.
        buffer: u32,
    },
    /// Spans must be ascending, disjoint, and end after they start.
    #[error("buffer {buffer}: its live spans are not ascending and disjoint")]
    UnsortedLive {
        /// Index of the buffer.
        buffer: u32,
    },
    /// The fixed offset breaks the alignment.
    #[error("buffer {buffer}: its fixed offset is not a multiple of its alignment")]
    MisalignedFixed {
        /// Index of the buffer.
        buffer: u32,
    },
    /// Sizes, alignments and fixed offsets add up to more than 2^62 bytes.
    #[error("buffer {buffer}: sizes, alignments and fixed offsets add up to more than 2^62 bytes")]
    Overflow {
        /// Index of the buffer at which the sum passed the limit.
        buffer: u32,
    },
    /// A pair or tie names a buffer that is not there.
    #[error("a may-share pair or a tie names buffer {index}, which does not exist")]
    NoSuchBuffer {
        /// The index that is out of range.
        index: u32,
    },
    /// Two ties ask for different distances between the same buffers.
    #[error("the ties of buffer {buffer} ask for two different distances")]
    ContradictoryTies {
        /// Index of a buffer in the contradiction.
        buffer: u32,
    },
    /// Buffers tied together have fixed offsets or alignments that no common position satisfies.
    #[error(
        "the buffers tied to buffer {buffer} have fixed offsets or alignments that no common position satisfies"
    )]
    ImpossibleTies {
        /// Index of a buffer of the group.
        buffer: u32,
    },
    /// Two fixed buffers are live together in overlapping bytes.
    #[error("buffers {a} and {b} are fixed to overlapping bytes while both are live")]
    FixedOverlap {
        /// Index of one buffer.
        a: u32,
        /// Index of the other.
        b: u32,
    },
}
