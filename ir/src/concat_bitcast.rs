//! `ConcatBitcast`: XLA:TPU's way to say that several arrays lie side by side and are one array.
//!
//! Memory-space assignment splits a prefetch into slices that are copied one after another, each to its place in the
//! whole array, and joins them with this custom-call. Operands stand in the order of the copies. Where each lies
//! follows from what was sliced: in all of XLA's own plans the pieces lie in the order of the starts of
//! their slices, whatever the order of the operands.

use smallvec::SmallVec;

use crate::attr::AttrName;
use crate::entity::InstrId;
use crate::module::Module;
use crate::opcode::Opcode;

/// Whether `instr` only says that its operands lie side by side.
pub fn is_concat_bitcast(module: &Module, instr: InstrId) -> bool {
    module.instrs[instr].opcode == Opcode::CustomCall
        && module.custom_call_target(instr) == Some("ConcatBitcast")
}

/// The operands of a `ConcatBitcast` in the order of their bytes: by the start of the slice that each of them is, and in
/// operand order where they are not all slices of one array. O(operands log operands + lengths of async chains).
pub fn pieces_in_place(module: &Module, instr: InstrId) -> SmallVec<[InstrId; 8]> {
    let mut pieces: SmallVec<[InstrId; 8]> =
        module.instrs[instr].operands.iter().copied().collect();
    let slices: Option<Vec<Sliced>> = pieces.iter().map(|&p| sliced(module, p)).collect();
    let Some(slices) = slices else { return pieces };
    if slices.windows(2).all(|pair| pair[0].of == pair[1].of) {
        let mut order: Vec<(&[i64], InstrId)> = slices
            .iter()
            .map(|s| s.start.as_slice())
            .zip(pieces.iter().copied())
            .collect();
        order.sort_by_key(|&(start, _)| start);
        pieces = order.into_iter().map(|(_, piece)| piece).collect();
    }
    pieces
}

/// A slice: the array it is taken from, and where it starts.
struct Sliced {
    of: InstrId,
    start: SmallVec<[i64; 4]>,
}

/// What `piece` is a slice of, through the asynchronous operation that it may come from.
fn sliced(module: &Module, piece: InstrId) -> Option<Sliced> {
    let mut start = piece;
    while matches!(
        module.instrs[start].opcode,
        Opcode::AsyncDone | Opcode::AsyncUpdate
    ) {
        start = *module.instrs[start].operands.first()?;
    }
    let i = &module.instrs[start];
    let (slice, of) = match i.opcode {
        Opcode::AsyncStart => {
            let wrapped = &module.computations[i.comp(AttrName::Calls)?];
            let source = *module.instrs[wrapped.root].operands.first()?;
            let number = module.instrs[source].parameter_number()?;
            (wrapped.root, *i.operands.get(number as usize)?)
        }
        _ => (start, *i.operands.first()?),
    };
    let slice = &module.instrs[slice];
    (slice.opcode == Opcode::Slice).then(|| Sliced {
        of,
        start: slice.slice_dims().iter().map(|d| d.start).collect(),
    })
}
