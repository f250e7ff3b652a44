//! A device: a name, memory of a fixed size, and what lies in it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::ClientError;
use crate::exec::Slab;

/// How many of the largest allocations statistics and errors name.
const NAMED: usize = 8;

/// A device of a client.
#[derive(Debug)]
pub struct Device {
    name: String,
    capacity: u64,
    preallocated: bool,
    memory: Mutex<Memory>,
    /// The slabs that all programs share, by memory space.
    pub(super) shared: Mutex<SharedSlabs>,
}

#[derive(Debug, Default)]
struct Memory {
    in_use: u64,
    peak: u64,
    made: u64,
    next: u64,
    live: BTreeMap<u64, (String, u64)>,
}

/// Slabs that programs run on in turn.
#[derive(Debug, Default)]
pub(super) struct SharedSlabs {
    pub(super) slabs: BTreeMap<u32, Slab>,
    /// What they take of the device.
    pub(super) reservation: Option<Reservation>,
}

/// The memory of a device, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryStats {
    /// What the device has for programs and arrays.
    pub capacity: u64,
    /// What it has taken: the capacity if it preallocates, else what is in use.
    pub reserved: u64,
    /// What programs and arrays take now.
    pub in_use: u64,
    /// The most they ever took.
    pub peak_in_use: u64,
    /// How many allocations were made.
    pub allocations: u64,
    /// The largest, with what they are.
    pub largest: Vec<(String, u64)>,
}

/// Bytes of a device, given back when dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    /// Not to keep a device alive that holds a reservation itself.
    device: Weak<Device>,
    number: u64,
    bytes: u64,
}

impl Device {
    pub(super) fn new(name: String, capacity: u64, preallocated: bool) -> Self {
        Self {
            name,
            capacity,
            preallocated,
            memory: Mutex::default(),
            shared: Mutex::default(),
        }
    }

    /// Its name: `tpu:0`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its memory holds.
    pub fn memory_stats(&self) -> MemoryStats {
        let memory = self.memory();
        MemoryStats {
            capacity: self.capacity,
            reserved: if self.preallocated {
                self.capacity
            } else {
                memory.in_use
            },
            in_use: memory.in_use,
            peak_in_use: memory.peak,
            allocations: memory.made,
            largest: memory.largest(),
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // The numbers stay right whatever panicked while it held the lock.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `bytes` of the memory for `what`.
    pub(super) fn reserve(
        self: &Arc<Self>,
        what: &str,
        bytes: u64,
    ) -> Result<Reservation, ClientError> {
        let mut memory = self.memory();
        let in_use = memory.in_use.checked_add(bytes);
        let Some(in_use) = in_use.filter(|&n| n <= self.capacity) else {
            return Err(ClientError::OutOfMemory {
                device: self.name.clone(),
                what: what.to_owned(),
                bytes,
                free: self.capacity - memory.in_use,
                capacity: self.capacity,
                largest: memory.largest(),
            });
        };
        memory.in_use = in_use;
        memory.peak = memory.peak.max(in_use);
        memory.made += 1;
        memory.next += 1;
        let number = memory.next;
        memory.live.insert(number, (what.to_owned(), bytes));
        Ok(Reservation {
            device: Arc::downgrade(self),
            number,
            bytes,
        })
    }
}

impl Memory {
    fn largest(&self) -> Vec<(String, u64)> {
        let mut all: Vec<_> = self.live.values().cloned().collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        all.truncate(NAMED);
        all
    }
}

impl Reservation {
    /// Bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let Some(device) = self.device.upgrade() else {
            return;
        };
        let mut memory = device.memory();
        memory.live.remove(&self.number);
        memory.in_use -= self.bytes;
    }
}
