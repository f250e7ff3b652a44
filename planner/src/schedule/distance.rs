//! Precedences that keep asynchronous operations as far apart from their ends as the text has them.
//!
//! An operation in flight overlaps with what runs between its start and its done. If all of that stays there, then
//! by any measure of time (instructions, bytes, modelled seconds) the overlap is no shorter than before.

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use slabplan_ir::{InstrId, Module, Opcode};

use super::table::Table;
use crate::dataflow::is_forwarding;

/// Above this many precedences for each instruction, all instructions keep their order instead.
const MAX_PAIRS: usize = 64;

/// `before`, and of everything that takes time between a start and its done: not before the start, not after the done.
///
/// Instructions are numbered in the order of the text, `before` keeps it. O(instructions · operations in flight at
/// once), bounded.
pub(super) fn kept(module: &Module, instrs: &[InstrId], before: &Table) -> Table {
    let pairs = pairs(module, instrs);
    if pairs.is_empty() {
        return before.clone();
    }
    let most = instrs.len().saturating_mul(MAX_PAIRS);
    let between: usize = pairs.iter().map(|&(s, d)| (d - s) as usize).sum();
    let takes_time: Vec<bool> = instrs.iter().map(|&i| takes_time(module, i)).collect();
    let mut more: Vec<(u32, u32)> = Vec::new();
    if between > most {
        more.extend((1..instrs.len() as u32).map(|i| (i, i - 1)));
    } else {
        for (start, done) in pairs {
            for i in (start + 1..done).filter(|&i| takes_time[i as usize]) {
                more.push((i, start));
                more.push((done, i));
            }
        }
    }
    // Rows keep their first entries: depth-first orders follow the operands.
    let more = Table::from_pairs(before.len(), more);
    let mut table = Table::new();
    let mut row = Vec::new();
    for i in 0..before.len() {
        row.extend_from_slice(before.row(i));
        let own = before.row(i);
        row.extend(more.row(i).iter().filter(|m| !own.contains(m)));
        table.push_row(&row);
        row.clear();
    }
    table
}

/// Numbers of starts and of the dones that end them.
fn pairs(module: &Module, instrs: &[InstrId]) -> Vec<(u32, u32)> {
    let mut start_of: IndexMap<InstrId, u32, FxBuildHasher> = IndexMap::default();
    let mut pairs = Vec::new();
    for (k, &instr) in (0..).zip(instrs) {
        let i = &module.instrs[instr];
        let begun = || i.operands.iter().find_map(|o| start_of.get(o).copied());
        match role(i.opcode) {
            Some(Role::Start) => {
                start_of.insert(instr, k);
            }
            Some(Role::Update) => {
                if let Some(start) = begun() {
                    start_of.insert(instr, start);
                }
            }
            Some(Role::Done) => pairs.extend(begun().map(|start| (start, k))),
            None => {}
        }
    }
    pairs
}

enum Role {
    Start,
    Update,
    Done,
}

fn role(opcode: Opcode) -> Option<Role> {
    use Opcode as O;
    match opcode {
        O::AsyncStart
        | O::CopyStart
        | O::AllGatherStart
        | O::AllReduceStart
        | O::CollectivePermuteStart
        | O::Send
        | O::Recv => Some(Role::Start),
        O::AsyncUpdate => Some(Role::Update),
        O::AsyncDone
        | O::CopyDone
        | O::AllGatherDone
        | O::AllReduceDone
        | O::CollectivePermuteDone
        | O::SendDone
        | O::RecvDone => Some(Role::Done),
        _ => None,
    }
}

fn takes_time(module: &Module, instr: InstrId) -> bool {
    !is_forwarding(module, instr)
        && !matches!(
            module.instrs[instr].opcode,
            Opcode::Parameter | Opcode::Constant
        )
}
