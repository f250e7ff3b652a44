//! Where the slots of a fusion lie in its scratch memory.

use slabplan_ir::ElementType;

use super::{InnerOp, Piece, Role, Source};

/// Places all slots and works out the pieces of each operation; returns the bytes they all take.
pub(super) fn place(ops: &mut [InnerOp], sizes: &[(ElementType, usize)]) -> usize {
    let mut slots: Vec<Slot> = sizes
        .iter()
        .map(|&(ty, elements)| Slot {
            bytes: elements * ty.byte_width() as usize,
            written: 0,
            last_read: 0,
        })
        .collect();
    for (number, op) in ops.iter().enumerate() {
        for result in &op.results {
            if let Source::Slot(slot) = result.source {
                slots[slot].written = number;
                slots[slot].last_read = number;
            }
        }
        for operand in &op.operands {
            if let Source::Slot(slot) = operand.source {
                slots[slot].last_read = number;
            }
        }
    }
    let (offsets, work, scratch) = first_fit(&slots, ops);
    for (op, work) in ops.iter_mut().zip(work) {
        for value in op.operands.iter_mut().chain(&mut op.results) {
            if let Source::Slot(slot) = value.source {
                value.source = Source::Slot(offsets[slot]);
            }
        }
        op.pieces = pieces(op, work);
    }
    scratch
}

/// Scratch bytes of one value, before they have a place.
struct Slot {
    bytes: usize,
    /// The operation that writes it, and the last that reads it.
    written: usize,
    last_read: usize,
}

/// First fit in order of definition: offsets of the slots, of each operation's own scratch, and
/// the total. O(slots * slots alive at once).
fn first_fit(slots: &[Slot], ops: &[InnerOp]) -> (Vec<usize>, Vec<usize>, usize) {
    const ALIGN: usize = 64;
    let mut offsets = vec![0; slots.len()];
    let mut work = Vec::with_capacity(ops.len());
    // (offset, bytes, last operation that needs them), ascending.
    let mut alive: Vec<(usize, usize, usize)> = Vec::new();
    let mut total = 0;
    for (number, op) in ops.iter().enumerate() {
        alive.retain(|&(_, _, last)| last >= number);
        let mut take = |bytes: usize, last: usize| {
            let bytes = bytes.next_multiple_of(ALIGN);
            let mut offset = 0;
            let mut at = alive.len();
            for (i, &(start, len, _)) in alive.iter().enumerate() {
                if offset + bytes <= start {
                    at = i;
                    break;
                }
                offset = offset.max(start + len);
            }
            if bytes > 0 {
                alive.insert(at, (offset, bytes, last));
            }
            total = total.max(offset + bytes);
            offset
        };
        for result in &op.results {
            if let Source::Slot(slot) = result.source {
                offsets[slot] = take(slots[slot].bytes, slots[slot].last_read);
            }
        }
        work.push(take(op.scratch, number));
    }
    (offsets, work, total)
}

fn pieces(op: &InnerOp, work: usize) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for (n, operand) in op.operands.iter().enumerate() {
        let Source::Slot(start) = operand.source else {
            continue;
        };
        let len = operand.bytes();
        let same = pieces.iter_mut().find(|p| p.start == start && p.len == len);
        match same.map(|p| &mut p.role) {
            Some(Role::Operands(numbers)) => numbers.push(n),
            _ => pieces.push(Piece {
                start,
                len,
                role: Role::Operands(vec![n]),
            }),
        }
    }
    for (n, result) in op.results.iter().enumerate() {
        if let Source::Slot(start) = result.source {
            pieces.push(Piece {
                start,
                len: result.bytes(),
                role: Role::Result(n),
            });
        }
    }
    pieces.push(Piece {
        start: work,
        len: op.scratch,
        role: Role::Scratch,
    });
    // Empty pieces have no place of their own and may point anywhere.
    pieces.retain(|p| p.len > 0);
    pieces.sort_by_key(|p| p.start);
    pieces
}
