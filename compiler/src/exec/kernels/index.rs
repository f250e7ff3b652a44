//! Reading indices of any integer type.

use slabplan_ir::ElementType;

use super::scalar::{Int, match_int, width};

/// Reads the elements of an array of indices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Indices {
    width: usize,
    load: fn(&[u8]) -> i64,
}

impl Indices {
    /// A reader of elements of `ty`, if it is an integer type.
    pub(super) fn new(ty: ElementType) -> Option<Self> {
        fn load<T: Int>(bytes: &[u8]) -> i64 {
            let value = T::load(bytes).wide();
            // An unsigned index past i64 is out of bounds upwards.
            if !T::SIGNED && value < 0 {
                i64::MAX
            } else {
                value
            }
        }
        let load: fn(&[u8]) -> i64 = match_int!(ty, T => load::<T>, _ => return None);
        Some(Self {
            width: width(ty),
            load,
        })
    }

    /// Element `i` of `data`.
    pub(super) fn get(&self, data: &[u8], i: usize) -> i64 {
        (self.load)(&data[i * self.width..][..self.width])
    }
}

/// `start` moved so that `size` elements from it lie inside `[0, bound)`; `size` is at most `bound`.
pub(super) fn clamp_start(start: i64, size: usize, bound: usize) -> usize {
    usize::try_from(start).unwrap_or(0).min(bound - size)
}
