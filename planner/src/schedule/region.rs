//! One computation as a scheduler sees it: instructions by number, values by number, bytes.
//!
//! A value that is handed in (a parameter's) is there from the start. Bytes that nothing ever frees
//! (constants, arguments that are not donated) are in no order's power: they are added to the
//! entry's peak and otherwise left out.

use fixedbitset::FixedBitSet;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

use slabplan_ir::attr::AttrName;
use slabplan_ir::graph::DependenceGraph;
use slabplan_ir::pieces::is_concat_bitcast;
use slabplan_ir::{CompId, InstrId, Module, Opcode, PosId};

use super::distance;
use super::model::Model;
use super::precedence::{self, Rewrite};
use super::table::Table;
use crate::dataflow::{ValueId, is_forwarding};
use crate::inplace::in_place_pairs;
use crate::order::callees_in_order;
use crate::ports::{output_value, parameter_value};
use crate::share::ShareRules;

/// Above this many operand-result pairs an instruction is not searched for results that may lie on an
/// operand: the search is cubic in them.
const MAX_SHARING_PAIRS: usize = 1 << 12;

/// A value of a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct RegionValue {
    /// Bytes; zero if pinned.
    pub(super) bytes: u64,
    /// Number of its memory space in [`Model::spaces`].
    pub(super) space: u8,
    /// Whether it outlives the region: the result, or what the caller may go on using.
    pub(super) outlives: bool,
    /// Whether it does so in every order: of a parameter's value `outlives` may only be careful.
    pub(super) surely_outlives: bool,
    /// Whether its bytes may at some time be another value's although both are needed, so that it
    /// must not count in a bound: what lies inside a joined array, or is written by an operation in flight.
    pub(super) lies_inside: bool,
}

/// An instruction that runs computations.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) instr: u32,
    pub(super) callees: SmallVec<[CompId; 2]>,
    /// Those of its operands' values, sorted, that the callees know as their parameters' and count themselves.
    pub(super) inside: Vec<u32>,
}

/// One computation. Instructions and values are numbers; instructions are numbered in an order that
/// keeps all dependences.
pub(super) struct Region {
    pub(super) instrs: Vec<InstrId>,
    pub(super) values: Vec<RegionValue>,
    /// Values that are there before the first instruction.
    pub(super) handed_in: Vec<u32>,
    /// Whether all of them are there at one moment, read or not: the program's arguments, a loop's carry.
    pub(super) handed_in_together: bool,
    /// The values that come to be at each instruction.
    pub(super) defines: Table,
    /// The values each instruction reads or passes on, without those it defines.
    pub(super) uses: Table,
    /// The instructions in the `uses` of which a value is.
    pub(super) users: Table,
    /// For each value, those whose bytes it may take if they die where it comes to be.
    pub(super) donors: Table,
    /// Who must come before each instruction: operands, control predecessors, earlier side effects.
    pub(super) hard: Table,
    /// Who should come before each instruction, and the reverse: besides `hard` those that read what it
    /// overwrites.
    pub(super) before: Table,
    pub(super) after: Table,
    /// Who writes what comes back to an argument's or a carry's bytes.
    pub(super) carried: Vec<Rewrite>,
    /// Instructions that run computations, ascending.
    pub(super) calls: Vec<Call>,
    /// Bytes that are always there, by space.
    pub(super) base: Vec<u64>,
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

    /// The region of `comp`.
    pub(super) fn new(
        model: &Model<'_>,
        rules: &ShareRules<'_>,
        comp: CompId,
        keep_async_distance: bool,
    ) -> Self {
        Builder::new(model, comp).build(rules, keep_async_distance)
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
    carried: Vec<Rewrite>,
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
            carried: Vec::new(),
        }
    }

    fn build(mut self, rules: &ShareRules<'_>, keep_async_distance: bool) -> Region {
        let handed_in = self.hand_in();
        self.number_values();
        self.mark_outliving();
        self.mark_inside();
        self.find_donors(rules);
        let users = self.uses.transposed(self.values.len() as u32);
        let hard = self.hard_precedences();
        let kept = if keep_async_distance {
            distance::kept(self.model.module, &self.instrs, &hard)
        } else {
            hard.clone()
        };
        let before = precedence::with_rewrites(&kept, &self.uses, &users, &self.rewrites);
        let count = self.instrs.len() as u32;
        let caller = self.model.order.caller(self.comp);
        Region {
            handed_in_together: caller
                .is_none_or(|c| self.model.module.instrs[c].opcode == Opcode::While),
            calls: self.calls(),
            carried: self.carried.clone(),
            hard,
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
            surely_outlives: pinned,
            lies_inside: false,
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
            // These read no bytes.
            if !is_forwarding(model.module, instr) {
                for &operand in &i.operands {
                    for (_, value) in model.flow.leaves(operand) {
                        uses.push(self.number(value).0);
                    }
                }
            }
            for (_, value) in model.flow.leaves(instr) {
                match self.number(value) {
                    (n, true) => defines.push(n),
                    (_, false) if is_forwarding(model.module, instr) => {}
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
        let called_as =
            |name| caller.is_some_and(|c| model.module.instrs[c].comp(name) == Some(self.comp));
        let mut lasting = vec![(computation.root, true)];
        if caller.is_some() && !called_as(AttrName::Body) {
            let sure = called_as(AttrName::Condition);
            lasting.extend(computation.params.iter().map(|&p| (p, sure)));
        }
        for (instr, sure) in lasting {
            for (_, value) in model.flow.leaves(instr) {
                let Some(&n) = self.numbers.get(&value) else {
                    continue;
                };
                let kept = sure || caller.is_none_or(|c| !model.is_handed_over(value, c));
                let value = &mut self.values[n as usize];
                value.outlives |= kept;
                value.surely_outlives |= sure;
            }
        }
    }

    /// Pieces of joined arrays, and what an operation in flight writes in place.
    fn mark_inside(&mut self) {
        let model = self.model;
        let module = model.module;
        for k in 0..self.instrs.len() {
            let instr = self.instrs[k];
            let i = &module.instrs[instr];
            let values: Vec<ValueId> = if is_concat_bitcast(module, instr) {
                let operands = i.operands.iter();
                operands
                    .flat_map(|&o| model.flow.leaves(o))
                    .map(|(_, v)| v)
                    .collect()
            } else if self.writes_in_flight(instr) {
                model.flow.leaves(instr).map(|(_, v)| v).collect()
            } else {
                continue;
            };
            for value in values {
                if let Some(&n) = self.numbers.get(&value) {
                    self.values[n as usize].lies_inside = true;
                }
            }
        }
    }

    /// Whether `instr` starts an operation that writes over an operand.
    fn writes_in_flight(&self, instr: InstrId) -> bool {
        let module = self.model.module;
        module.instrs[instr].opcode == Opcode::AsyncStart
            && callees_in_order(module, instr).iter().any(|&c| {
                let instrs = &module.computations[c].instrs;
                instrs
                    .iter()
                    .any(|&i| !in_place_pairs(module, i).is_empty())
            })
    }

    fn find_donors(&mut self, rules: &ShareRules<'_>) {
        let model = self.model;
        let module = model.module;
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
            self.find_sharing(rules, k);
        }
        self.find_carried_results();
        self.rewrites.extend_from_slice(&self.carried);
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
                    // What only may outlive the region does not where the caller hands it over.
                    if flow.positions.shape(part) == flow.positions.shape(result)
                        && !self.values[from as usize].surely_outlives
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
                    && module.instrs[c].comp(AttrName::Body) == Some(self.comp)
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
                self.carried.push(Rewrite { instr, over: from });
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

    fn calls(&self) -> Vec<Call> {
        let model = self.model;
        let mut found = Vec::new();
        for (k, &instr) in (0..).zip(&self.instrs) {
            let callees = callees_in_order(model.module, instr);
            if callees.is_empty() {
                continue;
            }
            let params = callees
                .iter()
                .flat_map(|&c| &model.module.computations[c].params);
            let values = params.flat_map(|&p| model.flow.leaves(p)).map(|(_, v)| v);
            let numbers = values.filter_map(|v| self.numbers.get(&v).copied());
            let uses = self.uses.row(k);
            let mut inside: Vec<u32> = numbers.filter(|n| uses.binary_search(n).is_ok()).collect();
            inside.sort_unstable();
            inside.dedup();
            found.push(Call {
                instr: k,
                callees,
                inside,
            });
        }
        found
    }

    /// Pinned bytes of the whole program, in the entry; elsewhere none.
    fn base(&self) -> Vec<u64> {
        let model = self.model;
        let mut base = vec![0u64; model.spaces.len()];
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
