//! All analyses of one scheduled module, in pipeline order.

use slabplan_ir::{Module, Target};

use crate::alias::must_alias;
use crate::buffers::{Buffers, buffers};
use crate::config::PlanConfig;
use crate::dataflow::Dataflow;
use crate::donation::{Donation, donations};
use crate::error::PlanError;
use crate::interference::{ClassId, Classes, coalesce};
use crate::liveness::Liveness;
use crate::options::{Piece, may_share, pieces};
use crate::order::ProgramOrder;
use crate::ports::Ports;
use crate::scratch::add_scratch;
use crate::share::ShareRules;

/// Everything that planning knows of a module before it places anything.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// Program order.
    pub order: ProgramOrder,
    /// The value at every position.
    pub flow: Dataflow,
    /// Arguments, results, constants.
    pub ports: Ports,
    /// What becomes of every donated argument.
    pub donations: Vec<Donation>,
    /// Live ranges of values.
    pub live: Liveness,
    /// Must-alias classes.
    pub classes: Classes,
    /// The classes as buffers; scratch, which has no values, comes last.
    pub buffers: Buffers,
    /// Pairs of buffers that may occupy exactly the same bytes.
    pub may_share: Vec<(ClassId, ClassId)>,
    /// Buffers that lie at fixed distances.
    pub pieces: Vec<Piece>,
}

/// Analyses a scheduled, verified module whose must-aliases can all be kept.
///
/// Near-linear in instructions and operands.
pub fn analyse(
    module: &Module,
    target: &Target,
    config: &PlanConfig,
) -> Result<Analysis, PlanError> {
    if !module.is_scheduled {
        return Err(PlanError::NotScheduled);
    }
    let order = ProgramOrder::new(module)?;
    let flow = Dataflow::new(module, &order);
    let donations = donations(module);
    let ports = Ports::new(module, &flow, &donations);
    let live = Liveness::new(module, &order, &flow, &ports);
    let rules = ShareRules::new(module, &order, &flow, &ports, &live, config.trust_back_end);
    let constraints = must_alias(module, &order, &flow, &donations);
    let (classes, conflicts) = coalesce(module, &flow, &live, &rules, &constraints);
    if let Some(conflict) = conflicts.first() {
        return Err(PlanError::Interference {
            conflict: conflict.describe(module, &order, &flow),
        });
    }
    let mut buffers = buffers(module, target, &order, &flow, &ports, &live, &classes)?;
    let may_share = may_share(module, &rules, &order, &flow, &classes, &buffers);
    add_scratch(module, &order, &live, &config.scratch, &mut buffers)?;
    let pieces = pieces(module, &order, &flow, &classes, &buffers)?;
    Ok(Analysis {
        order,
        flow,
        ports,
        donations,
        live,
        classes,
        buffers,
        may_share,
        pieces,
    })
}
