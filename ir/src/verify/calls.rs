//! Who calls which computation.

use super::error::{ErrorKind, Place, Sink};
use crate::entity::{InstrId, SecondaryMap};
use crate::graph::CallGraph;
use crate::opcode::Opcode;

/// No recursion, an entry that nobody calls, async computations with one start.
pub(super) fn check(sink: &mut Sink<'_>) {
    let module = sink.module;
    let calls = CallGraph::new(module);
    if let Err(circle) = calls.callees_first() {
        let names: Vec<String> = circle
            .iter()
            .map(|&c| format!("%{}", module.comp_name(c)))
            .collect();
        sink.error(
            ErrorKind::Call,
            Place::Computation(circle[0]),
            format!(
                "is reached from itself: {} -> {}",
                names.join(" -> "),
                names[0]
            ),
            "HLO has no recursion: use a while, or call a copy",
        );
    }
    if let Some(&caller) = calls.callers(module.entry).first() {
        sink.error(
            ErrorKind::Call,
            Place::Computation(module.entry),
            format!("the entry is called by %{}", module.comp_name(caller)),
            "call a copy of it",
        );
    }
    check_async_starts(sink);
}

fn check_async_starts(sink: &mut Sink<'_>) {
    let module = sink.module;
    let mut starts: SecondaryMap<_, Option<InstrId>> =
        SecondaryMap::filled(module.computations.len(), None);
    for (id, instr) in sink.instrs() {
        if instr.opcode != Opcode::AsyncStart {
            continue;
        }
        for comp in instr.called_computations() {
            match starts[comp] {
                None => starts[comp] = Some(id),
                Some(first) => sink.error(
                    ErrorKind::Call,
                    Place::Instr(id),
                    format!(
                        "starts %{}, which %{} starts too",
                        module.comp_name(comp),
                        module.name_of(first)
                    ),
                    "give each async-start a computation of its own",
                ),
            }
        }
    }
}
