//! What the packer is asked for and what it answers.

/// How hard to try. Every figure is a count of work, never of time, so that results are reproducible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Effort {
    /// One near-linear pass; for huge inputs or quick looks.
    Fast,
    /// Several heuristics, then a bounded exact search.
    #[default]
    Default,
    /// Search on until the packing is proved optimal or the caller stops it.
    Max,
}

/// Settings of the packer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PackConfig {
    /// How hard to try.
    pub effort: Effort,
    /// Which random choices are made, for portfolios: each number searches in other orders, and 0 is as good as any.
    pub variation: u32,
    /// Where set, and no capacity is given: the nodes that search may spend before its first gain, fewer where
    /// there are many buffers; ejections are limited with it.
    pub patience: Option<u64>,
}

/// What the packer has reached so far. Handed to the caller's callback now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Lowest height found so far, in bytes; `u64::MAX` before there is a first packing.
    pub height: u64,
    /// No packing is lower than this, in bytes.
    pub lower_bound: u64,
    /// Search nodes (buffers placed) so far.
    pub nodes: u64,
    /// What is running.
    pub algorithm: &'static str,
}

/// The caller's answer to a [`Progress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    Continue,
    /// Return the best packing found so far. This is how a deadline is set: the packer reads no clock.
    Stop,
}

/// Offsets for every buffer of a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Offset of each buffer in bytes, by index. Always valid, whatever stopped the search.
    pub offsets: Vec<u64>,
    /// Highest byte used plus one.
    pub height: u64,
    /// No packing is lower than this.
    pub lower_bound: u64,
    /// True when no packing is lower than `height`: the bound is met, or the search was exhausted.
    pub optimal: bool,
    /// Whether the height is within the capacity (always, when there is none).
    pub feasible: bool,
    /// What found the packing.
    pub algorithm: &'static str,
    /// Search nodes spent in total.
    pub effort_spent: u64,
}
