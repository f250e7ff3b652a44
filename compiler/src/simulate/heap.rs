//! Regions of device memory, cut into chunks: what the allocators that split and coalesce share.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::Address;

/// Between regions, so that two of them never touch and chunks never merge across.
const GAP: u64 = 1 << 30;

/// Part of a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    /// Bytes.
    pub(super) size: u64,
    /// Where its region begins.
    pub(super) region: Address,
    /// Whether nothing lies in it.
    pub(super) free: bool,
}

/// A free chunk as an ordered set keeps it: smallest first, lowest address first among equals.
pub(super) type FreeChunk = (u64, Address);

/// What freeing a chunk changed among the free ones.
#[derive(Debug)]
pub(super) struct Freed {
    /// The free neighbours that it swallowed.
    pub(super) swallowed: SmallVec<[FreeChunk; 2]>,
    /// The free chunk that it became.
    pub(super) chunk: FreeChunk,
}

/// All regions of one allocator.
#[derive(Debug, Default)]
pub(super) struct Heap {
    chunks: BTreeMap<Address, Chunk>,
    regions: BTreeMap<Address, u64>,
    reserved: u64,
    in_use: u64,
    next_region: Address,
}

impl Heap {
    /// Adds a region and returns the one free chunk that it is.
    pub(super) fn add_region(&mut self, size: u64) -> FreeChunk {
        let at = self.next_region;
        self.next_region = at.saturating_add(size).saturating_add(GAP);
        self.reserved += size;
        self.regions.insert(at, size);
        let chunk = Chunk {
            size,
            region: at,
            free: true,
        };
        self.chunks.insert(at, chunk);
        (size, at)
    }

    /// Gives back a region that is one free chunk.
    pub(super) fn remove_region(&mut self, at: Address) {
        if let Some(size) = self.regions.remove(&at) {
            self.reserved -= size;
            self.chunks.remove(&at);
        }
    }

    /// The regions of which nothing is in use.
    pub(super) fn free_regions(&self) -> Vec<FreeChunk> {
        let whole = |(&at, &size): (&Address, &u64)| {
            let chunk = self.chunks.get(&at)?;
            (chunk.free && chunk.size == size).then_some((size, at))
        };
        self.regions.iter().filter_map(whole).collect()
    }

    /// Takes the free chunk at `at` into use; `keep` is how many of its bytes, the rest becomes a
    /// free chunk that is returned.
    pub(super) fn take(&mut self, at: Address, keep: u64) -> Option<FreeChunk> {
        let chunk = self.chunks.get_mut(&at)?;
        let rest = chunk.size - keep;
        chunk.free = false;
        chunk.size = keep;
        let region = chunk.region;
        self.in_use += keep;
        if rest == 0 {
            return None;
        }
        let remainder = Chunk {
            size: rest,
            region,
            free: true,
        };
        self.chunks.insert(at + keep, remainder);
        Some((rest, at + keep))
    }

    /// Frees the chunk at `at` and merges it with the free chunks beside it. `None` where there is
    /// no chunk in use.
    pub(super) fn free(&mut self, at: Address) -> Option<Freed> {
        let chunk = *self.chunks.get(&at).filter(|c| !c.free)?;
        self.in_use -= chunk.size;
        let mut swallowed = SmallVec::new();
        let (mut start, mut size) = (at, chunk.size);
        let mergeable = |c: &Chunk| c.free && c.region == chunk.region;
        if let Some((&next, &right)) = self.chunks.range(at + 1..).next()
            && mergeable(&right)
        {
            self.chunks.remove(&next);
            swallowed.push((right.size, next));
            size += right.size;
        }
        if let Some((&before, &left)) = self.chunks.range(..at).next_back()
            && mergeable(&left)
        {
            self.chunks.remove(&at);
            swallowed.push((left.size, before));
            start = before;
            size += left.size;
        }
        let merged = Chunk {
            size,
            region: chunk.region,
            free: true,
        };
        self.chunks.insert(start, merged);
        Some(Freed {
            swallowed,
            chunk: (size, start),
        })
    }

    /// The chunk at `at`.
    pub(super) fn chunk(&self, at: Address) -> Option<Chunk> {
        self.chunks.get(&at).copied()
    }

    /// Bytes of all regions.
    pub(super) fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Bytes of the chunks in use.
    pub(super) fn in_use(&self) -> u64 {
        self.in_use
    }

    /// Every chunk, in order of address.
    pub(super) fn state(&self, out: &mut Vec<u64>) {
        for (&at, chunk) in &self.chunks {
            out.extend([at, chunk.size, u64::from(chunk.free)]);
        }
        out.push(self.next_region);
    }
}
