//! Temporaries inside arguments and outputs that are idle, as XLA's buffer assignment places them.
//!
//! Under `Accounting::Xla` arguments and outputs have allocations of their own. A donated argument is
//! idle from its last read on, an output until it is written; XLA puts a temporary into such an
//! allocation where it fits and interferes with nothing there, at the allocation's start. What is
//! lodged this way does not burden the heap of temporaries.

use std::collections::BTreeMap;

use slabplan_ir::plan::BufferKind;

use crate::buffers::Buffers;
use crate::interference::ClassId;
use crate::liveness::Ranges;
use crate::options::Piece;

/// How many allocations are tried for one temporary, the tightest first.
const MAX_TRIES: usize = 4096;

/// The same, once [`BUDGET`] is spent.
const FEW_TRIES: usize = 64;

/// Tries in total before each temporary gets few: the largest come first, and count most.
const BUDGET: usize = 1 << 23;

/// An allocation that is idle at times.
struct Host {
    class: ClassId,
    size: u64,
    /// Busy intervals: start to end.
    busy: BTreeMap<u32, u32>,
}

impl Host {
    /// Whether the allocation is idle during all of `live`.
    fn is_idle(&self, live: &Ranges) -> bool {
        live.iter().all(|r| {
            let before = self.busy.range(..r.end).next_back();
            before.is_none_or(|(_, &end)| end <= r.start)
        })
    }
}

/// Lodges temporaries of `classes` in idle allocations of `own`: (temporary, its host).
///
/// Largest first, each in the smallest allocation that is idle throughout its life. Pieces of joined
/// arrays stay out. O((budget + temporaries · few tries) · log intervals).
pub fn lodge(
    buffers: &Buffers,
    own: &[ClassId],
    temps: &[ClassId],
    pieces: &[Piece],
) -> Vec<(ClassId, ClassId)> {
    let mut hosts: Vec<Host> = own
        .iter()
        .filter(|&&c| is_idle_at_times(&buffers[c].kind))
        .map(|&class| Host {
            class,
            size: buffers[class].size.get(),
            busy: buffers[class]
                .live
                .iter()
                .map(|r| (r.start, r.end))
                .collect(),
        })
        .collect();
    hosts.sort_by_key(|h| (h.size, h.class));

    let mut tied: Vec<ClassId> = pieces.iter().flat_map(|p| [p.whole, p.piece]).collect();
    tied.sort_unstable();
    let mut guests: Vec<ClassId> = temps
        .iter()
        .copied()
        .filter(|&c| !buffers[c].size.is_zero() && tied.binary_search(&c).is_err())
        .collect();
    guests.sort_by_key(|&c| (std::cmp::Reverse(buffers[c].size), c));

    let mut lodged = Vec::new();
    let mut spent = 0;
    for guest in guests {
        let live = &buffers[guest].live;
        let size = buffers[guest].size.get();
        let first = hosts.partition_point(|h| h.size < size);
        let tries = if spent < BUDGET { MAX_TRIES } else { FEW_TRIES };
        let end = hosts.len().min(first + tries);
        let found = hosts[first..end].iter().position(|h| h.is_idle(live));
        spent += found.map_or(end - first, |k| k + 1);
        if let Some(k) = found {
            let host = &mut hosts[first + k];
            host.busy.extend(live.iter().map(|r| (r.start, r.end)));
            lodged.push((guest, host.class));
        }
    }
    lodged
}

fn is_idle_at_times(kind: &BufferKind) -> bool {
    matches!(
        kind,
        BufferKind::Output | BufferKind::Parameter { donated: true, .. }
    )
}
