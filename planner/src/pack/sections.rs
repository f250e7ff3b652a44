//! Time cut into sections, of which a model counts its time.

use super::problem::Problem;
use super::radix;
use smallvec::SmallVec;

/// Buffers, spans or units between two questions whether to go on, where each takes a few steps.
pub(super) const ASKING: usize = 1 << 14;

/// Section ranges of every buffer, flat.
#[derive(Default)]
pub(super) struct Spans {
    starts: Vec<u32>,
    list: Vec<(u32, u32)>,
}

impl Spans {
    /// The sections of `problem`, as in every model of it. O(n log n).
    pub(super) fn new(problem: &Problem) -> Self {
        sections(problem, &mut || false).unwrap_or_default().0
    }

    /// The stretches of sections in which both buffers are live, ascending. Linear in their spans.
    pub(super) fn common(&self, a: u32, b: u32) -> SmallVec<[(u32, u32); 1]> {
        let (a, b) = (self.of(a), self.of(b));
        let (mut i, mut j) = (0, 0);
        let mut common = SmallVec::new();
        while i < a.len() && j < b.len() {
            let (begin, end) = (a[i].0.max(b[j].0), a[i].1.min(b[j].1));
            if begin < end {
                common.push((begin, end));
            }
            if a[i].1 <= b[j].1 {
                i += 1;
            } else {
                j += 1;
            }
        }
        common
    }

    /// The stretches of sections in which a buffer is live, ascending.
    pub(super) fn of(&self, buffer: u32) -> &[(u32, u32)] {
        &self.list[self.starts[buffer as usize] as usize..self.starts[buffer as usize + 1] as usize]
    }
}

/// Cuts time into sections and translates every live span. Nothing when it was stopped.
pub(super) fn sections(
    problem: &Problem,
    is_stopped: &mut dyn FnMut() -> bool,
) -> Option<(Spans, u32)> {
    let mut spans = Spans {
        starts: Vec::with_capacity(problem.buffers.len() + 1),
        list: Vec::new(),
    };
    spans.starts.push(0);
    let (mut starts, mut ends) = (Vec::<(u64, u32)>::new(), Vec::<(u64, u32)>::new());
    for (at, buffer) in problem.buffers.iter().enumerate() {
        if at.is_multiple_of(ASKING) && is_stopped() {
            return None;
        }
        for span in buffer
            .live
            .iter()
            .filter(|span| !span.is_empty() && buffer.size > 0)
        {
            let index = starts.len() as u32;
            starts.push((span.start, index));
            ends.push((span.end, index));
        }
        spans.starts.push(starts.len() as u32);
    }
    spans.list = vec![(0, 0); starts.len()];
    for list in [&mut starts, &mut ends] {
        if radix::sort_by_key(list, is_stopped) {
            return None;
        }
    }
    // At one time, ends come before starts, as spans are half-open.
    let (mut section, mut ended) = (0, 0);
    for (at, &(start, index)) in starts.iter().enumerate() {
        if at.is_multiple_of(ASKING) && is_stopped() {
            return None;
        }
        let first = ended;
        while ends[ended].0 <= start {
            spans.list[ends[ended].1 as usize].1 = section + 1;
            ended += 1;
        }
        section += u32::from(ended > first);
        spans.list[index as usize].0 = section;
    }
    for &(_, index) in &ends[ended..] {
        spans.list[index as usize].1 = section + 1;
    }
    let count = if starts.is_empty() { 0 } else { section + 1 };
    Some((spans, count))
}
