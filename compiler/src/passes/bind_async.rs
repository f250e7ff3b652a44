//! Asynchronous operations that get operands or their result after their start.
//!
//! Such a start binds fewer operands than its computation has parameters, or has `()` where the result will be;
//! later updates, or the done, bring the rest. The computation can't begin before everything it reads is there,
//! so the start is moved to the first place where all operands are bound (XLA's live-range analysis has the
//! computation run from there), takes them all, and owns the result. Operands are live from their definitions
//! anyway, so no byte is held longer than the program needs.

use slabplan_ir::attr::{AttrName, AttrValue};
use slabplan_ir::{CompId, InstrId, Module, Opcode, SecondaryMap, ShapeId};
use smallvec::SmallVec;

use crate::pass::{Changed, Pass, PassError, Unit};

/// Moves every start to where all operands of its computation are bound.
pub struct BindAsync;

impl Pass for BindAsync {
    fn name(&self) -> &'static str {
        "bind-async"
    }

    fn description(&self) -> &'static str {
        "start asynchronous operations where all their operands are bound"
    }

    fn run(&self, unit: &mut Unit<'_>) -> Result<Changed, PassError> {
        Ok(Changed(bind(&mut unit.module)))
    }
}

/// A start with what follows it, in order.
struct Chain {
    start: InstrId,
    links: Vec<InstrId>,
}

/// O(instructions), and O(instructions of the computation) for each chain that is bound late.
fn bind(module: &mut Module) -> bool {
    let late: Vec<Chain> = chains(module)
        .into_iter()
        .filter(|chain| is_late(module, chain))
        .collect();
    for chain in &late {
        bind_chain(module, chain);
    }
    if !late.is_empty() {
        module.remove_unlisted();
    }
    !late.is_empty()
}

fn chains(module: &Module) -> Vec<Chain> {
    let mut of = SecondaryMap::filled(module.instrs.len(), None);
    let mut chains: Vec<Chain> = Vec::new();
    for comp in module.computations.values() {
        for &i in &comp.instrs {
            let instr = &module.instrs[i];
            match instr.opcode {
                Opcode::AsyncStart => {
                    of[i] = Some(chains.len());
                    chains.push(Chain {
                        start: i,
                        links: Vec::new(),
                    });
                }
                Opcode::AsyncUpdate | Opcode::AsyncDone => {
                    of[i] = instr.operands.first().and_then(|&o| of[o]);
                    if let Some(chain) = of[i] {
                        chains[chain].links.push(i);
                    }
                }
                _ => {}
            }
        }
    }
    chains
}

fn callee(module: &Module, start: InstrId) -> Option<CompId> {
    module.instrs[start].comp(AttrName::Calls)
}

/// Whether the start lacks an operand or the place of its result, and the links bring the rest.
fn is_late(module: &Module, chain: &Chain) -> bool {
    let Some(comp) = callee(module, chain.start) else {
        return false;
    };
    let wanted = module.computations[comp].params.len();
    let given = module.instrs[chain.start].operands.len();
    let added: usize = chain
        .links
        .iter()
        .map(|&l| module.instrs[l].operands.len() - 1)
        .sum();
    let result = module.instrs[module.computations[comp].root].shape;
    let unbound = module
        .shapes
        .tuple(module.instrs[chain.start].shape)
        .and_then(|parts| parts.get(1))
        .is_some_and(|&part| is_empty(module, part) && !is_empty(module, result));
    given + added == wanted && !chain.links.is_empty() && (added > 0 || unbound)
}

fn is_empty(module: &Module, shape: ShapeId) -> bool {
    module.shapes.tuple(shape).is_some_and(<[_]>::is_empty)
}

fn bind_chain(module: &mut Module, chain: &Chain) {
    let Some(comp) = callee(module, chain.start) else {
        return;
    };
    let mut operands: SmallVec<[InstrId; 3]> = module.instrs[chain.start].operands.clone();
    let wanted = module.computations[comp].params.len();
    // Links before the first that binds everything have nothing left to say.
    let mut bound_at = None;
    for (n, &link) in chain.links.iter().enumerate() {
        if operands.len() == wanted {
            break;
        }
        operands.extend(module.instrs[link].operands.drain(1..));
        bound_at = Some(n);
    }
    let shape = full_shape(module, chain, comp, &operands);
    let kept = bound_at.unwrap_or(0);
    if let Some(n) = bound_at {
        move_before(module, chain.start, chain.links[n], &chain.links[..n]);
        module.instrs[chain.links[n]].operands[0] = chain.start;
    }
    let start = &mut module.instrs[chain.start];
    start.operands = operands;
    start.shape = shape;
    for &link in &chain.links[kept..] {
        if module.instrs[link].opcode == Opcode::AsyncUpdate {
            module.instrs[link].shape = shape;
        }
    }
}

/// `((operands), result, state...)`, with the state of the last link that has one.
fn full_shape(module: &mut Module, chain: &Chain, comp: CompId, operands: &[InstrId]) -> ShapeId {
    let shape_of = |i: &InstrId| module.instrs[*i].shape;
    let carriers = chain.links.iter().rev().chain([&chain.start]);
    let last = carriers
        .filter(|&&i| module.instrs[i].opcode != Opcode::AsyncDone)
        .find_map(|i| module.shapes.tuple(shape_of(i)));
    let state: Vec<ShapeId> = last.into_iter().flatten().skip(2).copied().collect();
    let operands: Vec<ShapeId> = operands.iter().map(shape_of).collect();
    let result = shape_of(&module.computations[comp].root);
    let operands = module.shapes.intern_tuple(&operands);
    let parts: Vec<ShapeId> = [operands, result].into_iter().chain(state).collect();
    module.shapes.intern_tuple(&parts)
}

/// Puts `start` right before `anchor` in their computation, and takes `gone` out of it, also where others
/// were to run after one of them: what did nothing has no time.
fn move_before(module: &mut Module, start: InstrId, anchor: InstrId, gone: &[InstrId]) {
    let comp = module.instrs[start].computation;
    let order = std::mem::take(&mut module.computations[comp].instrs);
    let mut new = Vec::with_capacity(order.len());
    for i in order {
        if i == start || gone.contains(&i) {
            continue;
        }
        if i == anchor {
            new.push(start);
        }
        new.push(i);
    }
    for &i in new.iter().take_while(|&&i| i != start) {
        forget_predecessors(module, i, &[start]);
    }
    for &i in &new {
        forget_predecessors(module, i, gone);
    }
    module.computations[comp].instrs = new;
}

/// Drops `gone` from the control predecessors of `instr`.
fn forget_predecessors(module: &mut Module, instr: InstrId, gone: &[InstrId]) {
    module.instrs[instr].attrs.retain_mut(|a| {
        let AttrValue::Instrs(list) = &mut a.value else {
            return true;
        };
        if list.iter().any(|p| gone.contains(p)) {
            let rest: Vec<InstrId> = list.iter().copied().filter(|p| !gone.contains(p)).collect();
            *list = rest.into();
        }
        !list.is_empty()
    });
}
