//! How many bytes are in use at every moment of a placed memory space, and where most are.

use rustc_hash::FxHashMap;

use slabplan_ir::Module;
use slabplan_ir::entity::SecondaryMap;

use crate::analysis::Analysis;
use crate::buffers::logical_size;
use crate::dataflow::ValueId;
use crate::interference::ClassId;
use crate::liveness::{Ranges, interval};
use crate::problem::SpaceLayout;

/// Bytes in use over program order, in one memory space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// `(moment, bytes in use from then on)`, ascending: the demand as a step function.
    pub steps: Vec<(u32, u64)>,
    /// The first moment at which most bytes are in use.
    pub peak: Option<u32>,
    /// The values in use at the peak, largest first.
    pub at_peak: Vec<LiveBuffer>,
    /// Bytes in use at the peak, padding included; bytes that two buffers share count once.
    pub padded_at_peak: u64,
    /// Bytes of the elements of what is in use at the peak, and its scratch.
    pub logical_at_peak: u64,
}

/// A buffer that is in use at the peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveBuffer {
    /// The buffer.
    pub class: ClassId,
    /// The value that it holds at the peak.
    pub value: ValueId,
    /// Bytes with padding.
    pub padded: u64,
    /// Bytes of the elements alone.
    pub logical: u64,
}

/// Sweeps the live intervals of the buffers of one space. O(intervals log intervals).
pub fn demand(module: &Module, analysis: &Analysis, layout: &SpaceLayout) -> Demand {
    let joined = joined_at(analysis);
    let mut events: Vec<(u32, bool, u64, u64)> = Vec::new();
    for &(class, offset) in &layout.offsets {
        let size = analysis.buffers[class].size.get();
        for r in counted(analysis, &joined, class) {
            events.push((r.start, true, offset, size));
            events.push((r.end, false, offset, size));
        }
    }
    // Ends before starts: intervals are half-open.
    events.sort_unstable();
    let mut demand = Demand::default();
    // How many buffers are live at a place: those that share bytes do so exactly.
    let mut live_at: FxHashMap<(u64, u64), u32> = FxHashMap::default();
    let mut now = 0u64;
    for group in events.chunk_by(|a, b| a.0 == b.0) {
        for &(_, starts, offset, size) in group {
            let count = live_at.entry((offset, size)).or_insert(0);
            if starts {
                now += if *count == 0 { size } else { 0 };
                *count += 1;
            } else {
                *count -= 1;
                now -= if *count == 0 { size } else { 0 };
            }
        }
        if now > demand.padded_at_peak {
            demand.padded_at_peak = now;
            demand.peak = Some(group[0].0);
        }
        if demand.steps.last().is_none_or(|s| s.1 != now) {
            demand.steps.push((group[0].0, now));
        }
    }
    if let Some(peak) = demand.peak {
        demand.at_peak = live_buffers(module, analysis, layout, &joined, peak);
        demand.logical_at_peak = demand.at_peak.iter().map(|b| b.logical).sum::<u64>()
            + scratch_at(analysis, layout, peak);
    }
    demand
}

/// Bytes of the scratch that is in use at `moment`: it has no values and no padding.
fn scratch_at(analysis: &Analysis, layout: &SpaceLayout, moment: u32) -> u64 {
    let buffers = layout.offsets.iter().map(|&(c, _)| &analysis.buffers[c]);
    let holds = |r: &slabplan_ir::plan::LiveInterval| r.start <= moment && moment < r.end;
    buffers
        .filter(|b| b.values.is_empty() && b.live.iter().any(holds))
        .map(|b| b.size.get())
        .sum()
}

/// The moment at which a piece becomes part of a joined array, of each class that is one.
fn joined_at(analysis: &Analysis) -> SecondaryMap<ClassId, Option<u32>> {
    let mut joined = SecondaryMap::filled(analysis.buffers.len(), None);
    for piece in &analysis.pieces {
        joined[piece.piece] = Some(piece.at);
    }
    joined
}

/// The live range of a class as its bytes count: while a piece is being joined, the whole counts.
fn counted(
    analysis: &Analysis,
    joined: &SecondaryMap<ClassId, Option<u32>>,
    class: ClassId,
) -> Ranges {
    let mut ranges = analysis.buffers[class].live.clone();
    if let Some(at) = joined[class] {
        for r in &mut ranges {
            if r.end == at + 1 {
                *r = interval(r.start, at.max(r.start));
            }
        }
        ranges.retain(|r| r.start < r.end);
    }
    ranges
}

/// The buffers in use at `moment`, one for each place, largest first.
fn live_buffers(
    module: &Module,
    analysis: &Analysis,
    layout: &SpaceLayout,
    joined: &SecondaryMap<ClassId, Option<u32>>,
    moment: u32,
) -> Vec<LiveBuffer> {
    let holds = |r: &slabplan_ir::plan::LiveInterval| r.start <= moment && moment < r.end;
    let mut live: Vec<(u64, LiveBuffer)> = Vec::new();
    for &(class, offset) in &layout.offsets {
        if !counted(analysis, joined, class).iter().any(holds) {
            continue;
        }
        let buffer = &analysis.buffers[class];
        let held = buffer
            .values
            .iter()
            .copied()
            .filter(|&v| analysis.live.of(v).iter().any(holds))
            .max_by_key(|&v| analysis.live.of(v)[0].start);
        let Some(value) = held else { continue };
        let shape = analysis
            .flow
            .positions
            .shape(analysis.flow.values[value].def);
        live.push((
            offset,
            LiveBuffer {
                class,
                value,
                padded: buffer.size.get(),
                logical: logical_size(&module.shapes, shape).get(),
            },
        ));
    }
    live.sort_by_key(|(offset, b)| (*offset, b.padded, b.class));
    live.dedup_by_key(|(offset, b)| (*offset, b.padded));
    let mut live: Vec<LiveBuffer> = live.into_iter().map(|(_, b)| b).collect();
    live.sort_by_key(|b| (std::cmp::Reverse(b.padded), b.class));
    live
}
