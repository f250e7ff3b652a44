//! Copies without which no plan is right, and no others.
//!
//! Modules that XLA compiled carry the copies they need; those before optimisation, or written by hand,
//! do not. Every must-alias constraint has a natural place for a copy: before the loop for an initial
//! value, at the end of the body for a carry, at the end of a branch, before an operation that writes
//! in place, at the root for an output. Constraints are joined one after another, those whose copy
//! would cost most first; one that would put two values into the same bytes while both are
//! needed is settled by another order where that is allowed and possible (`reorder`), and gets its
//! copy otherwise. The new copies have live ranges of their own, so this repeats until
//! nothing interferes: swapped carries, for one, settle in the second round with one copy more.
//! What costs no reading, the broadcast of a scalar and `iota`, is computed again rather than copied.

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use slabplan_ir::attr::AttrName;
use slabplan_ir::edit::Names;
use slabplan_ir::plan::InsertedCopy;
use slabplan_ir::shape::ShapeIndex;
use slabplan_ir::{EntityId, InstrId, Module, Opcode};

use crate::alias::{MustAlias, Why, must_alias};
use crate::copy_sites::{Edits, Site};
use crate::dataflow::{Dataflow, ValueId};
use crate::donation::{Outcome, donations};
use crate::error::PlanError;
use crate::interference::{Conflict, coalesce};
use crate::liveness::Liveness;
use crate::order::ProgramOrder;
use crate::ports::Ports;
use crate::reorder::reorder;
use crate::share::ShareRules;

/// Rounds in which the order may change, so that it comes to rest.
const MAX_REORDERINGS: u32 = 3;

/// Rounds after which copy insertion gives up. Each round settles every conflict of the previous
/// one; new ones arise only between copies, and no known module needs more than three rounds.
const MAX_ROUNDS: u32 = 12;

/// Inserts the copies that `module` needs to be planned, and says why each.
///
/// `may_reorder` says that the schedule is not the caller's, and may change to save a copy. The
/// module must be verified and scheduled with a flat call graph. Near-linear for each round.
pub fn insert_copies(
    module: &mut Module,
    may_reorder: bool,
) -> Result<Vec<InsertedCopy>, PlanError> {
    let mut names = Names::new(module);
    let mut inserted = copy_shared_outputs(module, &mut names)?;
    let mut reorderings = if may_reorder { MAX_REORDERINGS } else { 0 };
    for _ in 0..MAX_ROUNDS {
        let found = Interference::new(module, &inserted)?;
        if found.conflicts.is_empty() {
            return Ok(inserted);
        }
        if reorderings > 0 {
            reorderings -= 1;
            if reorder(
                module,
                &found.order,
                &found.flow,
                &found.ports,
                &found.conflicts,
            ) {
                continue;
            }
        }
        let wanted = found.wanted_copies(module);
        inserted.extend(Edits::new(module, &mut names).insert(&wanted));
    }
    Err(PlanError::CopiesDidNotSettle {
        rounds: MAX_ROUNDS,
        conflict: Interference::new(module, &inserted)?
            .wanted_copies(module)
            .first()
            .map_or_else(String::new, |w| w.cause.clone()),
    })
}

/// One array to copy.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Where.
    pub(crate) site: Site,
    /// Which part of what is handed over there.
    pub(crate) index: ShapeIndex,
    /// Shape that the copy must have, if another than the array's own.
    pub(crate) shape: Option<slabplan_ir::ShapeId>,
    /// Why.
    pub(crate) cause: String,
}

/// The constraints of a module, as it is now, that its live ranges do not allow.
struct Interference {
    order: ProgramOrder,
    flow: Dataflow,
    ports: Ports,
    conflicts: Vec<Conflict>,
}

impl Interference {
    fn new(module: &Module, inserted: &[InsertedCopy]) -> Result<Self, PlanError> {
        let order = ProgramOrder::new(module)?;
        let flow = Dataflow::new(module, &order);
        let donations = donations(module);
        let ports = Ports::new(module, &flow, &donations);
        let live = Liveness::new(module, &order, &flow, &ports);
        let rules = ShareRules::new(module, &order, &flow, &ports, &live, true);
        let mut constraints = must_alias(module, &order, &flow, &donations);
        let depths = nesting(module, &order);
        let mut copies: Vec<InstrId> = inserted.iter().map(|c| c.instr).collect();
        copies.sort_unstable();
        // A copy stays where it was put: copying it again would settle nothing. Then, a copy deep inside
        // loops costs most: such constraints are kept first.
        constraints.sort_by_key(|c| {
            let is_copy = copies.binary_search(&flow.instr_of(c.value)).is_ok();
            let instr = flow.positions.instr(c.at);
            let depth = depths[module.instrs[instr].computation.index()];
            std::cmp::Reverse((is_copy, depth))
        });
        let (_, conflicts) = coalesce(module, &flow, &live, &rules, &constraints);
        Ok(Self {
            order,
            flow,
            ports,
            conflicts,
        })
    }

    /// The copies that settle all of them.
    fn wanted_copies(&self, module: &Module) -> Vec<Wanted> {
        let wanted = |c: &Conflict| Wanted {
            site: site(module, c.constraint.why),
            index: index_at_site(module, &self.flow, &c.constraint),
            shape: shape_at_place(module, &self.flow, c),
            cause: c.describe(module, &self.order, &self.flow),
        };
        self.conflicts.iter().map(wanted).collect()
    }
}

/// How many loops are around each computation, by computation index.
fn nesting(module: &Module, order: &ProgramOrder) -> Vec<u32> {
    let mut depth = vec![0; module.computations.len()];
    // Callers before callees.
    for comp in module.planned_computations().into_iter().rev() {
        if let Some(caller) = order.caller(comp) {
            let i = &module.instrs[caller];
            depth[comp.index()] =
                depth[i.computation.index()] + u32::from(i.opcode == Opcode::While);
        }
    }
    depth
}

fn site(module: &Module, why: Why) -> Site {
    match why {
        Why::InPlace { instr, operand } => Site::Operand { instr, operand },
        Why::LoopInit { instr } => Site::Operand { instr, operand: 0 },
        Why::LoopRoot { instr } => {
            let body = module.instrs[instr].comp(AttrName::Body);
            Site::Root(body.expect("a verified while has a body"))
        }
        Why::Branch { instr, branch } => {
            Site::Root(module.instrs[instr].branches()[branch as usize])
        }
        Why::Output { .. } => Site::Root(module.entry),
    }
}

fn index_at_site(module: &Module, flow: &Dataflow, constraint: &MustAlias) -> ShapeIndex {
    flow.positions.index(module, constraint.at)
}

/// The copy lies where the constraint's place lies, so it has that shape where it is the same array.
fn shape_at_place(
    module: &Module,
    flow: &Dataflow,
    conflict: &Conflict,
) -> Option<slabplan_ir::ShapeId> {
    let place = flow
        .positions
        .shape(flow.values[conflict.constraint.place].def);
    let here = flow.positions.shape(conflict.constraint.at);
    (place != here && module.shapes.compatible(place, here)).then_some(place)
}

/// Copies outputs that can't keep the bytes they have: one value at two outputs, an argument that
/// is not given away for that output, a constant.
fn copy_shared_outputs(
    module: &mut Module,
    names: &mut Names,
) -> Result<Vec<InsertedCopy>, PlanError> {
    let order = ProgramOrder::new(module)?;
    let flow = Dataflow::new(module, &order);
    let donations = donations(module);
    let ports = Ports::new(module, &flow, &donations);
    // The output that keeps a value: the one that is given the value's own argument, else the first.
    let mut kept: IndexMap<ValueId, usize, FxBuildHasher> = IndexMap::default();
    let leaves: Vec<_> = flow.leaves(module.entry().root).collect();
    let given: Vec<Option<ValueId>> = leaves
        .iter()
        .map(|&(pos, _)| {
            let index = flow.positions.index(module, pos);
            let donation = donations.iter().find(
                |d| matches!(&d.outcome, Outcome::Output { output, .. } if *output == index),
            )?;
            crate::ports::parameter_value(module, &flow, donation.parameter, &donation.index)
        })
        .collect();
    for (k, &(_, value)) in leaves.iter().enumerate() {
        if given[k] == Some(value) {
            kept.insert(value, k);
        }
    }
    for (k, &(_, value)) in leaves.iter().enumerate() {
        kept.entry(value).or_insert(k);
    }
    let mut wanted = Vec::new();
    for (k, &(pos, value)) in leaves.iter().enumerate() {
        let name = flow.display(module, value);
        let cause = if kept[&value] != k {
            format!("{name} is returned at two outputs, which need bytes of their own")
        } else if ports.is_constant(value) {
            format!("the output would lie on the constant {name}")
        } else if ports.is_parameter(value) && given[k].is_none() {
            format!("the output would lie on the argument {name}, which is not given away for it")
        } else {
            continue;
        };
        wanted.push(Wanted {
            site: Site::Root(module.entry),
            index: flow.positions.index(module, pos),
            shape: None,
            cause,
        });
    }
    Ok(Edits::new(module, names).insert(&wanted))
}
