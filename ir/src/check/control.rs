//! Execution of while, conditional, call and async operations: one frame for each computation that
//! is being run, none on the machine's stack.

use smallvec::SmallVec;

use super::execute::{Bound, Machine, SymbolKind};
use super::memory::{Mark, Place, Sym, merge, touches};
use super::violation::{Reader, ViolationKind as K};
use crate::attr::AttrName;
use crate::entity::{CompId, InstrId, PosId};
use crate::opcode::Opcode;

/// A computation that is being run.
struct Frame {
    comp: CompId,
    /// How many of its instructions have been started.
    next: usize,
    caller: Caller,
}

/// Why it is run, and what happens when it ends.
enum Caller {
    Entry,
    Condition(InstrId, Vec<Carry>),
    Body(InstrId, Vec<Carry>),
    Branch(InstrId, Branches),
    Call(InstrId),
    Async(InstrId, Mark),
}

/// One array that a while carries.
#[derive(Clone, Copy)]
struct Carry {
    /// The part of the while's result.
    result: PosId,
    /// The same part of its operand, condition parameter and body parameter.
    condition_param: PosId,
    body_param: PosId,
    /// Its place, and the symbol of "the carried value of some iteration".
    bound: Bound,
    /// The carry, by its place in the list, whose value the body hands on as this one.
    from: Option<usize>,
    /// Whether it is the same value in every iteration.
    unchanged: bool,
}

/// A conditional, some of whose branches have been run.
struct Branches {
    computations: SmallVec<[CompId; 2]>,
    /// Number of the branch that is being run.
    current: usize,
    /// The state before it.
    before: Mark,
    /// What the branches before it wrote.
    written: Vec<(Place, Sym)>,
    /// Where branch 0 left each array of the result.
    roots: Vec<Option<Bound>>,
    /// Whether all branches so far left the very same value there.
    agree: Vec<bool>,
}

impl Machine<'_, '_> {
    /// Runs the entry computation to its end.
    pub(super) fn execute(&mut self) {
        let entry = self.module().entry;
        self.entered[entry] = true;
        let mut frames = vec![Frame {
            comp: entry,
            next: 0,
            caller: Caller::Entry,
        }];
        while let Some(frame) = frames.last_mut() {
            let next = self.flow.module.computations[frame.comp]
                .instrs
                .get(frame.next);
            if let Some(&instr) = next {
                frame.next += 1;
                self.start(instr, &mut frames);
            } else if let Some(frame) = frames.pop() {
                self.leave(frame, &mut frames);
            }
        }
    }

    /// Runs an instruction, or begins the computation it calls.
    fn start(&mut self, id: InstrId, frames: &mut Vec<Frame>) {
        let begun = match self.module().instrs[id].opcode {
            Opcode::While => self.start_while(id, frames),
            Opcode::Conditional => self.start_conditional(id, frames),
            Opcode::Call => self.start_call(id, frames),
            Opcode::AsyncStart => self.start_async(id, frames),
            _ => {
                self.straight(id);
                Some(())
            }
        };
        if begun.is_none() {
            self.not_understood(id);
            self.point = self.point.saturating_add(1);
        }
    }

    fn leave(&mut self, frame: Frame, frames: &mut Vec<Frame>) {
        match frame.caller {
            Caller::Entry => {
                let root = self.module().entry().root;
                for output in self.arrays(root) {
                    self.read(Reader::Exit, output);
                }
            }
            Caller::Condition(whil, carries) => {
                self.leave_condition(whil, frame.comp, carries, frames);
            }
            Caller::Body(whil, carries) => self.leave_body(whil, frame.comp, &carries),
            Caller::Branch(conditional, branches) => {
                self.leave_branch(conditional, branches, frames);
            }
            Caller::Call(call) => self.leave_call(call, frame.comp),
            Caller::Async(start, mark) => self.leave_async(start, frame.comp, &mark),
        }
    }

    /// Notes that `caller` runs `comp`; a computation is run from one place only.
    fn enter(&mut self, comp: CompId, caller: InstrId) -> bool {
        if std::mem::replace(&mut self.entered[comp], true) {
            let kind = K::SharedComputation {
                computation: comp,
                caller,
            };
            self.report(kind, |this| {
                format!(
                    "{} runs %{}, which already runs elsewhere: each call needs a computation of its own",
                    this.flow.name(caller),
                    this.module().comp_name(comp)
                )
            });
            return false;
        }
        true
    }

    /// The `n`-th parameter of `comp`, if its shape has the parts of `like`.
    fn param(&self, comp: CompId, n: usize, like: InstrId) -> Option<InstrId> {
        let &param = self.module().computations[comp].params.get(n)?;
        self.same_parts(param, like).then_some(param)
    }

    fn same_parts(&self, a: InstrId, b: InstrId) -> bool {
        let module = self.module();
        module
            .shapes
            .compatible(module.instrs[a].shape, module.instrs[b].shape)
    }

    /// The part of `other` that corresponds to the part `pos` of an instruction of the same shape.
    fn same_part(&self, pos: PosId, other: InstrId) -> PosId {
        self.flow
            .positions
            .node(other, self.flow.positions.node_of(pos))
    }

    /// Binds all arrays of `to` to what `from` holds.
    fn forward_all(&mut self, to: InstrId, from: InstrId) {
        for pos in self.arrays(to) {
            self.forward(pos, self.same_part(pos, from));
        }
    }

    fn start_while(&mut self, id: InstrId, frames: &mut Vec<Frame>) -> Option<()> {
        let instr = &self.module().instrs[id];
        let condition = instr.comp(AttrName::Condition)?;
        let body = instr.comp(AttrName::Body)?;
        let &init = instr.operands.first()?;
        let condition_param = self.param(condition, 0, id)?;
        let body_param = self.param(body, 0, id)?;
        let root = self.module().computations[body].root;
        if !self.same_parts(init, id) || !self.same_parts(root, id) {
            return None;
        }
        if !self.enter(condition, id) || !self.enter(body, id) {
            self.point = self.point.saturating_add(1);
            return Some(());
        }
        let mut carries = Vec::new();
        for result in self.arrays(id) {
            let from = self.same_part(result, init);
            self.read(Reader::Instr(id), from);
            let Some(bound) = self.run.bound[from] else {
                continue;
            };
            carries.push(Carry {
                result,
                condition_param: self.same_part(result, condition_param),
                body_param: self.same_part(result, body_param),
                bound,
                from: None,
                unchanged: false,
            });
        }
        self.find_unchanged(&mut carries);
        for carry in &mut carries {
            if !carry.unchanged {
                carry.bound.sym = self.new_symbol(SymbolKind::Value(carry.result));
                self.memory.write(carry.bound.place, carry.bound.sym);
            }
            self.bind(carry.condition_param, carry.bound);
            self.bind(carry.body_param, carry.bound);
        }
        frames.push(Frame {
            comp: condition,
            next: 0,
            caller: Caller::Condition(id, carries),
        });
        Some(())
    }

    /// A carry keeps its value if the body hands on a carry that starts with the same value and
    /// keeps it: itself, as a rule.
    fn find_unchanged(&self, carries: &mut [Carry]) {
        for k in 0..carries.len() {
            let from = self.handed_on[carries[k].result];
            // Ascending, as positions are.
            carries[k].from = from.and_then(|f| {
                let at = carries.binary_search_by_key(&f, |c| c.result);
                at.ok()
            });
            carries[k].unchanged = carries[k].from.is_some_and(|f| {
                let (here, there) = (carries[k].bound, carries[f].bound);
                here.sym == there.sym && here.place == there.place
            });
        }
        // What hands on a carry that changes, changes.
        let mut changing: Vec<usize> = (0..carries.len())
            .filter(|&k| !carries[k].unchanged)
            .collect();
        let mut users: Vec<SmallVec<[usize; 1]>> = vec![SmallVec::new(); carries.len()];
        for (k, carry) in carries.iter().enumerate() {
            if let Some(from) = carry.from {
                users[from].push(k);
            }
        }
        while let Some(k) = changing.pop() {
            for user in std::mem::take(&mut users[k]) {
                if std::mem::replace(&mut carries[user].unchanged, false) {
                    changing.push(user);
                }
            }
        }
    }

    fn leave_condition(
        &mut self,
        whil: InstrId,
        condition: CompId,
        carries: Vec<Carry>,
        frames: &mut Vec<Frame>,
    ) {
        let predicate = self.module().computations[condition].root;
        for pos in self.arrays(predicate) {
            self.read(Reader::Instr(whil), pos);
        }
        for carry in &carries {
            self.read(Reader::EndOf(whil), carry.condition_param);
        }
        let body = self.module().instrs[whil].comp(AttrName::Body);
        if let Some(comp) = body {
            frames.push(Frame {
                comp,
                next: 0,
                caller: Caller::Body(whil, carries),
            });
        }
    }

    fn leave_body(&mut self, whil: InstrId, body: CompId, carries: &[Carry]) {
        let root = self.module().computations[body].root;
        for carry in carries {
            let end = self.same_part(carry.result, root);
            self.read(Reader::EndOf(whil), end);
            let Some(left) = self.run.bound[end] else {
                continue;
            };
            let start = carry.bound.place;
            let moved =
                (left.place.space, left.place.extent.start) != (start.space, start.extent.start);
            if moved && !start.extent.is_empty() {
                let (carried, root) = (self.flow.value(carry.result), self.flow.value(end));
                let kind = K::CarryMoved {
                    whil,
                    carry: carried.clone(),
                    root: root.clone(),
                };
                self.report(kind, |this| {
                    format!(
                        "{} is carried at {}, but the body leaves {} at {}",
                        this.flow.value_name(&carried),
                        this.show_place(start),
                        this.flow.value_name(&root),
                        this.show_place(left.place)
                    )
                });
            }
        }
        for carry in carries {
            let mut bound = carry.bound;
            if !carry.unchanged {
                bound.sym = self.new_symbol(SymbolKind::Value(carry.result));
                self.memory.write(bound.place, bound.sym);
            }
            self.bind(carry.result, bound);
        }
        self.point = self.point.saturating_add(1);
    }

    fn start_conditional(&mut self, id: InstrId, frames: &mut Vec<Frame>) -> Option<()> {
        let instr = &self.module().instrs[id];
        let computations = instr.branches();
        let operands = instr.operands.clone();
        let (&selector, inputs) = operands.split_first()?;
        if computations.is_empty() || inputs.len() != computations.len() {
            return None;
        }
        for (&comp, &input) in computations.iter().zip(inputs) {
            let param = self.param(comp, 0, input)?;
            let root = self.module().computations[comp].root;
            if !self.same_parts(root, id) || param == root && !self.same_parts(input, id) {
                return None;
            }
        }
        for pos in self.arrays(selector) {
            self.read(Reader::Instr(id), pos);
        }
        let before = self.memory.mark();
        let branches = Branches {
            computations,
            current: 0,
            before,
            written: Vec::new(),
            roots: Vec::new(),
            agree: Vec::new(),
        };
        self.start_branch(id, branches, frames);
        Some(())
    }

    /// Begins the current branch; one that can't be run is passed over.
    fn start_branch(&mut self, id: InstrId, branches: Branches, frames: &mut Vec<Frame>) {
        let comp = branches.computations[branches.current];
        let input = self.module().instrs[id].operands[branches.current + 1];
        if self.enter(comp, id) {
            if let Some(param) = self.param(comp, 0, input) {
                self.forward_all(param, input);
            }
            frames.push(Frame {
                comp,
                next: 0,
                caller: Caller::Branch(id, branches),
            });
        } else {
            self.memory.undo(&branches.before);
            self.next_branch(id, branches, frames);
        }
    }

    fn leave_branch(&mut self, id: InstrId, mut branches: Branches, frames: &mut Vec<Frame>) {
        let root = self.module().computations[branches.computations[branches.current]].root;
        let first_root = self.module().computations[branches.computations[0]].root;
        for (n, result) in self.arrays(id).into_iter().enumerate() {
            let end = self.same_part(result, root);
            self.read(Reader::EndOf(id), end);
            let bound = self.run.bound[end];
            if branches.roots.len() <= n {
                branches.roots.push(bound);
                branches.agree.push(true);
                continue;
            }
            let (Some(first), Some(other)) = (branches.roots[n], bound) else {
                branches.roots[n] = branches.roots[n].or(bound);
                branches.agree[n] = false;
                continue;
            };
            branches.agree[n] &= first.place == other.place && first.sym == other.sym;
            let start = |b: Bound| (b.place.space, b.place.extent.start);
            if start(first) != start(other) && !first.place.extent.is_empty() {
                let first_end = self.flow.value(self.same_part(result, first_root));
                let other_end = self.flow.value(end);
                let kind = K::BranchesDisagree {
                    conditional: id,
                    first: first_end.clone(),
                    other: other_end.clone(),
                };
                self.report(kind, |this| {
                    format!(
                        "the branches of {} leave one result in two places: {} at {}, {} at {}",
                        this.flow.name(id),
                        this.flow.value_name(&first_end),
                        this.show_place(first.place),
                        this.flow.value_name(&other_end),
                        this.show_place(other.place)
                    )
                });
            }
        }
        branches
            .written
            .extend(self.memory.written_since(&branches.before));
        self.memory.undo(&branches.before);
        self.next_branch(id, branches, frames);
    }

    /// Goes on to the next branch, or joins them all.
    fn next_branch(&mut self, id: InstrId, mut branches: Branches, frames: &mut Vec<Frame>) {
        branches.current += 1;
        if branches.current < branches.computations.len() {
            branches.before = self.memory.mark();
            self.start_branch(id, branches, frames);
            return;
        }
        let lost = self.new_symbol(SymbolKind::Branches(id));
        let written = merge(branches.written);
        for &(place, _) in &written {
            self.memory.write(place, lost);
        }
        for (n, result) in self.arrays(id).into_iter().enumerate() {
            let Some(Some(mut bound)) = branches.roots.get(n).copied() else {
                continue;
            };
            if !branches.agree[n] {
                bound.sym = self.new_symbol(SymbolKind::Value(result));
            }
            // It was found there at the end of every branch.
            if !branches.agree[n] || touches(&written, bound.place) {
                self.memory.write(bound.place, bound.sym);
            }
            self.bind(result, bound);
        }
        self.point = self.point.saturating_add(1);
    }

    fn start_call(&mut self, id: InstrId, frames: &mut Vec<Frame>) -> Option<()> {
        let comp = self.module().instrs[id].comp(AttrName::ToApply)?;
        let root = self.module().computations[comp].root;
        if !self.same_parts(root, id) {
            return None;
        }
        self.bind_params(id, comp)?;
        if self.enter(comp, id) {
            frames.push(Frame {
                comp,
                next: 0,
                caller: Caller::Call(id),
            });
        } else {
            self.point = self.point.saturating_add(1);
        }
        Some(())
    }

    /// Gives each parameter of `comp` the operand of the same number.
    fn bind_params(&mut self, id: InstrId, comp: CompId) -> Option<()> {
        let operands = self.module().instrs[id].operands.clone();
        if operands.len() != self.module().computations[comp].params.len() {
            return None;
        }
        for (n, &operand) in operands.iter().enumerate() {
            let param = self.param(comp, n, operand)?;
            self.forward_all(param, operand);
        }
        Some(())
    }

    fn leave_call(&mut self, id: InstrId, comp: CompId) {
        let root = self.module().computations[comp].root;
        for pos in self.arrays(id) {
            let end = self.same_part(pos, root);
            self.read(Reader::EndOf(id), end);
            self.forward(pos, end);
        }
        self.point = self.point.saturating_add(1);
    }

    fn start_async(&mut self, id: InstrId, frames: &mut Vec<Frame>) -> Option<()> {
        let module = self.module();
        let comp = module.instrs[id].comp(AttrName::Calls)?;
        let root = module.computations[comp].root;
        let &output = module.shapes.tuple(module.instrs[id].shape)?.get(1)?;
        // A start that binds its result later has `()` here.
        if !module.shapes.compatible(module.instrs[root].shape, output) {
            return None;
        }
        self.bind_params(id, comp)?;
        if self.enter(comp, id) {
            let mark = self.memory.mark();
            frames.push(Frame {
                comp,
                next: 0,
                caller: Caller::Async(id, mark),
            });
        } else {
            self.point = self.point.saturating_add(1);
        }
        Some(())
    }

    fn show_place(&self, place: Place) -> String {
        super::execute::show_place(self.plan, place)
    }

    pub(super) fn space_name(&self, place: Place) -> String {
        super::execute::plan_space(self.plan, place)
    }
}
