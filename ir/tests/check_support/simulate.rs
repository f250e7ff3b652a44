//! Brute force: runs a module byte by byte at a plan's places, and says whether it goes wrong.
//!
//! Every element of every value is a tag: a hash of the operation and of the tags it was made
//! from. Memory holds, for each byte, the tag and which byte of the element it is. Operations read
//! and write memory element by element, as a streaming machine does, forwards or backwards; a
//! dynamic-update-slice writes its slice only; an async copy reads its source early or late and
//! spoils its destination in the meantime. The same operations on values that each have memory of
//! their own give the right answer.

use std::collections::BTreeMap;

use slabplan_ir::attr::AttrName;
use slabplan_ir::plan::Plan;
use slabplan_ir::{CompId, EntityId, InstrId, Module, Opcode, PosId, Positions, Shape, Target};

/// How one run goes.
#[derive(Clone, Copy)]
struct Mode {
    /// Trip counts and branch numbers, used one after another, over and over.
    decisions: [u32; 3],
    backwards: bool,
    copies_late: bool,
}

/// Whether the plan breaks the module in any of some hundred runs, or breaks the contract.
pub(crate) fn is_wrong(module: &Module, plan: &Plan, target: &Target) -> bool {
    let positions = Positions::new(module);
    breaks_contract(module, &positions, plan, target)
        || modes().any(|mode| Run::new(module, &positions, plan, mode).goes_wrong())
}

fn modes() -> impl Iterator<Item = Mode> {
    (0..27 * 4).map(|n| Mode {
        decisions: [n / 4 % 3, n / 12 % 3, n / 36 % 3],
        backwards: n % 2 == 1,
        copies_late: n / 2 % 2 == 1,
    })
}

/// What no run shows: alignment, sizes, spaces, ends of slabs.
fn breaks_contract(module: &Module, positions: &Positions, plan: &Plan, target: &Target) -> bool {
    plan.buffers.values().any(|b| {
        let aligned = b.offset.get() % target.space(b.space).unwrap().alignment.get() == 0;
        let slab = plan.space(b.space).unwrap().slab.get();
        let fits = b.offset.get() + b.size.get() <= slab;
        !(aligned && fits)
            || b.values.iter().any(|v| {
                let pos = positions.at(module, v.instr, &v.index).unwrap();
                let array = module.shapes.array(positions.shape(pos)).unwrap();
                array.memory_space() != b.space || b.size.get() < bytes(module, positions, pos)
            })
    })
}

fn bytes(module: &Module, positions: &Positions, pos: PosId) -> u64 {
    let shape = positions.shape(pos);
    slabplan_ir::padding::shape_bytes(&module.shapes, shape)
        .unwrap()
        .get()
}

type Tag = u64;

/// One byte: the tag of the element it belongs to, and which of the element's bytes it is.
type Cell = (Tag, u8);

fn mix(parts: &[u64]) -> Tag {
    parts.iter().fold(0x9e37_79b9_7f4a_7c15, |h, &p| {
        let h = (h ^ p).wrapping_mul(0xff51_afd7_ed55_8ccd);
        h ^ (h >> 29)
    })
}

/// Where the elements of a value are.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Home {
    space: u32,
    start: u64,
    width: u64,
    count: u64,
}

struct Run<'m> {
    module: &'m Module,
    positions: &'m Positions,
    slots: BTreeMap<PosId, (u32, u64)>,
    homes: BTreeMap<PosId, Home>,
    /// The bytes of each space, as far as anything was written.
    memory: [Vec<Cell>; 8],
    /// The right elements of every value.
    right: BTreeMap<PosId, Vec<Tag>>,
    mode: Mode,
    decided: usize,
    wrong: bool,
}

impl<'m> Run<'m> {
    fn new(module: &'m Module, positions: &'m Positions, plan: &Plan, mode: Mode) -> Self {
        let mut slots = BTreeMap::new();
        for b in plan.buffers.values() {
            for v in &b.values {
                let pos = positions.at(module, v.instr, &v.index).unwrap();
                slots.insert(pos, (b.space, b.offset.get()));
            }
        }
        Self {
            module,
            positions,
            slots,
            homes: BTreeMap::new(),
            memory: Default::default(),
            right: BTreeMap::new(),
            mode,
            decided: 0,
            wrong: false,
        }
    }

    fn goes_wrong(mut self) -> bool {
        let module = self.module;
        let mut kept = Vec::new();
        for comp in module.planned_computations() {
            for &id in &module.computations[comp].instrs {
                let opcode = module.instrs[id].opcode;
                let is_argument = opcode == Opcode::Parameter && comp == module.entry;
                if !is_argument && opcode != Opcode::Constant {
                    continue;
                }
                for pos in self.arrays(id) {
                    let home = self.settle(pos);
                    let tags: Vec<Tag> = (0..home.count)
                        .map(|i| mix(&[1, pos.index() as u64, i]))
                        .collect();
                    self.store_all(home, &tags);
                    self.right.insert(pos, tags);
                    let number = module.instrs[id].parameter_number();
                    let donated = number.is_some_and(|n| {
                        module.input_output_alias.iter().any(|a| a.parameter == n)
                            || module.buffer_donors.iter().any(|d| d.parameter == n)
                    });
                    if !donated {
                        kept.push(pos);
                    }
                }
            }
        }
        // Loading one input may have destroyed another.
        let loaded: Vec<PosId> = self.homes.keys().copied().collect();
        for &pos in &loaded {
            self.expect(pos);
        }
        self.computation(module.entry);
        for &pos in &kept {
            self.expect(pos);
        }
        let outputs = self.arrays(module.entry().root);
        let mut taken: BTreeMap<(u32, u64), PosId> = BTreeMap::new();
        for &pos in &outputs {
            self.expect(pos);
            let home = self.homes[&pos];
            for byte in home.start..home.start + home.width * home.count {
                self.wrong |= taken.insert((home.space, byte), pos).is_some();
            }
        }
        for alias in &module.input_output_alias {
            let param = module.entry().params[alias.parameter as usize];
            let input = self.positions.at(module, param, &alias.parameter_index);
            let root = module.entry().root;
            let output = self.positions.at(module, root, &alias.output_index);
            self.wrong |= self.homes[&input.unwrap()].start != self.homes[&output.unwrap()].start;
        }
        self.wrong
    }

    fn arrays(&self, id: InstrId) -> Vec<PosId> {
        let has_bytes = |p: &PosId| self.positions.has_bytes(self.module, *p);
        self.positions.of(id).filter(has_bytes).collect()
    }

    /// Gives `pos` the place that the plan says.
    fn settle(&mut self, pos: PosId) -> Home {
        let (space, start) = self.slots[&pos];
        let Shape::Array(array) = self.module.shapes.get(self.positions.shape(pos)) else {
            panic!("only arrays have places");
        };
        let home = Home {
            space,
            start,
            width: array.element_type.byte_width(),
            count: array.element_count().unwrap(),
        };
        self.homes.insert(pos, home);
        home
    }

    fn load(&self, home: Home, i: u64) -> Tag {
        let at = home.start + i * home.width;
        let bytes = &self.memory[home.space as usize];
        let cell = |k| bytes.get((at + k) as usize).copied().unwrap_or_default();
        let first = cell(0).0;
        let whole = (0..home.width).all(|k| cell(k) == (first, k as u8));
        if whole { first } else { mix(&[2, at]) }
    }

    fn store(&mut self, home: Home, i: u64, tag: Tag) {
        let at = (home.start + i * home.width) as usize;
        let bytes = &mut self.memory[home.space as usize];
        if bytes.len() < at + home.width as usize {
            bytes.resize(at + home.width as usize, Cell::default());
        }
        for (k, cell) in bytes[at..at + home.width as usize].iter_mut().enumerate() {
            *cell = (tag, k as u8);
        }
    }

    fn store_all(&mut self, home: Home, tags: &[Tag]) {
        for (i, &tag) in tags.iter().enumerate() {
            self.store(home, i as u64, tag);
        }
    }

    /// The value must be in memory as it should be.
    fn expect(&mut self, pos: PosId) {
        let home = self.homes[&pos];
        let right = &self.right[&pos];
        let same = (0..home.count).all(|i| self.load(home, i) == right[i as usize]);
        self.wrong |= !same;
    }

    fn decide(&mut self) -> u32 {
        self.decided += 1;
        self.mode.decisions[self.decided % 3]
    }

    fn forward(&mut self, to: PosId, from: PosId) {
        let home = self.homes[&from];
        self.homes.insert(to, home);
        let right = self.right[&from].clone();
        self.right.insert(to, right);
    }

    fn forward_all(&mut self, to: InstrId, from: InstrId) {
        for (t, f) in self.arrays(to).into_iter().zip(self.arrays(from)) {
            self.forward(t, f);
        }
    }

    fn computation(&mut self, comp: CompId) {
        for n in 0..self.module.computations[comp].instrs.len() {
            self.instruction(self.module.computations[comp].instrs[n]);
        }
    }

    fn instruction(&mut self, id: InstrId) {
        use Opcode as O;
        let module = self.module;
        let instr = &module.instrs[id];
        let operand = |n: usize| instr.operands[n];
        let root = |comp: CompId| module.computations[comp].root;
        let param = |comp: CompId| module.computations[comp].params[0];
        match instr.opcode {
            O::Parameter | O::Constant => {}
            O::Bitcast => {
                self.forward_all(id, operand(0));
            }
            O::Tuple => {
                let parts = self.arrays(id);
                let sources: Vec<PosId> = instr
                    .operands
                    .iter()
                    .flat_map(|&o| self.arrays(o))
                    .collect();
                for (to, from) in parts.into_iter().zip(sources) {
                    self.forward(to, from);
                }
            }
            O::GetTupleElement => {
                let index = instr.int(AttrName::Index).unwrap() as u32;
                let from = self.positions.at(module, operand(0), &[index]).unwrap();
                self.forward(self.positions.root(id), from);
            }
            O::While => {
                let condition = instr.comp(AttrName::Condition).unwrap();
                let body = instr.comp(AttrName::Body).unwrap();
                // The carried places are those of the initial values, whatever the body does.
                self.forward_all(id, operand(0));
                let trips = self.decide();
                for trip in 0..=trips {
                    self.forward_all(param(condition), id);
                    self.computation(condition);
                    self.expect(self.positions.root(root(condition)));
                    if trip == trips {
                        break;
                    }
                    self.forward_all(param(body), id);
                    self.computation(body);
                    let ends = self.arrays(root(body));
                    for (carry, end) in self.arrays(id).into_iter().zip(ends) {
                        let right = self.right[&end].clone();
                        self.right.insert(carry, right);
                    }
                }
            }
            O::Conditional => {
                let branches = instr.branches();
                self.expect(self.positions.root(operand(0)));
                let n = self.decide() as usize % branches.len();
                self.forward_all(param(branches[n]), operand(n + 1));
                self.computation(branches[n]);
                self.forward_all(id, root(branches[n]));
                // The result's place is one, whichever branch runs: that of branch 0.
                let ends = self.arrays(root(branches[0]));
                for (to, end) in self.arrays(id).into_iter().zip(ends) {
                    let fixed = self.place_of(end);
                    self.homes.insert(to, fixed);
                }
            }
            O::Call => {
                let callee = instr.comp(AttrName::ToApply).unwrap();
                self.forward_all(param(callee), operand(0));
                self.computation(callee);
                self.forward_all(id, root(callee));
            }
            O::CopyStart => self.copy_start(id),
            O::CopyDone => self.copy_done(id),
            O::DynamicUpdateSlice => self.update_slice(id),
            _ => self.stream(id),
        }
    }

    /// The place that the plan gives a value, found through what forwards it.
    fn place_of(&mut self, pos: PosId) -> Home {
        if self.slots.contains_key(&pos) {
            return self.settle(pos);
        }
        self.homes[&pos]
    }

    fn copy_start(&mut self, id: InstrId) {
        let source = self.positions.root(self.module.instrs[id].operands[0]);
        let parts = self.arrays(id);
        let (to, from, context) = (parts[0], parts[1], parts[2]);
        self.forward(from, source);
        let tags = self.right[&source].clone();
        let home = self.settle(to);
        for i in 0..home.count {
            let tag = if self.mode.copies_late {
                mix(&[3, i])
            } else {
                self.load(self.homes[&source], i)
            };
            self.store(home, i, tag);
        }
        self.right.insert(to, tags);
        let home = self.settle(context);
        self.store(home, 0, mix(&[4]));
        self.right.insert(context, vec![mix(&[4])]);
    }

    fn copy_done(&mut self, id: InstrId) {
        let start = self.module.instrs[id].operands[0];
        let parts = self.arrays(start);
        self.expect(parts[2]);
        let (to, from) = (self.homes[&parts[0]], self.homes[&parts[1]]);
        // The source belongs to the copy until it is done, even where it was read early.
        self.expect(parts[1]);
        if self.mode.copies_late {
            for i in 0..to.count {
                let tag = self.load(from, i);
                self.store(to, i, tag);
            }
        }
        self.forward(self.positions.root(id), parts[0]);
    }

    fn update_slice(&mut self, id: InstrId) {
        let module = self.module;
        let operands = module.instrs[id].operands.clone();
        let root = |o: InstrId| self.positions.root(o);
        let (array, update) = (root(operands[0]), root(operands[1]));
        let result = root(id);
        let mut right = self.right[&array].clone();
        // The index is taken to be 1 wherever it comes from; it counts as read.
        for (i, &tag) in self.right[&update].iter().enumerate() {
            let index = self.right[&root(operands[2])][0];
            right[1 + i] = mix(&[5, tag, index]);
        }
        let (update_home, index_home) = (self.homes[&update], self.homes[&root(operands[2])]);
        let home = self.settle(result);
        for i in self.order(update_home.count) {
            let tag = mix(&[5, self.load(update_home, i), self.load(index_home, 0)]);
            self.store(home, 1 + i, tag);
        }
        self.right.insert(result, right);
    }

    fn order(&self, count: u64) -> Vec<u64> {
        if self.mode.backwards {
            (0..count).rev().collect()
        } else {
            (0..count).collect()
        }
    }

    /// Elementwise operations, reverse, and fusions of them, element by element; a custom-call reads
    /// all elements for each of its own.
    fn stream(&mut self, id: InstrId) {
        let results = self.arrays(id);
        let count = results.iter().map(|&p| self.settle(p).count).max().unwrap();
        let mut right = vec![Vec::new(); results.len()];
        for i in 0..count {
            for (n, tag) in self.elements(id, i, &|run, pos, i| run.right[&pos][i as usize]) {
                right[n].push(tag);
            }
        }
        if self.module.instrs[id].opcode == Opcode::CustomCall && self.mode.backwards {
            // Whatever it is, it may write before it has read everything.
            for &pos in &results {
                self.store(self.homes[&pos], 0, mix(&[7]));
            }
        }
        for i in self.order(count) {
            let mut tags = self.elements(id, i, &|run, pos, i| run.load(run.homes[&pos], i));
            if self.mode.backwards {
                tags.reverse();
            }
            for (n, tag) in tags {
                self.store(self.homes[&results[n]], i, tag);
            }
        }
        for (pos, tags) in results.into_iter().zip(right) {
            self.right.insert(pos, tags);
        }
    }

    /// Element `i` of each result of `id`; `read` gives the elements of operands.
    fn elements(
        &self,
        id: InstrId,
        i: u64,
        read: &dyn Fn(&Self, PosId, u64) -> Tag,
    ) -> Vec<(usize, Tag)> {
        let instr = &self.module.instrs[id];
        if instr.opcode != Opcode::Fusion {
            let operand = |n: usize, i| read(self, self.positions.root(instr.operands[n]), i);
            return vec![(0, self.element(id, i, &operand))];
        }
        let comp = instr.comp(AttrName::Calls).unwrap();
        let root = self.module.computations[comp].root;
        let outputs: Vec<InstrId> = match self.module.instrs[root].opcode {
            Opcode::Tuple => self.module.instrs[root].operands.to_vec(),
            _ => vec![root],
        };
        let param = |n: usize, i| read(self, self.positions.root(instr.operands[n]), i);
        outputs
            .into_iter()
            .map(|o| self.fused(o, i, &param))
            .enumerate()
            .collect()
    }

    fn fused(&self, id: InstrId, i: u64, param: &dyn Fn(usize, u64) -> Tag) -> Tag {
        let instr = &self.module.instrs[id];
        if let Some(n) = instr.parameter_number() {
            return param(n as usize, i);
        }
        self.element(id, i, &|n, i| self.fused(instr.operands[n], i, param))
    }

    fn element(&self, id: InstrId, i: u64, operand: &dyn Fn(usize, u64) -> Tag) -> Tag {
        let instr = &self.module.instrs[id];
        let mut parts = vec![6, self.positions.root(id).index() as u64];
        match instr.opcode {
            Opcode::Reverse => {
                let shape = self.module.shapes.array(instr.shape).unwrap();
                let last = shape.element_count().unwrap() - 1;
                parts.push(operand(0, last - i));
            }
            Opcode::CustomCall => {
                for (n, &o) in instr.operands.iter().enumerate() {
                    let shape = self
                        .module
                        .shapes
                        .array(self.module.instrs[o].shape)
                        .unwrap();
                    parts.extend((0..shape.element_count().unwrap()).map(|i| operand(n, i)));
                }
            }
            _ => parts.extend((0..instr.operands.len()).map(|n| operand(n, i))),
        }
        mix(&parts)
    }
}
