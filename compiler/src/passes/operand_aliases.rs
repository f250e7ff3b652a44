//! Gives up aliases of outputs to operands that the target's layouts have made impossible.
//!
//! A module for a machine without padding may promise that a custom-call's result lies on the bytes of
//! its operand, in another order of dimensions: LAPACK's, say, which JAX emits for the CPU. Padded to tiles the two
//! differ in size, so that the result needs bytes of its own.

use slabplan_ir::attr::{AttrName, AttrValue, OperandAlias};
use slabplan_ir::padding::shape_bytes;
use slabplan_ir::{InstrId, Module};

/// Removes them; returns whether there were any. Every array has a layout by now. O(module).
pub(super) fn give_up_impossible(module: &mut Module) -> bool {
    let instrs: Vec<InstrId> = module
        .instrs
        .iter()
        .filter(|(_, i)| !i.operand_aliases().is_empty())
        .map(|(id, _)| id)
        .collect();
    let mut changed = false;
    for instr in instrs {
        let aliases = module.instrs[instr].operand_aliases();
        let possible: Box<[OperandAlias]> = aliases
            .iter()
            .filter(|a| have_equal_bytes(module, instr, a))
            .cloned()
            .collect();
        if possible.len() < aliases.len() {
            set_aliases(module, instr, possible);
            changed = true;
        }
    }
    changed
}

fn have_equal_bytes(module: &Module, instr: InstrId, alias: &OperandAlias) -> bool {
    let shapes = &module.shapes;
    let bytes = |i: InstrId, index: &[u32]| {
        let shape = shapes.subshape(module.instrs[i].shape, index)?;
        let leaves = shapes.preorder(shape).into_iter();
        Some(
            leaves
                .map(|s| shape_bytes(shapes, s).ok())
                .collect::<Vec<_>>(),
        )
    };
    let operand = module.instrs[instr].operands.get(alias.operand as usize);
    // What is missing is the verifier's to tell.
    operand.is_none_or(|&o| bytes(instr, &alias.output_index) == bytes(o, &alias.operand_index))
}

fn set_aliases(module: &mut Module, instr: InstrId, aliases: Box<[OperandAlias]>) {
    let attrs = &mut module.instrs[instr].attrs;
    if aliases.is_empty() {
        attrs.retain(|a| a.name != AttrName::OutputToOperandAliasing);
    } else if let Some(attr) = attrs
        .iter_mut()
        .find(|a| a.name == AttrName::OutputToOperandAliasing)
    {
        attr.value = AttrValue::Aliasing(aliases);
    }
}

#[cfg(test)]
mod tests {
    use crate::target;
    use crate::{CompileConfig, compile};

    /// Rows of five are padded otherwise than columns of three; of the square arrays, both orders take as much.
    const TEXT: &str = "HloModule m
ENTRY e {
  a = f32[3,5]{1,0} parameter(0)
  b = f32[4,4]{1,0} parameter(1)
  ROOT c = (f32[3,5]{0,1}, f32[4,4]{0,1}) custom-call(a, b), custom_call_target=\"f\", output_to_operand_aliasing={{0}: (0, {}), {1}: (1, {})}
}";

    fn aliases_left(target_name: &str) -> usize {
        let module = slabplan_ir::text::parse(TEXT).into_result().unwrap();
        let target = target::load(target_name).unwrap();
        let compiled = compile(module, &target, &CompileConfig::default()).unwrap();
        let instrs = compiled.module.instrs.values();
        instrs.map(|i| i.operand_aliases().len()).sum()
    }

    #[test]
    fn aliases_stay_where_sizes_agree() {
        assert_eq!(aliases_left("cpu"), 2);
        assert_eq!(aliases_left("tpu-v5e"), 1);
    }
}
