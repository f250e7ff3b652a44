//! Best fit with coalescing, by the rules of `tsl::BFCAllocator` (`xla/tsl/framework/bfc_allocator.cc`),
//! which JAX and TensorFlow use on GPUs.
//!
//! Sizes are rounded up to 256 bytes. Free chunks lie in 21 bins by power of two; the smallest that
//! is large enough is taken, the lowest address among equals, and split if it is at least twice as
//! large or 128 MiB larger than asked for. A freed chunk merges with free neighbours of its region.
//! When nothing fits, a further region is asked of the device: the first of 2 MiB, each twice the one
//! before, or larger where the request is; or all memory at once if it is preallocated.

use std::collections::BTreeSet;

use super::heap::{FreeChunk, Heap};
use super::{Address, Allocator};

/// Every size is a multiple of this (`kMinAllocationSize`).
const UNIT: u64 = 256;
/// `kNumBins`.
const BINS: usize = 21;
/// Size of the first region when memory is asked for as needed.
const FIRST_REGION: u64 = 2 << 20;
/// A chunk that is this much larger than the request is split even if less than twice as large.
const LARGEST_WASTE: u64 = 128 << 20;

/// How memory is asked of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Region by region (`allow_growth`, JAX's `XLA_PYTHON_CLIENT_PREALLOCATE=false`).
    Regions,
    /// All of it at the first request.
    Preallocate,
}

/// A BFC allocator.
#[derive(Debug)]
pub struct Bfc {
    heap: Heap,
    bins: [BTreeSet<FreeChunk>; BINS],
    capacity: u64,
    next_region: u64,
    device_calls: u64,
}

impl Bfc {
    /// For a device of `capacity` bytes.
    pub fn new(capacity: u64, growth: Growth) -> Self {
        let first = match growth {
            Growth::Regions => capacity.min(FIRST_REGION),
            Growth::Preallocate => capacity,
        };
        Self {
            heap: Heap::default(),
            bins: std::array::from_fn(|_| BTreeSet::new()),
            capacity,
            next_region: rounded(first).max(UNIT),
            device_calls: 0,
        }
    }

    /// Asks the device for a region that holds `bytes`.
    fn extend(&mut self, bytes: u64) -> Option<()> {
        let available = (self.capacity.saturating_sub(self.heap.reserved())) / UNIT * UNIT;
        if bytes > available {
            return None;
        }
        let mut grown = false;
        while bytes > self.next_region {
            self.next_region = self.next_region.saturating_mul(2);
            grown = true;
        }
        let chunk = self.heap.add_region(self.next_region.min(available));
        self.device_calls += 1;
        if !grown {
            self.next_region = self.next_region.saturating_mul(2);
        }
        self.insert(chunk);
        Some(())
    }

    /// The smallest free chunk of at least `bytes`, no longer in its bin.
    fn find(&mut self, bytes: u64) -> Option<FreeChunk> {
        let first = bin_of(bytes);
        let found = self.bins[first..]
            .iter()
            .find_map(|bin| bin.range((bytes, 0)..).next().copied())?;
        self.remove(found);
        Some(found)
    }

    fn insert(&mut self, chunk: FreeChunk) {
        self.bins[bin_of(chunk.0)].insert(chunk);
    }

    fn remove(&mut self, chunk: FreeChunk) {
        self.bins[bin_of(chunk.0)].remove(&chunk);
    }
}

impl Allocator for Bfc {
    fn allocate(&mut self, bytes: u64) -> Option<Address> {
        let bytes = rounded(bytes).max(UNIT);
        let (size, at) = if let Some(chunk) = self.find(bytes) {
            chunk
        } else {
            self.extend(bytes)?;
            self.find(bytes)?
        };
        let split = size >= bytes.saturating_mul(2) || size - bytes >= LARGEST_WASTE;
        if let Some(rest) = self.heap.take(at, if split { bytes } else { size }) {
            self.insert(rest);
        }
        Some(at)
    }

    fn free(&mut self, address: Address) {
        let Some(freed) = self.heap.free(address) else {
            return;
        };
        for chunk in freed.swallowed {
            self.remove(chunk);
        }
        self.insert(freed.chunk);
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
        let last = self.bins.iter().rev().find_map(BTreeSet::last);
        last.map_or(0, |&(size, _)| size)
    }

    fn state(&self, out: &mut Vec<u64>) {
        self.heap.state(out);
        out.push(self.next_region);
    }
}

fn rounded(bytes: u64) -> u64 {
    bytes.div_ceil(UNIT).saturating_mul(UNIT)
}

/// The bin of chunks of `bytes`: 0 below 512, then one for each power of two; the last holds all
/// larger ones.
fn bin_of(bytes: u64) -> usize {
    let log = (bytes.max(UNIT) / UNIT).ilog2() as usize;
    log.min(BINS - 1)
}
