//! Ids, ownership, names, parameters and the order of operands.

use fixedbitset::FixedBitSet;
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use super::error::{ErrorKind, Place, Sink};
use crate::attr::AttrValue;
use crate::entity::{CompId, EntityId, InstrId, SecondaryMap};
use crate::graph::DependenceGraph;
use crate::instr::{Instr, Payload};
use crate::module::Module;
use crate::opcode::Opcode;

/// Whatever else code relies on to index at all. The rest is only checked if this holds.
pub(super) fn check_ids(sink: &mut Sink<'_>) {
    let module = sink.module;
    if module.computations.get(module.entry).is_none() {
        sink.error(
            ErrorKind::Ids,
            Place::Module,
            "the entry computation does not exist",
            "set Module::entry to one of its computations",
        );
    }
    for (id, instr) in module.instrs.iter() {
        // Also of instructions that no computation lists any more: others walk the arena.
        if let Some(what) = id_out_of_range(module, instr) {
            sink.error(
                ErrorKind::Ids,
                Place::Instr(id),
                format!("{what} is out of range"),
                "use ids of this module only",
            );
        }
    }
    let mut owned = FixedBitSet::with_capacity(module.instrs.len());
    for (id, comp) in module.computations.iter() {
        let place = Place::Computation(id);
        let listed = comp.instrs.iter().chain(&comp.params);
        if listed
            .chain([&comp.root])
            .any(|&i| i.index() >= module.instrs.len())
        {
            sink.error(
                ErrorKind::Ids,
                place,
                "an instruction is out of range",
                "use ids of this module only",
            );
            continue;
        }
        for &i in &comp.instrs {
            if owned.put(i.index()) || module.instrs[i].computation != id {
                sink.error(
                    ErrorKind::Ids,
                    Place::Instr(i),
                    format!(
                        "listed by %{}, but it is not its own or listed twice",
                        module.comp_name(id)
                    ),
                    "list every instruction once, in the computation it names",
                );
            }
        }
        if module.instrs[comp.root].computation != id || !comp.instrs.contains(&comp.root) {
            sink.error(
                ErrorKind::Ids,
                place,
                "its root is not one of its instructions",
                "make one of its instructions the root",
            );
        }
    }
}

/// What is out of range in an instruction, if anything is.
fn id_out_of_range(module: &Module, instr: &Instr) -> Option<&'static str> {
    let bad_instr = |&i: &InstrId| i.index() >= module.instrs.len();
    let bad_comp = |&c: &CompId| c.index() >= module.computations.len();
    let bad_shape = |s: crate::ShapeId| s.index() >= module.shapes.len();
    if bad_shape(instr.shape) {
        return Some("the shape");
    }
    if bad_comp(&instr.computation) {
        return Some("the computation");
    }
    if instr.operands.iter().any(bad_instr) {
        return Some("an operand");
    }
    for attr in &instr.attrs {
        let bad = match &attr.value {
            AttrValue::Comp(c) => bad_comp(c),
            AttrValue::Comps(c) => c.iter().any(bad_comp),
            AttrValue::Instrs(i) => i.iter().any(bad_instr),
            AttrValue::Shape(s) => bad_shape(*s),
            AttrValue::Shapes(s) => s.iter().any(|&s| bad_shape(s)),
            _ => false,
        };
        if bad {
            return Some(attr.name.name());
        }
    }
    None
}

/// Names, parameters, operands, cycles.
pub(super) fn check(sink: &mut Sink<'_>) {
    let module = sink.module;
    let mut names: IndexSet<&str, FxBuildHasher> = IndexSet::default();
    for id in module.computations.keys() {
        check_name(
            sink,
            &mut names,
            Place::Computation(id),
            module.comp_name(id),
        );
    }
    for id in module.computations.keys() {
        names.clear();
        for &i in &module.computations[id].instrs {
            check_name(sink, &mut names, Place::Instr(i), module.name_of(i));
        }
        check_parameters(sink, id);
    }
    check_order(sink);
}

fn check_name<'a>(
    sink: &mut Sink<'_>,
    names: &mut IndexSet<&'a str, FxBuildHasher>,
    place: Place,
    name: &'a str,
) {
    if name.is_empty() {
        sink.error(ErrorKind::Name, place, "has no name", "give it one");
    } else if !names.insert(name) {
        sink.error(
            ErrorKind::Name,
            place,
            "the name is used twice",
            "rename one of the two",
        );
    }
}

fn check_parameters(sink: &mut Sink<'_>, id: CompId) {
    let module = sink.module;
    let comp = &module.computations[id];
    let mut count = 0;
    for &i in &comp.instrs {
        let instr = &module.instrs[i];
        let fits = match instr.payload {
            Payload::Parameter(n) => {
                count += 1;
                if comp.params.get(n as usize) != Some(&i) {
                    sink.error(
                        ErrorKind::Parameter,
                        Place::Instr(i),
                        format!("parameter number {n} is not the next free one or used twice"),
                        "number the parameters of a computation 0, 1, 2, ... each once",
                    );
                }
                instr.opcode == Opcode::Parameter
            }
            Payload::Literal(_) => instr.opcode == Opcode::Constant,
            Payload::None => !matches!(instr.opcode, Opcode::Parameter | Opcode::Constant),
        };
        if !fits {
            sink.error(
                ErrorKind::Parameter,
                Place::Instr(i),
                format!("{} has the wrong kind of payload", instr.opcode),
                "give a parameter its number and a constant its literal, and nothing else either",
            );
        }
    }
    if count != comp.params.len() {
        sink.error(
            ErrorKind::Parameter,
            Place::Computation(id),
            format!("lists {} parameter(s), but has {count}", comp.params.len()),
            "list each parameter instruction at its number",
        );
    }
}

/// Operands earlier in the same computation, no circles through control predecessors.
fn check_order(sink: &mut Sink<'_>) {
    let module = sink.module;
    let mut place_in_text = SecondaryMap::filled(module.instrs.len(), u32::MAX);
    let mut unordered: Vec<CompId> = Vec::new();
    for (id, comp) in module.computations.iter() {
        let mut in_order = true;
        for (n, &i) in comp.instrs.iter().enumerate() {
            let instr = &module.instrs[i];
            for &operand in &instr.operands {
                if !check_same_computation(sink, i, operand, "operand") {
                    continue;
                }
                if place_in_text[operand] == u32::MAX {
                    in_order = false;
                    sink.error(
                        ErrorKind::Order,
                        Place::Instr(i),
                        format!("operand %{} comes later", module.name_of(operand)),
                        "move the operand before its user",
                    );
                }
            }
            for &before in instr.control_predecessors() {
                if check_same_computation(sink, i, before, "control predecessor")
                    && place_in_text[before] == u32::MAX
                {
                    in_order = false;
                    if module.is_scheduled {
                        sink.error(
                            ErrorKind::Order,
                            Place::Instr(i),
                            format!(
                                "control predecessor %{} comes later",
                                module.name_of(before)
                            ),
                            "the schedule is the order of the text: move it before",
                        );
                    }
                }
            }
            place_in_text[i] = n as u32;
        }
        if !in_order {
            unordered.push(id);
        }
    }
    // In order means acyclic: the graph is only made for what is not.
    if unordered.is_empty() {
        return;
    }
    let graph = DependenceGraph::new(module);
    for id in unordered {
        if let Err(cycle) = graph.computation(id).topological_order() {
            let names: Vec<String> = cycle
                .iter()
                .map(|&i| format!("%{}", module.name_of(i)))
                .collect();
            sink.error(
                ErrorKind::Cycle,
                Place::Instr(cycle[0]),
                format!("waits for itself: {} -> {}", names.join(" -> "), names[0]),
                "remove one of these operands or control predecessors",
            );
        }
    }
}

fn check_same_computation(sink: &mut Sink<'_>, user: InstrId, used: InstrId, what: &str) -> bool {
    let module = sink.module;
    let (a, b) = (&module.instrs[user], &module.instrs[used]);
    if a.computation == b.computation {
        return true;
    }
    sink.error(
        ErrorKind::Order,
        Place::Instr(user),
        format!(
            "{what} %{} is in another computation, %{}",
            module.name_of(used),
            module.comp_name(b.computation)
        ),
        "pass it in as an operand of the caller",
    );
    false
}
