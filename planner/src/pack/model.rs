//! The problem as the algorithms see it: rigid units over compressed time, in an order that does not depend on the input's.

use super::packing::Control;
use super::problem::{Problem, ProblemError};
use super::radix;
use super::share_options::ShareOptions;
use super::ties::{Groups, Placement, Residue};
use smallvec::SmallVec;

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
    /// Sections in use.
    pub(super) duration: u32,
    /// Offsets that the alignments permit.
    pub(super) residue: Residue,
    pub(super) fixed: Option<u64>,
    pub(super) hint: Option<u64>,
}

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
#[derive(Clone, Debug, Default)]
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
        let model = Self::build(problem, shared, &mut || Control::Continue)?;
        Ok(model.unwrap_or_default())
    }

    /// [`Self::new`], which asks now and then whether to go on; `None` when not. A problem with ties or fixed offsets
    /// is built to the end in any case.
    pub(super) fn build(
        problem: &Problem,
        shared: &[(u32, u32)],
        ask: &mut dyn FnMut() -> Control,
    ) -> Result<Option<Self>, ProblemError> {
        let can_stop = problem.ties.is_empty()
            && shared.is_empty()
            && problem.buffers.iter().all(|it| it.fixed.is_none());
        let mut is_stopped = || can_stop && ask() == Control::Stop;
        let Some((spans, sections)) = sections(problem, &mut is_stopped) else {
            return Ok(None);
        };
        let draft = if problem.ties.is_empty() && shared.is_empty() {
            let draft = Draft::of_single_buffers(problem, &spans, &mut is_stopped);
            let Some(draft) = draft else {
                return Ok(None);
            };
            draft
        } else {
            Draft::of_groups(problem, shared, &spans)?
        };
        Ok(draft.arrange(sections, &mut is_stopped))
    }

    /// Some of the units, in the same order, and which unit each of them is here. O(units + sections).
    pub(super) fn restrict(&self, has: impl Fn(u32) -> bool) -> (Self, Vec<u32>) {
        let (mut units, mut parts, mut from) = (Vec::new(), Vec::new(), Vec::new());
        for (index, unit) in (0u32..).zip(&self.units).filter(|it| has(it.0)) {
            let first_part = parts.len() as u32;
            parts.extend_from_slice(self.parts(index));
            from.push(index);
            units.push(Unit {
                first_part,
                last_part: parts.len() as u32,
                ..*unit
            });
        }
        let mut model = Self {
            units,
            parts,
            sections: self.sections,
            position: Vec::new(),
            options: ShareOptions::default(),
        };
        model.compress_time();
        (model, from)
    }

    /// Joins neighbouring sections that need not be told apart.
    fn compress_time(&mut self) {
        let mut marks = vec![(false, false); self.sections as usize + 1];
        for part in &self.parts {
            marks[part.begin as usize].0 = true;
            marks[part.end as usize].1 = true;
        }
        let (mut section, mut ended) = (0, false);
        let new: Vec<u32> = marks
            .iter()
            .map(|&(starts, ends)| {
                ended |= ends;
                section += u32::from(starts && std::mem::take(&mut ended));
                section
            })
            .collect();
        for part in &mut self.parts {
            part.begin = new[part.begin as usize];
            part.end = new[part.end as usize - 1] + 1;
        }
        self.sections = if self.parts.is_empty() {
            0
        } else {
            section + 1
        };
        for unit in &mut self.units {
            let parts = &self.parts[unit.first_part as usize..unit.last_part as usize];
            unit.duration = parts.iter().map(|part| part.end - part.begin).sum();
        }
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

    /// The coarsest alignment.
    pub(super) fn step(&self) -> u64 {
        let aligns = self.units.iter().map(|it| it.residue.align_and_phase().0);
        aligns.max().unwrap_or(1)
    }

    /// Bytes in use, summed over the sections.
    pub(super) fn area(&self, unit: u32) -> u128 {
        let parts = self.parts(unit).iter();
        parts
            .map(|it| u128::from(it.end - it.begin) * u128::from(it.size))
            .sum()
    }

    /// True when the unit is live in a section.
    pub(super) fn covers(&self, unit: u32, section: u32) -> bool {
        self.parts(unit)
            .iter()
            .any(|it| it.begin <= section && section < it.end)
    }

    /// The parts of a unit with their numbers among all parts.
    pub(super) fn numbered_parts(&self, unit: u32) -> impl Iterator<Item = (u32, &Part)> {
        (self.units[unit as usize].first_part..).zip(self.parts(unit))
    }

    /// A part by its number.
    pub(super) fn part(&self, number: u32) -> Part {
        self.parts[number as usize]
    }

    /// The buffers of every unit.
    pub(super) fn members(&self) -> Vec<SmallVec<[u32; 1]>> {
        let mut members = vec![SmallVec::new(); self.units.len()];
        for (buffer, &(unit, _)) in (0..).zip(&self.position) {
            members[unit as usize].push(buffer);
        }
        members
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

/// Units that have no place in the order yet.
#[derive(Default)]
struct Draft {
    units: Vec<Unit>,
    parts: Vec<Part>,
    /// Lowest id of each unit's buffers.
    ids: Vec<u64>,
    /// By buffer.
    position: Vec<(u32, u64)>,
}

impl Draft {
    /// Every buffer is a unit.
    fn of_single_buffers(
        problem: &Problem,
        spans: &Spans,
        is_stopped: &mut dyn FnMut() -> bool,
    ) -> Option<Self> {
        let count = problem.buffers.len();
        let mut draft = Self {
            units: Vec::with_capacity(count),
            parts: Vec::with_capacity(spans.list.len()),
            ids: problem.buffers.iter().map(|it| it.id).collect(),
            position: (0..count as u32).map(|unit| (unit, 0)).collect(),
        };
        for (index, buffer) in (0u32..).zip(&problem.buffers) {
            if (index as usize).is_multiple_of(ASKING) && is_stopped() {
                return None;
            }
            let first_part = draft.parts.len();
            let part = |&(begin, end): &(u32, u32)| Part {
                begin,
                end,
                delta: 0,
                size: buffer.size,
            };
            draft.parts.extend(spans.of(index).iter().map(part));
            let placement = Placement {
                residue: Residue::multiples_of(buffer.alignment),
                fixed: buffer.fixed,
            };
            draft.push(first_part, buffer.size, placement, buffer.hint);
        }
        Some(draft)
    }

    /// Every group of tied and shared buffers is a unit.
    fn of_groups(
        problem: &Problem,
        shared: &[(u32, u32)],
        spans: &Spans,
    ) -> Result<Self, ProblemError> {
        let groups = Groups::new(problem, shared)?;
        let members = groups.members();
        let mut draft = Self {
            position: vec![(0, 0); problem.buffers.len()],
            ..Self::default()
        };
        for range in members.ranges() {
            let group = &members.list[range];
            let mut parts = Vec::new();
            let (mut height, mut hint, mut id) = (0, None, u64::MAX);
            for &(buffer, delta) in group {
                let it = &problem.buffers[buffer as usize];
                draft.position[buffer as usize] = (draft.units.len() as u32, delta);
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
                unite(&mut parts);
            }
            let first_part = draft.parts.len();
            draft.parts.extend(parts);
            draft.ids.push(id);
            draft.push(first_part, height, groups.placement(group[0].0)?, hint);
        }
        Ok(draft)
    }

    /// Adds a unit whose parts are the last ones.
    fn push(&mut self, first_part: usize, height: u64, placement: Placement, hint: Option<u64>) {
        let parts = &self.parts[first_part..];
        self.units.push(Unit {
            first_part: first_part as u32,
            last_part: self.parts.len() as u32,
            height,
            duration: parts.iter().map(|part| part.end - part.begin).sum(),
            residue: placement.residue,
            fixed: placement.fixed,
            hint,
        });
    }

    /// Sorts the units by time, then by whatever else tells them apart.
    fn arrange(self, sections: u32, is_stopped: &mut dyn FnMut() -> bool) -> Option<Model> {
        let parts = |unit: u32| {
            let unit = &self.units[unit as usize];
            &self.parts[unit.first_part as usize..unit.last_part as usize]
        };
        // Begin, end and number; units that are never live come first.
        let keyed = (0..self.units.len() as u32).map(|unit| {
            let first = parts(unit).first();
            first.map_or((0, 0, unit), |it| (it.begin + 1, it.end, unit))
        });
        let keyed: Vec<(u32, u32, u32)> = keyed.collect();
        if is_stopped() {
            return None;
        }
        let keyed = radix::by_small_key(keyed, sections, |it| it.1);
        if is_stopped() {
            return None;
        }
        let mut order = radix::by_small_key(keyed, sections, |it| it.0);
        let alike = order.chunk_by_mut(|a, b| (a.0, a.1) == (b.0, b.1));
        for (at, same) in (1usize..).zip(alike) {
            if at.is_multiple_of(ASKING) && is_stopped() {
                return None;
            }
            same.sort_unstable_by(|a, b| {
                let key = |unit: u32| {
                    let it = &self.units[unit as usize];
                    (
                        it.height,
                        it.residue,
                        it.fixed,
                        it.hint,
                        self.ids[unit as usize],
                    )
                };
                parts(a.2)
                    .cmp(parts(b.2))
                    .then_with(|| key(a.2).cmp(&key(b.2)))
            });
        }
        if is_stopped() {
            return None;
        }
        let mut model = Model {
            units: Vec::with_capacity(self.units.len()),
            parts: Vec::with_capacity(self.parts.len()),
            sections,
            position: Vec::new(),
            options: ShareOptions::default(),
        };
        let mut place = vec![0; self.units.len()];
        for (at, &(.., unit)) in (1usize..).zip(&order) {
            if at.is_multiple_of(ASKING) && is_stopped() {
                return None;
            }
            place[unit as usize] = model.units.len() as u32;
            let first_part = model.parts.len() as u32;
            model.parts.extend_from_slice(parts(unit));
            model.units.push(Unit {
                first_part,
                last_part: model.parts.len() as u32,
                ..self.units[unit as usize]
            });
        }
        model.position = self.position;
        for position in &mut model.position {
            position.0 = place[position.0 as usize];
        }
        Some(model)
    }
}

/// Units between two questions whether to go on.
const ASKING: usize = 1 << 14;

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

    fn of(&self, buffer: u32) -> &[(u32, u32)] {
        &self.list[self.starts[buffer as usize] as usize..self.starts[buffer as usize + 1] as usize]
    }
}

/// Cuts time into sections and translates every live span.
fn sections(problem: &Problem, is_stopped: &mut dyn FnMut() -> bool) -> Option<(Spans, u32)> {
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
