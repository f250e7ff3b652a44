//! Large problems in near-linear time: everything in order of time, to have a packing early; then the hottest sections
//! ([`Core`]), the large units by size around them, and the small ones hung from the ceiling ([`Hanging`]).

use super::bound::loads;
use super::chosen::Chosen;
use super::core::{Core, CorePacking};
use super::hang::{Hanging, size_class};
use super::heuristics::{TICK, due};
use super::mend::mend;
use super::model::Model;
use super::occupancy::{MOST_RANGES, Occupancy};
use super::online::Timeline;
use super::packing::{Control, Effort, PackConfig};
use super::radix;
use super::run::Run;
use super::tops::Tops;

/// Units of the first core.
const CORE: usize = 250;

/// Units of the last core.
const LARGEST_CORE: usize = 4_000;

/// Gaps that a unit may be placed in, at every point of time, where time is short.
const FEW_RANGES: usize = 32;

/// Part of the bound that what hangs may take up, by size classes at their most.
const HANGING: u64 = 8;

/// Packs a core, lays the other units out around it, and starts again with what did not fit added to the core. The
/// proofs of a core hold for the whole where `is_exact`.
pub(super) fn pack(run: &mut Run<'_>, model: &Model, config: &PackConfig, is_exact: bool) {
    if run.is_over() {
        return;
    }
    let plan = Plan::of(config.effort, run.bound);
    let timeline = Timeline::new(model, &mut |nodes| run.tick(nodes, ONLINE));
    in_order_of_time(run, model, &timeline, None);
    if run.is_over() || run.height() <= run.bound + plan.leeway {
        return;
    }
    let (loads, room) = (loads(model), run.bound / HANGING);
    let mut tick = |nodes| run.tick(nodes, ONLINE);
    let core = Core::hottest(model, &loads, (CORE, LARGEST_CORE), &mut tick);
    let hanging = Hanging::new(model, &timeline, &core.flags(), room, &mut tick);
    let Some(hanging) = hanging else {
        return;
    };
    if config.effort != Effort::Fast {
        in_order_of_time(run, model, &timeline, Some(&hanging));
    }
    let large = Large {
        model,
        loads,
        hanging,
        step: timeline.step,
        variation: config.variation,
        is_exact,
    };
    let fresh = Stage { core, start: None };
    let mut short = None;
    for pass in plan.passes {
        if run.tick(0, NAME) == Control::Stop || run.is_over() {
            return;
        }
        let stage = short.take().filter(|_| !pass.is_fresh);
        short = large.pass(run, stage.unwrap_or_else(|| fresh.clone()), &plan, pass);
        if short.is_none() {
            return;
        }
    }
}

/// How much is done in one go.
struct Pass {
    rounds: usize,
    /// For the core in each round.
    nodes: u64,
    /// So many octaves of life weigh as much as one of size, in orders by size; see [`by_size`].
    life: Option<usize>,
    /// Whether it begins with the first core, and not where the pass before first lacked nodes.
    is_fresh: bool,
}

impl Pass {
    /// A short one from the first core.
    const fn fresh(nodes: u64, life: Option<usize>) -> Self {
        Self {
            rounds: 8,
            nodes,
            life,
            is_fresh: true,
        }
    }

    /// One that goes on with more nodes.
    const fn more(rounds: usize, nodes: u64) -> Self {
        Self {
            rounds,
            nodes,
            life: None,
            is_fresh: false,
        }
    }
}

/// The passes of [`Effort::Fast`].
const FAST: &[Pass] = &[Pass {
    rounds: 1,
    ..Pass::fresh(500, None)
}];

/// The passes of [`Effort::Default`]: which order leaves the least above the ceiling is a matter of chance, so that where
/// one fails, others are tried before more nodes.
const DEFAULT: &[Pass] = &[
    Pass::fresh(3_000, None),
    Pass::fresh(3_000, Some(5)),
    Pass::fresh(3_000, Some(2)),
    Pass::more(6, 30_000),
];

/// The passes of [`Effort::Max`].
const MAX: &[Pass] = &[
    Pass::fresh(3_000, None),
    Pass::more(40, 50_000),
    Pass::more(40, 500_000),
];

/// How much is done.
struct Plan {
    passes: &'static [Pass],
    /// What the height may exceed the bound by.
    leeway: u64,
    /// Whether layouts are mended, and in how many gaps units are looked for.
    is_mended: bool,
    ranges: usize,
}

impl Plan {
    fn of(effort: Effort, bound: u64) -> Self {
        match effort {
            Effort::Fast => Self {
                passes: FAST,
                leeway: bound / 128,
                is_mended: false,
                ranges: FEW_RANGES,
            },
            Effort::Default => Self {
                passes: DEFAULT,
                leeway: 0,
                is_mended: true,
                ranges: MOST_RANGES,
            },
            Effort::Max => Self {
                passes: MAX,
                leeway: 0,
                is_mended: true,
                ranges: MOST_RANGES,
            },
        }
    }
}

/// Where a round begins: a core, and where its units lie in a packing.
#[derive(Clone)]
struct Stage<'a> {
    core: Core<'a>,
    start: Option<Vec<u64>>,
}

/// A large problem while it is packed.
struct Large<'a> {
    model: &'a Model,
    /// By section.
    loads: Vec<u64>,
    hanging: Hanging,
    /// The coarsest alignment.
    step: u64,
    variation: u32,
    is_exact: bool,
}

impl<'a> Large<'a> {
    /// Rounds of: pack the core, lay the others out around it, take what did not fit into the core. Returns the first
    /// stage whose core was not packed to the bound, with what was found for it.
    fn pass(
        &self,
        run: &mut Run<'_>,
        mut stage: Stage<'a>,
        plan: &Plan,
        pass: &Pass,
    ) -> Option<Stage<'a>> {
        let model = self.model;
        let mut first_short = None;
        for _ in 0..pass.rounds {
            let inner = self.search(run, &stage, pass.nodes);
            if self.is_exact {
                run.bound = run.bound.max(inner.bound);
            }
            if inner.height > run.bound && first_short.is_none() {
                first_short = Some(Stage {
                    core: stage.core.clone(),
                    start: Some(inner.by_unit(model)),
                });
            }
            let ceiling = (run.bound.max(inner.height) + plan.leeway) / self.step * self.step;
            let bound = run.bound;
            let mut tick = |nodes| run.tick(nodes, NAME);
            let standing = Standing::new(model, plan.ranges, pass.life);
            let layout = lay_out(standing, &self.hanging, &inner.offsets, ceiling, &mut tick);
            let mut layout = layout?;
            let is_mended = plan.is_mended
                && tick(0) == Control::Continue
                && mend(model, &mut layout.offsets, bound, &mut tick);
            let name = if is_mended { MENDED } else { NAME };
            run.consider(model, &layout.offsets, name);
            if run.is_over() || !stage.core.grow(&self.loads, &layout.too_high, LARGEST_CORE) {
                break;
            }
            stage.start = Some(layout.offsets);
        }
        first_short
    }

    /// Packs a core with so many nodes and tells of them.
    fn search(&self, run: &mut Run<'_>, stage: &Stage<'_>, nodes: u64) -> CorePacking {
        let (start, mut before) = (stage.start.as_deref(), 0);
        let (core, bound) = (&stage.core, run.bound);
        core.pack(start, bound, nodes, self.variation, |spent| {
            let more = spent - std::mem::replace(&mut before, spent);
            run.tick(more, NAME)
        })
    }
}

/// What [`pack`] calls itself.
const NAME: &str = "core, then first fit";

/// And where the layout was mended.
const MENDED: &str = "core, then first fit and ejections";

/// What [`in_order_of_time`] calls itself.
const ONLINE: &str = "in order of time";

/// The first packings of all: a stack of the units that are not on the timeline, on it those that do not hang in order of
/// time, and on those what hangs.
fn in_order_of_time(
    run: &mut Run<'_>,
    model: &Model,
    timeline: &Timeline,
    hanging: Option<&Hanging>,
) {
    let mut is_hung = vec![false; model.units.len()];
    for &unit in hanging.iter().flat_map(|it| &it.units) {
        is_hung[unit as usize] = true;
    }
    let mut offsets = vec![0; model.units.len()];
    let part = hanging.map(|_| timeline.only(|unit| !is_hung[unit as usize]));
    let standing = part.as_ref().unwrap_or(timeline);
    let tick = &mut |nodes| run.tick(nodes, ONLINE);
    let (highest, _) = standing.place(model, &mut offsets, tick);
    let mut is_placed = is_hung;
    for &unit in &standing.units {
        is_placed[unit as usize] = true;
    }
    let (mut top, mut rest) = (0, Vec::new());
    for (unit, it) in (0u32..).zip(&model.units) {
        if let Some(offset) = it.fixed {
            (offsets[unit as usize], top) = (offset, top.max(offset + it.height));
        } else if !is_placed[unit as usize] {
            rest.push(unit);
        }
    }
    for unit in rest {
        let it = &model.units[unit as usize];
        offsets[unit as usize] = it.residue.at_least(top);
        top = offsets[unit as usize] + it.height;
    }
    let base = top.next_multiple_of(timeline.step);
    for &unit in &standing.units {
        offsets[unit as usize] += base;
    }
    if let Some(hanging) = hanging {
        let ceiling = base + highest + hanging.deepest;
        for &unit in &hanging.units {
            offsets[unit as usize] = ceiling - hanging.depth[unit as usize];
        }
    }
    // Kept in any case; the question is asked so that the caller hears of every few milliseconds.
    run.tick(0, ONLINE);
    run.consider(model, &offsets, ONLINE);
    run.tick(0, ONLINE);
}

/// A packing of all units, and which of them ended above the ceiling.
struct Layout {
    offsets: Vec<u64>,
    too_high: Vec<u32>,
}

/// Times that small units are brought down before those that meet others go on top of everything.
const ROUNDS: usize = 6;

/// Places every unit below `ceiling`, as far as it goes. Those of `known` have their offsets already; those of `hanging`
/// hang from the ceiling. Nothing when `tick` stops it.
fn lay_out(
    mut standing: Standing<'_>,
    hanging: &Hanging,
    known: &[(u32, u64)],
    ceiling: u64,
    tick: &mut dyn FnMut(u64) -> Control,
) -> Option<Layout> {
    let model = standing.model;
    let mut is_known = vec![false; model.units.len()];
    let is_fixed = |unit: &u32| model.units[*unit as usize].fixed.is_some();
    let fixed: Vec<u32> = (0..model.units.len() as u32).filter(is_fixed).collect();
    standing.place_all(&fixed, tick)?;
    for &unit in &fixed {
        is_known[unit as usize] = true;
    }
    for &(unit, offset) in known {
        if !is_known[unit as usize] && standing.put_if_free(unit, offset) {
            is_known[unit as usize] = true;
        }
    }
    let units = hanging.units.iter().copied();
    let mut hung: Vec<u32> = units.filter(|&unit| !is_known[unit as usize]).collect();
    let mut is_placed = is_known;
    for &unit in &hung {
        is_placed[unit as usize] = true;
    }
    let mut rest: Vec<u32> = (0..model.units.len() as u32)
        .filter(|&unit| !is_placed[unit as usize])
        .collect();
    by_size(model, standing.life, &mut rest);
    standing.place_all(&rest, tick)?;
    let mut is_raised = vec![true; model.sections as usize];
    let mut rounds = 0..ROUNDS;
    loop {
        let raised = Chosen::new(&is_raised);
        let tops = &standing.tops;
        let mut down = come_down(model, (tops, &raised), hanging, &mut hung, ceiling, tick)?;
        if down.is_empty() || rounds.next().is_none() {
            return standing.finish(hanging, &hung, ceiling, &down, tick);
        }
        by_size(model, standing.life, &mut down);
        standing.place_all(&down, tick)?;
        is_raised.fill(false);
        for part in down.iter().flat_map(|&unit| model.parts(unit)) {
            is_raised[part.begin as usize..part.end as usize].fill(true);
        }
    }
}

/// Sorts units by size class, the largest first, where so many octaves of `life` weigh as much as one of size; those of
/// one class stay in order of time, so that memory is walked through in order, too.
fn by_size(model: &Model, life: Option<usize>, units: &mut [u32]) {
    radix::sort_descending(units, |unit| {
        let it = &model.units[unit as usize];
        let lasting = life.map_or(0, |octaves| size_class(it.duration.into()) / octaves);
        (size_class(it.height) + lasting) as u64
    });
}

/// Takes off those of `hung` that meet what stands below a ceiling, where that was raised since they were last looked
/// at; nothing when `tick` stops it.
fn come_down(
    model: &Model,
    (tops, raised): (&Tops, &Chosen),
    hanging: &Hanging,
    hung: &mut Vec<u32>,
    ceiling: u64,
    tick: &mut dyn FnMut(u64) -> Control,
) -> Option<Vec<u32>> {
    let mut down = Vec::new();
    let mut up = Vec::with_capacity(hung.len());
    for units in hung.chunks(16 * TICK as usize) {
        if tick(0) == Control::Stop {
            return None;
        }
        for &unit in units {
            let part = model.parts(unit)[0];
            if raised.of(model, unit) == 0 {
                up.push(unit);
                continue;
            }
            let both = tops.over(part.begin, part.end) + hanging.depth[unit as usize];
            if both > ceiling { &mut down } else { &mut up }.push(unit);
        }
    }
    *hung = up;
    Some(down)
}

/// What is placed from the ground up.
struct Standing<'a> {
    model: &'a Model,
    occupancy: Occupancy,
    tops: Tops,
    offsets: Vec<u64>,
    height: u64,
    placed: u64,
    /// See [`Pass`].
    life: Option<usize>,
}

impl<'a> Standing<'a> {
    /// Nothing yet; in bytes taken, so many ranges are told apart.
    fn new(model: &'a Model, ranges: usize, life: Option<usize>) -> Self {
        Self {
            model,
            occupancy: Occupancy::with_ranges(model.sections, ranges),
            tops: Tops::new(model.sections),
            offsets: vec![0; model.units.len()],
            height: 0,
            placed: 0,
            life,
        }
    }

    fn put(&mut self, unit: u32, offset: u64) {
        self.occupancy.insert(self.model, unit, offset);
        self.note(unit, offset);
    }

    /// Puts a unit that may meet one that is fixed.
    fn put_if_free(&mut self, unit: u32, offset: u64) -> bool {
        let is_free = self.occupancy.first_fit(self.model, unit, offset) == offset;
        if is_free {
            self.put(unit, offset);
        }
        is_free
    }

    fn note(&mut self, unit: u32, offset: u64) {
        for part in self.model.parts(unit) {
            let end = offset + part.delta + part.size;
            self.tops.raise(part.begin, part.end, end);
        }
        self.offsets[unit as usize] = offset;
        self.height = self
            .height
            .max(offset + self.model.units[unit as usize].height);
    }

    /// Places units at the lowest places that are free; nothing when `tick` stops it.
    fn place_all(&mut self, units: &[u32], tick: &mut dyn FnMut(u64) -> Control) -> Option<()> {
        for &unit in units {
            self.placed += 1;
            if due(self.placed).is_some_and(|steps| tick(steps) == Control::Stop) {
                return None;
            }
            let fixed = self.model.units[unit as usize].fixed;
            let offset = fixed.unwrap_or_else(|| self.occupancy.first_fit(self.model, unit, 0));
            self.put(unit, offset);
        }
        Some(())
    }

    /// Gives what hangs its offsets, and stacks those that `met` others on top of everything; nothing when `tick` stops
    /// it.
    fn finish(
        mut self,
        hanging: &Hanging,
        hung: &[u32],
        ceiling: u64,
        met: &[u32],
        tick: &mut dyn FnMut(u64) -> Control,
    ) -> Option<Layout> {
        let end =
            |unit: &u32| self.offsets[*unit as usize] + self.model.units[*unit as usize].height;
        let standing = 0..self.model.units.len() as u32;
        let mut too_high: Vec<u32> = standing.filter(|unit| end(unit) > ceiling).collect();
        if tick(0) == Control::Stop {
            return None;
        }
        let mut top = self.height.max(ceiling);
        for &unit in hung {
            self.offsets[unit as usize] = ceiling - hanging.depth[unit as usize];
        }
        for &unit in met {
            let it = &self.model.units[unit as usize];
            self.offsets[unit as usize] = it.residue.at_least(top);
            top = self.offsets[unit as usize] + it.height;
        }
        too_high.extend(met);
        Some(Layout {
            offsets: self.offsets,
            too_high,
        })
    }
}
