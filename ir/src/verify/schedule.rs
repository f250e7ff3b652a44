//! Asynchronous pairs. That everything is scheduled after what it needs is checked with the order.

use super::error::{ErrorKind, Place, Sink};
use crate::entity::InstrId;
use crate::opcode::Opcode;

/// How the pieces of one kind of asynchronous operation are called.
struct Pair {
    start: Opcode,
    update: Option<Opcode>,
    done: Opcode,
    /// Whether the start may be carried to its done through tuples and loops, as pipelined sends are.
    may_travel: bool,
}

const PAIRS: &[Pair] = &[
    pair(
        Opcode::AsyncStart,
        Some(Opcode::AsyncUpdate),
        Opcode::AsyncDone,
        false,
    ),
    pair(Opcode::CopyStart, None, Opcode::CopyDone, false),
    pair(Opcode::AllReduceStart, None, Opcode::AllReduceDone, false),
    pair(Opcode::AllGatherStart, None, Opcode::AllGatherDone, false),
    pair(
        Opcode::CollectivePermuteStart,
        None,
        Opcode::CollectivePermuteDone,
        false,
    ),
    pair(Opcode::Send, None, Opcode::SendDone, true),
    pair(Opcode::Recv, None, Opcode::RecvDone, true),
];

const fn pair(start: Opcode, update: Option<Opcode>, done: Opcode, may_travel: bool) -> Pair {
    Pair {
        start,
        update,
        done,
        may_travel,
    }
}

impl Pair {
    /// The pair that `opcode` opens or continues.
    fn opened_by(opcode: Opcode) -> Option<&'static Pair> {
        PAIRS
            .iter()
            .find(|p| p.start == opcode || p.update == Some(opcode))
    }

    /// The pair that `opcode` continues or closes.
    fn closed_by(opcode: Opcode) -> Option<&'static Pair> {
        PAIRS
            .iter()
            .find(|p| p.done == opcode || p.update == Some(opcode))
    }
}

/// Every start has one user, its done; every done has a start.
pub(super) fn check(sink: &mut Sink<'_>) {
    let module = sink.module;
    // (start or update, user), in order of the first.
    let mut uses: Vec<(InstrId, InstrId)> = Vec::new();
    for (id, instr) in sink.instrs() {
        for &operand in &instr.operands {
            if Pair::opened_by(module.instrs[operand].opcode).is_some() {
                uses.push((operand, id));
            }
        }
        if let Some(pair) = Pair::closed_by(instr.opcode) {
            check_opener(sink, id, pair);
        }
    }
    uses.sort_unstable();
    for (id, instr) in sink.instrs() {
        let Some(pair) = Pair::opened_by(instr.opcode) else {
            continue;
        };
        let first = uses.partition_point(|&(o, _)| o < id);
        let users: Vec<InstrId> = uses[first..]
            .iter()
            .take_while(|&&(o, _)| o == id)
            .map(|&(_, u)| u)
            .collect();
        check_closer(sink, id, pair, &users);
    }
}

fn check_opener(sink: &mut Sink<'_>, id: InstrId, pair: &Pair) {
    let module = sink.module;
    let Some(&operand) = module.instrs[id].operands.first() else {
        return;
    };
    let opcode = module.instrs[operand].opcode;
    if opcode == pair.start || pair.update == Some(opcode) || pair.may_travel {
        return;
    }
    sink.error(
        ErrorKind::Async,
        Place::Instr(id),
        format!(
            "{} ends what {} begins, but its operand %{} is {opcode}",
            module.instrs[id].opcode,
            pair.start,
            module.name_of(operand)
        ),
        format!("its operand must be the {}", pair.start),
    );
}

fn check_closer(sink: &mut Sink<'_>, id: InstrId, pair: &Pair, users: &[InstrId]) {
    let module = sink.module;
    let closes = |u: InstrId| {
        let opcode = module.instrs[u].opcode;
        opcode == pair.done || pair.update == Some(opcode)
    };
    match users {
        [one] if closes(*one) => {}
        _ if pair.may_travel => {}
        [] => sink.error(
            ErrorKind::Async,
            Place::Instr(id),
            format!("{} has no {}", module.instrs[id].opcode, pair.done),
            format!("add its {}", pair.done),
        ),
        users => {
            let names: Vec<String> = users
                .iter()
                .map(|&u| format!("%{}", module.name_of(u)))
                .collect();
            sink.error(
                ErrorKind::Async,
                Place::Instr(id),
                format!(
                    "{} must have one user, its {}, but is used by {}",
                    module.instrs[id].opcode,
                    pair.done,
                    names.join(", ")
                ),
                format!("use the result of its {} instead", pair.done),
            );
        }
    }
}
