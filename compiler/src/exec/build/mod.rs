//! Module and plan to [`Program`].
//!
//! [`Builder`] goes through the planned computations; what an instruction becomes is decided here,
//! and carried out in [`control`], [`asynchronous`], [`staging`], [`scratch`] and [`leaves`].

mod asynchronous;
mod control;
mod leaves;
mod scratch;
mod staging;

use std::collections::BTreeMap;

use slabplan_ir::attr::AttrName;
use slabplan_ir::entity::{CompId, EntityId, InstrId, SecondaryMap};
use slabplan_ir::module::Module;
use slabplan_ir::plan::Plan;
use slabplan_ir::{Opcode, Positions};

use crate::exec::constant::dense_literal;
use crate::exec::fusion::Fusion;
use crate::exec::kernels::{Elementwise, Kernel, moved_dims};
use crate::exec::mail::Slots;
use crate::exec::order::{ProgramOrder, Visit};
use crate::exec::places::Places;
use crate::exec::program::{Body, ByteRange, ConstantData, DeviceId, Program, SlabInfo, Step};
use crate::exec::run::STAGE_ALIGN;
use crate::exec::{AsyncMode, ExecConfig, ExecError, poison};

/// Most devices that are simulated.
const MAX_DEVICES: u64 = 4096;

/// Translates `module`, whose values lie where `plan` says. O(instructions + places).
pub(crate) fn build(
    module: &Module,
    plan: &Plan,
    config: &ExecConfig,
) -> Result<Program, ExecError> {
    let program = empty_program(module, plan, config)?;
    let positions = Positions::new(module);
    let order = ProgramOrder::new(module);
    let places = Places::new(module, &positions, &order, plan)?;
    let ended = if config.poison && order.flat {
        poison::ended(plan, order.len, &order.jumps(module))
    } else {
        Vec::new()
    };
    let mut builder = Builder {
        module,
        positions: &positions,
        order: &order,
        places: &places,
        config,
        ended,
        delayed: delayed(module, &order, config.async_mode),
        is_condition: conditions(module),
        scratch: scratch::planned(plan),
        start: SecondaryMap::filled(module.computations.len(), None),
        depth: SecondaryMap::filled(module.computations.len(), 0),
        expected: SecondaryMap::filled(module.computations.len(), Some(0)),
        array_of_shape: vec![None; module.shapes.len()],
        name: 0,
        program,
    };
    for comp in module.planned_computations() {
        builder.computation(comp)?;
    }
    builder.finish()
}

/// Devices that `module` runs on.
///
/// # Errors
/// None, or more than are simulated.
pub(crate) fn device_count(module: &Module) -> Result<u64, ExecError> {
    let devices = module.replica_count.saturating_mul(module.num_partitions);
    if devices == 0 || devices > MAX_DEVICES {
        return Err(ExecError::Devices {
            replicas: module.replica_count,
            partitions: module.num_partitions,
            most: MAX_DEVICES,
        });
    }
    Ok(devices)
}

fn empty_program(module: &Module, plan: &Plan, config: &ExecConfig) -> Result<Program, ExecError> {
    device_count(module)?;
    let mut slabs = plan
        .spaces
        .iter()
        .map(|s| {
            Some(SlabInfo {
                bytes: usize::try_from(s.slab.get()).ok()?,
                reserve: if s.space == 0 {
                    usize::try_from(config.reserve_bytes).ok()?
                } else {
                    0
                },
                alignment: usize::try_from(s.alignment.get()).ok()?,
            })
        })
        .collect::<Option<Vec<_>>>()
        .ok_or(ExecError::OutOfMemory { bytes: u64::MAX })?;
    slabs.push(SlabInfo {
        bytes: 0,
        reserve: 0,
        alignment: STAGE_ALIGN,
    });
    Ok(Program {
        steps: Vec::new(),
        name_of_step: Vec::new(),
        names: Vec::new(),
        entry: 0,
        arrays: Vec::new(),
        leaves: Vec::new(),
        ops: Vec::new(),
        moves: Vec::new(),
        collectives: Vec::new(),
        transfers: Vec::new(),
        device_ids: Vec::new(),
        switches: Vec::new(),
        ended: Vec::new(),
        constants: Vec::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        slabs,
        requests: BTreeMap::new(),
        exchange: 0,
        mail: Slots::new(module),
        spare: 0,
        most_refs: 0,
        call_depth: 0,
        expected: None,
        replicas: module.replica_count as usize,
        partitions: module.num_partitions as usize,
    })
}

/// The computations that run inside an asynchronous operation which is carried out at its done, however
/// deep.
fn delayed(module: &Module, order: &ProgramOrder, mode: AsyncMode) -> SecondaryMap<CompId, bool> {
    let mut delayed = SecondaryMap::filled(module.computations.len(), false);
    let is_late = |i: InstrId| {
        module.instrs[i].opcode == Opcode::AsyncStart && !mode.at_start(i.index() as u32)
    };
    let mut depth = 0;
    for &visit in &order.visits {
        match visit {
            Visit::Enter(i) if is_late(i) => depth += 1,
            Visit::Leave(i) if is_late(i) => depth -= 1,
            Visit::Leave(i) if depth > 0 => delayed[module.instrs[i].computation] = true,
            _ => {}
        }
    }
    delayed
}

fn conditions(module: &Module) -> SecondaryMap<CompId, bool> {
    let mut is_condition = SecondaryMap::filled(module.computations.len(), false);
    for instr in module.instrs.values() {
        if let (Opcode::While, Some(comp)) = (instr.opcode, instr.comp(AttrName::Condition)) {
            is_condition[comp] = true;
        }
    }
    is_condition
}

struct Builder<'a> {
    module: &'a Module,
    positions: &'a Positions,
    order: &'a ProgramOrder,
    places: &'a Places,
    config: &'a ExecConfig,
    /// Bytes to poison after each number of program order; empty where nothing is poisoned.
    ended: Vec<Vec<ByteRange>>,
    delayed: SecondaryMap<CompId, bool>,
    is_condition: SecondaryMap<CompId, bool>,
    /// Where the plan has scratch for an instruction.
    scratch: BTreeMap<InstrId, ByteRange>,
    /// Address of every computation translated so far.
    start: SecondaryMap<CompId, Option<u32>>,
    /// Calls within calls, from each computation on.
    depth: SecondaryMap<CompId, usize>,
    /// Steps that each computation takes with what it calls, about; `None` if nobody knows.
    expected: SecondaryMap<CompId, Option<u64>>,
    array_of_shape: Vec<Option<u32>>,
    /// Index of the current instruction's name.
    name: u32,
    program: Program,
}

impl Builder<'_> {
    fn finish(mut self) -> Result<Program, ExecError> {
        let entry = self.module.entry();
        self.program.entry = self.start[self.module.entry].unwrap_or(0);
        self.program.call_depth = self.depth[self.module.entry];
        self.program.expected = self.expected[self.module.entry];
        self.program.inputs = self.leaves_of_all(&entry.params)?;
        self.program.outputs = self.leaves_of(entry.root)?;
        Ok(self.program)
    }

    /// Translates a computation whose callees are translated.
    fn computation(&mut self, comp: CompId) -> Result<(), ExecError> {
        let first = self.address();
        self.start[comp] = Some(first);
        let computation = &self.module.computations[comp];
        let silent = self.delayed[comp];
        for (n, &instr) in computation.instrs.iter().enumerate() {
            self.name = self.program.names.len() as u32;
            self.program.names.push(self.module.name_of(instr).into());
            self.instruction(instr)?;
            if n + 1 == computation.instrs.len() && self.is_condition[comp] {
                // Before the bytes of the predicate are given up.
                let predicate = self.single_leaf(computation.root)?;
                let leaf = self.leaf_index(predicate);
                self.push(Step::Test(leaf));
            }
            if !silent {
                self.poison_after(instr);
            }
        }
        self.push(Step::Return);
        let own = u64::from(self.address() - first);
        self.expected[comp] = self.expected[comp].map(|inside| inside.saturating_add(own));
        Ok(())
    }

    fn instruction(&mut self, id: InstrId) -> Result<(), ExecError> {
        use Opcode as O;
        let i = &self.module.instrs[id];
        match i.opcode {
            O::Parameter
            | O::Tuple
            | O::GetTupleElement
            | O::Bitcast
            | O::AddDependency
            | O::OptimizationBarrier
            | O::Domain
            | O::AfterAll
            | O::AsyncUpdate => Ok(()),
            O::Constant => self.constant(id),
            O::While => self.while_loop(id),
            O::Conditional => self.conditional(id),
            O::Call => self.call(id),
            O::Copy => self.copy(id),
            O::CopyStart | O::CopyDone => self.async_copy(id),
            O::AsyncStart => self.async_start(id),
            O::AsyncDone => self.async_done(id),
            O::AllReduceStart
            | O::AllReduceDone
            | O::AllGatherStart
            | O::AllGatherDone
            | O::CollectivePermuteStart
            | O::CollectivePermuteDone => self.async_collective(id),
            O::AllGather
            | O::AllReduce
            | O::AllToAll
            | O::CollectiveBroadcast
            | O::CollectivePermute
            | O::RaggedAllToAll
            | O::ReduceScatter => self.collective(id),
            O::PartitionId | O::ReplicaId => {
                let to = self.single_leaf(id)?;
                self.program.device_ids.push(DeviceId {
                    to,
                    replica: i.opcode == O::ReplicaId,
                });
                self.push(Step::DeviceId(self.program.device_ids.len() as u32 - 1));
                Ok(())
            }
            O::CustomCall if self.is_target(id, "AllocateBuffer") => Ok(()),
            O::CustomCall if self.is_target(id, "ConcatBitcast") => self.concat_bitcast(id),
            O::Fusion => {
                let fusion = Fusion::prepare(self.module, id, self.threads())?;
                self.op(id, Body::Fusion(fusion))
            }
            O::Infeed | O::Outfeed => Err(self.unsupported(
                id,
                "it exchanges data with the host while the program runs: make an argument or a result of that",
            )),
            O::Send | O::SendDone | O::Recv | O::RecvDone => self.transfer(id),
            _ if runs_as_loop(self.module, id)? => {
                let fusion = Fusion::of_instr(self.module, id, self.threads())?;
                self.op(id, Body::Fusion(fusion))
            }
            _ => {
                let kernel = Kernel::prepare_in_layout(self.module, id, self.threads())?;
                self.op(id, Body::Kernel(kernel))
            }
        }
    }

    /// Most threads that an operation may use.
    fn threads(&self) -> usize {
        self.config.threads()
    }

    fn is_target(&self, id: InstrId, target: &str) -> bool {
        self.module.custom_call_target(id) == Some(target)
    }

    fn constant(&mut self, id: InstrId) -> Result<(), ExecError> {
        let arrays = dense_literal(self.module, id)?;
        for (leaf, data) in self.leaves_of(id)?.into_iter().zip(arrays) {
            self.program.constants.push(ConstantData { leaf, data });
        }
        Ok(())
    }

    fn poison_after(&mut self, id: InstrId) {
        if let Some(number) = self.order.number[id] {
            self.poison_at(number);
        }
    }

    fn poison_at(&mut self, number: u32) {
        if let Some(ranges) = self.ended.get_mut(number as usize)
            && !ranges.is_empty()
        {
            self.program.ended.push(std::mem::take(ranges).into());
            self.push(Step::Poison(self.program.ended.len() as u32 - 1));
        }
    }

    fn address(&self) -> u32 {
        self.program.steps.len() as u32
    }

    fn push(&mut self, step: Step) {
        self.program.steps.push(step);
        self.program.name_of_step.push(self.name);
    }

    fn unsupported(&self, id: InstrId, what: &str) -> ExecError {
        ExecError::Unsupported {
            instr: self.module.name_of(id).to_owned(),
            what: what.to_owned(),
        }
    }
}

/// Whether an instruction is computed like a fusion of itself alone.
fn runs_as_loop(module: &Module, id: InstrId) -> Result<bool, ExecError> {
    Ok(Elementwise::of(module, id)?.is_some() || moved_dims(module, id)?.is_some())
}
