//! What a caller may ask of the layout assignment.

/// Who says how arguments and results of the program lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EntryOrder {
    /// The caller: the order of dimensions is that of `entry_computation_layout`, or of the
    /// parameters and the root where the module has none.
    #[default]
    Given,
    /// The compiler, as for JAX's `Layout.AUTO`.
    Free,
}

/// Settings of [`assign`](super::assign).
#[derive(Clone, Debug)]
pub struct LayoutConfig {
    /// Who says how arguments and results lie.
    pub entry: EntryOrder,
    /// Most orders of dimensions tried for one group of arrays; at least 1.
    pub orders: usize,
    /// Most steps of the exhaustive search in what remains of a region after exact reduction.
    pub search_steps: u64,
    /// Rounds of message passing and of local improvement where that is too much.
    pub rounds: u32,
}

impl Default for LayoutConfig {
    fn default() -> Self {
        Self {
            entry: EntryOrder::Given,
            orders: 8,
            search_steps: 200_000,
            rounds: 12,
        }
    }
}
