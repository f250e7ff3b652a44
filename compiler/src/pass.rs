//! Passes: named steps from a module to a plan, each with what it needs and what it establishes.

use std::time::{Duration, Instant};

use slabplan_ir::plan::InsertedCopy;
use slabplan_ir::verify::{VerifyErrors, verify};
use slabplan_ir::{Bytes, Module, Target};
use slabplan_planner::{PlanError, Planned};

use crate::config::CompileConfig;

/// What passes work on.
#[derive(Debug)]
pub struct Unit<'a> {
    /// The program.
    pub module: Module,
    /// The machine.
    pub target: &'a Target,
    /// What was asked for.
    pub config: &'a CompileConfig,
    /// Name of the schedule that was chosen, `keep` if the module's own.
    pub schedule: String,
    /// Bytes of memory space 0 that every order of the program needs.
    pub schedule_bound: Bytes,
    /// The orders that were planned, the lowest peak of live bytes first; none if the module kept its own.
    pub schedule_trials: Vec<ScheduleTrial>,
    /// Copies that were inserted, with their causes.
    pub copies: Vec<InsertedCopy>,
    /// What passes could not do, and why: for people.
    pub notes: Vec<String>,
    /// The plan, once [`MemoryPlanning`](crate::passes::MemoryPlanning) has run.
    pub planned: Option<Planned>,
}

impl<'a> Unit<'a> {
    /// A unit at the start of the pipeline.
    pub fn new(module: Module, target: &'a Target, config: &'a CompileConfig) -> Self {
        Self {
            module,
            target,
            config,
            schedule: "keep".to_owned(),
            schedule_bound: Bytes::ZERO,
            schedule_trials: Vec::new(),
            copies: Vec::new(),
            notes: Vec::new(),
            planned: None,
        }
    }
}

/// An order that was planned to see how much it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleTrial {
    /// What the entry's order was found from, `text` if it is all the module's own.
    pub from: &'static str,
    /// Most bytes of memory space 0 that are live at once, in steps of its alignment.
    pub peak: Bytes,
    /// The slab of every memory space that occurs, by number.
    pub slabs: Vec<(u32, u64)>,
    /// Copies that it needs.
    pub copies: usize,
    /// Whether it is the module's order now.
    pub chosen: bool,
}

impl ScheduleTrial {
    /// Bytes of the slab of a memory space.
    pub fn slab(&self, space: u32) -> u64 {
        self.slabs.iter().find(|s| s.0 == space).map_or(0, |s| s.1)
    }
}

/// Whether a pass changed the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed(pub bool);

/// A fact about a unit that passes rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Every computation with bytes of its own has one calling instruction.
    FlatCallGraph,
    /// Every array has a layout.
    LaidOut,
    /// The order of instructions is the schedule.
    Scheduled,
    /// A plan exists.
    Planned,
}

impl Property {
    /// Whether it holds. O(module).
    pub fn holds(self, unit: &Unit<'_>) -> bool {
        match self {
            Property::FlatCallGraph => crate::passes::is_flat(&unit.module),
            Property::LaidOut => unit.module.instrs.values().all(|i| {
                unit.module
                    .shapes
                    .array(i.shape)
                    .is_none_or(|a| a.layout.is_some())
            }),
            Property::Scheduled => unit.module.is_scheduled,
            Property::Planned => unit.planned.is_some(),
        }
    }
}

/// Why a pass failed.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// The module is not valid: before the first pass the input is wrong, later a pass is.
    #[error(transparent)]
    Invalid(#[from] VerifyErrors),
    /// A pass was run on a unit that lacks what it needs, or did not establish what it promises.
    #[error("pass `{pass}` {when} {property:?}")]
    Contract {
        /// The pass.
        pass: &'static str,
        /// `needs` or `did not establish`.
        when: &'static str,
        /// The property.
        property: Property,
    },
    /// Copying shared computations would make the module too large.
    #[error(
        "computations called from several places would have to be copied {copies} times and more; \
         inline them or call them from fewer places"
    )]
    TooManyClones {
        /// Where it stopped.
        copies: usize,
    },
    /// The module is one of all devices together and not one `shard_map`.
    #[error(
        "%{instr} needs a partitioner: {why}; give the module after partitioning \
         (XLA's after_optimizations dump) instead"
    )]
    NeedsPartitioner {
        /// The instruction.
        instr: String,
        /// What is beyond slabplan.
        why: String,
    },
    /// Planning failed.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// One step of the compiler.
pub trait Pass {
    /// Name, unique in a pipeline.
    fn name(&self) -> &'static str;

    /// What it does, in one line.
    fn description(&self) -> &'static str;

    /// What must hold before it runs.
    fn requires(&self) -> &'static [Property] {
        &[]
    }

    /// What holds after it ran.
    fn ensures(&self) -> &'static [Property] {
        &[]
    }

    /// Does it.
    fn run(&self, unit: &mut Unit<'_>) -> Result<Changed, PassError>;
}

/// How one pass went.
#[derive(Clone, Debug)]
pub struct PassReport {
    /// The pass.
    pub name: &'static str,
    /// Whether it changed the module.
    pub changed: bool,
    /// How long it ran, the verifier not counted.
    pub time: Duration,
}

/// Runs `passes` in order; the verifier runs before the first and after each that changed the
/// module.
pub fn run_passes(passes: &[&dyn Pass], unit: &mut Unit<'_>) -> Result<Vec<PassReport>, PassError> {
    verify(&unit.module)?;
    let mut reports = Vec::with_capacity(passes.len());
    for pass in passes {
        check_properties(*pass, "needs", pass.requires(), unit)?;
        let start = Instant::now();
        let Changed(changed) = pass.run(unit)?;
        reports.push(PassReport {
            name: pass.name(),
            changed,
            time: start.elapsed(),
        });
        if changed {
            verify(&unit.module)?;
        }
        check_properties(*pass, "did not establish", pass.ensures(), unit)?;
    }
    Ok(reports)
}

fn check_properties(
    pass: &dyn Pass,
    when: &'static str,
    properties: &[Property],
    unit: &Unit<'_>,
) -> Result<(), PassError> {
    match properties.iter().find(|p| !p.holds(unit)) {
        None => Ok(()),
        Some(&property) => Err(PassError::Contract {
            pass: pass.name(),
            when,
            property,
        }),
    }
}
