//! A planner of the simplest kind, for tests: each must-alias class has bytes of its own.
//!
//! It shares nothing with the checker: it joins positions by its own reading of what forwards,
//! and puts the classes one after another.

#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod simulate;

use std::collections::BTreeMap;

use slabplan_ir::attr::AttrName;
use slabplan_ir::module::{AliasKind, InputOutputAlias};
use slabplan_ir::plan::{
    Accounting, BufferKind, PLAN_VERSION, Plan, PlanBuffer, PlanSpace, PlanStats, PlanValue,
};
use slabplan_ir::target::MemorySpace;
use slabplan_ir::{
    Alignment, ArrayShape, Bytes, CompId, EntityId, InstrId, Module, Offset, Opcode, PosId,
    Positions, PrimaryMap, Target, padding,
};

/// Parses a module that must be right.
#[track_caller]
pub(crate) fn parse(text: &str) -> Module {
    match slabplan_ir::text::parse(text).into_result() {
        Ok(module) => module,
        Err(errors) => panic!("{errors:?}"),
    }
}

/// A machine with spaces 0 to 7 of 1 MiB, aligned to `alignment`.
pub(crate) fn target(alignment: u64) -> Target {
    let space = |id| MemorySpace {
        id,
        name: if id == 0 {
            "hbm".to_owned()
        } else {
            format!("s{id}")
        },
        capacity: Bytes::new(1 << 20).unwrap(),
        alignment: Alignment::new(alignment).unwrap(),
        bandwidth: 1.0,
    };
    Target {
        name: "test".to_owned(),
        spaces: (0..8).map(space).collect(),
        tilings: Vec::new(),
    }
}

/// Must-alias classes over positions, by union-find.
pub(crate) struct Classes<'m> {
    pub(crate) module: &'m Module,
    pub(crate) positions: Positions,
    parent: Vec<u32>,
}

impl<'m> Classes<'m> {
    pub(crate) fn new(module: &'m Module) -> Self {
        let positions = Positions::new(module);
        let parent = (0..positions.len() as u32).collect();
        let mut this = Self {
            module,
            positions,
            parent,
        };
        for comp in module.planned_computations() {
            for &id in &module.computations[comp].instrs {
                this.join_instr(id);
            }
        }
        for alias in &module.input_output_alias {
            let (output, input) = this.alias_parts(alias);
            if this.holds(alias) {
                this.join(output, input);
            }
        }
        this
    }

    fn alias_parts(&self, alias: &InputOutputAlias) -> (PosId, PosId) {
        let entry = self.module.entry();
        let at = |instr, index: &[u32]| self.positions.at(self.module, instr, index).unwrap();
        (
            at(entry.root, &alias.output_index),
            at(
                entry.params[alias.parameter as usize],
                &alias.parameter_index,
            ),
        )
    }

    /// A may-alias of arrays that differ in size asks for what can't be.
    fn holds(&self, alias: &InputOutputAlias) -> bool {
        let (output, input) = self.alias_parts(alias);
        alias.kind == AliasKind::Must || self.bytes(output) == self.bytes(input)
    }

    fn bytes(&self, pos: PosId) -> u64 {
        padding::shape_bytes(&self.module.shapes, self.positions.shape(pos))
            .unwrap()
            .get()
    }

    pub(crate) fn find(&mut self, pos: PosId) -> u32 {
        let mut p = pos.index() as u32;
        while self.parent[p as usize] != p {
            let up = self.parent[self.parent[p as usize] as usize];
            self.parent[p as usize] = up;
            p = up;
        }
        p
    }

    fn join(&mut self, a: PosId, b: PosId) {
        let (a, b) = (self.find(a), self.find(b));
        let (low, high) = (a.min(b), a.max(b));
        self.parent[high as usize] = low;
    }

    /// Joins `n` parts of `a` from part `at` with those of `b` from part `from`.
    fn join_parts(&mut self, (a, at): (InstrId, u32), (b, from): (InstrId, u32), n: u32) {
        for k in 0..n {
            let (p, q) = (
                self.positions.node(a, at + k),
                self.positions.node(b, from + k),
            );
            if self.positions.has_bytes(self.module, p) && self.positions.has_bytes(self.module, q)
            {
                self.join(p, q);
            }
        }
    }

    fn join_all(&mut self, a: InstrId, b: InstrId) {
        let n = self.nodes(a).min(self.nodes(b));
        self.join_parts((a, 0), (b, 0), n);
    }

    fn nodes(&self, id: InstrId) -> u32 {
        self.module.shapes.node_count(self.module.instrs[id].shape)
    }

    fn start(&self, id: InstrId, index: &[u32]) -> u32 {
        let shape = self.module.instrs[id].shape;
        self.module.shapes.node_of_index(shape, index).unwrap()
    }

    fn join_instr(&mut self, id: InstrId) {
        use Opcode as O;
        let module = self.module;
        let instr = &module.instrs[id];
        let op = |n: usize| instr.operands[n];
        let root = |comp: CompId| module.computations[comp].root;
        let param = |comp: CompId, n: usize| module.computations[comp].params[n];
        match instr.opcode {
            O::Bitcast
            | O::AddDependency
            | O::OptimizationBarrier
            | O::Domain
            | O::AllReduceDone
            | O::AsyncUpdate => self.join_all(id, op(0)),
            O::Copy if module.shapes.tuple(instr.shape).is_some() => self.join_all(id, op(0)),
            O::Tuple => {
                for (n, &o) in instr.operands.iter().enumerate() {
                    let at = self.start(id, &[n as u32]);
                    self.join_parts((id, at), (o, 0), self.nodes(o));
                }
            }
            O::GetTupleElement => {
                let index = instr.int(AttrName::Index).unwrap() as u32;
                let from = self.start(op(0), &[index]);
                self.join_parts((id, 0), (op(0), from), self.nodes(id));
            }
            O::While => {
                let body = instr.comp(AttrName::Body).unwrap();
                let condition = instr.comp(AttrName::Condition).unwrap();
                for other in [op(0), root(body), param(body, 0), param(condition, 0)] {
                    self.join_all(id, other);
                }
            }
            O::Conditional => {
                for (n, branch) in instr.branches().into_iter().enumerate() {
                    self.join_all(id, root(branch));
                    self.join_all(param(branch, 0), op(n + 1));
                }
            }
            O::Call => {
                let callee = instr.comp(AttrName::ToApply).unwrap();
                self.join_all(id, root(callee));
                for (n, &o) in instr.operands.iter().enumerate() {
                    self.join_all(param(callee, n), o);
                }
            }
            O::AsyncStart => {
                let wrapped = instr.comp(AttrName::Calls).unwrap();
                let at = self.start(id, &[1]);
                self.join_parts((id, at), (root(wrapped), 0), self.nodes(root(wrapped)));
                for (n, &o) in instr.operands.iter().enumerate() {
                    let at = self.start(id, &[0, n as u32]);
                    self.join_parts((id, at), (o, 0), self.nodes(o));
                    self.join_all(param(wrapped, n), o);
                }
            }
            O::AsyncDone | O::AllGatherDone | O::CollectivePermuteDone => {
                let from = self.start(op(0), &[1]);
                self.join_parts((id, 0), (op(0), from), self.nodes(id));
            }
            O::CopyDone => {
                let from = self.start(op(0), &[0]);
                self.join_parts((id, 0), (op(0), from), self.nodes(id));
            }
            O::RecvDone => self.join_parts((id, 1), (op(0), 1), 1),
            O::CopyStart => {
                let at = self.start(id, &[1]);
                self.join_parts((id, at), (op(0), 0), self.nodes(op(0)));
            }
            O::Send => self.join_parts((id, 1), (op(0), 0), self.nodes(op(0))),
            O::AllGatherStart | O::CollectivePermuteStart => {
                let first = module.shapes.tuple(instr.shape).unwrap()[0];
                if module.shapes.tuple(first).is_some() && instr.operands.len() > 1 {
                    for (n, &o) in instr.operands.iter().enumerate() {
                        let at = self.start(id, &[0, n as u32]);
                        self.join_parts((id, at), (o, 0), self.nodes(o));
                    }
                } else {
                    self.join_parts((id, 1), (op(0), 0), self.nodes(op(0)));
                }
            }
            _ => {}
        }
        for (output, operand, node) in self.in_place(id) {
            self.join_parts((id, output), (operand, node), 1);
        }
    }

    /// (part of the result, operand, part of the operand) that must be one.
    fn in_place(&self, id: InstrId) -> Vec<(u32, InstrId, u32)> {
        use Opcode as O;
        let instr = &self.module.instrs[id];
        let ops = &instr.operands;
        let tuple = self.module.shapes.tuple(instr.shape).is_some();
        let mut pairs: Vec<(u32, InstrId, u32)> = Vec::new();
        match instr.opcode {
            O::DynamicUpdateSlice | O::SetDimensionSize => pairs.push((0, ops[0], 0)),
            O::Scatter | O::AllReduceStart if !tuple => pairs.push((0, ops[0], 0)),
            O::Scatter => {
                pairs.extend((0..ops.len() / 2).map(|n| (1 + n as u32, ops[n], 0)));
            }
            O::AllReduceStart => {
                pairs.extend((0..ops.len()).map(|n| (1 + n as u32, ops[n], 0)));
            }
            O::CollectivePermuteStart if ops.len() == 4 => {
                pairs.push((self.start(id, &[1]), ops[1], 0));
            }
            _ => {}
        }
        for alias in instr.operand_aliases() {
            let operand = ops[alias.operand as usize];
            pairs.push((
                self.start(id, &alias.output_index),
                operand,
                self.start(operand, &alias.operand_index),
            ));
        }
        if instr.opcode == O::Fusion {
            let comp = instr.comp(AttrName::Calls).unwrap();
            let root = self.module.computations[comp].root;
            for output in 0..self.nodes(root) {
                let Some((source, node)) = self.behind(root, output) else {
                    continue;
                };
                for (o, input, input_node) in self.in_place(source) {
                    if o != node {
                        continue;
                    }
                    if let Some((param, part)) = self.behind(input, input_node)
                        && let Some(n) = self.module.instrs[param].parameter_number()
                    {
                        pairs.push((output, ops[n as usize], part));
                    }
                }
            }
        }
        pairs
    }

    fn behind(&self, id: InstrId, node: u32) -> Option<(InstrId, u32)> {
        let instr = &self.module.instrs[id];
        match instr.opcode {
            Opcode::Bitcast => self.behind(instr.operands[0], node),
            Opcode::GetTupleElement => {
                let index = instr.int(AttrName::Index).unwrap() as u32;
                let from = self.start(instr.operands[0], &[index]);
                self.behind(instr.operands[0], from + node)
            }
            Opcode::Tuple => {
                let index = self.module.shapes.index_of_node(instr.shape, node);
                let n = *index.first()?;
                let from = self.start(id, &[n]);
                self.behind(instr.operands[n as usize], node - from)
            }
            _ => Some((id, node)),
        }
    }

    /// Whether the position is one that a plan names.
    pub(crate) fn defines(&self, pos: PosId) -> bool {
        use Opcode as O;
        let id = self.positions.instr(pos);
        let instr = &self.module.instrs[id];
        let first = self.positions.index(self.module, pos).first().copied();
        match instr.opcode {
            O::Bitcast
            | O::AddDependency
            | O::OptimizationBarrier
            | O::Domain
            | O::Tuple
            | O::GetTupleElement
            | O::While
            | O::Conditional
            | O::Call
            | O::AsyncUpdate
            | O::AsyncDone
            | O::CopyDone
            | O::AllGatherDone
            | O::AllReduceDone
            | O::CollectivePermuteDone
            | O::RecvDone => false,
            O::Copy => first.is_none(),
            O::Parameter => instr.computation == self.module.entry,
            O::AsyncStart => first > Some(1),
            O::CopyStart => first != Some(1),
            O::AllGatherStart | O::CollectivePermuteStart | O::Send => first != Some(0),
            _ => true,
        }
    }
}

/// Plans `module` with every class in bytes of its own.
pub(crate) fn plan_apart(module: &Module, target: &Target) -> Plan {
    let mut classes = Classes::new(module);
    // Class -> (space, size, defining positions).
    let mut members: BTreeMap<u32, (u32, u64, Vec<PosId>)> = BTreeMap::new();
    for comp in module.planned_computations() {
        for &id in &module.computations[comp].instrs {
            for pos in classes.positions.of(id) {
                if !classes.positions.has_bytes(module, pos) {
                    continue;
                }
                let class = classes.find(pos);
                let shape = classes.positions.shape(pos);
                let bytes = padding::shape_bytes(&module.shapes, shape).unwrap().get();
                let entry = members.entry(class).or_default();
                entry.1 = entry.1.max(bytes);
                if classes.defines(pos) {
                    entry.0 = space_of(module, shape);
                    entry.2.push(pos);
                }
            }
        }
    }
    let mut plan = empty_plan(module, target);
    let mut offsets: BTreeMap<u32, u64> = BTreeMap::new();
    let mut ends = [0u64; 8];
    let pieces = pieces(module, &mut classes, &members);
    for (&class, &(space, size, _)) in &members {
        if pieces.contains_key(&class) {
            continue;
        }
        let alignment = target.space(space).unwrap().alignment;
        let end = Bytes::new(ends[space as usize]).unwrap();
        let offset = alignment.round_up(end).unwrap().get();
        offsets.insert(class, offset);
        ends[space as usize] = offset + size;
    }
    for (&class, &(whole, distance)) in &pieces {
        offsets.insert(class, offsets[&whole] + distance);
    }
    for (class, (space, size, values)) in members {
        let values = values
            .into_iter()
            .map(|p| PlanValue {
                instr: classes.positions.instr(p),
                index: classes.positions.index(module, p),
            })
            .collect();
        plan.buffers.push(PlanBuffer {
            space,
            offset: Offset::new(offsets[&class]).unwrap(),
            size: Bytes::new(size).unwrap(),
            kind: BufferKind::Temp,
            values,
            live: Vec::new(),
        });
    }
    describe(module, &mut plan);
    plan
}

/// Classes that lie inside a `ConcatBitcast` result: (its class, distance from its start).
fn pieces(
    module: &Module,
    classes: &mut Classes<'_>,
    members: &BTreeMap<u32, (u32, u64, Vec<PosId>)>,
) -> BTreeMap<u32, (u32, u64)> {
    let mut pieces = BTreeMap::new();
    for id in module.instrs.keys() {
        if module.custom_call_target(id) != Some("ConcatBitcast") {
            continue;
        }
        let whole = classes.find(classes.positions.root(id));
        if !members.contains_key(&whole) {
            continue;
        }
        let mut distance = 0;
        for number in slabplan_ir::pieces::piece_order(module, id) {
            let o = module.instrs[id].operands[number];
            let pos = classes.positions.root(o);
            let class = classes.find(pos);
            pieces.insert(class, (whole, distance));
            let shape = classes.positions.shape(pos);
            distance += padding::shape_bytes(&module.shapes, shape).unwrap().get();
        }
    }
    pieces
}

fn space_of(module: &Module, shape: slabplan_ir::ShapeId) -> u32 {
    module
        .shapes
        .array(shape)
        .map_or(0, ArrayShape::memory_space)
}

fn empty_plan(module: &Module, target: &Target) -> Plan {
    Plan {
        module: module.str(module.name).to_owned(),
        fingerprint: slabplan_ir::plan::fingerprint(module),
        target: target.name.clone(),
        accounting: Accounting::Slab,
        schedule: "keep".to_owned(),
        spaces: target
            .spaces
            .iter()
            .map(|s| PlanSpace {
                space: s.id,
                name: s.name.clone(),
                capacity: s.capacity,
                alignment: s.alignment,
                slab: Bytes::ZERO,
                lower_bound: Bytes::ZERO,
                optimal: false,
                stats: PlanStats::default(),
            })
            .collect(),
        buffers: PrimaryMap::new(),
        copies: Vec::new(),
    }
}

/// Fills kinds, slabs and sums from the places: all a plan says beside them.
pub(crate) fn describe(module: &Module, plan: &mut Plan) {
    assert_eq!(PLAN_VERSION, 1);
    let mut classes = Classes::new(module);
    let held: Vec<_> = module
        .input_output_alias
        .iter()
        .filter(|a| classes.holds(a))
        .map(|a| &a.output_index)
        .collect();
    let donated = |number: u32, index: &[u32]| {
        let aliased = module.input_output_alias.iter().any(|a| {
            held.contains(&&a.output_index)
                && a.parameter == number
                && a.parameter_index.as_slice() == index
        });
        let given = module
            .buffer_donors
            .iter()
            .any(|d| d.parameter == number && d.parameter_index.as_slice() == index);
        aliased || given
    };
    let root = module.entry().root;
    let arrays: Vec<PosId> = classes
        .positions
        .of(root)
        .filter(|&p| classes.positions.has_bytes(module, p))
        .collect();
    let outputs: Vec<u32> = arrays.into_iter().map(|p| classes.find(p)).collect();
    for space in &mut plan.spaces {
        space.slab = Bytes::ZERO;
        space.stats = PlanStats::default();
    }
    for id in plan.buffers.keys() {
        let buffer = &mut plan.buffers[id];
        buffer.kind = BufferKind::Temp;
        let mut is_output = false;
        for value in &buffer.values {
            let instr = &module.instrs[value.instr];
            if let Some(pos) = classes.positions.at(module, value.instr, &value.index) {
                is_output |= outputs.contains(&classes.find(pos));
            }
            match instr.opcode {
                Opcode::Constant => buffer.kind = BufferKind::Constant,
                Opcode::Parameter => {
                    let number = instr.parameter_number().unwrap();
                    buffer.kind = BufferKind::Parameter {
                        number,
                        index: value.index.clone(),
                        donated: donated(number, &value.index),
                    };
                }
                _ => {}
            }
        }
        if is_output && buffer.kind == BufferKind::Temp {
            buffer.kind = BufferKind::Output;
        }
        let Some(space) = plan.spaces.iter_mut().find(|s| s.space == buffer.space) else {
            continue;
        };
        let end = buffer.offset.get().saturating_add(buffer.size.get());
        space.slab = space.slab.max(Bytes::new(end).unwrap());
        let add = |sum: &mut Bytes| *sum = sum.checked_add(buffer.size).unwrap();
        let stats = &mut space.stats;
        match buffer.kind {
            BufferKind::Parameter { .. } => add(&mut stats.argument),
            BufferKind::Constant => add(&mut stats.constant),
            _ => {}
        }
        if is_output {
            add(&mut stats.output);
            if matches!(buffer.kind, BufferKind::Parameter { .. }) {
                add(&mut stats.alias);
            }
        }
    }
}
