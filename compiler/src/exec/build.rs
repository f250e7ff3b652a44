//! Module and plan to [`Program`].

use slabplan_ir::attr::AttrName;
use slabplan_ir::entity::{CompId, EntityId, InstrId, PosId, SecondaryMap, ShapeId};
use slabplan_ir::module::Module;
use slabplan_ir::plan::Plan;
use slabplan_ir::shape::Shape;
use slabplan_ir::{ElementType, Opcode, Positions};

use crate::exec::collective::Collective;
use crate::exec::constant::dense_literal;
use crate::exec::flat;
use crate::exec::forward::bindings;
use crate::exec::fusion::Fusion;
use crate::exec::kernels::Kernel;
use crate::exec::order::{ProgramOrder, Visit, callees};
use crate::exec::places::Places;
use crate::exec::program::{
    ArrayInfo, Body, ByteRange, ConstantData, DeviceId, Leaf, Moves, Op, Program, SlabInfo, Staged,
    Step, Switch,
};
use crate::exec::run::STAGE_ALIGN;
use crate::exec::tiled::TiledMap;
use crate::exec::{AsyncMode, ExecConfig, ExecError, poison};

/// Most devices that are simulated.
const MAX_DEVICES: u64 = 4096;

/// Translates `module`, whose values lie where `plan` says. O(instructions + places).
pub(crate) fn build(
    module: &Module,
    plan: &Plan,
    config: &ExecConfig,
) -> Result<Program, ExecError> {
    let program = empty_program(module, plan)?;
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
        within_async: within_async(module, &order),
        is_condition: conditions(module),
        start: SecondaryMap::filled(module.computations.len(), None),
        depth: SecondaryMap::filled(module.computations.len(), 0),
        array_of_shape: vec![None; module.shapes.len()],
        name: 0,
        program,
    };
    for comp in module.planned_computations() {
        builder.computation(comp)?;
    }
    builder.finish()
}

fn empty_program(module: &Module, plan: &Plan) -> Result<Program, ExecError> {
    let devices = module.replica_count.saturating_mul(module.num_partitions);
    if devices == 0 || devices > MAX_DEVICES {
        return Err(ExecError::Devices {
            replicas: module.replica_count,
            partitions: module.num_partitions,
            most: MAX_DEVICES,
        });
    }
    let slabs = plan
        .spaces
        .iter()
        .map(|s| {
            Some(SlabInfo {
                bytes: usize::try_from(s.slab.get()).ok()?,
                alignment: usize::try_from(s.alignment.get()).ok()?,
            })
        })
        .collect::<Option<_>>()
        .ok_or(ExecError::OutOfMemory { bytes: u64::MAX })?;
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
        device_ids: Vec::new(),
        switches: Vec::new(),
        ended: Vec::new(),
        constants: Vec::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        slabs,
        arena: 0,
        most_refs: 0,
        call_depth: 0,
        replicas: module.replica_count as usize,
        partitions: module.num_partitions as usize,
    })
}

/// The computations that run inside an asynchronous operation, however deep.
fn within_async(module: &Module, order: &ProgramOrder) -> SecondaryMap<CompId, bool> {
    let mut within = SecondaryMap::filled(module.computations.len(), false);
    let is_start = |i: InstrId| module.instrs[i].opcode == Opcode::AsyncStart;
    let mut depth = 0;
    for &visit in &order.visits {
        match visit {
            Visit::Enter(i) if is_start(i) => depth += 1,
            Visit::Leave(i) if is_start(i) => depth -= 1,
            Visit::Leave(i) if depth > 0 => within[module.instrs[i].computation] = true,
            _ => {}
        }
    }
    within
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
    within_async: SecondaryMap<CompId, bool>,
    is_condition: SecondaryMap<CompId, bool>,
    /// Address of every computation translated so far.
    start: SecondaryMap<CompId, Option<u32>>,
    /// Calls within calls, from each computation on.
    depth: SecondaryMap<CompId, usize>,
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
        self.program.inputs = self.leaves_of_all(&entry.params)?;
        self.program.outputs = self.leaves_of(entry.root)?;
        Ok(self.program)
    }

    /// Translates a computation whose callees are translated.
    fn computation(&mut self, comp: CompId) -> Result<(), ExecError> {
        self.start[comp] = Some(self.address());
        let computation = &self.module.computations[comp];
        let silent = self.within_async[comp] && self.config.async_mode == AsyncMode::Done;
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
                let fusion = Fusion::prepare(self.module, id)?;
                self.op(id, Body::Fusion(fusion))
            }
            O::Infeed
            | O::Outfeed
            | O::Send
            | O::SendDone
            | O::Recv
            | O::RecvDone
            | O::RaggedAllToAll => {
                Err(self.unsupported(id, &format!("the executor does not carry out {}", i.opcode)))
            }
            _ => {
                let kernel = Kernel::prepare(self.module, id)?;
                self.op(id, Body::Kernel(kernel))
            }
        }
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

    fn op(&mut self, id: InstrId, body: Body) -> Result<(), ExecError> {
        let sources = self.leaves_of_all(&self.module.instrs[id].operands)?;
        let results = self.leaves_of(id)?;
        let (operands, staged) = self.stage(&sources);
        let mut end = staged;
        for &leaf in &results {
            end = self.add_bytes(id, end, self.program.info(leaf).map.dense_bytes())?;
        }
        let (scratch, refs) = match &body {
            Body::Kernel(k) => (k.scratch_bytes(), 0),
            Body::Fusion(f) => (f.scratch_bytes(), f.most_refs()),
        };
        end = self.add_bytes(id, end, scratch)?;
        let program = &mut self.program;
        program.arena = program.arena.max(end);
        program.most_refs = program
            .most_refs
            .max(operands.len())
            .max(results.len())
            .max(refs);
        program.ops.push(Op {
            body,
            operands: operands.into(),
            results: results.into(),
            results_at: staged,
            scratch,
        });
        self.push(Step::Op(self.program.ops.len() as u32 - 1));
        Ok(())
    }

    /// Gives each array that is not dense in its slab a place in the arena, the same array once;
    /// returns how many bytes they take.
    fn stage(&self, leaves: &[Leaf]) -> (Vec<Staged>, usize) {
        let mut seen: indexmap::IndexMap<(u32, usize, u32), usize, rustc_hash::FxBuildHasher> =
            indexmap::IndexMap::default();
        let mut end = 0usize;
        let staged = leaves
            .iter()
            .map(|&leaf| {
                let map = &self.program.info(leaf).map;
                let stage = (!map.is_dense()).then(|| {
                    let key = (leaf.slab, leaf.offset, leaf.array);
                    *seen.entry(key).or_insert_with(|| {
                        let at = end;
                        end = end
                            .saturating_add(map.dense_bytes())
                            .saturating_add(STAGE_ALIGN - 1)
                            / STAGE_ALIGN
                            * STAGE_ALIGN;
                        at
                    })
                });
                Staged { leaf, stage }
            })
            .collect();
        (staged, end)
    }

    fn add_bytes(&self, id: InstrId, end: usize, bytes: usize) -> Result<usize, ExecError> {
        end.checked_add(bytes)
            .and_then(|n| n.checked_next_multiple_of(STAGE_ALIGN))
            .ok_or_else(|| self.unsupported(id, "its arrays are too large to stage"))
    }

    /// A step that moves values to other places, all read before any is written; none where
    /// they all stay.
    fn move_all(&mut self, id: InstrId, pairs: Vec<(Leaf, Leaf)>) -> Result<(), ExecError> {
        let mut end = 0;
        let mut moves = Vec::new();
        for (from, to) in pairs {
            if from == to || self.same_bytes(from, to) {
                continue;
            }
            let stage = Some(end);
            end = self.add_bytes(id, end, self.program.info(from).map.dense_bytes())?;
            moves.push((Staged { leaf: from, stage }, to));
        }
        if !moves.is_empty() {
            self.program.arena = self.program.arena.max(end);
            self.program.moves.push(Moves(moves.into()));
            self.push(Step::Move(self.program.moves.len() as u32 - 1));
        }
        Ok(())
    }

    /// Whether both are the same array at the same place.
    fn same_bytes(&self, a: Leaf, b: Leaf) -> bool {
        (a.slab, a.offset) == (b.slab, b.offset)
            && self.program.info(a).map == self.program.info(b).map
    }

    /// Moves the arrays of `from` to the places of `to`.
    fn move_instr(&mut self, id: InstrId, from: InstrId, to: InstrId) -> Result<(), ExecError> {
        let (from, to) = (self.leaves_of(from)?, self.leaves_of(to)?);
        self.move_all(id, from.into_iter().zip(to).collect())
    }

    fn copy(&mut self, id: InstrId) -> Result<(), ExecError> {
        let operand = self.module.instrs[id].operands[0];
        let shape = self.module.instrs[id].shape;
        if self.module.shapes.array(shape).is_none() {
            return Ok(()); // A tuple's elements forward.
        }
        self.move_instr(id, operand, id)
    }

    fn async_copy(&mut self, id: InstrId) -> Result<(), ExecError> {
        let Some(start) = self.start_to_run_here(id, Opcode::CopyStart) else {
            return Ok(());
        };
        let operand = self.module.instrs[start].operands[0];
        let to = self.leaf_at(start, &[0])?;
        let from = self.single_leaf(operand)?;
        self.move_all(id, vec![(from, to)])
    }

    /// The start of an asynchronous operation that is carried out at `id`, if it is: at its
    /// start or at its end, as configured.
    fn start_to_run_here(&self, id: InstrId, start: Opcode) -> Option<InstrId> {
        let at_start = self.module.instrs[id].opcode == start;
        match (self.config.async_mode, at_start) {
            (AsyncMode::Start, true) => Some(id),
            (AsyncMode::Done, false) => self.start_of(id),
            _ => None,
        }
    }

    /// The start of the chain of asynchronous operations that ends in `id`.
    fn start_of(&self, id: InstrId) -> Option<InstrId> {
        let mut at = id;
        loop {
            at = *self.module.instrs[at].operands.first()?;
            let opcode = self.module.instrs[at].opcode;
            if !matches!(opcode, Opcode::AsyncUpdate | Opcode::GetTupleElement) {
                return Some(at);
            }
        }
    }

    fn async_start(&mut self, id: InstrId) -> Result<(), ExecError> {
        let i = &self.module.instrs[id];
        let late = self
            .module
            .shapes
            .subshape(i.shape, &[1])
            .is_none_or(|s| self.module.shapes.tuple(s).is_some_and(<[_]>::is_empty));
        let callee = i.comp(AttrName::Calls);
        let params = callee.map_or(0, |c| self.module.computations[c].params.len());
        if params != i.operands.len() || (late && !self.has_empty_root(callee)) {
            return Err(self.unsupported(
                id,
                "the executor does not support operands or results bound after the start",
            ));
        }
        match self.config.async_mode {
            AsyncMode::Start => self.call_bound(id, id),
            AsyncMode::Done => {
                // The live ranges inside end as if the operation ran here.
                let last = self.order.number[id].unwrap_or(0);
                let inside = callees(self.module, id)
                    .iter()
                    .filter_map(|&c| self.module.computations[c].instrs.first())
                    .filter_map(|&i| self.order.number[i])
                    .min();
                for number in inside.unwrap_or(last)..last {
                    self.poison_at(number);
                }
                Ok(())
            }
        }
    }

    fn has_empty_root(&self, callee: Option<CompId>) -> bool {
        callee.is_some_and(|c| {
            let root = self.module.computations[c].root;
            flat::arrays(&self.module.shapes, self.module.instrs[root].shape).is_empty()
        })
    }

    fn async_done(&mut self, id: InstrId) -> Result<(), ExecError> {
        match self.start_to_run_here(id, Opcode::AsyncStart) {
            Some(start) => self.call_bound(id, start),
            None => Ok(()),
        }
    }

    fn call(&mut self, id: InstrId) -> Result<(), ExecError> {
        self.call_bound(id, id)?;
        if let Some(callee) = self.module.instrs[id].comp(AttrName::ToApply) {
            self.move_instr(id, self.module.computations[callee].root, id)?;
        }
        Ok(())
    }

    /// Runs the computation that `caller` calls with its operands.
    fn call_bound(&mut self, id: InstrId, caller: InstrId) -> Result<(), ExecError> {
        for (callee, operands) in bindings(self.module, caller) {
            self.move_params(id, callee, &operands)?;
            self.push_call(id, callee)?;
        }
        Ok(())
    }

    /// Moves operands to the parameters they stand for, where those lie elsewhere.
    fn move_params(
        &mut self,
        id: InstrId,
        callee: CompId,
        operands: &[InstrId],
    ) -> Result<(), ExecError> {
        let mut pairs = Vec::new();
        for (&param, &operand) in self.module.computations[callee].params.iter().zip(operands) {
            let (from, to) = (self.leaves_of(operand)?, self.leaves_of(param)?);
            pairs.extend(from.into_iter().zip(to));
        }
        self.move_all(id, pairs)
    }

    fn push_call(&mut self, id: InstrId, callee: CompId) -> Result<(), ExecError> {
        let start = self.start[callee];
        let start = start.ok_or_else(|| self.unsupported(id, "it calls itself"))?;
        let caller = self.module.instrs[id].computation;
        self.depth[caller] = self.depth[caller].max(self.depth[callee] + 1);
        self.push(Step::Call(start));
        Ok(())
    }

    fn while_loop(&mut self, id: InstrId) -> Result<(), ExecError> {
        let i = &self.module.instrs[id];
        let [Some(condition), Some(body)] =
            [AttrName::Condition, AttrName::Body].map(|n| i.comp(n))
        else {
            return Err(self.unsupported(id, "it has no condition or no body"));
        };
        // The state lies where the result does.
        self.move_instr(id, i.operands[0], id)?;
        let again = self.address();
        self.move_params(id, condition, &[id])?;
        self.push_call(id, condition)?;
        let leave = self.address();
        self.push(Step::JumpUnless(0));
        self.move_params(id, body, &[id])?;
        self.push_call(id, body)?;
        self.move_instr(id, self.module.computations[body].root, id)?;
        self.push(Step::Jump(again));
        self.program.steps[leave as usize] = Step::JumpUnless(self.address());
        Ok(())
    }

    fn conditional(&mut self, id: InstrId) -> Result<(), ExecError> {
        let index = self.single_leaf(self.module.instrs[id].operands[0])?;
        let switch = self.program.switches.len();
        self.program.switches.push(Switch {
            index,
            targets: Box::new([]),
        });
        self.push(Step::Switch(switch as u32));
        let mut targets = Vec::new();
        let mut ends = Vec::new();
        for (branch, operands) in bindings(self.module, id) {
            targets.push(self.address());
            self.move_params(id, branch, &operands)?;
            self.push_call(id, branch)?;
            self.move_instr(id, self.module.computations[branch].root, id)?;
            ends.push(self.address());
            self.push(Step::Jump(0));
        }
        let end = self.address();
        for at in ends {
            self.program.steps[at as usize] = Step::Jump(end);
        }
        if targets.is_empty() {
            return Err(self.unsupported(id, "it has no branches"));
        }
        self.program.switches[switch].targets = targets.into();
        Ok(())
    }

    /// `ConcatBitcast`: the operands' bytes side by side are the result's. Planned, they lie
    /// there already.
    fn concat_bitcast(&mut self, id: InstrId) -> Result<(), ExecError> {
        let result = self.single_leaf(id)?;
        let mut at = result.offset;
        let end = at + self.program.info(result).map.padded_bytes();
        let mut pairs = Vec::new();
        for piece in self.leaves_of_all(&self.module.instrs[id].operands)? {
            let bytes = self.program.info(piece).map.padded_bytes();
            let array = self.byte_array(id, bytes)?;
            let from = Leaf { array, ..piece };
            let to = Leaf {
                array,
                slab: result.slab,
                offset: at,
            };
            pairs.push((from, to));
            at += bytes;
        }
        if at > end {
            return Err(self.unsupported(id, "its operands are larger than its result"));
        }
        self.move_all(id, pairs)
    }

    fn async_collective(&mut self, id: InstrId) -> Result<(), ExecError> {
        let opcode = self.module.instrs[id].opcode;
        let is_start = matches!(
            opcode,
            Opcode::AllReduceStart | Opcode::AllGatherStart | Opcode::CollectivePermuteStart
        );
        let start_opcode = if is_start {
            opcode
        } else {
            match self.start_of(id) {
                Some(start) => self.module.instrs[start].opcode,
                None => return Ok(()),
            }
        };
        match self.start_to_run_here(id, start_opcode) {
            Some(start) => self.collective(start),
            None => Ok(()),
        }
    }

    /// `id` is the collective, or the start of an asynchronous one.
    fn collective(&mut self, id: InstrId) -> Result<(), ExecError> {
        let i = &self.module.instrs[id];
        let operands = self.leaves_of_all(&i.operands)?;
        let results = match i.opcode {
            Opcode::AllGatherStart | Opcode::CollectivePermuteStart => {
                let node = self.module.shapes.node_of_index(i.shape, &[1]);
                self.leaves_below(id, node.unwrap_or(0))?
            }
            _ => self.leaves_of(id)?,
        };
        let infos = |leaves: &[Leaf]| -> Vec<&ArrayInfo> {
            leaves.iter().map(|&l| self.program.info(l)).collect()
        };
        let (operand_infos, result_infos) = (infos(&operands), infos(&results));
        let collective = Collective::prepare(
            self.module,
            id,
            (&operands, &operand_infos),
            (&results, &result_infos),
        )?;
        self.program.arena = self.program.arena.max(collective.arena_bytes());
        self.program.most_refs = self.program.most_refs.max(2);
        self.program.collectives.push(collective);
        self.push(Step::Collective(self.program.collectives.len() as u32 - 1));
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

    fn leaves_of_all(&mut self, instrs: &[InstrId]) -> Result<Vec<Leaf>, ExecError> {
        let mut out = Vec::new();
        for &i in instrs {
            out.extend(self.leaves_of(i)?);
        }
        Ok(out)
    }

    /// The arrays of an instruction's result, in preorder.
    fn leaves_of(&mut self, instr: InstrId) -> Result<Vec<Leaf>, ExecError> {
        self.leaves_below(instr, 0)
    }

    /// The arrays of part `node` of an instruction's result.
    fn leaves_below(&mut self, instr: InstrId, node: u32) -> Result<Vec<Leaf>, ExecError> {
        let first = self.positions.node(instr, node);
        let parts = self.module.shapes.node_count(self.positions.shape(first));
        let mut out = Vec::new();
        for n in node..node + parts {
            let pos = self.positions.node(instr, n);
            match self.module.shapes.get(self.positions.shape(pos)) {
                Shape::Array(_) => out.push(self.leaf(instr, pos)?),
                Shape::Buffer(_) => {
                    return Err(self.unsupported(instr, "the executor does not support `b(..)`"));
                }
                Shape::Tuple(_) | Shape::Token | Shape::Opaque => {}
            }
        }
        Ok(out)
    }

    fn single_leaf(&mut self, instr: InstrId) -> Result<Leaf, ExecError> {
        self.leaf_at(instr, &[])
    }

    fn leaf_at(&mut self, instr: InstrId, index: &[u32]) -> Result<Leaf, ExecError> {
        let pos = self
            .positions
            .at(self.module, instr, index)
            .filter(|&p| self.module.shapes.array(self.positions.shape(p)).is_some())
            .ok_or_else(|| self.unsupported(instr, "an array is expected here"))?;
        self.leaf(instr, pos)
    }

    fn leaf(&mut self, instr: InstrId, pos: PosId) -> Result<Leaf, ExecError> {
        let place = self.places.of(pos).ok_or_else(|| ExecError::NoPlace {
            value: self.positions.display(self.module, pos),
        })?;
        let array = self.array_info(instr, self.positions.shape(pos))?;
        Ok(Leaf {
            slab: place.slab,
            offset: place.offset,
            array,
        })
    }

    fn array_info(&mut self, instr: InstrId, shape: ShapeId) -> Result<u32, ExecError> {
        if let Some(array) = self.array_of_shape[shape.index()] {
            return Ok(array);
        }
        let array = self.module.shapes.array(shape);
        let array = array.ok_or_else(|| self.unsupported(instr, "an array is expected here"))?;
        let map = TiledMap::new(array).map_err(|source| ExecError::Layout {
            instr: self.module.name_of(instr).to_owned(),
            source,
        })?;
        let index = self.program.arrays.len() as u32;
        self.program.arrays.push(ArrayInfo {
            element_type: array.element_type,
            dims: array.dims.as_slice().into(),
            map,
        });
        self.array_of_shape[shape.index()] = Some(index);
        Ok(index)
    }

    /// An array of plain bytes, to move padded arrays as they are.
    fn byte_array(&mut self, instr: InstrId, bytes: usize) -> Result<u32, ExecError> {
        let shape = slabplan_ir::ArrayShape::new(ElementType::U8, &[bytes as u64]);
        let map = TiledMap::new(&shape).map_err(|source| ExecError::Layout {
            instr: self.module.name_of(instr).to_owned(),
            source,
        })?;
        self.program.arrays.push(ArrayInfo {
            element_type: ElementType::U8,
            dims: Box::new([bytes as u64]),
            map,
        });
        Ok(self.program.arrays.len() as u32 - 1)
    }

    fn leaf_index(&mut self, leaf: Leaf) -> u32 {
        self.program.leaves.push(leaf);
        self.program.leaves.len() as u32 - 1
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
