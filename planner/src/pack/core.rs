//! The units of the hottest sections alone: where the load comes close to the bound, a packing is decided; everywhere
//! else there is room to spare. A large problem has few such sections and few units in them, so that these can be
//! searched like a small problem. What is found is then kept while the other units are placed around it.
//!
//! The core leaves units out and so can't be packed higher than the whole: a proof about it is one about the whole.

use super::chosen::Chosen;
use super::eject;
use super::heuristics::{Start, squeak};
use super::model::Model;
use super::packing::Control;
use super::search::{Space, Standing, improve};
use std::cell::{Cell, RefCell};

/// A set of sections, and the units that are live there.
#[derive(Clone)]
pub(super) struct Core<'a> {
    model: &'a Model,
    is_hot: Vec<bool>,
}

/// A packing of a core; of nothing where there was no time.
#[derive(Default)]
pub(super) struct CorePacking {
    /// Units and their offsets.
    pub(super) offsets: Vec<(u32, u64)>,
    pub(super) height: u64,
    /// No packing of the core, nor of the whole, is lower.
    pub(super) bound: u64,
}

impl CorePacking {
    /// Offsets by unit of the model; of those that are not in the core, 0.
    pub(super) fn by_unit(&self, model: &Model) -> Vec<u64> {
        let mut offsets = vec![0; model.units.len()];
        for &(unit, offset) in &self.offsets {
            offsets[unit as usize] = offset;
        }
        offsets
    }
}

/// Lasting units among so many are not stacked where that might waste bytes on alignment.
const SEARCHED_WHOLE: usize = 500;

/// Units that last through only some of a core, with which it is still searched.
const MOST_SEARCHED: usize = 8_000;

/// Rounds of local search before the exact one.
const ROUNDS: usize = 2;

/// Steps of the search by ejections for every node of the exact one.
const STEPS_PER_NODE: u64 = 100;

/// Entries that the tables of a search may have.
const TABLES: usize = 4 << 20;

impl<'a> Core<'a> {
    /// The fullest sections, as many as hold the first of `most` units together by [`count`]; none when already the very
    /// fullest hold more than the second. O(units).
    pub(super) fn hottest(
        model: &'a Model,
        loads: &[u64],
        (most, limit): (usize, usize),
        tick: &mut dyn FnMut(u64) -> Control,
    ) -> Self {
        let peak = loads.iter().copied().max().unwrap_or(0);
        let hot = |below: u64| loads.iter().map(|&load| load >= peak - below).collect();
        // By thirds: 1/1024, then 1/683, ... of the peak below it, up to a fifth.
        let mut steps = vec![0];
        let mut below = peak / 1024;
        while below < peak / 5 {
            steps.push(below);
            below = below + below / 2 + 1;
        }
        let is_small = |&below: &u64| {
            let is_hot: Vec<bool> = hot(below);
            tick(0) == Control::Continue && count(model, &is_hot, most) <= most
        };
        let small = steps[1..].partition_point(is_small);
        let mut is_hot: Vec<bool> = hot(steps[small]);
        if count(model, &is_hot, limit) > limit {
            is_hot.fill(false);
        }
        Self { model, is_hot }
    }

    /// By unit: whether it is in the core.
    pub(super) fn flags(&self) -> Vec<bool> {
        let hot = Chosen::new(&self.is_hot);
        let units = 0..self.model.units.len() as u32;
        units.map(|unit| hot.of(self.model, unit) > 0).collect()
    }

    /// Adds the fullest section of each of the units; false when there was nothing to add, or more than `most` units
    /// would be in.
    pub(super) fn grow(&mut self, loads: &[u64], units: &[u32], most: usize) -> bool {
        if units.len() > most {
            return false;
        }
        let mut has_grown = false;
        for &unit in units {
            let sections = self
                .model
                .parts(unit)
                .iter()
                .flat_map(|it| it.begin..it.end);
            let fullest = sections.max_by_key(|&it| (loads[it as usize], !it));
            if let Some(section) = fullest {
                has_grown |= !std::mem::replace(&mut self.is_hot[section as usize], true);
            }
        }
        has_grown && count(self.model, &self.is_hot, most) <= most
    }

    /// Packs the core, aiming at `target`; `nodes` limits the search. It may begin with a packing of all units.
    pub(super) fn pack(
        &self,
        start: Option<&[u64]>,
        target: u64,
        nodes: u64,
        variation: u32,
        mut tick: impl FnMut(u64) -> Control,
    ) -> CorePacking {
        let members = self.flags();
        let (whole, from) = self.model.restrict(|unit| members[unit as usize]);
        if tick(0) == Control::Stop {
            return CorePacking::default();
        }
        let (lasting, base) = stack_lasting(self.model, &whole, &from);
        let is_lasting: Vec<bool> = {
            let mut flags = vec![false; whole.units.len()];
            for it in &lasting {
                flags[it.0 as usize] = true;
            }
            flags
        };
        let (rest, inner) = whole.restrict(|unit| !is_lasting[unit as usize]);
        let step = whole.step();
        let base = base.next_multiple_of(step);
        let target = target.saturating_sub(base);
        let start = start.and_then(|all| {
            let from = inner.iter().map(|&unit| from[unit as usize] as usize);
            from.map(|unit| all[unit].checked_sub(base)).collect()
        });
        let (offsets, height, bound) = if rest.units.len() > MOST_SEARCHED {
            (Vec::new(), 0, 0)
        } else {
            pack_rest(&rest, start, target, nodes, variation, &mut tick)
        };
        let lasting = lasting
            .iter()
            .map(|&(unit, offset)| (from[unit as usize], offset));
        let others = inner
            .iter()
            .zip(offsets)
            .map(|(&unit, offset)| (from[unit as usize], base + offset));
        CorePacking {
            offsets: lasting.chain(others).collect(),
            height: base + height,
            // The stack of what lasts wastes nothing only where nothing is aligned.
            bound: if step == 1 || base == 0 {
                base + bound
            } else {
                0
            },
        }
    }
}

/// How many units are live in some of the sections, up to a few more than `most`. Those that are live in all of them cost
/// little: of them, no more than half of `most` are counted. O(units).
fn count(model: &Model, is_hot: &[bool], most: usize) -> usize {
    let hot = Chosen::new(is_hot);
    let (mut lasting, mut others) = (0, 0);
    for unit in 0..model.units.len() as u32 {
        let sections = hot.of(model, unit);
        lasting += usize::from(sections == hot.all());
        others += usize::from(sections > 0 && sections < hot.all());
        if others > most {
            break;
        }
    }
    others + lasting.min(most / 2)
}

/// Stacks the units that are live in every section at the bottom, where they cost no packing its height: taking them
/// out of one and lowering what is above leaves a packing of the others. The longest in the whole model come first.
/// Alignment costs a little more, and is put up with in large cores. Returns their offsets and their height.
fn stack_lasting(model: &Model, core: &Model, from: &[u32]) -> (Vec<(u32, u64)>, u64) {
    let may_waste = core.units.len() > SEARCHED_WHOLE;
    let is_plain = |unit: &super::model::Unit| {
        let (align, phase) = unit.residue.align_and_phase();
        unit.fixed.is_none() && phase == 0 && (align == 1 || may_waste)
    };
    if !core.units.iter().all(is_plain) {
        return (Vec::new(), 0);
    }
    let is_lasting = |&unit: &u32| {
        let whole = |it: &super::model::Part| {
            (it.begin, it.end) == (0, core.sections)
                && (it.delta, it.size) == (0, core.units[unit as usize].height)
        };
        core.parts(unit).iter().any(whole)
    };
    let mut units: Vec<u32> = (0..core.units.len() as u32).filter(is_lasting).collect();
    let duration = |unit: u32| model.units[from[unit as usize] as usize].duration;
    units.sort_by_key(|&unit| std::cmp::Reverse(duration(unit)));
    let mut base = 0;
    let stacked = units.into_iter().map(|unit| {
        let it = &core.units[unit as usize];
        let offset = it.residue.at_least(base);
        base = offset + it.height;
        (unit, offset)
    });
    let stacked = stacked.collect();
    (stacked, base)
}

/// Packs what is not live everywhere: orders first, then the search. Returns offsets, height and bound.
fn pack_rest(
    model: &Model,
    start: Option<Vec<u64>>,
    target: u64,
    nodes: u64,
    variation: u32,
    tick: &mut impl FnMut(u64) -> Control,
) -> (Vec<u64>, u64, u64) {
    let (mut best, mut height) = (vec![0; model.units.len()], u64::MAX);
    let mut spent = 0;
    let lower = |start: &[u64], spent: &mut u64, tick: &mut dyn FnMut(u64) -> Control| {
        let (mut found, before) = (None, *spent);
        eject::lower(
            model,
            start,
            target,
            |steps| {
                *spent = before + steps / eject::STEPS_PER_PLACEMENT;
                steps < nodes * STEPS_PER_NODE && tick(*spent) == Control::Continue
            },
            |offsets| found = Some(offsets.to_vec()),
        );
        found
    };
    // What fitted around the core before may be in its way now; most need not move for that.
    if let Some(offsets) = start.and_then(|start| lower(&start, &mut spent, tick)) {
        (height, best) = (model.height(&offsets), offsets);
        if height <= target {
            return (best, height, target);
        }
    }
    for start in [Start::Size, Start::Peak] {
        let count = model.units.len() as u64;
        let told = Cell::new(spent);
        let ask = RefCell::new(&mut *tick);
        squeak(
            model,
            start.order(model),
            target,
            ROUNDS,
            &mut |_| (ask.borrow_mut())(told.get()),
            |offsets| {
                spent += count;
                told.set(spent);
                let now = model.height(offsets);
                if now < height {
                    (best, height) = (offsets.to_vec(), now);
                }
                if now <= target {
                    Control::Stop
                } else {
                    (ask.borrow_mut())(spent)
                }
            },
        );
        if height <= target {
            return (best, height, target);
        }
    }
    if let Some(offsets) = lower(&best, &mut spent, tick) {
        (height, best) = (model.height(&offsets), offsets);
    }
    if height <= target {
        return (best, height, target);
    }
    let mut standing = Standing {
        height,
        bound: target,
        offsets: None,
    };
    if let Some(space) = Space::new(model, TABLES) {
        improve(&space, &mut standing, None, variation, |_, now| {
            now < nodes && (now % 64 != 0 || tick(spent + now) == Control::Continue)
        });
    }
    (
        standing.offsets.unwrap_or(best),
        standing.height,
        standing.bound,
    )
}
