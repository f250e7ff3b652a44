//! One program run several times over as one module, to measure how time and memory grow.
//!
//! The entry computation is written out again and again: what one copy returns is what the next takes,
//! as training steps follow one another, so live ranges, in-place operations and donation cross the
//! borders of the copies.

use std::collections::BTreeMap;

use slabplan_ir::attr::AttrValue;
use slabplan_ir::edit::Names;
use slabplan_ir::instr::Instr;
use slabplan_ir::{CompId, InstrId, Module, Opcode};

/// `module` with its entry computation `times` times in a chain.
///
/// A parameter of a later copy is the first output of the copy before it that has the same shape
/// and is not taken by another parameter; else it is the module's parameter. O(size of the result).
pub fn repeat(module: &Module, times: usize) -> Module {
    let mut out = module.clone();
    let mut names = Names::new(&out);
    let original = out.computations[out.entry].clone();
    let mut results = outputs(&out, original.root);
    for _ in 1..times {
        let mut copy_of: BTreeMap<InstrId, InstrId> =
            feed(&out, &original.params, &results).into_iter().collect();
        for &instr in &original.instrs {
            let is_root_tuple = instr == original.root && out.instrs[instr].opcode == Opcode::Tuple;
            if copy_of.contains_key(&instr) || is_root_tuple {
                continue;
            }
            let copy = copied(&mut out, &mut names, instr, &copy_of);
            copy_of.insert(instr, out.append_instruction(copy));
        }
        results = outputs(&out, original.root)
            .iter()
            .map(|o| copy_of[o])
            .collect();
    }
    if times > 1 {
        chain_root(&mut out, original.root, &results);
    }
    out
}

/// What each parameter of the next copy is.
fn feed(module: &Module, params: &[InstrId], results: &[InstrId]) -> Vec<(InstrId, InstrId)> {
    let mut by_shape: BTreeMap<_, Vec<InstrId>> = BTreeMap::new();
    for &r in results.iter().rev() {
        by_shape.entry(module.instrs[r].shape).or_default().push(r);
    }
    params
        .iter()
        .map(|&p| {
            let fitting = by_shape.get_mut(&module.instrs[p].shape);
            (p, fitting.and_then(Vec::pop).unwrap_or(p))
        })
        .collect()
}

/// The instructions that an entry computation returns.
fn outputs(module: &Module, root: InstrId) -> Vec<InstrId> {
    let i = &module.instrs[root];
    if i.opcode == Opcode::Tuple {
        i.operands.to_vec()
    } else {
        vec![root]
    }
}

/// `instr` with the operands of the copy at hand and computations of its own.
fn copied(
    module: &mut Module,
    names: &mut Names,
    instr: InstrId,
    copy_of: &BTreeMap<InstrId, InstrId>,
) -> Instr {
    let mut copy = module.instrs[instr].clone();
    let base = module.str(copy.name).to_owned();
    copy.name = names.instruction(&mut module.strings, &base);
    for operand in &mut copy.operands {
        *operand = copy_of[&*operand];
    }
    for attr in &mut copy.attrs {
        if let AttrValue::Instrs(predecessors) = &mut attr.value {
            for p in predecessors {
                *p = copy_of[&*p];
            }
        }
    }
    own_computations(module, names, &mut copy);
    copy
}

/// Gives an instruction copies of the planned computations that it calls.
fn own_computations(module: &mut Module, names: &mut Names, instr: &mut Instr) {
    if !instr.calls_planned_computations() {
        return;
    }
    for attr in &mut instr.attrs {
        match &mut attr.value {
            AttrValue::Comp(c) => *c = deep_clone(module, names, *c),
            AttrValue::Comps(list) => {
                for c in list.iter_mut() {
                    *c = deep_clone(module, names, *c);
                }
            }
            _ => {}
        }
    }
}

fn deep_clone(module: &mut Module, names: &mut Names, comp: CompId) -> CompId {
    let clone = module.clone_computation(comp, names);
    for instr in module.computations[clone].instrs.clone() {
        let mut copy = module.instrs[instr].clone();
        own_computations(module, names, &mut copy);
        module.instrs[instr] = copy;
    }
    clone
}

/// Makes the last copy's outputs the module's.
fn chain_root(module: &mut Module, root: InstrId, results: &[InstrId]) {
    let entry = module.entry;
    if module.instrs[root].opcode == Opcode::Tuple {
        module.instrs[root].operands = results.into();
        let order = &mut module.computations[entry].instrs;
        order.retain(|&i| i != root);
        order.push(root);
    } else {
        module.computations[entry].root = results[0];
    }
}
