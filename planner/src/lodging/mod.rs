//! Temporaries inside arguments and outputs that are idle.
//!
//! Under `Accounting::Xla` arguments and outputs have allocations of their own. A donated argument is
//! idle from its last read on, an output until it is written; what is lodged there meanwhile does not
//! burden the heap of temporaries. XLA's buffer assignment lodges a temporary at an allocation's start
//! only. Here several may lie side by side, or take exactly the bytes that the argument leaves or the
//! output takes over in the same instruction, and what is lodged is chosen by what it does for the
//! heap: first of all from what is live where most bytes are in use.

mod bound;

use std::cmp::Reverse;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use slabplan_ir::entity::SecondaryMap;
use slabplan_ir::plan::BufferKind;

use crate::buffers::Buffers;
use crate::interference::ClassId;
use crate::liveness::{Ranges, interval};
use crate::load::Load;
use crate::options::Piece;

/// How many allocations are tried for one temporary, the tightest first.
const MAX_TRIES: usize = 4096;

/// The same, once [`BUDGET`] is spent.
const FEW_TRIES: usize = 64;

/// Tries in total before each temporary gets few.
const BUDGET: usize = 1 << 22;

/// How often at most guests leave again to make room for one that matters more.
const MAX_EXCHANGES: usize = 4096;

/// Moments in one entry of the index of what is live when.
const MOMENTS_PER_BLOCK: u32 = 256;

/// A temporary inside an idle allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lodged {
    /// The temporary.
    pub guest: ClassId,
    /// The argument or output whose bytes it uses.
    pub host: ClassId,
    /// Bytes from the start of the host.
    pub offset: u64,
}

/// What lodging is about.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// All buffers.
    pub buffers: &'a Buffers,
    /// Arguments, outputs and constants of the memory space.
    pub own: &'a [ClassId],
    /// Its temporaries.
    pub temps: &'a [ClassId],
    /// Pairs that may occupy exactly the same bytes.
    pub may_share: &'a [(ClassId, ClassId)],
    /// Pieces of joined arrays: these stay out.
    pub pieces: &'a [Piece],
    /// Alignment of every buffer.
    pub alignment: u64,
}

/// What is lodged, and what no other choice can do better than.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The temporaries inside idle allocations.
    pub lodged: Vec<Lodged>,
    /// Bytes, in steps of the alignment, that the heap needs at its fullest moment whatever is lodged where.
    pub heap_bound: u64,
}

/// Lodges temporaries so that the heap of the others has few bytes in use at its peak.
///
/// Peak by peak, the largest temporaries first, each in the smallest allocation that has room; where none has, guests
/// leave that the heap can bear. Then whatever else finds room. O((budget + temporaries · few tries) · guests of a host).
pub fn lodge(question: &Question<'_>) -> Answer {
    let mut lodging = Lodging::new(question);
    if !lodging.hosts.is_empty() {
        lodging.relieve_peaks();
        lodging.lodge_the_rest();
    }
    Answer {
        heap_bound: lodging.heap_bound(),
        lodged: lodging.lodged(),
    }
}

/// An allocation that is idle at times.
struct Host {
    class: ClassId,
    size: u64,
    guests: Vec<(ClassId, u64)>,
}

struct Lodging<'a> {
    question: &'a Question<'a>,
    /// By size.
    hosts: Vec<Host>,
    /// Host of each guest.
    host_of: SecondaryMap<ClassId, Option<usize>>,
    /// Temporaries that may be lodged, the largest first.
    candidates: Vec<ClassId>,
    /// Candidates by block of moments in which they are live, the largest first.
    live_in: Vec<Vec<ClassId>>,
    /// Pairs, both ways round, sorted.
    pairs: Vec<(ClassId, ClassId)>,
    /// Classes that pieces tie, sorted.
    tied: Vec<ClassId>,
    /// Bytes in use in the heap.
    load: Load,
    tries: usize,
}

impl<'a> Lodging<'a> {
    fn new(question: &'a Question<'a>) -> Self {
        let buffers = question.buffers;
        let mut hosts: Vec<Host> = question
            .own
            .iter()
            .filter(|&&c| is_idle_at_times(&buffers[c].kind) && !buffers[c].size.is_zero())
            .map(|&class| Host {
                class,
                size: buffers[class].size.get(),
                guests: Vec::new(),
            })
            .collect();
        hosts.sort_by_key(|h| (h.size, h.class));
        let mut tied: Vec<ClassId> = question
            .pieces
            .iter()
            .flat_map(|p| [p.whole, p.piece])
            .collect();
        tied.sort_unstable();
        let largest = hosts.last().map_or(0, |h| h.size);
        let mut candidates: Vec<ClassId> = question
            .temps
            .iter()
            .copied()
            .filter(|&c| {
                let size = buffers[c].size.get();
                size > 0 && size <= largest && tied.binary_search(&c).is_err()
            })
            .collect();
        candidates.sort_by_key(|&c| (Reverse(buffers[c].size), c));
        let both = question
            .may_share
            .iter()
            .flat_map(|&(a, b)| [(a, b), (b, a)]);
        let mut pairs: Vec<(ClassId, ClassId)> = both.collect();
        pairs.sort_unstable();
        Self {
            live_in: live_in_blocks(buffers, &candidates),
            load: heap_load(question),
            question,
            hosts,
            host_of: SecondaryMap::filled(buffers.len(), None),
            candidates,
            pairs,
            tied,
            tries: 0,
        }
    }

    fn live(&self, class: ClassId) -> &'a Ranges {
        &self.question.buffers[class].live
    }

    fn size(&self, class: ClassId) -> u64 {
        self.question.buffers[class].size.get()
    }

    fn padded(&self, class: ClassId) -> i64 {
        self.size(class).next_multiple_of(self.question.alignment) as i64
    }

    /// Takes from the fullest moment of the heap what finds room elsewhere, until nothing does.
    fn relieve_peaks(&mut self) {
        let mut exchanges = 0;
        loop {
            let (peak, most) = (self.load.peak(), self.load.most());
            if most <= 0 {
                return;
            }
            let block = (peak / MOMENTS_PER_BLOCK) as usize;
            let here: Vec<ClassId> = self
                .live_in
                .get(block)
                .into_iter()
                .flatten()
                .copied()
                .filter(|&c| self.host_of[c].is_none() && holds(self.live(c), peak))
                .collect();
            for &class in &here {
                if self.load.at(peak) < self.load.most() {
                    break;
                }
                if let Some((host, offset)) = self.room(class) {
                    self.move_in(class, host, offset);
                }
            }
            if self.load.at(peak) < most {
                continue;
            }
            exchanges += 1;
            if exchanges > MAX_EXCHANGES || !here.iter().any(|&class| self.exchange(class, most)) {
                return;
            }
        }
    }

    fn lodge_the_rest(&mut self) {
        for class in std::mem::take(&mut self.candidates) {
            if self.host_of[class].is_none()
                && let Some((host, offset)) = self.room(class)
            {
                self.move_in(class, host, offset);
            }
        }
    }

    /// The smallest host with room for `class`, and where.
    fn room(&mut self, class: ClassId) -> Option<(usize, u64)> {
        let tries = if self.tries < BUDGET {
            MAX_TRIES
        } else {
            FEW_TRIES
        };
        let first = self.hosts.partition_point(|h| h.size < self.size(class));
        let end = self.hosts.len().min(first + tries);
        (first..end).find_map(|h| {
            self.tries += 1 + self.hosts[h].guests.len() / 8;
            Some((h, self.offset_in(h, class)?))
        })
    }

    /// The lowest offset at which `class` meets nothing in a host.
    fn offset_in(&self, host: usize, class: ClassId) -> Option<u64> {
        let it = &self.hosts[host];
        let (live, size) = (self.live(class), self.size(class));
        let takes_over = overlap(self.live(it.class), live);
        if takes_over && !(it.size == size && self.is_pair(class, it.class)) {
            return None;
        }
        // What is met there: first byte, end, and whether exactly the same bytes are free to use.
        let guests = it.guests.iter().filter(|g| overlap(self.live(g.0), live));
        let met: SmallVec<[(u64, u64, bool); 8]> = guests
            .map(|&(guest, at)| (at, at + self.size(guest), self.is_pair(class, guest)))
            .collect();
        let is_free = |at: u64| {
            met.iter().all(|&(low, high, is_pair)| {
                high <= at || at + size <= low || (is_pair && (low, high) == (at, at + size))
            })
        };
        let align = self.question.alignment;
        let behind = met.iter().map(|&(_, high, _)| high.next_multiple_of(align));
        let onto = met.iter().filter(|it| it.2).map(|it| it.0);
        std::iter::once(0)
            .chain(behind)
            .chain(onto)
            .filter(|&at| at + size <= it.size && (at == 0 || !takes_over) && is_free(at))
            .min()
    }

    fn is_pair(&self, a: ClassId, b: ClassId) -> bool {
        self.pairs.binary_search(&(a, b)).is_ok()
    }

    fn move_in(&mut self, class: ClassId, host: usize, offset: u64) {
        self.hosts[host].guests.push((class, offset));
        self.host_of[class] = Some(host);
        self.load.add(self.live(class), -self.padded(class));
    }

    fn move_out(&mut self, class: ClassId) {
        if let Some(host) = self.host_of[class].take() {
            self.hosts[host].guests.retain(|g| g.0 != class);
            self.load.add(self.live(class), self.padded(class));
        }
    }

    /// Lodges `class` in a host from which guests leave that, in the heap, stay below `most` bytes in use.
    fn exchange(&mut self, class: ClassId, most: i64) -> bool {
        let size = self.size(class);
        let first = self.hosts.partition_point(|h| h.size < size);
        let end = self.hosts.len().min(first + FEW_TRIES);
        for host in first..end {
            let own = self.live(self.hosts[host].class);
            if overlap(own, self.live(class)) {
                continue;
            }
            let met = |&&(guest, offset): &&(ClassId, u64)| {
                offset < size && overlap(self.live(guest), self.live(class))
            };
            let leaving: Vec<(ClassId, u64)> = self.hosts[host]
                .guests
                .iter()
                .filter(met)
                .copied()
                .collect();
            for &(guest, _) in &leaving {
                self.move_out(guest);
            }
            self.load.add(self.live(class), -self.padded(class));
            let is_borne = leaving
                .iter()
                .all(|&(guest, _)| self.load.most_during(self.live(guest)) < most);
            self.load.add(self.live(class), self.padded(class));
            if is_borne {
                self.move_in(class, host, 0);
                return true;
            }
            for (guest, offset) in leaving {
                self.move_in(guest, host, offset);
            }
        }
        false
    }

    fn is_candidate(&self, class: ClassId) -> bool {
        self.tied.binary_search(&class).is_err()
    }

    fn lodged(self) -> Vec<Lodged> {
        let of = |h: Host| {
            let host = h.class;
            h.guests.into_iter().map(move |(guest, offset)| Lodged {
                guest,
                host,
                offset,
            })
        };
        self.hosts.into_iter().flat_map(of).collect()
    }
}

/// The heap's bytes in use when nothing is lodged; a result that may take an operand's bytes counts once with it.
fn heap_load(question: &Question<'_>) -> Load {
    let buffers = question.buffers;
    let ends = question
        .temps
        .iter()
        .filter_map(|&c| buffers[c].live.last());
    let mut load = Load::new(ends.map(|r| r.end).max().unwrap_or(0));
    let mut is_temp = SecondaryMap::filled(buffers.len(), false);
    for &class in question.temps {
        is_temp[class] = true;
        let padded = buffers[class]
            .size
            .get()
            .next_multiple_of(question.alignment);
        load.add(&buffers[class].live, padded as i64);
    }
    // Each buffer once at each moment.
    let mut met: FxHashSet<(ClassId, u32)> = FxHashSet::default();
    for &(a, b) in question
        .may_share
        .iter()
        .filter(|&&(a, b)| is_temp[a] && is_temp[b])
    {
        let padded = buffers[a].size.get().next_multiple_of(question.alignment);
        for moment in meetings(&buffers[a].live, &buffers[b].live) {
            if !met.contains(&(a, moment)) && !met.contains(&(b, moment)) {
                met.extend([(a, moment), (b, moment)]);
                load.add(&[interval(moment, moment + 1)], -(padded as i64));
            }
        }
    }
    load
}

/// The moments at which both are live: one for each pair of intervals that meet, since bytes pass in one moment.
fn meetings<'a>(a: &'a Ranges, b: &'a Ranges) -> impl Iterator<Item = u32> + 'a {
    a.iter().flat_map(move |x| {
        let starts = b
            .iter()
            .map(move |y| (x.start.max(y.start), x.end.min(y.end)));
        starts
            .filter(|(start, end)| start < end)
            .map(|(start, _)| start)
    })
}

fn overlap(a: &Ranges, b: &Ranges) -> bool {
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        if a[i].start.max(b[j].start) < a[i].end.min(b[j].end) {
            return true;
        }
        if a[i].end <= b[j].end {
            i += 1;
        } else {
            j += 1;
        }
    }
    false
}

fn holds(live: &Ranges, moment: u32) -> bool {
    live.iter().any(|r| r.start <= moment && moment < r.end)
}

fn live_in_blocks(buffers: &Buffers, classes: &[ClassId]) -> Vec<Vec<ClassId>> {
    let mut blocks: Vec<Vec<ClassId>> = Vec::new();
    for &class in classes {
        for r in &buffers[class].live {
            let (first, last) = (r.start / MOMENTS_PER_BLOCK, (r.end - 1) / MOMENTS_PER_BLOCK);
            for block in first as usize..=last as usize {
                if blocks.len() <= block {
                    blocks.resize(block + 1, Vec::new());
                }
                if blocks[block].last() != Some(&class) {
                    blocks[block].push(class);
                }
            }
        }
    }
    blocks
}

fn is_idle_at_times(kind: &BufferKind) -> bool {
    matches!(
        kind,
        BufferKind::Output | BufferKind::Parameter { donated: true, .. }
    )
}
