//! XLA's own plan of a module, as `check` and `compare` read it.

use slabplan_ir::shape::Shape;
use slabplan_ir::{Module, Target};

use super::CliError;
use super::load::{ModuleArg, Origin, TargetArgs};
use crate::config::CompileConfig;
use crate::frontend::assignment::{JudgedPlan, load_assignment, to_plan};
use crate::pass::PassError;
use crate::{CompileError, prepare};

/// A module with XLA's plan of it.
pub(super) struct Judged {
    /// The module that the assignment is of.
    pub(super) module: Module,
    pub(super) target: Target,
    /// XLA's plan.
    pub(super) xla: JudgedPlan,
    pub(super) origin: Origin,
}

/// Reads a module and XLA's assignment of it.
///
/// A scheduled module is taken as it is: XLA's assignment is of the module as dumped. One that is not is
/// prepared as `plan` prepares it, for assignments that slabplan wrote.
pub(super) fn judged(
    module: &ModuleArg,
    assignment: &str,
    target: &TargetArgs,
) -> Result<Judged, CliError> {
    let (mut module, origin, ids) = module.load_with_ids()?;
    let target = target.load_or(usual_target(&module))?;
    if module.is_scheduled {
        slabplan_ir::verify::verify(&module).map_err(|errors| {
            CliError::from_compile(CompileError::Pass(PassError::Invalid(errors)), &origin)
        })?;
    } else {
        module = prepare(module, &target, &CompileConfig::default())
            .map_err(|e| CliError::from_compile(e, &origin))?;
    }
    let assignment = load_assignment(assignment, ids.as_ref()).map_err(anyhow::Error::from)?;
    let xla = to_plan(&module, &assignment, &target).map_err(anyhow::Error::from)?;
    Ok(Judged {
        module,
        target,
        xla,
        origin,
    })
}

/// The target where none is named: tiled layouts are a TPU's.
fn usual_target(module: &Module) -> &'static str {
    let tiled = module.shapes.ids().any(|id| match module.shapes.get(id) {
        Shape::Array(a) => a.layout.as_ref().is_some_and(|l| !l.tiles.is_empty()),
        _ => false,
    });
    if tiled { crate::target::DEFAULT } else { "cpu" }
}
