//! Buffers at fixed distances from each other, gathered into groups with one degree of freedom.

use super::problem::{Problem, ProblemError};
use std::ops::Range;

/// The offsets `phase`, `phase + align`, `phase + 2 align`, ...
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Residue {
    align: u64,
    phase: u64,
}

impl Residue {
    /// All multiples of an alignment.
    pub(super) fn multiples_of(align: u64) -> Self {
        Self { align, phase: 0 }
    }

    /// The lowest permitted offset that is at least `offset`.
    pub(super) fn at_least(self, offset: u64) -> u64 {
        if self.align == 1 {
            return offset;
        }
        if offset <= self.phase {
            return self.phase;
        }
        self.phase + (offset - self.phase).next_multiple_of(self.align)
    }

    /// The highest permitted offset that is at most `offset`, which must be no lower than some permitted one.
    pub(super) fn at_most(self, offset: u64) -> u64 {
        offset - offset.saturating_sub(self.phase) % self.align
    }

    /// The distance between permitted offsets, and the lowest of them.
    pub(super) fn align_and_phase(self) -> (u64, u64) {
        (self.align, self.phase)
    }

    /// The offsets in both, by the Chinese remainder theorem; `None` when there is none (or only beyond 2^63).
    fn and(self, other: Self) -> Option<Self> {
        let (a, b) = (i128::from(self.align), i128::from(other.align));
        let (gcd, inverse) = gcd_and_inverse(a, b);
        let difference = i128::from(other.phase) - i128::from(self.phase);
        if difference % gcd != 0 {
            return None;
        }
        let modulus = a / gcd * b;
        let steps = (difference / gcd % (b / gcd) * inverse).rem_euclid(b / gcd);
        let phase = (i128::from(self.phase) + steps * a).rem_euclid(modulus);
        let align = u64::try_from(modulus).ok().filter(|&it| it < 1 << 62)?;
        Some(Self {
            align,
            phase: u64::try_from(phase).ok()?,
        })
    }
}

/// The greatest common divisor of `a` and `b`, and x with `a x = gcd (mod b)`.
fn gcd_and_inverse(a: i128, b: i128) -> (i128, i128) {
    let (mut r0, mut r1, mut x0, mut x1) = (a, b, 1, 0);
    while r1 != 0 {
        let quotient = r0 / r1;
        (r0, r1) = (r1, r0 - quotient * r1);
        (x0, x1) = (x1, x0 - quotient * x1);
    }
    (r0, x0)
}

/// Where a group may go: measured at its lowest member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placement {
    pub(super) residue: Residue,
    pub(super) fixed: Option<u64>,
}

/// A partition of the buffers, with the distance of each from its group's lowest member (union-find with distances).
pub(super) struct Groups {
    parent: Vec<u32>,
    /// Distance from the parent.
    distance: Vec<i128>,
    placement: Vec<Option<Placement>>,
    members: Members,
}

/// The members of all groups, flat: groups by lowest index.
#[derive(Default)]
pub(super) struct Members {
    pub(super) starts: Vec<u32>,
    /// Buffer and its distance above the group's lowest member.
    pub(super) list: Vec<(u32, u64)>,
}

impl Members {
    /// The range of `list` that each group fills.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let ends = self
            .starts
            .iter()
            .skip(1)
            .copied()
            .chain([self.list.len() as u32]);
        self.starts
            .iter()
            .zip(ends)
            .map(|(&start, end)| start as usize..end as usize)
    }
}

impl Groups {
    /// Joins the ends of all ties, and the pairs of `shared` at distance zero.
    pub(super) fn new(problem: &Problem, shared: &[(u32, u32)]) -> Result<Self, ProblemError> {
        let count = problem.buffers.len();
        let mut groups = Self {
            parent: (0..count as u32).collect(),
            distance: vec![0; count],
            placement: vec![None; count],
            members: Members::default(),
        };
        let pairs = shared.iter().map(|&(a, b)| (a, b, 0));
        for (base, member, distance) in problem
            .ties
            .iter()
            .map(|it| (it.base, it.member, it.distance))
            .chain(pairs)
        {
            groups.join(base, member, i128::from(distance))?;
        }
        groups.gather(problem)?;
        Ok(groups)
    }

    pub(super) fn members(&self) -> &Members {
        &self.members
    }

    /// Where the group of a buffer may go.
    pub(super) fn placement(&self, buffer: u32) -> Result<Placement, ProblemError> {
        let root = self.parent[buffer as usize] as usize;
        self.placement[root].ok_or(ProblemError::ImpossibleTies { buffer })
    }

    /// The root of a buffer's group and the buffer's distance from it. Shortens the path by half on the way.
    fn find(&mut self, buffer: u32) -> (u32, i128) {
        let (mut at, mut distance) = (buffer as usize, 0);
        loop {
            let parent = self.parent[at] as usize;
            if parent == at {
                return (at as u32, distance);
            }
            let grandparent = self.parent[parent];
            if grandparent as usize != parent {
                self.distance[at] += self.distance[parent];
                self.parent[at] = grandparent;
            }
            distance += self.distance[at];
            at = self.parent[at] as usize;
        }
    }

    fn join(&mut self, base: u32, member: u32, distance: i128) -> Result<(), ProblemError> {
        let ((base_root, base_at), (member_root, member_at)) = (self.find(base), self.find(member));
        let between = base_at + distance - member_at;
        if base_root != member_root {
            self.parent[member_root as usize] = base_root;
            self.distance[member_root as usize] = between;
        } else if between != 0 {
            return Err(ProblemError::ContradictoryTies { buffer: member });
        }
        Ok(())
    }

    /// Lists the groups and works out where each may go.
    fn gather(&mut self, problem: &Problem) -> Result<(), ProblemError> {
        let count = problem.buffers.len() as u32;
        let mut rooted: Vec<(u32, i128, u32)> = Vec::with_capacity(count as usize);
        for buffer in 0..count {
            let (root, distance) = self.find(buffer);
            rooted.push((root, distance, buffer));
        }
        for &(root, distance, buffer) in &rooted {
            self.parent[buffer as usize] = root;
            self.distance[buffer as usize] = distance;
        }
        rooted.sort_unstable();
        for group in rooted.chunk_by(|a, b| a.0 == b.0) {
            self.members.starts.push(self.members.list.len() as u32);
            let (root, lowest, _) = group[0];
            let mut all = Residue { align: 1, phase: 0 };
            let mut fixed: Option<i128> = None;
            for &(_, distance, buffer) in group {
                let it = &problem.buffers[buffer as usize];
                let wrong = ProblemError::ImpossibleTies { buffer };
                let delta = u64::try_from(distance - lowest).map_err(|_| wrong.clone())?;
                if delta.saturating_add(it.size) > super::problem::MAX_BYTES {
                    return Err(ProblemError::Overflow { buffer });
                }
                let phase = (it.alignment - delta % it.alignment) % it.alignment;
                all = all
                    .and(Residue {
                        align: it.alignment,
                        phase,
                    })
                    .ok_or_else(|| wrong.clone())?;
                if let Some(offset) = it.fixed {
                    let base = i128::from(offset) - i128::from(delta);
                    if base < 0 || fixed.is_some_and(|other| other != base) {
                        return Err(wrong);
                    }
                    fixed = Some(base);
                }
                self.members.list.push((buffer, delta));
            }
            let fixed = fixed.map(|base| base as u64);
            if fixed.is_some_and(|offset| all.at_least(offset) != offset) {
                return Err(ProblemError::ImpossibleTies { buffer: group[0].2 });
            }
            self.placement[root as usize] = Some(Placement {
                residue: all,
                fixed,
            });
        }
        Ok(())
    }
}
