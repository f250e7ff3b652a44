//! Values of constants.

use slabplan_ir::entity::InstrId;
use slabplan_ir::instr::Payload;
use slabplan_ir::literal;
use slabplan_ir::module::Module;

use crate::exec::ExecError;

/// The arrays of a constant in dense form, in preorder.
pub(crate) fn dense_literal(module: &Module, id: InstrId) -> Result<Vec<Box<[u8]>>, ExecError> {
    let instr = &module.instrs[id];
    let error = |problem: String| ExecError::Constant {
        instr: module.name_of(id).to_owned(),
        problem,
    };
    let Payload::Literal(text) = instr.payload else {
        return Err(error("the constant has no literal".to_owned()));
    };
    let text = module.str(text);
    let literal =
        literal::decode(&module.shapes, instr.shape, text).map_err(|e| error(e.message))?;
    literal
        .arrays
        .into_iter()
        .map(|array| {
            array.map(Vec::into_boxed_slice).ok_or_else(|| {
                error(
                    "its value was left out of the text (`{...}`): export the module with \
                     large constants printed"
                        .to_owned(),
                )
            })
        })
        .collect()
}
