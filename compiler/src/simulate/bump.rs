//! A pointer that rises with every allocation and falls back when what lies on top is free.
//!
//! ```text
//! | a | b | c |          free b: a hole, lost until c goes too
//! | a |###| c |          free c: the pointer falls to the end of a
//! | a |
//! ```

use std::collections::BTreeMap;

use super::{Address, Allocator};

/// Every block begins at a multiple of this.
const UNIT: u64 = 256;

/// A bump allocator.
#[derive(Debug)]
pub struct Bump {
    /// End of every block below the pointer, and whether it is free.
    blocks: BTreeMap<Address, (Address, bool)>,
    top: Address,
    reserved: u64,
    in_use: u64,
    capacity: u64,
}

impl Bump {
    /// For a device of `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        Self {
            blocks: BTreeMap::new(),
            top: 0,
            reserved: 0,
            in_use: 0,
            capacity,
        }
    }
}

impl Allocator for Bump {
    fn allocate(&mut self, bytes: u64) -> Option<Address> {
        let bytes = bytes.max(1).div_ceil(UNIT).saturating_mul(UNIT);
        let at = self.top;
        let end = at.checked_add(bytes).filter(|&end| end <= self.capacity)?;
        self.blocks.insert(at, (end, false));
        self.top = end;
        self.in_use += bytes;
        self.reserved = self.reserved.max(end);
        Some(at)
    }

    fn free(&mut self, address: Address) {
        let Some((end, free @ false)) = self.blocks.get_mut(&address) else {
            return;
        };
        *free = true;
        self.in_use -= *end - address;
        while let Some(last) = self.blocks.last_entry()
            && last.get().1
        {
            self.top = *last.key();
            last.remove();
        }
    }

    fn reserved(&self) -> u64 {
        self.reserved
    }

    fn in_use(&self) -> u64 {
        self.in_use
    }

    fn device_calls(&self) -> u64 {
        // One arena, as large as it comes to be.
        u64::from(self.reserved > 0)
    }

    fn largest_free(&self) -> u64 {
        self.reserved - self.top
    }

    fn state(&self, out: &mut Vec<u64>) {
        for (&at, &(end, free)) in &self.blocks {
            out.extend([at, end, u64::from(free)]);
        }
    }
}
