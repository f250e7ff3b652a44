//! Brings the few units down that ended too high in a layout of a large problem: a small problem of its own, made of what
//! is live at their time and a while around it, and given to the search by ejections.
//!
//! What reaches out of that window of time is kept where it is, so that the rest of the layout stands.

use super::chosen::Chosen;
use super::eject;
use super::model::Model;
use super::packing::Control;

/// Units that a window may hold.
const WINDOW: u64 = 2_000;

/// Units that may be too high: with more, the layout is better begun again.
const MOST_TOO_HIGH: usize = 64;

/// Steps of the search.
const STEPS: u64 = 500_000;

/// Lowers a valid packing of all units to `bound`, or as far as it goes. `offsets` holds the result; returns whether
/// anything was changed. O(units + steps).
pub(super) fn mend(
    model: &Model,
    offsets: &mut [u64],
    bound: u64,
    tick: &mut dyn FnMut(u64) -> Control,
) -> bool {
    let is_too_high =
        |&unit: &u32| offsets[unit as usize] + model.units[unit as usize].height > bound;
    let all = 0..model.units.len() as u32;
    let too_high: Vec<u32> = all.filter(is_too_high).take(MOST_TOO_HIGH + 1).collect();
    if too_high.is_empty() || too_high.len() > MOST_TOO_HIGH {
        return false;
    }
    let Some(window) = window(model, &too_high) else {
        return false;
    };
    if tick(0) == Control::Stop {
        return false;
    }
    let window = Chosen::new(&window);
    let (mut part, from) = model.restrict(|unit| window.of(model, unit) > 0);
    for (unit, &whole) in part.units.iter_mut().zip(&from) {
        if window.of(model, whole) < model.units[whole as usize].duration {
            unit.fixed = Some(offsets[whole as usize]);
        }
    }
    let start: Vec<u64> = from.iter().map(|&unit| offsets[unit as usize]).collect();
    let (mut found, mut told) = (Vec::new(), 0);
    eject::lower(
        &part,
        &start,
        bound,
        |steps| {
            let nodes = steps / eject::STEPS_PER_PLACEMENT;
            let control = tick(nodes - told);
            told = nodes;
            steps < STEPS && control == Control::Continue
        },
        |lower| found = lower.to_vec(),
    );
    let is_found = !found.is_empty();
    for (unit, offset) in from.into_iter().zip(found) {
        offsets[unit as usize] = offset;
    }
    is_found
}

/// The sections of the units and as many around them, on either side, as keep what is live there within [`WINDOW`]
/// units; none when already those of the units themselves hold more.
fn window(model: &Model, units: &[u32]) -> Option<Vec<bool>> {
    let sections = model.sections as usize;
    // By section: units that begin before it, and those that end before it or at its start.
    let (mut begun, mut ended) = (vec![0u64; sections + 1], vec![0u64; sections + 1]);
    for unit in 0..model.units.len() as u32 {
        let parts = model.parts(unit);
        let (Some(first), Some(last)) = (parts.first(), parts.iter().map(|it| it.end).max()) else {
            continue;
        };
        begun[first.begin as usize + 1] += 1;
        ended[last as usize] += 1;
    }
    for section in 1..=sections {
        begun[section] += begun[section - 1];
        ended[section] += ended[section - 1];
    }
    let spread = |margin: u32| {
        let mut stretches: Vec<(u32, u32)> = Vec::new();
        let mut spans: Vec<(u32, u32)> = units
            .iter()
            .flat_map(|&unit| model.parts(unit))
            .map(|it| {
                (
                    it.begin.saturating_sub(margin),
                    it.end.saturating_add(margin).min(model.sections),
                )
            })
            .collect();
        spans.sort_unstable();
        for (begin, end) in spans {
            match stretches.last_mut().filter(|it| begin <= it.1) {
                Some(it) => it.1 = it.1.max(end),
                None => stretches.push((begin, end)),
            }
        }
        stretches
    };
    let count = |stretches: &[(u32, u32)]| {
        let of = |&(begin, end): &(u32, u32)| begun[end as usize] - ended[begin as usize];
        stretches.iter().map(of).sum::<u64>()
    };
    let mut chosen = Some(spread(0)).filter(|it| count(it) <= WINDOW)?;
    for doubling in 2..u32::BITS {
        let wider = spread(1 << doubling);
        if wider == chosen || count(&wider) > WINDOW {
            break;
        }
        chosen = wider;
    }
    let mut window = vec![false; sections];
    for (begin, end) in chosen {
        window[begin as usize..end as usize].fill(true);
    }
    Some(window)
}
