//! Settings of planning.

use slabplan_ir::plan::Accounting;

use crate::pack::PackConfig;
use crate::scratch::ScratchRequest;

/// Settings of planning; every heuristic is a switch here.
#[derive(Clone, Debug)]
pub struct PlanConfig {
    /// What shares a slab.
    pub accounting: Accounting,
    /// How hard the packer tries.
    pub pack: PackConfig,
    /// Whether a result may take exactly the bytes of an operand that dies.
    pub may_share: bool,
    /// Whether to take the module's back end at its word where it says that an instruction may
    /// write a result over an operand ([`slabplan_ir::promise`]).
    pub trust_back_end: bool,
    /// What instructions work in beside their operands and results, planned with everything else.
    pub scratch: Vec<ScratchRequest>,
}

impl Default for PlanConfig {
    fn default() -> Self {
        Self {
            accounting: Accounting::Slab,
            pack: PackConfig::default(),
            may_share: true,
            trust_back_end: true,
            scratch: Vec::new(),
        }
    }
}
