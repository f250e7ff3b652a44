//! The one allocation of a memory space.

use crate::exec::ExecError;

/// Bytes of one memory space, allocated once, aligned as the space asks.
///
/// A vector with room to spare and a window that starts at the right address: aligned without
/// `unsafe`, at the price of at most one alignment of unused bytes.
#[derive(Debug)]
pub(crate) struct Slab {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Slab {
    /// `len` zeroed bytes whose address is a multiple of `alignment` (a power of two), in an allocation of
    /// at least `reserve`.
    ///
    /// # Errors
    /// [`ExecError::OutOfMemory`] if the machine does not give that many.
    pub(crate) fn new(len: usize, reserve: usize, alignment: usize) -> Result<Self, ExecError> {
        let wanted = len.max(reserve);
        let out_of_memory = || ExecError::OutOfMemory {
            bytes: wanted as u64,
        };
        let room = wanted
            .checked_add(alignment - 1)
            .ok_or_else(out_of_memory)?;
        // Asked first, because an allocation of zeros can't fail gently; zeros, because the machine gives
        // them without touching pages that are never used.
        Vec::<u8>::new()
            .try_reserve_exact(room)
            .map_err(|_| out_of_memory())?;
        let bytes = vec![0; room];
        let start = bytes.as_ptr().align_offset(alignment);
        Ok(Self { bytes, start, len })
    }

    /// Bytes that it can have without another allocation.
    pub(crate) fn room(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Makes it `len` bytes, at most [`room`](Self::room).
    pub(crate) fn set_len(&mut self, len: usize) {
        self.len = len.min(self.room());
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    /// All bytes, to write to.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_at_a_multiple_of_the_alignment() {
        for alignment in [1, 4, 512, 16384] {
            let mut slab = Slab::new(100, 0, alignment).unwrap();
            assert_eq!(slab.bytes().as_ptr() as usize % alignment, 0);
            assert_eq!(slab.bytes_mut().len(), 100);
            let reserved = Slab::new(100, 5000, alignment).unwrap();
            assert_eq!(reserved.bytes().len(), 100);
        }
    }

    #[test]
    fn refuses_what_no_machine_has() {
        assert!(matches!(
            Slab::new(usize::MAX / 2, 0, 4096),
            Err(ExecError::OutOfMemory { .. })
        ));
        assert!(Slab::new(usize::MAX, 0, 4096).is_err());
    }
}
