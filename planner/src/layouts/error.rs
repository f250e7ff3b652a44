//! Why no layouts can be assigned.

use slabplan_ir::{InstrId, Module};

use crate::error::PlanError;

/// Who has decided a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PinnedBy {
    /// The caller, for this parameter.
    Parameter(usize),
    /// The caller, for the result.
    Result,
    /// An operation that works on one layout only.
    Operation(InstrId),
}

impl PinnedBy {
    pub(super) fn describe(self, module: &Module) -> String {
        match self {
            PinnedBy::Parameter(n) => format!("the layout given for parameter {n}"),
            PinnedBy::Result => "the layout given for the result".to_owned(),
            PinnedBy::Operation(i) => {
                format!("{} %{}", module.instrs[i].opcode, module.name_of(i))
            }
        }
    }
}

/// Why no layouts can be assigned; the module can still be planned with default ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Two arrays that must lie in the same bytes are given different orders of dimensions.
    #[error(
        "{first} wants {first_value} in order {{{}}}, but {second} wants {second_value}, which must lie in the same bytes, in order {{{}}}",
        comma(first_order),
        comma(second_order)
    )]
    Contradiction {
        /// What fixes the first.
        first: Box<str>,
        /// The first array.
        first_value: Box<str>,
        /// Its order.
        first_order: Vec<u32>,
        /// What fixes the second.
        second: Box<str>,
        /// The second array.
        second_value: Box<str>,
        /// Its order.
        second_order: Vec<u32>,
    },
    /// The module can't be analysed.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

fn comma(order: &[u32]) -> String {
    let numbers: Vec<String> = order.iter().map(u32::to_string).collect();
    numbers.join(",")
}
