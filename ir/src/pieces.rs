//! Which bytes of a `ConcatBitcast` each of its operands is.
//!
//! XLA:TPU prefetches a large array in slices that arrive one by one, each in its place in the
//! result's bytes, and joins them with this custom call. The operands stand in the order in which
//! they were sent for; their bytes lie in the order of the slices in the array they are cut from.

use smallvec::SmallVec;

use crate::entity::InstrId;
use crate::module::Module;
use crate::opcode::Opcode;

/// Operand numbers.
pub type Order = SmallVec<[usize; 4]>;

/// Whether `instr` only says that its operands lie side by side in its result's bytes.
pub fn is_concat_bitcast(module: &Module, instr: InstrId) -> bool {
    module.instrs[instr].opcode == Opcode::CustomCall
        && module.custom_call_target(instr) == Some("ConcatBitcast")
}

/// The operands of a `ConcatBitcast` in the order of their bytes: by what each slices where all are
/// slices of one array, as listed otherwise. O(operands · rank).
pub fn piece_order(module: &Module, instr: InstrId) -> Order {
    let operands = &module.instrs[instr].operands;
    let mut order: Order = (0..operands.len()).collect();
    let cuts: Option<Vec<Cut>> = operands.iter().map(|&o| cut(module, o)).collect();
    let Some(cuts) = cuts.filter(|c| c.iter().all(|x| x.source == c[0].source)) else {
        return order;
    };
    order.sort_by(|&a, &b| cuts[a].starts.cmp(&cuts[b].starts));
    order
}

/// What a slice cuts, and where it begins: from the most major dimension in memory to the most minor.
struct Cut {
    source: InstrId,
    starts: SmallVec<[i64; 4]>,
}

/// The slice that `instr` is: at once, or as the end of an asynchronous one.
fn cut(module: &Module, instr: InstrId) -> Option<Cut> {
    let (source, slice) = match module.instrs[instr].opcode {
        Opcode::Slice => (*module.instrs[instr].operands.first()?, instr),
        Opcode::AsyncDone => {
            let start = async_start(module, instr)?;
            let wrapped = module.instrs[start].called_computations().next()?;
            let root = module.computations[wrapped].root;
            let &operand = module.instrs[root].operands.first()?;
            let number = module.instrs[operand].parameter_number()?;
            let source = module.instrs[start].operands.get(number as usize)?;
            (*source, root)
        }
        _ => return None,
    };
    let slice = &module.instrs[slice];
    let array = module.shapes.array(slice.shape)?;
    let dims = slice.slice_dims();
    if slice.opcode != Opcode::Slice || dims.len() != array.rank() {
        return None;
    }
    let minor_to_major = array.minor_to_major();
    let major_to_minor = minor_to_major.iter().rev();
    Some(Cut {
        source,
        starts: major_to_minor.map(|&d| dims[d as usize].start).collect(),
    })
}

/// The start of the asynchronous operation that `done` ends.
fn async_start(module: &Module, done: InstrId) -> Option<InstrId> {
    let mut link = *module.instrs[done].operands.first()?;
    // A chain is no longer than its instructions, and operands come first.
    while module.instrs[link].opcode == Opcode::AsyncUpdate {
        link = *module.instrs[link].operands.first()?;
    }
    (module.instrs[link].opcode == Opcode::AsyncStart).then_some(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order_of(text: &str) -> Vec<usize> {
        let module = crate::text::parse(text).into_result().unwrap();
        let joined = module
            .instrs
            .keys()
            .find(|&i| is_concat_bitcast(&module, i))
            .unwrap();
        piece_order(&module, joined).to_vec()
    }

    /// The second dimension is the major one in memory; the slices were sent for last first.
    #[test]
    fn slices_lie_as_in_their_source() {
        let text = "HloModule m
ENTRY e {
  x = f32[8,6]{0,1} parameter(0)
  c = f32[8,2]{0,1} slice(x), slice={[0:8], [4:6]}
  a = f32[8,2]{0,1} slice(x), slice={[0:8], [0:2]}
  b.start = ((f32[8,6]{0,1}), f32[8,2]{0,1}, s32[]) slice-start(x), slice={[0:8], [2:4]}
  b = f32[8,2]{0,1} slice-done(b.start)
  ROOT y = f32[8,6]{0,1} custom-call(c, a, b), custom_call_target=\"ConcatBitcast\"
}";
        assert_eq!(order_of(text), [1, 2, 0]);
    }

    #[test]
    fn other_operands_lie_as_listed() {
        let text = "HloModule m
ENTRY e {
  x = f32[4]{0} parameter(0)
  z = f32[4]{0} parameter(1)
  b = f32[2]{0} slice(x), slice={[2:4]}
  a = f32[2]{0} slice(z), slice={[0:2]}
  ROOT y = f32[4]{0} custom-call(b, a), custom_call_target=\"ConcatBitcast\"
}";
        assert_eq!(order_of(text), [0, 1]);
    }
}
