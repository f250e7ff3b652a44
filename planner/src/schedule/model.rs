//! One computation as a scheduler sees it: instructions by number, values by number, bytes.
//!
//! A value that is handed in (a parameter's) is there from the start. Bytes that nothing ever frees
//! (constants, arguments that are not donated) are in no order's power: they are added to the
//! entry's peak and otherwise left out.

use fixedbitset::FixedBitSet;
use rustc_hash::FxBuildHasher;

use slabplan_ir::entity::SecondaryMap;
use slabplan_ir::graph::DependenceGraph;
use slabplan_ir::padding::shape_bytes;
use slabplan_ir::{CompId, InstrId, Module, Opcode, PosId};

use super::measure::Peaks;
use super::precedence::{self, Rewrite};
use super::table::Table;
use crate::buffers::space_of;
use crate::dataflow::{Dataflow, ValueId};
use crate::donation::donations;
use crate::error::PlanError;
use crate::inplace::in_place_pairs;
use crate::liveness::Liveness;
use crate::order::{ProgramOrder, callees_in_order};
use crate::ports::{Ports, output_value, parameter_value};
use crate::share::ShareRules;

/// Above this many operand-result pairs an instruction is not searched for results that may lie on an
/// operand: the search is cubic in them.
const MAX_SHARING_PAIRS: usize = 1 << 12;

/// What is known of the module as a whole.
pub(super) struct Model<'a> {
    module: &'a Module,
    order: ProgramOrder,
    flow: Dataflow,
    ports: Ports,
    live: Liveness,
    /// The memory spaces that occur; space 0 first.
    pub(super) spaces: Vec<u32>,
    /// Bytes of each value, the most that any of its positions needs, and its space's number above.
    sizes: SecondaryMap<ValueId, (u64, u8)>,
    /// Whether a computation has side effects, itself or in what it calls.
    has_side_effects: SecondaryMap<CompId, bool>,
}

impl<'a> Model<'a> {
    pub(super) fn new(module: &'a Module) -> Result<Self, PlanError> {
        let order = ProgramOrder::new(module)?;
        let flow = Dataflow::new(module, &order);
        let ports = Ports::new(module, &flow, &donations(module));
        let live = Liveness::new(module, &order, &flow, &ports);
        let mut this = Self {
            module,
            spaces: vec![0],
            sizes: SecondaryMap::filled(flow.values.len(), (0, 0)),
            has_side_effects: SecondaryMap::filled(module.computations.len(), false),
            order,
            flow,
            ports,
            live,
        };
        this.find_sizes()?;
        this.find_side_effects();
        Ok(this)
    }

    fn find_sizes(&mut self) -> Result<(), PlanError> {
        let shapes = &self.module.shapes;
        for &instr in self.order.sequence() {
            for (pos, value) in self.flow.leaves(instr) {
                let shape = self.flow.positions.shape(pos);
                let bytes = shape_bytes(shapes, shape).map_err(|error| PlanError::Size {
                    value: self.flow.positions.display(self.module, pos),
                    error,
                })?;
                let space = space_of(shapes, shape);
                let number = self.spaces.iter().position(|&s| s == space);
                let number = number.unwrap_or_else(|| {
                    self.spaces.push(space);
                    self.spaces.len() - 1
                });
                let size = &mut self.sizes[value];
                if self.flow.values[value].def == pos {
                    size.1 = number as u8;
                }
                size.0 = size.0.max(bytes.get());
            }
        }
        Ok(())
    }

    fn find_side_effects(&mut self) {
        // Callees stand before callers.
        for comp in self.module.planned_computations() {
            let instrs = &self.module.computations[comp].instrs;
            self.has_side_effects[comp] = instrs.iter().any(|&i| self.has_side_effect(i));
        }
    }

    /// Whether `instr` must keep its place among others with side effects.
    fn has_side_effect(&self, instr: InstrId) -> bool {
        let i = &self.module.instrs[instr];
        self.module.has_side_effect(instr)
            || i.called_computations().any(|c| self.has_side_effects[c])
            // The end of an asynchronous operation is as much in order as its start.
            || (matches!(i.opcode, Opcode::AsyncDone | Opcode::AsyncUpdate)
                && i.operands.first().is_some_and(|&o| self.has_side_effect(o)))
    }

    /// Whether the bytes of `value` are never free for others.
    fn is_pinned(&self, value: ValueId) -> bool {
        self.ports.is_pinned(value)
    }
}

/// A value of a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct RegionValue {
    /// Bytes; zero if pinned.
    pub(super) bytes: u64,
    /// Number of its memory space in [`Model::spaces`].
    pub(super) space: u8,
    /// Whether it outlives the region: the result, or what the caller goes on using.
    pub(super) outlives: bool,
}

/// One computation. Instructions and values are numbers; instructions are numbered in an order that
/// keeps all dependences.
pub(super) struct Region {
    pub(super) instrs: Vec<InstrId>,
    pub(super) values: Vec<RegionValue>,
    /// Values that are there before the first instruction.
    pub(super) handed_in: Vec<u32>,
    /// The values that come to be at each instruction.
    pub(super) defines: Table,
    /// The values each instruction reads or passes on, without those it defines.
    pub(super) uses: Table,
    /// The instructions in the `uses` of which a value is.
    pub(super) users: Table,
    /// For each value, those whose bytes it may take if they die where it comes to be.
    pub(super) donors: Table,
    /// Who must come before each instruction, and the reverse.
    pub(super) before: Table,
    pub(super) after: Table,
    /// Bytes besides its operands and results that are live at some time while an instruction runs
    /// its computations, by space: `(instruction, bytes)`, ascending.
    pub(super) inner: Vec<(u32, Peaks)>,
    /// Bytes that are always there, by space.
    pub(super) base: Peaks,
}

impl Region {
    /// How many instructions there are.
    pub(super) fn len(&self) -> u32 {
        self.instrs.len() as u32
    }

    /// The bytes of all values an instruction defines.
    pub(super) fn defined_bytes(&self, instr: u32) -> u64 {
        let defines = self.defines.row(instr).iter();
        defines.fold(0, |sum: u64, &v| {
            sum.saturating_add(self.values[v as usize].bytes)
        })
    }

    /// The region of `comp`; its callees' peaks are known.
    pub(super) fn new(
        model: &Model<'_>,
        comp: CompId,
        peaks: &SecondaryMap<CompId, Peaks>,
    ) -> Self {
        Builder::new(model, comp).build(peaks)
    }
}

type Numbers = indexmap::IndexMap<ValueId, u32, FxBuildHasher>;

struct Builder<'m, 'a> {
    model: &'m Model<'a>,
    comp: CompId,
    instrs: Vec<InstrId>,
    /// Numbers of the region's values.
    numbers: Numbers,
    values: Vec<RegionValue>,
    defines: Table,
    uses: Table,
    /// (value, donor)
    donors: Vec<(u32, u32)>,
    rewrites: Vec<Rewrite>,
}

impl<'m, 'a> Builder<'m, 'a> {
    fn new(model: &'m Model<'a>, comp: CompId) -> Self {
        Self {
            model,
            comp,
            instrs: dependence_order(model.module, comp),
            numbers: Numbers::default(),
            values: Vec::new(),
            defines: Table::new(),
            uses: Table::new(),
            donors: Vec::new(),
            rewrites: Vec::new(),
        }
    }

    fn build(mut self, peaks: &SecondaryMap<CompId, Peaks>) -> Region {
        let handed_in = self.hand_in();
        self.number_values();
        self.mark_outliving();
        self.find_donors();
        let users = self.uses.transposed(self.values.len() as u32);
        let before = self.hard_precedences();
        let before = precedence::with_rewrites(&before, &self.uses, &users, &self.rewrites);
        let count = self.instrs.len() as u32;
        Region {
            inner: self.inner_peaks(peaks),
            base: self.base(),
            donors: Table::from_pairs(self.values.len() as u32, self.donors),
            after: before.transposed(count),
            before,
            handed_in,
            users,
            instrs: self.instrs,
            values: self.values,
            defines: self.defines,
            uses: self.uses,
        }
    }

    /// The number of a value, new if it is first met.
    fn number(&mut self, value: ValueId) -> (u32, bool) {
        if let Some(&n) = self.numbers.get(&value) {
            return (n, false);
        }
        let n = self.values.len() as u32;
        self.numbers.insert(value, n);
        let (bytes, space) = self.model.sizes[value];
        let pinned = self.model.is_pinned(value);
        self.values.push(RegionValue {
            bytes: if pinned { 0 } else { bytes },
            space,
            outlives: pinned,
        });
        (n, true)
    }

    /// The values of the parameters.
    fn hand_in(&mut self) -> Vec<u32> {
        let params = &self.model.module.computations[self.comp].params;
        let mut found = Vec::new();
        for &param in params {
            let leaves: Vec<ValueId> = self.model.flow.leaves(param).map(|(_, v)| v).collect();
            for value in leaves {
                if let (n, true) = self.number(value) {
                    found.push(n);
                }
            }
        }
        found
    }

    /// A value comes to be where it is first met: every other place got it from there.
    fn number_values(&mut self) {
        let model = self.model;
        let (mut defines, mut uses) = (Vec::new(), Vec::new());
        for k in 0..self.instrs.len() {
            let instr = self.instrs[k];
            let i = &model.module.instrs[instr];
            // These look at their operand's table only, not at every array behind it.
            if !matches!(i.opcode, Opcode::GetTupleElement | Opcode::Tuple) {
                for &operand in &i.operands {
                    for (_, value) in model.flow.leaves(operand) {
                        uses.push(self.number(value).0);
                    }
                }
            }
            for (_, value) in model.flow.leaves(instr) {
                match self.number(value) {
                    (n, true) => defines.push(n),
                    (n, false) => uses.push(n),
                }
            }
            uses.retain(|n| !defines.contains(n));
            self.defines.push_row(&defines);
            self.uses.push_set(&mut uses);
            defines.clear();
            uses.clear();
        }
    }

    /// Results outlive the region, and parameters too unless the region may overwrite them: a loop's
    /// body its carry, the program its donated arguments (which are not pinned).
    fn mark_outliving(&mut self) {
        let model = self.model;
        let computation = &model.module.computations[self.comp];
        let caller = model.order.caller(self.comp);
        let may_overwrite = match caller {
            None => true,
            Some(c) => {
                model.module.instrs[c].comp(slabplan_ir::attr::AttrName::Body) == Some(self.comp)
            }
        };
        let mut lasting = vec![computation.root];
        if !may_overwrite {
            lasting.extend(&computation.params);
        }
        for instr in lasting {
            for (_, value) in model.flow.leaves(instr) {
                if let Some(&n) = self.numbers.get(&value) {
                    self.values[n as usize].outlives = true;
                }
            }
        }
    }

    fn find_donors(&mut self) {
        let model = self.model;
        let module = model.module;
        let rules = ShareRules::new(
            module,
            &model.order,
            &model.flow,
            &model.ports,
            &model.live,
            true,
        );
        for k in 0..self.instrs.len() as u32 {
            let instr = self.instrs[k as usize];
            for (part, over) in in_place_pairs(module, instr) {
                let operand = module.instrs[instr].operands.get(over.operand as usize);
                let from = operand.and_then(|&o| self.value_at(o, &over.index));
                let to = self.value_at(instr, &part);
                self.add_rewrite(k, to, from);
            }
            if module.instrs[instr].opcode == Opcode::While {
                let init = module.instrs[instr].operands[0];
                let pairs: Vec<(PosId, PosId)> = (model.flow.positions.of(instr))
                    .zip(model.flow.positions.of(init))
                    .collect();
                for (to, from) in pairs {
                    self.add_rewrite(k, model.flow.at(to), model.flow.at(from));
                }
            }
            self.find_sharing(&rules, k);
        }
        self.find_carried_results();
    }

    fn value_at(&self, instr: InstrId, index: &[u32]) -> Option<ValueId> {
        let flow = &self.model.flow;
        flow.at(flow.positions.at(self.model.module, instr, index)?)
    }

    /// Instruction `k` defines `to` in the bytes of `from`.
    fn add_rewrite(&mut self, k: u32, to: Option<ValueId>, from: Option<ValueId>) {
        let (Some(to), Some(from)) = (to, from) else {
            return;
        };
        let (Some(&to), Some(&from)) = (self.numbers.get(&to), self.numbers.get(&from)) else {
            return;
        };
        if to != from && self.defines.row(k).contains(&to) {
            self.donors.push((to, from));
            if !self.values[from as usize].outlives {
                self.rewrites.push(Rewrite {
                    instr: k,
                    over: from,
                });
            }
        }
    }

    /// Results of instruction `k` that may lie on an operand of the same shape.
    fn find_sharing(&mut self, rules: &ShareRules<'_>, k: u32) {
        let model = self.model;
        let flow = &model.flow;
        let instr = self.instrs[k as usize];
        let (defines, uses) = (self.defines.row(k), self.uses.row(k));
        if defines.is_empty() || uses.len() * defines.len() > MAX_SHARING_PAIRS {
            return;
        }
        for (result, born) in flow.leaves(instr) {
            if flow.values[born].def != result {
                continue;
            }
            let to = self.numbers[&born];
            for &operand in &model.module.instrs[instr].operands {
                for (part, dying) in flow.leaves(operand) {
                    let from = self.numbers[&dying];
                    if flow.positions.shape(part) == flow.positions.shape(result)
                        && !self.values[from as usize].outlives
                        && rules.allows_value(instr, dying, result)
                    {
                        self.donors.push((to, from));
                    }
                }
            }
        }
    }

    /// What a loop's body returns lies where its parameter lay, and an output where its donated
    /// argument did: best written after the last read of it.
    fn find_carried_results(&mut self) {
        let model = self.model;
        let module = model.module;
        let computation = &module.computations[self.comp];
        let mut pairs: Vec<(Option<ValueId>, Option<ValueId>)> = Vec::new();
        match model.order.caller(self.comp) {
            None => pairs.extend(module.input_output_alias.iter().map(|a| {
                (
                    output_value(module, &model.flow, &a.output_index),
                    parameter_value(module, &model.flow, a.parameter, &a.parameter_index),
                )
            })),
            Some(c) if module.instrs[c].opcode == Opcode::While => {
                if let Some(&param) = computation.params.first()
                    && module.instrs[c].comp(slabplan_ir::attr::AttrName::Body) == Some(self.comp)
                {
                    let root = model.flow.positions.of(computation.root);
                    pairs.extend(
                        root.zip(model.flow.positions.of(param))
                            .map(|(r, p)| (model.flow.at(r), model.flow.at(p))),
                    );
                }
            }
            Some(_) => {}
        }
        let mut definer = vec![None; self.values.len()];
        for (k, v) in self.defines.pairs() {
            definer[v as usize] = Some(k);
        }
        for (result, argument) in pairs {
            let (Some(result), Some(argument)) = (result, argument) else {
                continue;
            };
            let (Some(&to), Some(&from)) = (self.numbers.get(&result), self.numbers.get(&argument))
            else {
                continue;
            };
            if let (Some(instr), false) =
                (definer[to as usize], self.values[from as usize].outlives)
            {
                self.rewrites.push(Rewrite { instr, over: from });
            }
        }
    }

    /// Operands, control predecessors, and the order of side effects.
    fn hard_precedences(&self) -> Table {
        let module = self.model.module;
        let mut place: indexmap::IndexMap<InstrId, u32, FxBuildHasher> =
            indexmap::IndexMap::with_capacity_and_hasher(self.instrs.len(), FxBuildHasher);
        place.extend(self.instrs.iter().copied().zip(0..));
        let mut before = Table::new();
        let mut last_effect = None;
        let mut row = Vec::new();
        for (k, &instr) in (0..).zip(&self.instrs) {
            let i = &module.instrs[instr];
            let needed = i.operands.iter().chain(i.control_predecessors());
            // In the order of the operands, which depth-first orders follow.
            for &n in needed {
                let n = place[&n];
                if !row.contains(&n) {
                    row.push(n);
                }
            }
            if self.model.has_side_effect(instr) {
                row.extend(last_effect.filter(|e| !row.contains(e)));
                last_effect = Some(k);
            }
            before.push_row(&row);
            row.clear();
        }
        before
    }

    /// What the computations of an instruction need beyond what is counted outside of them.
    fn inner_peaks(&self, peaks: &SecondaryMap<CompId, Peaks>) -> Vec<(u32, Peaks)> {
        let model = self.model;
        let mut found = Vec::new();
        for (k, &instr) in (0..).zip(&self.instrs) {
            let callees = callees_in_order(model.module, instr);
            let mut most = Peaks::new();
            for &callee in &callees {
                let mut outside: Peaks = vec![0; model.spaces.len()].into();
                let params = &model.module.computations[callee].params;
                let mut seen: Vec<ValueId> = Vec::new();
                for (_, value) in params.iter().flat_map(|&p| model.flow.leaves(p)) {
                    if !model.is_pinned(value) && !seen.contains(&value) {
                        seen.push(value);
                        let (bytes, space) = model.sizes[value];
                        outside[space as usize] = outside[space as usize].saturating_add(bytes);
                    }
                }
                for &v in self.defines.row(k) {
                    let v = self.values[v as usize];
                    // A loop's carry was counted as its parameter.
                    if model.module.instrs[instr].opcode != Opcode::While {
                        outside[v.space as usize] =
                            outside[v.space as usize].saturating_add(v.bytes);
                    }
                }
                most.resize(model.spaces.len(), 0);
                for ((m, &peak), &out) in most.iter_mut().zip(&peaks[callee]).zip(&outside) {
                    *m = (*m).max(peak.saturating_sub(out));
                }
            }
            if most.iter().any(|&m| m > 0) {
                found.push((k, most));
            }
        }
        found
    }

    /// Pinned bytes of the whole program, in the entry; elsewhere none.
    fn base(&self) -> Peaks {
        let model = self.model;
        let mut base: Peaks = vec![0; model.spaces.len()].into();
        if model.order.caller(self.comp).is_none() {
            for value in model.flow.values.keys().filter(|&v| model.is_pinned(v)) {
                let (bytes, space) = model.sizes[value];
                base[space as usize] = base[space as usize].saturating_add(bytes);
            }
        }
        base
    }
}

/// The text's order if it keeps control predecessors, as it must if the module is scheduled;
/// otherwise some order that does.
fn dependence_order(module: &Module, comp: CompId) -> Vec<InstrId> {
    let instrs = &module.computations[comp].instrs;
    let mut seen = FixedBitSet::with_capacity(module.instrs.len());
    let in_order = instrs.iter().all(|&i| {
        let control = module.instrs[i].control_predecessors();
        let kept = control
            .iter()
            .all(|p| seen.contains(slabplan_ir::EntityId::index(*p)));
        seen.insert(slabplan_ir::EntityId::index(i));
        kept
    });
    if in_order {
        return instrs.clone();
    }
    DependenceGraph::new(module)
        .computation(comp)
        .topological_order()
        .unwrap_or_else(|_| instrs.clone())
}
