//! One string per module holds every name and every attribute kept as text.
//!
//! The parser copies the source in once and names refer to ranges of it, so a
//! module of a hundred thousand instructions costs no allocation per name.

use std::fmt;

/// A range of a [`StringPool`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Str {
    start: u32,
    len: u32,
}

impl Str {
    /// The empty string, valid in every pool.
    pub const EMPTY: Str = Str { start: 0, len: 0 };

    /// Whether this is the empty string.
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Byte position in the pool; for a parsed module this is the position in the source text.
    pub const fn start(self) -> u32 {
        self.start
    }
}

/// The pool would exceed 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("module text exceeds 4 GiB")]
pub struct PoolFull;

/// Owner of the strings of one module.
#[derive(Clone, Default)]
pub struct StringPool {
    text: String,
}

impl StringPool {
    /// A pool that begins with `source`.
    pub fn from_source(source: &str) -> Result<Self, PoolFull> {
        u32::try_from(source.len()).map_err(|_| PoolFull)?;
        Ok(Self {
            text: source.to_owned(),
        })
    }

    /// Everything in the pool; for a parsed module it begins with the source text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The string `s` refers to. `s` must come from this pool.
    pub fn get(&self, s: Str) -> &str {
        &self.text[s.start as usize..(s.start + s.len) as usize]
    }

    /// A reference to bytes `start..end` of the pool, which must be on character boundaries.
    pub fn range(&self, start: usize, end: usize) -> Str {
        debug_assert!(self.text.is_char_boundary(start) && self.text.is_char_boundary(end));
        Str {
            start: start as u32,
            len: (end - start) as u32,
        }
    }

    /// Adds a string; returns an error past 4 GiB.
    pub fn try_push(&mut self, s: &str) -> Result<Str, PoolFull> {
        let start = self.text.len();
        u32::try_from(start + s.len()).map_err(|_| PoolFull)?;
        self.text.push_str(s);
        Ok(self.range(start, start + s.len()))
    }

    /// Adds a string to a pool that has room for it.
    ///
    /// # Panics
    /// Past 4 GiB; use [`try_push`](Self::try_push) on unbounded input.
    pub fn push(&mut self, s: &str) -> Str {
        self.try_push(s).expect("module text exceeds 4 GiB")
    }
}

impl fmt::Debug for StringPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StringPool({} bytes)", self.text.len())
    }
}
