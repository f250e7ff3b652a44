//! The problem as the algorithms see it: rigid units over compressed time, in an order that does not depend on the input's.

use super::problem::{Problem, ProblemError};
use super::share_options::ShareOptions;
use super::ties::{Groups, Residue};
use smallvec::SmallVec;
use std::ops::Range;

/// A stretch of sections `[begin, end)` in which a unit needs `size` bytes from `delta` above its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    pub(super) begin: u32,
    pub(super) end: u32,
    pub(super) delta: u64,
    pub(super) size: u64,
}

/// One thing to place: a buffer, or several at fixed distances.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    first_part: u32,
    last_part: u32,
    /// Bytes from the offset to the highest end of a part.
    pub(super) height: u64,
    /// Sum over sections of the bytes in use.
    pub(super) area: u128,
    /// Sections in use.
    pub(super) duration: u32,
    /// Offsets that the alignments permit.
    pub(super) residue: Residue,
    pub(super) fixed: Option<u64>,
    pub(super) hint: Option<u64>,
}

/// A unit that has no place in the order yet: its parts, itself, its lowest id, and its range of group members.
type Draft = (SmallVec<[Part; 1]>, Unit, u64, Range<usize>);

/// Units to place. Time is cut into *sections*: runs of points such that two buffers are live together exactly when
/// they have a section in common. A new section starts at the first start that follows an end:
///
/// ```text
///   point     0  1  2  3  4  5  6
///   a         [-----)
///   b            [--------)
///   c                  [--------)
///   section   0        1     (a and b meet in 0; b and c in 1)
/// ```
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) units: Vec<Unit>,
    parts: Vec<Part>,
    pub(super) sections: u32,
    /// Unit and distance from its offset, for each buffer of the problem.
    position: Vec<(u32, u64)>,
    /// Ways to share bytes that placement may use; none unless asked for.
    pub(super) options: ShareOptions,
}

impl Model {
    /// Builds the model of `problem`, in which the pairs of `shared` also have one offset. O(n log n).
    pub(super) fn new(problem: &Problem, shared: &[(u32, u32)]) -> Result<Self, ProblemError> {
        let groups = Groups::new(problem, shared)?;
        let (spans, sections) = sections(problem);
        let members = groups.members();
        let mut draft: Vec<Draft> = Vec::with_capacity(members.starts.len());
        for range in members.ranges() {
            let group = &members.list[range.clone()];
            let mut parts: SmallVec<[Part; 1]> = SmallVec::new();
            let (mut height, mut hint, mut id) = (0, None, u64::MAX);
            for &(buffer, delta) in group {
                let it = &problem.buffers[buffer as usize];
                height = height.max(delta + it.size);
                hint = hint.or(it.hint.and_then(|hint| hint.checked_sub(delta)));
                id = id.min(it.id);
                let live = spans.of(buffer).iter();
                parts.extend(live.map(|&(begin, end)| Part {
                    begin,
                    end,
                    delta,
                    size: it.size,
                }));
            }
            if group.len() > 1 {
                let mut list = parts.into_vec();
                unite(&mut list);
                parts = list.into();
            }
            let placement = groups.placement(group[0].0)?;
            let unit = Unit {
                first_part: 0,
                last_part: 0,
                height,
                area: parts
                    .iter()
                    .map(|part| u128::from(part.end - part.begin) * u128::from(part.size))
                    .sum(),
                duration: parts.iter().map(|part| part.end - part.begin).sum(),
                residue: placement.residue,
                fixed: placement.fixed,
                hint,
            };
            draft.push((parts, unit, id, range));
        }
        draft.sort_unstable_by(|a, b| {
            let key = |it: &Draft| (it.1.height, it.1.residue, it.1.fixed, it.1.hint, it.2);
            a.0.cmp(&b.0).then_with(|| key(a).cmp(&key(b)))
        });
        let mut model = Self {
            units: Vec::with_capacity(draft.len()),
            parts: Vec::new(),
            sections,
            position: vec![(0, 0); problem.buffers.len()],
            options: ShareOptions::default(),
        };
        for (parts, mut unit, _, range) in draft {
            for &(buffer, delta) in &members.list[range] {
                model.position[buffer as usize] = (model.units.len() as u32, delta);
            }
            unit.first_part = model.parts.len() as u32;
            model.parts.extend(parts);
            unit.last_part = model.parts.len() as u32;
            model.units.push(unit);
        }
        Ok(model)
    }

    /// The same model, in which placement may let the units of a may-share pair share bytes.
    pub(super) fn with_options(mut self, problem: &Problem) -> Self {
        self.options = ShareOptions::new(problem, &self);
        self
    }

    /// The parts of a unit, by begin.
    pub(super) fn parts(&self, unit: u32) -> &[Part] {
        let unit = &self.units[unit as usize];
        &self.parts[unit.first_part as usize..unit.last_part as usize]
    }

    /// The parts of a unit with their numbers among all parts.
    pub(super) fn numbered_parts(&self, unit: u32) -> impl Iterator<Item = (u32, &Part)> {
        (self.units[unit as usize].first_part..).zip(self.parts(unit))
    }

    /// The buffers of every unit.
    pub(super) fn members(&self) -> Vec<SmallVec<[u32; 1]>> {
        let mut members = vec![SmallVec::new(); self.units.len()];
        for (buffer, &(unit, _)) in (0..).zip(&self.position) {
            members[unit as usize].push(buffer);
        }
        members
    }

    /// A part by its number.
    pub(super) fn part(&self, number: u32) -> Part {
        self.parts[number as usize]
    }

    /// Bytes live in each section, when nothing is shared. O(sections + parts).
    pub(super) fn loads(&self) -> Vec<u64> {
        let mut change = vec![0i128; self.sections as usize + 1];
        for part in &self.parts {
            change[part.begin as usize] += i128::from(part.size);
            change[part.end as usize] -= i128::from(part.size);
        }
        let mut load = 0;
        let sums = change.into_iter().take(self.sections as usize).map(|step| {
            load += step;
            load as u64
        });
        sums.collect()
    }

    /// Offsets of the problem's buffers from those of the units.
    pub(super) fn buffer_offsets(&self, units: &[u64]) -> Vec<u64> {
        self.position
            .iter()
            .map(|&(unit, delta)| units[unit as usize] + delta)
            .collect()
    }

    /// The unit that holds a buffer of the problem, and the distance from its offset.
    pub(super) fn place_of(&self, buffer: u32) -> (u32, u64) {
        self.position[buffer as usize]
    }

    /// Offsets of the units from those of the problem's buffers, in which ties must hold.
    pub(super) fn unit_offsets(&self, buffers: &[u64]) -> Vec<u64> {
        let mut units = vec![0; self.units.len()];
        for (&(unit, delta), offset) in self.position.iter().zip(buffers) {
            units[unit as usize] = offset.saturating_sub(delta);
        }
        units
    }

    /// Height of a packing of the units.
    pub(super) fn height(&self, offsets: &[u64]) -> u64 {
        self.units
            .iter()
            .zip(offsets)
            .map(|(unit, offset)| offset + unit.height)
            .max()
            .unwrap_or(0)
    }
}

/// Makes the parts of a unit disjoint: those of the same bytes that touch in time are joined, and where members of the
/// unit overlap in time and bytes, the stretch of time is cut and the bytes united.
fn unite(parts: &mut Vec<Part>) {
    join(parts);
    let overlap = |a: &Part, b: &Part| {
        a.begin < b.end
            && b.begin < a.end
            && a.delta < b.delta + b.size
            && b.delta < a.delta + a.size
    };
    if (0..parts.len()).any(|i| {
        parts[i + 1..]
            .iter()
            .take_while(|it| it.begin < parts[i].end)
            .any(|it| overlap(&parts[i], it))
    }) {
        let mut cuts: Vec<u32> = parts
            .iter()
            .flat_map(|part| [part.begin, part.end])
            .collect();
        cuts.sort_unstable();
        cuts.dedup();
        let mut disjoint: Vec<Part> = Vec::new();
        for stretch in cuts.windows(2) {
            let (begin, end) = (stretch[0], stretch[1]);
            let mut here: Vec<&Part> = parts
                .iter()
                .filter(|it| it.begin <= begin && end <= it.end)
                .collect();
            here.sort_unstable_by_key(|it| it.delta);
            for part in here {
                match disjoint
                    .last_mut()
                    .filter(|it| it.begin == begin && part.delta < it.delta + it.size)
                {
                    Some(it) => it.size = it.size.max(part.delta + part.size - it.delta),
                    None => disjoint.push(Part {
                        begin,
                        end,
                        ..*part
                    }),
                }
            }
        }
        *parts = disjoint;
        join(parts);
    }
}

/// Joins parts that are the same bytes in touching or overlapping stretches.
fn join(parts: &mut Vec<Part>) {
    parts.sort_unstable_by_key(|it| (it.delta, it.size, it.begin));
    parts.dedup_by(|next, it| {
        let is_same = (it.delta, it.size) == (next.delta, next.size) && next.begin <= it.end;
        if is_same {
            it.end = it.end.max(next.end);
        }
        is_same
    });
    parts.sort_unstable();
}

/// Section ranges of every buffer, flat.
pub(super) struct Spans {
    starts: Vec<u32>,
    list: Vec<(u32, u32)>,
}

impl Spans {
    pub(super) fn of(&self, buffer: u32) -> &[(u32, u32)] {
        &self.list[self.starts[buffer as usize] as usize..self.starts[buffer as usize + 1] as usize]
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
}

/// Cuts time into sections and translates every live span; spans that touch after translation are joined.
pub(super) fn sections(problem: &Problem) -> (Spans, u32) {
    let mut spans = Spans {
        starts: Vec::with_capacity(problem.buffers.len() + 1),
        list: Vec::new(),
    };
    spans.starts.push(0);
    // (time, is a start, index of the span): at one time, ends come before starts, as spans are half-open.
    let mut events: Vec<(u64, bool, u32)> = Vec::with_capacity(2 * problem.buffers.len());
    for buffer in &problem.buffers {
        for span in buffer
            .live
            .iter()
            .filter(|span| !span.is_empty() && buffer.size > 0)
        {
            let index = spans.list.len() as u32;
            spans.list.push((0, 0));
            events.push((span.start, true, index));
            events.push((span.end, false, index));
        }
        spans.starts.push(spans.list.len() as u32);
    }
    events.sort_unstable();
    let (mut section, mut ended) = (0, false);
    for &(_, is_start, index) in &events {
        if is_start {
            section += u32::from(std::mem::take(&mut ended));
            spans.list[index as usize].0 = section;
        } else {
            ended = true;
            spans.list[index as usize].1 = section + 1;
        }
    }
    let count = if events.is_empty() { 0 } else { section + 1 };
    (spans, count)
}
