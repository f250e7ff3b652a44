//! Large problems in near-linear time: the hottest sections first ([`Core`]), then the large units by size, then the
//! small ones hung from the ceiling ([`Hanging`]).

use super::bound::loads;
use super::core::Core;
use super::hang::{Hanging, size_class};
use super::heuristics::TICK;
use super::model::Model;
use super::occupancy::Occupancy;
use super::packing::{Control, Effort, PackConfig};
use super::radix;
use super::run::Run;
use super::tops::Tops;

/// Units of the first core.
const CORE: usize = 250;

/// Units of the last core.
const LARGEST_CORE: usize = 4_000;

/// Part of the bound that what hangs may take up, by size classes at their most.
const HANGING: u64 = 8;

/// Packs a core, lays the other units out around it, and starts again with what did not fit added to the core. The
/// proofs of a core hold for the whole where `is_exact`.
pub(super) fn pack(run: &mut Run<'_>, model: &Model, config: &PackConfig, is_exact: bool) {
    const NAME: &str = "core, then first fit";
    if run.is_over() {
        return;
    }
    let (rounds, nodes, leeway) = match config.effort {
        Effort::Fast => (1, 500, run.bound / 256),
        Effort::Default => (8, 3_000, 0),
        Effort::Max => (40, 50_000, 0),
    };
    let loads = loads(model);
    let mut core = Core::hottest(model, &loads, CORE);
    for _ in 0..rounds {
        let mut before = 0;
        let inner = core.pack(run.bound, nodes, config.variation, |spent| {
            let more = spent - std::mem::replace(&mut before, spent);
            run.tick(more, NAME)
        });
        if is_exact {
            run.bound = run.bound.max(inner.bound);
        }
        let ceiling = run.bound.max(inner.height) + leeway;
        let room = run.bound / HANGING;
        let layout = lay_out(model, &inner.offsets, ceiling, room, &mut |nodes| {
            run.tick(nodes, NAME)
        });
        run.consider(model, &layout.offsets, NAME);
        if run.is_over() || !core.grow(&loads, &layout.too_high, LARGEST_CORE) {
            return;
        }
    }
}

/// A packing of all units, and which of them ended above the ceiling.
struct Layout {
    offsets: Vec<u64>,
    too_high: Vec<u32>,
}

/// Times that small units are brought down before the ceiling gives way.
const ROUNDS: usize = 6;

/// Places every unit below `ceiling`, as far as it goes. Those of `known` have their offsets already; small ones that
/// take up to `room` bytes at a time hang from the ceiling. When `tick` stops it, the rest is stacked on top.
fn lay_out(
    model: &Model,
    known: &[(u32, u64)],
    ceiling: u64,
    room: u64,
    tick: &mut dyn FnMut(u64) -> Control,
) -> Layout {
    let mut is_known = vec![false; model.units.len()];
    let mut standing = Standing::new(model);
    let is_fixed = |unit: &u32| model.units[*unit as usize].fixed.is_some();
    let fixed: Vec<u32> = (0..model.units.len() as u32).filter(is_fixed).collect();
    let mut control = standing.place_all(&fixed, tick);
    for &unit in &fixed {
        is_known[unit as usize] = true;
    }
    for &(unit, offset) in known {
        if !is_known[unit as usize] && standing.put_if_free(unit, offset) {
            is_known[unit as usize] = true;
        }
    }
    let room = if control == Control::Stop { 0 } else { room };
    let mut hanging = Hanging::new(model, &is_known, room);
    let mut is_placed = is_known;
    for &unit in &hanging.units {
        is_placed[unit as usize] = true;
    }
    let mut rest: Vec<u32> = (0..model.units.len() as u32)
        .filter(|&unit| !is_placed[unit as usize])
        .collect();
    by_size(model, &mut rest);
    if control == Control::Continue {
        control = standing.place_all(&rest, tick);
    } else {
        standing.stack(&rest);
    }
    let ceiling = ceiling / hanging.step * hanging.step;
    for _ in 0..ROUNDS {
        if control == Control::Stop {
            break;
        }
        let mut down = hanging.come_down(model, &standing.tops, ceiling);
        if down.is_empty() {
            break;
        }
        by_size(model, &mut down);
        control = standing.place_all(&down, tick);
    }
    standing.finish(&hanging, ceiling)
}

/// Sorts units by size class, the largest first; those of one class stay in order of time, so that memory is walked
/// through in order, too.
fn by_size(model: &Model, units: &mut [u32]) {
    radix::sort_descending(units, |unit| {
        size_class(model.units[unit as usize].height) as u64
    });
}

impl Hanging {
    /// Takes off those that meet what stands below a ceiling.
    fn come_down(&mut self, model: &Model, tops: &Tops, ceiling: u64) -> Vec<u32> {
        let depth = &self.depth;
        let meets = |&unit: &u32| {
            let part = model.parts(unit)[0];
            tops.over(part.begin, part.end) + depth[unit as usize] > ceiling
        };
        let (down, up) = std::mem::take(&mut self.units).into_iter().partition(meets);
        self.units = up;
        down
    }
}

/// What is placed from the ground up.
struct Standing<'a> {
    model: &'a Model,
    occupancy: Occupancy,
    tops: Tops,
    offsets: Vec<u64>,
    height: u64,
    placed: u64,
}

impl<'a> Standing<'a> {
    fn new(model: &'a Model) -> Self {
        Self {
            model,
            occupancy: Occupancy::new(model.sections),
            tops: Tops::new(model.sections),
            offsets: vec![0; model.units.len()],
            height: 0,
            placed: 0,
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

    /// Places units at the lowest places that are free, or on top of everything once stopped.
    fn place_all(&mut self, units: &[u32], tick: &mut dyn FnMut(u64) -> Control) -> Control {
        for (at, &unit) in units.iter().enumerate() {
            self.placed += 1;
            if self.placed.is_multiple_of(TICK) && tick(TICK) == Control::Stop {
                self.stack(&units[at..]);
                return Control::Stop;
            }
            let fixed = self.model.units[unit as usize].fixed;
            let offset = fixed.unwrap_or_else(|| self.occupancy.first_fit(self.model, unit, 0));
            self.put(unit, offset);
        }
        Control::Continue
    }

    /// Places units on top of everything: quick, and always valid.
    fn stack(&mut self, units: &[u32]) {
        for &unit in units {
            let it = &self.model.units[unit as usize];
            let offset = it.fixed.unwrap_or_else(|| it.residue.at_least(self.height));
            self.note(unit, offset);
        }
    }

    /// Fixes the offsets of what hangs, under a ceiling that is raised where it must be.
    fn finish(mut self, hanging: &Hanging, ceiling: u64) -> Layout {
        let end =
            |unit: &u32| self.offsets[*unit as usize] + self.model.units[*unit as usize].height;
        let standing = 0..self.model.units.len() as u32;
        let mut too_high: Vec<u32> = standing.filter(|unit| end(unit) > ceiling).collect();
        let mut needed = ceiling;
        for &unit in &hanging.units {
            let part = self.model.parts(unit)[0];
            let both = self.tops.over(part.begin, part.end) + hanging.depth[unit as usize];
            if both > ceiling {
                too_high.push(unit);
            }
            needed = needed.max(both);
        }
        let lifted = needed.next_multiple_of(hanging.step);
        for &unit in &hanging.units {
            self.offsets[unit as usize] = lifted - hanging.depth[unit as usize];
        }
        Layout {
            offsets: self.offsets,
            too_high,
        }
    }
}
