//! Which value lives at every position: SSA, with a merge only where two values really meet.
//!
//! A *defining* position makes a value of its own; the others forward one (the table is XLA's
//! `HloDataflowAnalysis`). Two kinds of position have several sources: a while's parameter (the
//! initial value and what the body returns) and a conditional's result (what each branch returns). They
//! become a merge value unless all sources turn out to be one value: what a loop passes through
//! unchanged stays the value it was.
//!
//! The parameter of the body, that of the condition and the result of a while are one value: after
//! the condition has run, the same bytes are either the body's parameter or the result.

use smallvec::SmallVec;

use slabplan_ir::attr::{AttrName, OperandAlias};
use slabplan_ir::entity::{PrimaryMap, SecondaryMap};
use slabplan_ir::instr::Instr;
use slabplan_ir::{InstrId, Module, Opcode, PosId, Positions};

use crate::order::{ProgramOrder, callees_in_order};

slabplan_ir::entity! {
    /// A value: one array, defined at one position.
    ValueId = "value";
}

/// How a value comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Its instruction writes it.
    Defined,
    /// It stands in a loop's carry; the position is the body's parameter, the instruction the while.
    LoopCarry(InstrId),
    /// One of several branches wrote it; the position is the conditional's result.
    BranchResult,
}

/// One array at one defining position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// The position that defines it.
    pub def: PosId,
    /// How it comes to be.
    pub kind: ValueKind,
}

/// A merge that is a value: the values that flow into it must come to lie in its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    /// The value of the merge.
    pub value: ValueId,
    /// The while or conditional.
    pub instr: InstrId,
    /// What flows in: `[initial, body root]`, or one value a branch.
    pub sources: SmallVec<[ValueId; 2]>,
}

/// The value at every position of the planned computations.
#[derive(Clone, Debug)]
pub struct Dataflow {
    /// Numbering of positions.
    pub positions: Positions,
    /// All values, by defining position.
    pub values: PrimaryMap<ValueId, Value>,
    /// All merges that are values.
    pub merges: Vec<Merge>,
    at: SecondaryMap<PosId, Option<ValueId>>,
}

impl Dataflow {
    /// Analyses the planned computations of a verified `module`.
    ///
    /// Near-linear in the positions; loops nested `d` deep take up to `d` rounds of merge removal.
    pub fn new(module: &Module, order: &ProgramOrder) -> Self {
        let positions = Positions::new(module);
        let mut sources = Sources {
            of: positions.filled(Source::None),
            merges: Vec::new(),
            module,
            positions: &positions,
        };
        for &instr in order.sequence() {
            sources.add(instr, order);
        }
        let Sources { of, merges, .. } = sources;
        let resolved = Resolved::new(of, merges);
        Self::name_values(module, order, positions, resolved)
    }

    fn name_values(
        module: &Module,
        order: &ProgramOrder,
        positions: Positions,
        mut resolved: Resolved,
    ) -> Self {
        let mut at = positions.filled(None);
        let mut values = PrimaryMap::new();
        let mut merges = Vec::new();
        // In program order, so that numbers do not depend on how computations are listed.
        for pos in order.sequence().iter().flat_map(|&i| positions.of(i)) {
            let kind = match resolved.of[pos] {
                Source::Own => ValueKind::Defined,
                Source::Merge(m) if resolved.is_value(m) => resolved.merges[m as usize].kind,
                _ => continue,
            };
            at[pos] = Some(values.push(Value { def: pos, kind }));
        }
        for &instr in order.sequence() {
            for pos in positions.of(instr) {
                if at[pos].is_none() && positions.has_bytes(module, pos) {
                    at[pos] = resolved.origin(pos).and_then(|origin| at[origin]);
                }
            }
        }
        for m in 0..resolved.merges.len() {
            if resolved.is_value(m as u32) {
                let merge = &resolved.merges[m];
                merges.push(Merge {
                    value: at[merge.pos].expect("a merge that is a value has one"),
                    instr: merge.instr,
                    sources: merge.sources.iter().filter_map(|&p| at[p]).collect(),
                });
            }
        }
        Self {
            positions,
            values,
            merges,
            at,
        }
    }

    /// The value at a position; `None` where there are no bytes, and outside planned computations.
    pub fn at(&self, pos: PosId) -> Option<ValueId> {
        self.at[pos]
    }

    /// The values at all positions of `instr`, in preorder, positions without bytes left out.
    pub fn leaves(&self, instr: InstrId) -> impl Iterator<Item = (PosId, ValueId)> + '_ {
        self.positions
            .of(instr)
            .filter_map(|p| Some((p, self.at[p]?)))
    }

    /// The instruction that defines `value`; of a loop's carry, the body's parameter.
    pub fn instr_of(&self, value: ValueId) -> InstrId {
        self.positions.instr(self.values[value].def)
    }

    /// Prints a value as its defining position.
    pub fn display(&self, module: &Module, value: ValueId) -> String {
        self.positions.display(module, self.values[value].def)
    }
}

/// Whether an instruction gives its operands' bytes another name and reads none.
pub(crate) fn is_forwarding(module: &Module, instr: InstrId) -> bool {
    use Opcode as O;
    let i = &module.instrs[instr];
    match i.opcode {
        O::Tuple
        | O::GetTupleElement
        | O::Bitcast
        | O::AddDependency
        | O::OptimizationBarrier
        | O::Domain => true,
        O::Copy => module.shapes.tuple(i.shape).is_some(),
        _ => false,
    }
}

/// Where the value at a position comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// No bytes, or nothing planned.
    None,
    /// Defined here.
    Own,
    /// The value of that position.
    From(PosId),
    /// Several positions meet: a number of the merge list.
    Merge(u32),
}

struct MergePoint {
    pos: PosId,
    instr: InstrId,
    kind: ValueKind,
    sources: SmallVec<[PosId; 2]>,
}

/// Collects the source of every position: the forwarding table of HLO.
struct Sources<'a> {
    of: SecondaryMap<PosId, Source>,
    merges: Vec<MergePoint>,
    module: &'a Module,
    positions: &'a Positions,
}

impl Sources<'_> {
    /// Enters the positions of `instr` and of the parameters of what it calls.
    fn add(&mut self, instr: InstrId, order: &ProgramOrder) {
        use Opcode as O;
        let module = self.module;
        let i = &module.instrs[instr];
        match i.opcode {
            O::Bitcast | O::AddDependency | O::OptimizationBarrier | O::Domain => {
                self.forward(instr, 0, i.operands[0], 0);
            }
            O::AllReduceDone => self.forward(instr, 0, i.operands[0], 0),
            O::GetTupleElement => {
                let index = i.int(AttrName::Index).unwrap_or(0) as u32;
                if let Some(node) = self.node(i.operands[0], &[index]) {
                    self.forward(instr, 0, i.operands[0], node);
                }
            }
            O::Tuple => self.forward_operands(instr, 1, &i.operands),
            O::Copy if self.is_tuple(instr) => self.forward(instr, 0, i.operands[0], 0),
            // The caller enters what reaches a parameter.
            O::Parameter if order.caller(i.computation).is_some() => {}
            O::While => self.add_while(instr, i),
            O::Conditional => self.add_conditional(instr, i),
            O::Call => self.add_call(instr, i),
            O::AsyncStart => self.add_async_start(instr, i),
            O::AsyncUpdate => {
                self.own_rest(instr);
                self.forward(instr, 0, i.operands[0], 0);
            }
            O::AsyncDone | O::AllGatherDone | O::CollectivePermuteDone => {
                self.own_rest(instr);
                self.forward_from_index(instr, 0, i.operands[0], &[1]);
            }
            O::CopyStart => {
                self.own_rest(instr);
                self.forward_to_index(instr, &[1], i.operands[0]);
            }
            O::Send => {
                self.own_rest(instr);
                self.forward_to_index(instr, &[0], i.operands[0]);
            }
            O::CopyDone => self.forward_from_index(instr, 0, i.operands[0], &[0]),
            O::RecvDone => {
                self.own_rest(instr);
                if let Some(node) = self.node(instr, &[0]) {
                    self.forward_from_index(instr, node, i.operands[0], &[0]);
                }
            }
            O::AllGatherStart | O::CollectivePermuteStart => self.add_collective_start(instr, i),
            _ => {
                self.own_rest(instr);
                self.join_declared(instr, i);
            }
        }
    }

    /// Results declared to lie on one and the same operand array are one value, held twice.
    fn join_declared(&mut self, instr: InstrId, i: &Instr) {
        let aliases = i.operand_aliases();
        for (k, alias) in aliases.iter().enumerate() {
            let same = |a: &&OperandAlias| {
                a.operand == alias.operand && a.operand_index == alias.operand_index
            };
            let Some(first) = aliases[..k].iter().find(same) else {
                continue;
            };
            let first = self.positions.at(self.module, instr, &first.output_index);
            let here = self.positions.at(self.module, instr, &alias.output_index);
            if let (Some(first), Some(here)) = (first, here)
                && first != here
                && self.of[here] == Source::Own
                && self.of[first] == Source::Own
                && self.positions.shape(first) == self.positions.shape(here)
            {
                self.of[here] = Source::From(first);
            }
        }
    }

    fn add_while(&mut self, instr: InstrId, i: &Instr) {
        let (Some(condition), Some(body)) = (i.comp(AttrName::Condition), i.comp(AttrName::Body))
        else {
            return self.own_rest(instr);
        };
        let module = self.module;
        let init = i.operands[0];
        let root = module.computations[body].root;
        let Some(&param) = module.computations[body].params.first() else {
            return self.own_rest(instr);
        };
        for node in 0..self.nodes(param) {
            let pos = self.positions.node(param, node);
            let sources = [init, root].map(|i| self.positions.node(i, node));
            self.merge(pos, instr, ValueKind::LoopCarry(instr), sources.into());
        }
        self.forward(instr, 0, param, 0);
        if let Some(&param_of_condition) = module.computations[condition].params.first() {
            self.forward(param_of_condition, 0, param, 0);
        }
    }

    fn add_conditional(&mut self, instr: InstrId, i: &Instr) {
        let module = self.module;
        let branches = i.branches();
        for (&branch, &operand) in branches.iter().zip(i.operands.iter().skip(1)) {
            if let Some(&param) = module.computations[branch].params.first() {
                self.forward(param, 0, operand, 0);
            }
        }
        for node in 0..self.nodes(instr) {
            let sources = branches
                .iter()
                .map(|&b| self.positions.node(module.computations[b].root, node))
                .collect();
            let pos = self.positions.node(instr, node);
            self.merge(pos, instr, ValueKind::BranchResult, sources);
        }
    }

    fn add_call(&mut self, instr: InstrId, i: &Instr) {
        let Some(&callee) = callees_in_order(self.module, instr).first() else {
            return self.own_rest(instr);
        };
        let callee = &self.module.computations[callee];
        for (&param, &operand) in callee.params.iter().zip(&i.operands) {
            self.forward(param, 0, operand, 0);
        }
        self.forward(instr, 0, callee.root, 0);
    }

    fn add_async_start(&mut self, instr: InstrId, i: &Instr) {
        self.own_rest(instr);
        if let Some(node) = self.node(instr, &[0]) {
            self.forward_operands(instr, node + 1, &i.operands);
        }
        if let Some(&callee) = callees_in_order(self.module, instr).first() {
            let callee = &self.module.computations[callee];
            for (&param, &operand) in callee.params.iter().zip(&i.operands) {
                self.forward(param, 0, operand, 0);
            }
            self.forward_to_index(instr, &[1], callee.root);
        }
    }

    /// `{0}` is the operand, or a tuple of the operands; everything else is new.
    fn add_collective_start(&mut self, instr: InstrId, i: &Instr) {
        self.own_rest(instr);
        let Some(node) = self.node(instr, &[0]) else {
            return;
        };
        let here = self.positions.shape(self.positions.node(instr, node));
        match self.module.shapes.tuple(here) {
            Some(elements) if self.nodes(i.operands[0]) != self.module.shapes.node_count(here) => {
                let n = elements.len().min(i.operands.len());
                self.forward_operands(instr, node + 1, &i.operands[..n]);
            }
            _ => self.forward_to_index(instr, &[0], i.operands[0]),
        }
    }

    /// Positions `node..` of `instr` are the parts of `operands`, one operand after another.
    fn forward_operands(&mut self, instr: InstrId, mut node: u32, operands: &[InstrId]) {
        for &operand in operands {
            self.forward(instr, node, operand, 0);
            node += self.nodes(operand);
        }
    }

    fn forward_to_index(&mut self, instr: InstrId, index: &[u32], from: InstrId) {
        if let Some(node) = self.node(instr, index) {
            self.forward(instr, node, from, 0);
        }
    }

    fn forward_from_index(&mut self, instr: InstrId, node: u32, from: InstrId, index: &[u32]) {
        if let Some(from_node) = self.node(from, index) {
            self.forward(instr, node, from, from_node);
        }
    }

    /// The subtree of `instr` at `node` is that of `from` at `from_node`, as far as both go.
    fn forward(&mut self, instr: InstrId, node: u32, from: InstrId, from_node: u32) {
        let subtree = |i: InstrId, n: u32| {
            let shape = self.positions.shape(self.positions.node(i, n));
            self.module.shapes.node_count(shape)
        };
        if node >= self.nodes(instr) || from_node >= self.nodes(from) {
            return;
        }
        for k in 0..subtree(instr, node).min(subtree(from, from_node)) {
            let pos = self.positions.node(instr, node + k);
            if self.positions.has_bytes(self.module, pos) {
                self.of[pos] = Source::From(self.positions.node(from, from_node + k));
            }
        }
    }

    fn merge(
        &mut self,
        pos: PosId,
        instr: InstrId,
        kind: ValueKind,
        sources: SmallVec<[PosId; 2]>,
    ) {
        if self.positions.has_bytes(self.module, pos) {
            self.of[pos] = Source::Merge(self.merges.len() as u32);
            self.merges.push(MergePoint {
                pos,
                instr,
                kind,
                sources,
            });
        }
    }

    /// Every position of `instr` that has no source yet is its own.
    fn own_rest(&mut self, instr: InstrId) {
        for pos in self.positions.of(instr) {
            if self.of[pos] == Source::None && self.positions.has_bytes(self.module, pos) {
                self.of[pos] = Source::Own;
            }
        }
    }

    fn nodes(&self, instr: InstrId) -> u32 {
        self.positions.of(instr).len() as u32
    }

    fn node(&self, instr: InstrId, index: &[u32]) -> Option<u32> {
        let shape = self.module.instrs[instr].shape;
        self.module.shapes.node_of_index(shape, index)
    }

    fn is_tuple(&self, instr: InstrId) -> bool {
        let shape = self.module.instrs[instr].shape;
        self.module.shapes.tuple(shape).is_some()
    }
}

/// Sources with chains followed and trivial merges removed.
struct Resolved {
    of: SecondaryMap<PosId, Source>,
    merges: Vec<MergePoint>,
    /// For every merge that is not a value: the position it stands for.
    replaced: Vec<Option<PosId>>,
}

impl Resolved {
    fn new(of: SecondaryMap<PosId, Source>, merges: Vec<MergePoint>) -> Self {
        let replaced = vec![None; merges.len()];
        let mut this = Self {
            of,
            merges,
            replaced,
        };
        this.remove_trivial_merges();
        this
    }

    fn is_value(&self, merge: u32) -> bool {
        self.replaced[merge as usize].is_none()
    }

    /// The defining position behind `pos`. Shortens the chain it walked: amortised near-constant.
    fn origin(&mut self, pos: PosId) -> Option<PosId> {
        let mut path: SmallVec<[PosId; 8]> = SmallVec::new();
        let mut here = pos;
        let end = loop {
            let next = match self.of[here] {
                Source::None => break None,
                Source::Own => break Some(here),
                Source::From(next) => next,
                Source::Merge(m) => match self.replaced[m as usize] {
                    None => break Some(here),
                    Some(next) => next,
                },
            };
            path.push(here);
            here = next;
        };
        if let Some(end) = end {
            for p in path {
                match self.of[p] {
                    Source::Merge(m) => self.replaced[m as usize] = Some(end),
                    _ => self.of[p] = Source::From(end),
                }
            }
        }
        end
    }

    /// A merge whose sources are one value and itself is that value. Removing one may make the
    /// merges that it flows into trivial, so these are looked at again.
    fn remove_trivial_merges(&mut self) {
        let mut flows_into: Vec<SmallVec<[u32; 2]>> = vec![SmallVec::new(); self.merges.len()];
        for m in 0..self.merges.len() {
            for s in self.merges[m].sources.clone() {
                if let Some(Source::Merge(from)) = self.origin(s).map(|o| self.of[o]) {
                    flows_into[from as usize].push(m as u32);
                }
            }
        }
        let mut queue: Vec<u32> = (0..self.merges.len() as u32).rev().collect();
        while let Some(m) = queue.pop() {
            if !self.is_value(m) {
                continue;
            }
            let Some(only) = self.only_source(m) else {
                continue;
            };
            self.replaced[m as usize] = Some(only);
            let users = std::mem::take(&mut flows_into[m as usize]);
            queue.extend(users.iter().copied());
            if let Source::Merge(into) = self.of[only] {
                flows_into[into as usize].extend(users);
            }
        }
    }

    /// The one value, other than itself, that flows into merge `m`.
    fn only_source(&mut self, m: u32) -> Option<PosId> {
        let own = self.merges[m as usize].pos;
        let mut only = None;
        for k in 0..self.merges[m as usize].sources.len() {
            let source = self.merges[m as usize].sources[k];
            let origin = self.origin(source)?;
            if origin != own && *only.get_or_insert(origin) != origin {
                return None;
            }
        }
        only
    }
}
