//! A caching allocator in the manner of PyTorch's (`c10/cuda/CUDACachingAllocator.cpp`), with its default
//! settings and one stream.
//!
//! Sizes are rounded up to 512 bytes. Requests up to 1 MiB are cut from segments of 2 MiB; others up
//! to 10 MiB from segments of 20 MiB; larger ones get a segment of their own, rounded up to 2 MiB. The
//! smallest cached block that fits is taken; the rest of it is split off if it is at least 512 bytes
//! (small) or more than 1 MiB (large). Freed blocks stay cached and merge within their segment. When the
//! device has no more, all segments that are wholly free go back to it, and it is asked once more.

use std::collections::BTreeSet;

use super::heap::{FreeChunk, Heap};
use super::{Address, Allocator};

/// `kMinBlockSize`.
const UNIT: u64 = 512;
/// Largest small request (`kSmallSize`).
const SMALL: u64 = 1 << 20;
/// Segments of small requests (`kSmallBuffer`).
const SMALL_SEGMENT: u64 = 2 << 20;
/// Smallest request with a segment of its own (`kMinLargeAlloc`).
const HUGE: u64 = 10 << 20;
/// Segments of the requests between (`kLargeBuffer`).
const LARGE_SEGMENT: u64 = 20 << 20;
/// What segments of their own are rounded up to (`kRoundLarge`).
const HUGE_UNIT: u64 = 2 << 20;

/// A caching allocator.
#[derive(Debug)]
pub struct Caching {
    heap: Heap,
    small: BTreeSet<FreeChunk>,
    large: BTreeSet<FreeChunk>,
    /// Where the segments of the small pool begin.
    small_segments: BTreeSet<Address>,
    capacity: u64,
    device_calls: u64,
}

impl Caching {
    /// For a device of `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        Self {
            heap: Heap::default(),
            small: BTreeSet::new(),
            large: BTreeSet::new(),
            small_segments: BTreeSet::new(),
            capacity,
            device_calls: 0,
        }
    }

    fn pool(&mut self, small: bool) -> &mut BTreeSet<FreeChunk> {
        if small {
            &mut self.small
        } else {
            &mut self.large
        }
    }

    /// A new segment for a request of `bytes`.
    fn segment(&mut self, bytes: u64) -> Option<FreeChunk> {
        let size = if bytes <= SMALL {
            SMALL_SEGMENT
        } else if bytes < HUGE {
            LARGE_SEGMENT
        } else {
            bytes.div_ceil(HUGE_UNIT).saturating_mul(HUGE_UNIT)
        };
        if size > self.capacity.saturating_sub(self.heap.reserved()) {
            self.release_cached();
        }
        if size > self.capacity.saturating_sub(self.heap.reserved()) {
            return None;
        }
        self.device_calls += 1;
        let chunk = self.heap.add_region(size);
        if bytes <= SMALL {
            self.small_segments.insert(chunk.1);
        }
        Some(chunk)
    }

    /// Gives every wholly free segment back to the device.
    fn release_cached(&mut self) {
        for chunk in self.heap.free_regions() {
            let small = self.small_segments.remove(&chunk.1);
            self.pool(small).remove(&chunk);
            self.heap.remove_region(chunk.1);
            self.device_calls += 1;
        }
    }
}

impl Allocator for Caching {
    fn allocate(&mut self, bytes: u64) -> Option<Address> {
        let bytes = bytes.max(1).div_ceil(UNIT).saturating_mul(UNIT);
        let small = bytes <= SMALL;
        let cached = self.pool(small).range((bytes, 0)..).next().copied();
        let (size, at) = match cached {
            Some(chunk) => {
                self.pool(small).remove(&chunk);
                chunk
            }
            None => self.segment(bytes)?,
        };
        let rest = size - bytes;
        let split = if small { rest >= UNIT } else { rest > SMALL };
        if let Some(rest) = self.heap.take(at, if split { bytes } else { size }) {
            self.pool(small).insert(rest);
        }
        Some(at)
    }

    fn free(&mut self, address: Address) {
        let Some(chunk) = self.heap.chunk(address) else {
            return;
        };
        let small = self.small_segments.contains(&chunk.region);
        let Some(freed) = self.heap.free(address) else {
            return;
        };
        let pool = self.pool(small);
        for chunk in freed.swallowed {
            pool.remove(&chunk);
        }
        pool.insert(freed.chunk);
    }

    fn reserved(&self) -> u64 {
        self.heap.reserved()
    }

    fn in_use(&self) -> u64 {
        self.heap.in_use()
    }

    fn device_calls(&self) -> u64 {
        self.device_calls
    }

    fn largest_free(&self) -> u64 {
        let largest = |pool: &BTreeSet<FreeChunk>| pool.last().map_or(0, |&(size, _)| size);
        largest(&self.small).max(largest(&self.large))
    }

    fn state(&self, out: &mut Vec<u64>) {
        self.heap.state(out);
        out.extend(&self.small_segments);
    }
}
