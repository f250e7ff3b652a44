//! Writes a layout assignment into the module: layouts, copies, bitcasts.

use std::collections::BTreeMap;

use slabplan_ir::attr::{Attr, AttrName};
use slabplan_ir::edit::{Names, Placement, Side};
use slabplan_ir::{
    ArrayShape, Instr, InstrId, Module, Opcode, Positions, SecondaryMap, Shape, ShapeId,
};
use slabplan_planner::layouts::{LayoutCopy, LayoutPlan};

/// Applies `plan` to the module it was made for; arrays it does not name keep their layouts.
///
/// Names and metadata stay, so that explanations still point into the user's program. O(module).
pub(super) fn apply(module: &mut Module, plan: &LayoutPlan) {
    set_layouts(module, plan);
    for &instr in &plan.bitcasts {
        let i = &mut module.instrs[instr];
        i.opcode = Opcode::Bitcast;
        i.attrs
            .retain(|a| !matches!(a.name, AttrName::Dimensions | AttrName::InferredDimension));
    }
    insert_copies(module, &plan.copies);
    let shape = |i: InstrId| module.instrs[i].shape;
    let parameters: Vec<ShapeId> = module.entry().params.iter().map(|&p| shape(p)).collect();
    let result = shape(module.entry().root);
    if let Some(entry) = &mut module.entry_layout {
        entry.parameters = parameters;
        entry.result = result;
    }
}

fn set_layouts(module: &mut Module, plan: &LayoutPlan) {
    let positions = Positions::new(module);
    let mut arrays: SecondaryMap<_, Option<&ArrayShape>> = positions.filled(None);
    for (pos, array) in &plan.arrays {
        arrays[*pos] = Some(array);
    }
    let instrs: Vec<InstrId> = module.instrs.keys().collect();
    for instr in instrs {
        let mut new: Vec<Option<ArrayShape>> =
            positions.of(instr).map(|p| arrays[p].cloned()).collect();
        if new.iter().any(Option::is_some) {
            let shape = module.instrs[instr].shape;
            module.instrs[instr].shape = rebuilt(module, shape, &mut new.drain(..));
        }
    }
}

/// `shape` with its arrays replaced, in preorder of its parts.
fn rebuilt(
    module: &mut Module,
    shape: ShapeId,
    parts: &mut impl Iterator<Item = Option<ArrayShape>>,
) -> ShapeId {
    let own = parts.next().flatten();
    match module.shapes.get(shape).clone() {
        Shape::Tuple(elements) => {
            let elements: Vec<ShapeId> = elements
                .iter()
                .map(|&e| rebuilt(module, e, parts))
                .collect();
            module.shapes.intern_tuple(&elements)
        }
        Shape::Array(_) => own.map_or(shape, |a| module.shapes.intern_array(a)),
        _ => shape,
    }
}

/// Copies operands for their users; users that want the same copy of one value share it.
fn insert_copies(module: &mut Module, copies: &[LayoutCopy]) {
    if copies.is_empty() {
        return;
    }
    let mut place = SecondaryMap::filled(module.instrs.len(), 0u32);
    for comp in module.computations.values() {
        for (n, &i) in comp.instrs.iter().enumerate() {
            place[i] = n as u32;
        }
    }
    // (value, layout) -> users, and the first of them.
    let mut wanted: BTreeMap<(InstrId, ShapeId), Vec<(InstrId, usize)>> = BTreeMap::new();
    for copy in copies {
        let value = module.instrs[copy.user].operands[copy.operand];
        let shape = module.shapes.intern_array(copy.array.clone());
        let users = wanted.entry((value, shape)).or_default();
        users.push((copy.user, copy.operand));
    }
    let mut names = Names::new(module);
    let mut placements = Vec::with_capacity(wanted.len());
    for ((value, shape), users) in wanted {
        let comp = module.instrs[value].computation;
        let name = names.instruction(&mut module.strings, "copy");
        let mut copy = Instr::new(name, Opcode::Copy, shape, comp, &[value]);
        copy.attrs.extend(metadata(module, value));
        let copy = module.instrs.push(copy);
        for &(user, operand) in &users {
            module.instrs[user].operands[operand] = copy;
        }
        if let Some(&(anchor, _)) = users.iter().min_by_key(|(u, _)| place[*u]) {
            placements.push(Placement {
                instr: copy,
                side: Side::Before,
                anchor,
            });
        }
    }
    module.place(&placements);
}

/// Where in the user's program `instr` comes from, for an instruction made for it.
fn metadata(module: &Module, instr: InstrId) -> Option<Attr> {
    let attrs = &module.instrs[instr].attrs;
    attrs.iter().find(|a| a.name == AttrName::Metadata).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use slabplan_planner::layouts::{LayoutConfig, assign};

    #[test]
    fn layouts_copies_and_bitcasts_are_written() {
        // The lanes go along the long dimension; the argument is given, and copied once for both users.
        let text = "HloModule m, entry_computation_layout={(f32[5000,3]{1,0})->f32[3]{0}}
max { p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] maximum(p, q) }
ENTRY e { x = f32[5000,3] parameter(0), metadata={op_name=\"args[0]\"}
  n = f32[5000,3] negate(x) c = f32[5000,3] cosine(x) s = f32[5000,3] add(n, c)
  t = f32[3,5000] transpose(s), dimensions={1,0}
  z = f32[] constant(0) ROOT r = f32[3] reduce(t, z), dimensions={1}, to_apply=max }";
        let mut module = slabplan_ir::text::parse(text).into_result().unwrap();
        let target = crate::target::load("tpu-v5e").unwrap();
        let plan = assign(&module, &target, &LayoutConfig::default()).unwrap();
        apply(&mut module, &plan);
        slabplan_ir::verify::verify(&module).unwrap();
        let printed = slabplan_ir::text::print(&module);
        let entry: Vec<&str> = printed
            .lines()
            .skip_while(|l| !l.starts_with("ENTRY"))
            .skip(1)
            .take_while(|l| *l != "}")
            .map(str::trim)
            .collect();
        assert_eq!(
            entry,
            [
                "%x = f32[5000,3]{1,0:T(8,128)} parameter(0), metadata={op_name=\"args[0]\"}",
                "%copy = f32[5000,3]{0,1:T(4,128)} copy(%x), metadata={op_name=\"args[0]\"}",
                "%n = f32[5000,3]{0,1:T(4,128)} negate(%copy)",
                "%c = f32[5000,3]{0,1:T(4,128)} cosine(%copy)",
                "%s = f32[5000,3]{0,1:T(4,128)} add(%n, %c)",
                "%t = f32[3,5000]{1,0:T(4,128)} bitcast(%s)",
                "%z = f32[]{:T(128)} constant(0)",
                "ROOT %r = f32[3]{0:T(128)} reduce(%t, %z), dimensions={1}, to_apply=%max",
            ]
        );
        let header = printed.lines().next().unwrap();
        assert!(
            header.contains("{(f32[5000,3]{1,0:T(8,128)})->f32[3]{0:T(128)}}"),
            "{header}"
        );
    }
}
