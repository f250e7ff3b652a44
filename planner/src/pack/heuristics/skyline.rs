//! Bottom up along the skyline: whatever can go lowest goes next, on top of what is there; of several, the one that
//! covers the fullest section, then the longest. This is the order in which MiniMalloc's search goes down first.

use super::super::bound::loads;
use super::super::model::Model;
use super::super::packing::Control;
use super::super::tops::Tops;
use super::due;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Places every unit on the skyline. Units wait in a heap by the offset they would have; one whose ground has risen
/// since goes back. O(log n) for each time that happens.
pub(super) fn place(model: &Model, tick: &mut dyn FnMut(u64) -> Control) -> (Vec<u64>, Control) {
    let rank = ranks(model);
    let mut tops = Tops::new(model.sections);
    let mut offsets = vec![0; model.units.len()];
    let mut heap = BinaryHeap::with_capacity(model.units.len());
    for (unit, it) in (0u32..).zip(&model.units) {
        if let Some(offset) = it.fixed {
            offsets[unit as usize] = offset;
            raise(model, &mut tops, unit, offset);
        } else {
            heap.push(Reverse((it.residue.at_least(0), rank[unit as usize], unit)));
        }
    }
    let (mut control, mut steps, mut height) = (Control::Continue, 0u64, model.height(&offsets));
    while let Some(Reverse((offset, rank, unit))) = heap.pop() {
        let it = &model.units[unit as usize];
        steps += 1;
        if let Some(told) = due(steps).filter(|_| control == Control::Continue) {
            control = tick(told);
        }
        if control == Control::Stop {
            offsets[unit as usize] = it.residue.at_least(height);
            height = offsets[unit as usize] + it.height;
            continue;
        }
        let ground = model
            .parts(unit)
            .iter()
            .map(|part| tops.over(part.begin, part.end).saturating_sub(part.delta));
        let lowest = it.residue.at_least(ground.max().unwrap_or(0));
        if lowest > offset {
            heap.push(Reverse((lowest, rank, unit)));
            continue;
        }
        offsets[unit as usize] = offset;
        height = height.max(offset + it.height);
        raise(model, &mut tops, unit, offset);
    }
    (offsets, control)
}

fn raise(model: &Model, tops: &mut Tops, unit: u32, offset: u64) {
    for part in model.parts(unit) {
        tops.raise(part.begin, part.end, offset + part.delta + part.size);
    }
}

/// By unit: what goes first among equals.
fn ranks(model: &Model) -> Vec<u32> {
    let mut most = Tops::new(model.sections);
    for (section, load) in (0u32..).zip(loads(model)) {
        most.raise(section, section + 1, load);
    }
    let fullest = |unit: u32| {
        let parts = model.parts(unit).iter();
        parts.map(|it| most.over(it.begin, it.end)).max()
    };
    let mut list: Vec<u32> = (0..model.units.len() as u32).collect();
    list.sort_by_cached_key(|&unit| {
        let it = &model.units[unit as usize];
        Reverse((fullest(unit), it.duration, it.height))
    });
    let mut rank = vec![0; list.len()];
    for (at, unit) in (0..).zip(list) {
        rank[unit as usize] = at;
    }
    rank
}
