//! Lists of borrowed arrays that keep their memory from one operation to the next.

use crate::exec::kernels::{ArrayMut, ArrayRef};

/// Room for the operands and results of one operation, and for parts of the slabs.
#[derive(Debug, Default)]
pub(crate) struct Refs {
    reads: Vec<ArrayRef<'static>>,
    writes: Vec<ArrayMut<'static>>,
    parts: Vec<&'static [u8]>,
}

/// The lists while one operation uses them.
pub(crate) struct Lists<'a> {
    pub(crate) reads: Vec<ArrayRef<'a>>,
    pub(crate) writes: Vec<ArrayMut<'a>>,
    /// Parts of the slabs.
    pub(crate) parts: Vec<&'a [u8]>,
}

impl Refs {
    /// Room for `n` operands and `n` results.
    pub(crate) fn with_capacity(n: usize) -> Self {
        Self {
            reads: Vec::with_capacity(n),
            writes: Vec::with_capacity(n),
            parts: Vec::with_capacity(n),
        }
    }

    /// Two empty lists; give them back afterwards.
    pub(crate) fn take<'a>(&mut self) -> Lists<'a> {
        Lists {
            reads: std::mem::take(&mut self.reads),
            writes: recycled(std::mem::take(&mut self.writes)),
            parts: std::mem::take(&mut self.parts),
        }
    }

    /// Keeps the memory of the lists.
    pub(crate) fn give_back(&mut self, lists: Lists<'_>) {
        self.reads = recycled_reads(lists.reads);
        self.writes = recycled(lists.writes);
        self.parts = recycled_parts(lists.parts);
    }
}

/// The same memory, emptied. Collecting a vector's own iterator reuses its memory; the test of
/// allocations would notice if it no longer did.
fn recycled<'b>(mut list: Vec<ArrayMut<'_>>) -> Vec<ArrayMut<'b>> {
    list.clear();
    list.into_iter()
        .map(|_| unreachable!("the list is empty"))
        .collect()
}

/// As [`recycled`].
fn recycled_reads<'b>(mut list: Vec<ArrayRef<'_>>) -> Vec<ArrayRef<'b>> {
    list.clear();
    list.into_iter()
        .map(|_| unreachable!("the list is empty"))
        .collect()
}

/// As [`recycled`].
fn recycled_parts<'b>(mut list: Vec<&[u8]>) -> Vec<&'b [u8]> {
    list.clear();
    list.into_iter()
        .map(|_| unreachable!("the list is empty"))
        .collect()
}
