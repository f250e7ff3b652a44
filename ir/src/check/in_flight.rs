//! Asynchronous operations: what is in flight from a start to its done.

use super::execute::{Bound, Machine, Pending, SymbolKind, holds};
use super::memory::{Mark, Sym, merge, touches};
use super::message::culprit_clause;
use super::schedule;
use super::violation::{Reader, ViolationKind as K};
use crate::entity::{CompId, InstrId};

impl Machine<'_, '_> {
    /// The wrapped computation has run: what it wrote is in flight until the operation is done.
    pub(super) fn leave_async(&mut self, id: InstrId, comp: CompId, mark: &Mark) {
        let module = self.module();
        let root = module.computations[comp].root;
        let output = self.flow.element_start(module.instrs[id].shape, 1);
        let mut results: Vec<Bound> = Vec::new();
        for end in self.arrays(root) {
            self.read(Reader::EndOf(id), end);
            let node = output.unwrap_or(0) + self.flow.positions.node_of(end);
            if let Some(bound) = self.run.bound[end] {
                results.push(bound);
                self.bind(self.flow.positions.node(id, node), bound);
            }
        }
        let written = self.memory.written_since(mark);
        self.memory.keep();
        let working = self.new_symbol(SymbolKind::InFlight(id));
        for &(place, _) in &written {
            self.memory.write(place, working);
        }
        let mut allowed = vec![working];
        let touched = merge(written.clone());
        for result in &results {
            if touches(&touched, result.place) {
                self.memory.write(result.place, result.sym);
            }
            allowed.push(result.sym);
        }
        allowed.sort_unstable();
        self.define(id);
        self.keep_sources(id, &results, working);
        self.pending.push(Pending {
            start: id,
            places: written,
            allowed,
        });
        self.point = self.point.saturating_add(1);
    }

    /// Operands stay as they are until the operation is done, except those that it overwrites itself.
    /// One that its result replaced in place stands for the result from now on; the bytes of any other
    /// are the operation's to work in.
    fn keep_sources(&mut self, id: InstrId, results: &[Bound], working: Sym) {
        let module = self.module();
        let end = self
            .flow
            .element_start(module.instrs[id].shape, 1)
            .unwrap_or(0);
        let sources = self
            .arrays(id)
            .into_iter()
            .filter(|&p| self.flow.positions.node_of(p) < end);
        for pos in sources.collect::<Vec<_>>() {
            let Some(source) = self.run.bound[pos] else {
                continue;
            };
            let replaced = results
                .iter()
                .find(|r| r.place == source.place && r.sym != source.sym);
            if let Some(&result) = replaced {
                self.run.bound[pos] = Some(result);
            } else if self.is_consumed(source, working) {
                self.memory.write(source.place, working);
                self.run.bound[pos] = Some(Bound {
                    sym: working,
                    ..source
                });
            } else {
                self.read(Reader::EndOf(id), pos);
            }
        }
    }

    /// Whether an operand is not what it was, by nothing but what its operation wrote (`working`).
    fn is_consumed(&self, operand: Bound, working: Sym) -> bool {
        let symbols = &self.symbols;
        let intact = |found| holds(symbols, found, operand.sym);
        let bad = |accept: &dyn Fn(Sym) -> bool| self.memory.first_bad(operand.place, accept);
        bad(&intact).is_some() && bad(&|s| intact(s) || s == working).is_none()
    }

    /// The working bytes of the operation that `done` ends are as its start left them.
    pub(super) fn finish_async(&mut self, done: InstrId) {
        let Some(start) = schedule::start_of(self.flow, done) else {
            return;
        };
        let Some(n) = self.pending.iter().position(|p| p.start == start) else {
            return;
        };
        let pending = self.pending.swap_remove(n);
        for &(place, _) in &pending.places {
            let bad = self
                .memory
                .first_bad(place, |s| pending.allowed.binary_search(&s).is_ok());
            let Some(bad) = bad else { continue };
            let at = self.point;
            let culprit = self.culprit(bad.found);
            let value = self.flow.value(self.flow.positions.root(start));
            let kind = K::Lost {
                reader: Reader::Instr(done),
                value,
                bytes: bad.extent,
                culprit: culprit.clone(),
                at,
            };
            self.report(kind, |this| {
                format!(
                    "{} (at {at}) ends {}, which works in bytes {} of {} until then, but they {}",
                    this.flow.name(done),
                    this.flow.name(start),
                    bad.extent,
                    this.space_name(place),
                    culprit_clause(this.flow, &culprit)
                )
            });
        }
    }
}
