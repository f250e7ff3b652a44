//! The units of a problem before they have their order, and how they get it.

use super::asked_sort;
use super::model::{Model, Part, Unit};
use super::problem::{Buffer, Problem, ProblemError};
use super::radix;
use super::sections::{ASKING, Spans};
use super::share_options::ShareOptions;
use super::ties::{self, Placement, Residue};

/// Units by number, in no order that means anything.
pub(super) trait Draft {
    /// How many there are.
    fn count(&self) -> usize;
    /// The parts of a unit, by begin.
    fn parts(&self, unit: u32) -> impl Iterator<Item = Part>;
    /// A unit, without its parts.
    fn unit(&self, unit: u32) -> Unit;
    /// What tells a unit from those like it: the lowest id of its buffers.
    fn id(&self, unit: u32) -> u64;
    /// An offset that a previous plan gave it.
    fn hint(&self, unit: u32) -> Option<u64>;
    /// The unit of each buffer, and the distance from its offset.
    fn positions(&self) -> Vec<(u32, u64)>;
}

/// Every buffer is a unit; nothing is copied.
pub(super) struct Singles<'a> {
    buffers: &'a [Buffer],
    spans: &'a Spans,
}

impl<'a> Singles<'a> {
    pub(super) fn new(problem: &'a Problem, spans: &'a Spans) -> Self {
        let buffers = &problem.buffers;
        Self { buffers, spans }
    }
}

impl Draft for Singles<'_> {
    fn count(&self) -> usize {
        self.buffers.len()
    }

    fn parts(&self, unit: u32) -> impl Iterator<Item = Part> {
        let size = self.buffers[unit as usize].size;
        self.spans.of(unit).iter().map(move |&(begin, end)| Part {
            begin,
            end,
            delta: 0,
            size,
        })
    }

    fn unit(&self, unit: u32) -> Unit {
        let it = &self.buffers[unit as usize];
        Unit {
            first_part: 0,
            last_part: 0,
            height: it.size,
            duration: self.parts(unit).map(|part| part.end - part.begin).sum(),
            residue: Residue::multiples_of(it.alignment),
            fixed: it.fixed,
        }
    }

    fn id(&self, unit: u32) -> u64 {
        self.buffers[unit as usize].id
    }

    fn hint(&self, unit: u32) -> Option<u64> {
        self.buffers[unit as usize].hint
    }

    fn positions(&self) -> Vec<(u32, u64)> {
        (0..self.buffers.len() as u32)
            .map(|unit| (unit, 0))
            .collect()
    }
}

/// Every group of tied and shared buffers is a unit.
#[derive(Default)]
pub(super) struct Groups {
    units: Vec<Unit>,
    parts: Vec<Part>,
    /// By unit.
    ids: Vec<u64>,
    hints: Vec<Option<u64>>,
    /// By buffer.
    position: Vec<(u32, u64)>,
}

impl Groups {
    /// The groups of `problem`, in which the pairs of `shared` also have one offset.
    pub(super) fn new(
        problem: &Problem,
        shared: &[(u32, u32)],
        spans: &Spans,
    ) -> Result<Self, ProblemError> {
        let groups = ties::Groups::new(problem, shared)?;
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
            draft.hints.push(hint);
            draft.push(first_part, height, groups.placement(group[0].0)?);
        }
        Ok(draft)
    }

    /// Adds a unit whose parts are the last ones.
    fn push(&mut self, first_part: usize, height: u64, placement: Placement) {
        let parts = &self.parts[first_part..];
        self.units.push(Unit {
            first_part: first_part as u32,
            last_part: self.parts.len() as u32,
            height,
            duration: parts.iter().map(|part| part.end - part.begin).sum(),
            residue: placement.residue,
            fixed: placement.fixed,
        });
    }
}

impl Draft for Groups {
    fn count(&self) -> usize {
        self.units.len()
    }

    fn parts(&self, unit: u32) -> impl Iterator<Item = Part> {
        let unit = &self.units[unit as usize];
        let parts = &self.parts[unit.first_part as usize..unit.last_part as usize];
        parts.iter().copied()
    }

    fn unit(&self, unit: u32) -> Unit {
        self.units[unit as usize]
    }

    fn id(&self, unit: u32) -> u64 {
        self.ids[unit as usize]
    }

    fn hint(&self, unit: u32) -> Option<u64> {
        self.hints[unit as usize]
    }

    fn positions(&self) -> Vec<(u32, u64)> {
        self.position.clone()
    }
}

/// Sorts the units by time, then by whatever else tells them apart. Nothing when it was stopped. O(n log n) where many
/// begin together, else O(n).
pub(super) fn arrange(
    draft: &impl Draft,
    sections: u32,
    is_stopped: &mut dyn FnMut() -> bool,
) -> Option<Model> {
    let order = order(draft, sections, is_stopped)?;
    let count = draft.count();
    let mut model = Model {
        units: Vec::with_capacity(count),
        parts: Vec::with_capacity(count),
        sections,
        position: Vec::new(),
        options: ShareOptions::default(),
    };
    let mut place = vec![0; count];
    for (at, &(.., unit)) in order.iter().enumerate() {
        if at.is_multiple_of(ASKING) && is_stopped() {
            return None;
        }
        place[unit as usize] = at as u32;
        let first_part = model.parts.len() as u32;
        model.parts.extend(draft.parts(unit));
        model.units.push(Unit {
            first_part,
            last_part: model.parts.len() as u32,
            ..draft.unit(unit)
        });
    }
    model.position = draft.positions();
    for position in &mut model.position {
        position.0 = place[position.0 as usize];
    }
    Some(model)
}

/// Begin, end and number of the units, in their order; those that are never live come first.
fn order(
    draft: &impl Draft,
    sections: u32,
    is_stopped: &mut dyn FnMut() -> bool,
) -> Option<Vec<(u32, u32, u32)>> {
    let mut keyed = Vec::with_capacity(draft.count());
    for unit in 0..draft.count() as u32 {
        if (unit as usize).is_multiple_of(ASKING) && is_stopped() {
            return None;
        }
        let first = draft.parts(unit).next();
        keyed.push(first.map_or((0, 0, unit), |it| (it.begin + 1, it.end, unit)));
    }
    let mut order = radix::by_small_key(keyed, sections, |it| it.0, is_stopped)?;
    let key = |unit: u32| {
        let it = draft.unit(unit);
        (
            it.height,
            it.residue,
            it.fixed,
            draft.hint(unit),
            draft.id(unit),
        )
    };
    let compare = |a: &(u32, u32, u32), b: &(u32, u32, u32)| {
        a.1.cmp(&b.1)
            .then_with(|| draft.parts(a.2).cmp(draft.parts(b.2)))
            .then_with(|| key(a.2).cmp(&key(b.2)))
    };
    let mut done = 0;
    for together in order.chunk_by_mut(|a, b| a.0 == b.0) {
        done += together.len();
        if done >= ASKING {
            done = 0;
            if is_stopped() {
                return None;
            }
        }
        if asked_sort::sort(together, compare, is_stopped) {
            return None;
        }
    }
    Some(order)
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
