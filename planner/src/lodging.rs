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
const MAX_TRIES: usize = 128;

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
/// arrays stay out. O(temporaries · tries · log intervals).
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
    for guest in guests {
        let live = &buffers[guest].live;
        let size = buffers[guest].size.get();
        let first = hosts.partition_point(|h| h.size < size);
        let end = hosts.len().min(first + MAX_TRIES);
        if let Some(host) = hosts[first..end].iter_mut().find(|h| h.is_idle(live)) {
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
