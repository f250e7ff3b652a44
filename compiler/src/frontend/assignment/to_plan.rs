//! XLA's assignment as a plan of a module, for the checker.
//!
//! XLA's plan of a memory space is several allocations without addresses: an allocation for each
//! argument, output and constant, and a heap. Here they lie side by side in one slab, in the order of
//! the file, each at the space's alignment. Index tables of tuples, which slabplan does not have, and
//! what is local to one instruction are left out.

use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxBuildHasher;
use slabplan_ir::entity::{PrimaryMap, SecondaryMap};
use slabplan_ir::plan::{
    Accounting, BufferKind, Plan, PlanBuffer, PlanSpace, PlanStats, PlanValue, fingerprint,
};
use slabplan_ir::units::UnitError;
use slabplan_ir::{
    BufferId, Bytes, CompId, EntityId, InstrId, Module, Offset, Opcode, PosId, Target,
};
use slabplan_planner::dataflow::ValueId;
use slabplan_planner::interference::ClassId;
use slabplan_planner::{Analysis, PlanConfig, PlanError, analyse};

use super::{Allocation, Assigned, Assignment, AssignmentError, Place};

/// XLA's plan, and what it rests on.
#[derive(Clone, Debug)]
pub struct JudgedPlan {
    /// The plan: a buffer for every must-alias class at every place that XLA gives it.
    pub plan: Plan,
    /// What slabplan knows of the module.
    pub analysis: Analysis,
    /// The must-alias class of every buffer; nothing where planning does not follow its value.
    pub class_of: SecondaryMap<BufferId, Option<ClassId>>,
    /// Bytes of XLA's allocations, per memory space met.
    pub totals: Vec<XlaTotals>,
}

/// Bytes of XLA's allocations of one memory space, as XLA counts them; thread-local ones left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XlaTotals {
    /// Memory space.
    pub space: u32,
    /// Arguments.
    pub argument: u64,
    /// Outputs, arguments that are outputs too included.
    pub output: u64,
    /// Arguments that are outputs too.
    pub alias: u64,
    /// Constants, those inside fusions included.
    pub constant: u64,
    /// Heaps of temporaries.
    pub temp: u64,
    /// Of all these, index tables of tuples.
    pub tables: u64,
}

impl XlaTotals {
    /// Bytes of all allocations.
    pub fn total(&self) -> u64 {
        self.argument + self.output - self.alias + self.constant + self.temp
    }

    fn add(&mut self, allocation: &Allocation, tables: u64) {
        let size = allocation.size;
        self.tables += tables;
        if allocation.is_heap() {
            self.temp += size;
        }
        if allocation.constant {
            self.constant += size;
        }
        if allocation.parameter.is_some() {
            self.argument += size;
        }
        if allocation.live_out {
            self.output += size;
            if allocation.parameter.is_some() {
                self.alias += size;
            }
        }
    }
}

/// Why an assignment is not a plan of the module.
#[derive(Debug, thiserror::Error)]
pub enum ToPlanError {
    /// It does not belong to the module, or is wrong in itself.
    #[error(transparent)]
    Assignment(#[from] AssignmentError),
    /// The module can't be analysed.
    #[error(transparent)]
    Module(#[from] PlanError),
}

/// Makes a plan of `assignment` for the scheduled, verified `module`.
///
/// Which instructions, sizes and shapes the file names is compared with the module, so that an assignment
/// of another module is told from a wrong one. Near-linear.
pub fn to_plan(
    module: &Module,
    assignment: &Assignment,
    target: &Target,
) -> Result<JudgedPlan, ToPlanError> {
    let config = PlanConfig {
        accounting: Accounting::Xla,
        ..PlanConfig::default()
    };
    let analysis = analyse(module, target, &config)?;
    let mut builder = Builder {
        module,
        target,
        assignment,
        analysis: &analysis,
        names: Names::new(module),
        ends: Vec::new(),
        totals: Vec::new(),
        buffers: IndexMap::with_hasher(FxBuildHasher),
    };
    for allocation in &assignment.allocations {
        if !allocation.thread_local {
            builder.allocation(allocation)?;
        }
    }
    let (plan, class_of, totals) = builder.finish()?;
    Ok(JudgedPlan {
        plan,
        analysis,
        class_of,
        totals,
    })
}

/// Instructions that have bytes of their own, by name.
struct Names<'m> {
    module: &'m Module,
    /// None where several computations have the name.
    instrs: IndexMap<&'m str, Option<InstrId>, FxBuildHasher>,
    comps: IndexMap<&'m str, CompId, FxBuildHasher>,
    /// Names of constants that lie inside one instruction: of fusions, reducers and the like.
    local: IndexSet<&'m str, FxBuildHasher>,
}

impl<'m> Names<'m> {
    fn new(module: &'m Module) -> Self {
        let mut names = Self {
            module,
            instrs: IndexMap::with_hasher(FxBuildHasher),
            comps: IndexMap::with_hasher(FxBuildHasher),
            local: IndexSet::with_hasher(FxBuildHasher),
        };
        for comp in module.planned_computations() {
            names.comps.insert(module.comp_name(comp), comp);
            for &id in &module.computations[comp].instrs {
                let known = names.instrs.entry(module.name_of(id));
                known.and_modify(|k| *k = None).or_insert(Some(id));
            }
        }
        for (_, instr) in module.instrs.iter() {
            let name = module.str(instr.name);
            if instr.opcode == Opcode::Constant && !names.instrs.contains_key(name) {
                names.local.insert(name);
            }
        }
        names
    }

    /// Whether this is a constant inside one instruction: a part of its code, to planning.
    fn is_local(&self, value: &Assigned) -> bool {
        self.local.contains(value.instr.name.as_str())
    }

    fn find(&self, value: &Assigned) -> Result<InstrId, String> {
        let name = value.instr.name.as_str();
        let stranger = || {
            format!(
                "the module has no instruction %{name} with bytes of its own; is this the assignment of another module?"
            )
        };
        match (self.instrs.get(name), &value.instr.computation) {
            (Some(&Some(id)), _) => Ok(id),
            (Some(None), Some(comp)) => {
                let comp = self.comps.get(comp.as_str()).ok_or_else(stranger)?;
                let mut instrs = self.module.computations[*comp].instrs.iter();
                let found = instrs.find(|&&i| self.module.name_of(i) == name);
                found.copied().ok_or_else(stranger)
            }
            (Some(None), None) => Err(format!(
                "several computations have an instruction %{name}, and the text does not say which; use the proto"
            )),
            (None, _) => Err(stranger()),
        }
    }
}

/// A buffer of the plan is known by its memory space, its place and its must-alias class; values
/// that planning does not follow are known by their position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct BufferKey {
    space: u32,
    offset: u64,
    class: Result<u32, PosId>,
}

/// A buffer, its class, and whether a part of the program's result lies in it.
struct Laid {
    buffer: PlanBuffer,
    class: Option<ClassId>,
    output: bool,
}

/// The plan, the class of every buffer, the bytes of XLA's allocations.
type Finished = (
    Plan,
    SecondaryMap<BufferId, Option<ClassId>>,
    Vec<XlaTotals>,
);

struct Builder<'a> {
    module: &'a Module,
    target: &'a Target,
    assignment: &'a Assignment,
    analysis: &'a Analysis,
    names: Names<'a>,
    /// Per memory space met, the end of what is laid out so far.
    ends: Vec<(u32, u64)>,
    totals: Vec<XlaTotals>,
    buffers: IndexMap<BufferKey, Laid, FxBuildHasher>,
}

impl Builder<'_> {
    fn error(&self, place: Place, message: String) -> AssignmentError {
        AssignmentError {
            name: self.assignment.name.clone(),
            place,
            message,
        }
    }

    fn allocation(&mut self, allocation: &Allocation) -> Result<(), AssignmentError> {
        let space = self.target.space(allocation.space).ok_or_else(|| {
            let message = format!(
                "target {} has no memory space {}",
                self.target.name, allocation.space
            );
            self.error(allocation.place, message)
        })?;
        if let Some((number, index)) = &allocation.parameter {
            self.check_parameter(allocation, *number, index)?;
        }
        let too_large = |e: UnitError| AssignmentError {
            name: self.assignment.name.clone(),
            place: allocation.place,
            message: e.to_string(),
        };
        let end = self
            .ends
            .iter()
            .find(|e| e.0 == space.id)
            .map_or(0, |e| e.1);
        let start = Bytes::new(end)
            .and_then(|end| space.alignment.round_up(end))
            .map_err(too_large)?
            .get();
        let (mut laid, mut tables) = (false, 0);
        for value in &allocation.values {
            if allocation.constant && self.names.is_local(value) {
                continue;
            }
            let instr = self
                .names
                .find(value)
                .map_err(|m| self.error(value.place, m))?;
            let pos = self.position(instr, value)?;
            if self.analysis.flow.positions.has_bytes(self.module, pos) {
                laid = true;
                self.place(allocation, value, pos, start)?;
            } else {
                tables += value.size;
            }
        }
        if laid {
            let size = Bytes::new(allocation.size).map_err(too_large)?;
            let end = Bytes::new(start)
                .and_then(|s| s.checked_add(size))
                .map_err(too_large)?
                .get();
            match self.ends.iter_mut().find(|e| e.0 == space.id) {
                Some(known) => known.1 = end,
                None => self.ends.push((space.id, end)),
            }
        }
        let known = self.totals.iter_mut().find(|t| t.space == space.id);
        if let Some(totals) = known {
            totals.add(allocation, tables);
        } else {
            let mut totals = XlaTotals {
                space: space.id,
                ..XlaTotals::default()
            };
            totals.add(allocation, tables);
            self.totals.push(totals);
        }
        Ok(())
    }

    /// An allocation of a parameter is of one that the module has, and of its size at least.
    fn check_parameter(
        &self,
        allocation: &Allocation,
        number: u32,
        index: &[u32],
    ) -> Result<(), AssignmentError> {
        let positions = &self.analysis.flow.positions;
        let param = self.module.entry().params.get(number as usize);
        if param.is_some_and(|&p| positions.at(self.module, p, index).is_some()) {
            return Ok(());
        }
        let message = format!(
            "the module has no such part of a parameter {number}; is this the assignment of another module?"
        );
        Err(self.error(allocation.place, message))
    }

    /// The position that a value names; its shape must be the module's.
    fn position(&self, instr: InstrId, value: &Assigned) -> Result<PosId, AssignmentError> {
        let positions = &self.analysis.flow.positions;
        let name = &value.instr.name;
        let pos = positions.at(self.module, instr, &value.index).ok_or_else(|| {
            self.error(
                value.place,
                format!("the result of %{name} has no such part; is this the assignment of another module?"),
            )
        })?;
        if let Some(shape) = &value.shape {
            let own = self.module.shapes.display(positions.shape(pos)).to_string();
            if own != *shape {
                return Err(self.error(
                    value.place,
                    format!("%{name} is {own} in the module and {shape} here; is this the assignment of another module?"),
                ));
            }
        }
        Ok(pos)
    }

    fn place(
        &mut self,
        allocation: &Allocation,
        value: &Assigned,
        pos: PosId,
        start: u64,
    ) -> Result<(), AssignmentError> {
        let offset = start
            .checked_add(value.offset)
            .and_then(|n| Offset::new(n).ok())
            .ok_or_else(|| self.error(value.place, "an offset that is too large".to_owned()))?;
        let size = Bytes::new(value.size).map_err(|e| self.error(value.place, e.to_string()))?;
        let class = self
            .analysis
            .flow
            .at(pos)
            .map(|v| self.analysis.classes.of(v));
        let key = BufferKey {
            space: allocation.space,
            offset: offset.get(),
            class: class.map_or(Err(pos), |c| Ok(c.index() as u32)),
        };
        let laid = self.buffers.entry(key).or_insert_with(|| {
            let facts = class.map(|c| &self.analysis.buffers[c]);
            let is_output = |&v: &ValueId| self.analysis.ports.is_output(v);
            Laid {
                buffer: PlanBuffer {
                    space: allocation.space,
                    offset,
                    size,
                    kind: facts.map_or(BufferKind::Temp, |f| f.kind.clone()),
                    values: Vec::new(),
                    live: facts.map_or_else(Vec::new, |f| f.live.to_vec()),
                },
                class,
                output: facts.is_some_and(|f| f.values.iter().any(is_output)),
            }
        });
        let buffer = &mut laid.buffer;
        buffer.size = buffer.size.max(size);
        buffer.values.push(PlanValue {
            instr: self.analysis.flow.positions.instr(pos),
            index: value.index.clone(),
        });
        Ok(())
    }

    fn finish(self) -> Result<Finished, AssignmentError> {
        let mut laid: Vec<Laid> = self.buffers.into_values().collect();
        laid.sort_by_key(|l| (l.buffer.space, l.buffer.offset));
        let mut spaces = Vec::new();
        for space in &self.target.spaces {
            let of_space = || laid.iter().filter(|l| l.buffer.space == space.id);
            if of_space().next().is_none() {
                continue;
            }
            let too_large = |e: UnitError| AssignmentError {
                name: self.assignment.name.clone(),
                place: Place::Whole,
                message: e.to_string(),
            };
            let sum = |wanted: &dyn Fn(&Laid) -> bool| {
                of_space()
                    .filter(|l| wanted(l))
                    .try_fold(Bytes::ZERO, |n, l| n.checked_add(l.buffer.size))
                    .map_err(too_large)
            };
            let is_argument = |l: &Laid| matches!(l.buffer.kind, BufferKind::Parameter { .. });
            let totals = self.totals.iter().find(|t| t.space == space.id);
            let end = |l: &Laid| l.buffer.offset.get() + l.buffer.size.get();
            let slab = of_space().map(end).max();
            spaces.push(PlanSpace {
                space: space.id,
                name: space.name.clone(),
                capacity: space.capacity,
                alignment: space.alignment,
                slab: Bytes::new(slab.unwrap_or(0)).map_err(too_large)?,
                lower_bound: Bytes::ZERO,
                optimal: false,
                stats: PlanStats {
                    temp: Bytes::new(totals.map_or(0, |t| t.temp)).map_err(too_large)?,
                    argument: sum(&is_argument)?,
                    output: sum(&|l| l.output)?,
                    alias: sum(&|l| is_argument(l) && l.output)?,
                    constant: sum(&|l| l.buffer.kind == BufferKind::Constant)?,
                    ..PlanStats::default()
                },
            });
        }
        let mut buffers = PrimaryMap::with_capacity(laid.len());
        let mut class_of = SecondaryMap::filled(laid.len(), None);
        for l in laid {
            let id = buffers.push(l.buffer);
            class_of[id] = l.class;
        }
        let plan = Plan {
            module: self.module.str(self.module.name).to_owned(),
            fingerprint: fingerprint(self.module),
            target: self.target.name.clone(),
            accounting: Accounting::Xla,
            schedule: "keep".to_owned(),
            spaces,
            buffers,
            copies: Vec::new(),
        };
        Ok((plan, class_of, self.totals))
    }
}
