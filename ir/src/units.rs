//! Bytes, offsets and alignments as types, with checked arithmetic.
//!
//! All byte arithmetic of the product goes through here, so that a size that
//! overflows is an error at the place where it arises and never a wrap.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A size or a position in bytes exceeded 2^63 - 1, or an alignment was not a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The sum, product or rounding does not fit 2^63 - 1 bytes.
    #[error("size overflows 2^63 - 1 bytes")]
    Overflow,
    /// The given alignment is zero or not a power of two.
    #[error("alignment {given} is not a power of two")]
    Alignment {
        /// What the caller passed.
        given: u64,
    },
}

/// Largest size any buffer or slab may have.
const MAX_BYTES: u64 = i64::MAX as u64;

/// A number of bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);

    /// `n` bytes, `n` at most 2^63 - 1.
    pub fn new(n: u64) -> Result<Self, UnitError> {
        if n <= MAX_BYTES {
            Ok(Self(n))
        } else {
            Err(UnitError::Overflow)
        }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether there are none.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self + other`.
    pub fn checked_add(self, other: Bytes) -> Result<Bytes, UnitError> {
        Self::new(self.0.checked_add(other.0).ok_or(UnitError::Overflow)?)
    }

    /// `self * n`.
    pub fn checked_mul(self, n: u64) -> Result<Bytes, UnitError> {
        Self::new(self.0.checked_mul(n).ok_or(UnitError::Overflow)?)
    }

    /// `self - other`, or zero where `other` is larger.
    pub fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Bytes {
    /// Binary units with two decimals, as XLA's reports print them: `1.50GiB`, `512B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return f.pad(&format!("{}B", self.0));
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        // 1023.995 would print as 1024.00.
        while value >= 1023.995 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        f.pad(&format!("{value:.2}{}", UNITS[unit]))
    }
}

/// A position in a slab, in bytes from its start.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Offset(u64);

impl Offset {
    /// The start of the slab.
    pub const ZERO: Offset = Offset(0);

    /// `n` bytes from the start, `n` at most 2^63 - 1.
    pub fn new(n: u64) -> Result<Self, UnitError> {
        Bytes::new(n).map(|b| Self(b.get()))
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The position `size` bytes further on.
    pub fn checked_add(self, size: Bytes) -> Result<Offset, UnitError> {
        Bytes(self.0).checked_add(size).map(|b| Offset(b.0))
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A power of two that an offset must be a multiple of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Alignment(u64);

impl Alignment {
    /// Any offset.
    pub const ONE: Alignment = Alignment(1);

    /// Alignment to `n` bytes; `n` must be a power of two of at most 2^62.
    pub fn new(n: u64) -> Result<Self, UnitError> {
        if n.is_power_of_two() && n < MAX_BYTES {
            Ok(Self(n))
        } else {
            Err(UnitError::Alignment { given: n })
        }
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The smallest multiple that is at least `n`.
    pub fn round_up(self, n: Bytes) -> Result<Bytes, UnitError> {
        let sum = n.0.checked_add(self.0 - 1).ok_or(UnitError::Overflow)?;
        Bytes::new(sum & !(self.0 - 1))
    }

    /// Whether `offset` is a multiple.
    pub const fn is_aligned(self, offset: Offset) -> bool {
        offset.0 & (self.0 - 1) == 0
    }
}

impl TryFrom<u64> for Alignment {
    type Error = UnitError;
    fn try_from(n: u64) -> Result<Self, UnitError> {
        Self::new(n)
    }
}

impl From<Alignment> for u64 {
    fn from(a: Alignment) -> u64 {
        a.0
    }
}

/// A half-open range of bytes `[start, end)` in one slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

impl Extent {
    /// The bytes that `size` bytes at `offset` occupy.
    pub fn new(offset: Offset, size: Bytes) -> Result<Self, UnitError> {
        Ok(Self {
            start: offset.get(),
            end: offset.checked_add(size)?.get(),
        })
    }

    /// Length in bytes.
    pub const fn len(self) -> u64 {
        self.end - self.start
    }

    /// Whether there are no bytes.
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Whether the two share a byte.
    pub const fn overlaps(self, other: Extent) -> bool {
        self.start < other.end && other.start < self.end
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.start, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_print_in_binary_units() {
        let show = |n| Bytes::new(n).unwrap().to_string();
        assert_eq!(show(0), "0B");
        assert_eq!(show(1023), "1023B");
        assert_eq!(show(1024), "1.00KiB");
        assert_eq!(show(1536 << 20), "1.50GiB");
        assert_eq!(show((1 << 20) - 1), "1.00MiB");
    }

    #[test]
    fn arithmetic_is_checked() {
        assert_eq!(Bytes::new(1 << 63), Err(UnitError::Overflow));
        let max = Bytes::new(i64::MAX as u64).unwrap();
        assert_eq!(max.checked_add(Bytes(1)), Err(UnitError::Overflow));
        assert_eq!(max.checked_mul(2), Err(UnitError::Overflow));
        assert!(Alignment::new(0).is_err());
        assert!(Alignment::new(48).is_err());
        let a = Alignment::new(64).unwrap();
        assert_eq!(a.round_up(Bytes(65)), Ok(Bytes(128)));
        assert_eq!(a.round_up(Bytes(64)), Ok(Bytes(64)));
        assert!(a.round_up(max).is_err());
    }

    #[test]
    fn touching_extents_do_not_overlap() {
        let a = Extent { start: 0, end: 4 };
        assert!(!a.overlaps(Extent { start: 4, end: 8 }));
        assert!(a.overlaps(Extent { start: 3, end: 4 }));
        assert!(!a.overlaps(Extent { start: 2, end: 2 }) || Extent { start: 2, end: 2 }.is_empty());
    }
}
