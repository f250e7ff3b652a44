//! Whether a fusion reads an operand in step with a result, so that the result may replace it
//! element by element.
//!
//! A fact about the module alone; both planner and checker build on it.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::Layout;
use crate::attr::AttrName;
use crate::entity::{CompId, InstrId, ShapeId};
use crate::module::Module;
use crate::opcode::Opcode;
use crate::shape::{ArrayShape, Shape};

/// A part of a fusion's result and the part of an operand whose bytes it is to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// Part of the result (number of the node of its shape, in preorder).
    pub output: u32,
    /// Operand number.
    pub operand: u32,
    /// Part of that operand.
    pub operand_node: u32,
}

/// How deep fusions may nest before the question is answered with no.
const MAX_DEPTH: u32 = 32;

/// A part of a fused result.
type Part = (InstrId, u32);

/// What the walk knows of a fused value that depends on the parameter.
#[derive(Clone, PartialEq, Eq)]
enum View {
    /// Element `i` reads the parameter's bytes, seen as an array of this shape, at `i` only.
    Whole(ShapeId),
    /// Element `i` reads element `i` of the slice of the parameter at these start indices, the
    /// slice seen as an array of this shape.
    Slice(Slice),
    /// Made in the same loop from elements that read the parameter in step, but at other indices:
    /// another array updated by a slice, or a reduction. Nothing but the fusion's result may hold
    /// it: its other readers would be out of step.
    Aside,
}

#[derive(Clone, PartialEq, Eq)]
struct Slice {
    /// Shape of the whole array that was sliced.
    of: ShapeId,
    /// Shape of the slice when it was cut.
    cut: ShapeId,
    /// Start indices.
    starts: SmallVec<[InstrId; 4]>,
    /// The slice as seen now.
    seen: ShapeId,
}

type Views = BTreeMap<Part, View>;

/// Whether fusion `id` reads the operand of `pair` at the element it is about to write only, so
/// that the output of `pair` may replace it: each use, to the root, is elementwise or a tuple; a
/// bitcast whose operand lies in memory as the parameter does; the array that dynamic-update-slice
/// or scatter updates; a slice that is updated at the same place; or, in a loop fusion, an update
/// of another array or a reduction, for its one loop computes all outputs at each element.
///
/// O(n log n) of the fused instructions.
pub fn reads_in_step(module: &Module, id: InstrId, pair: Replaced) -> bool {
    let instr = &module.instrs[id];
    let Some(comp) = instr.comp(AttrName::Calls) else {
        return false;
    };
    let Some(&operand) = instr.operands.get(pair.operand as usize) else {
        return false;
    };
    let operand_shape = part_shape(module, operand, pair.operand_node);
    let output_shape = part_shape(module, id, pair.output);
    let mut arguments = Views::new();
    let Some(&param) = module.computations[comp].params.get(pair.operand as usize) else {
        return false;
    };
    arguments.insert((param, pair.operand_node), View::Whole(operand_shape));
    let Some(outputs) = walk(module, comp, arguments, 0) else {
        return false;
    };
    let kind = instr.ident(AttrName::Kind).map(|s| module.str(s));
    let in_one_loop = |kinds: &[&str]| kind.is_some_and(|k| kinds.contains(&k));
    // Of an output fusion the loop is that over the elements of the dot or convolution.
    if outputs.values().any(|v| *v == View::Aside) && !in_one_loop(&["kLoop", "kInput", "kOutput"])
    {
        return false;
    }
    match outputs.get(&pair.output) {
        Some(View::Whole(seen)) => lie_alike(module, *seen, output_shape),
        Some(View::Slice(_) | View::Aside) => false,
        // Written without reading the parameter: in step only where all outputs share one loop.
        None => in_one_loop(&["kLoop", "kInput"]) && lie_alike(module, operand_shape, output_shape),
    }
}

/// Walks a fused computation whose parameters have `views`; returns the views of the root's parts,
/// or nothing if the parameter is read out of step.
fn walk(
    module: &Module,
    comp: CompId,
    mut views: Views,
    depth: u32,
) -> Option<BTreeMap<u32, View>> {
    if depth >= MAX_DEPTH {
        return None;
    }
    let computation = &module.computations[comp];
    for &id in &computation.instrs {
        step(module, id, &mut views, depth)?;
    }
    let root = computation.root;
    Some(
        views
            .range((root, 0)..=(root, u32::MAX))
            .map(|(part, view)| (part.1, view.clone()))
            .collect(),
    )
}

/// Adds the views of one fused result; nothing if it reads the parameter out of step.
fn step(module: &Module, id: InstrId, views: &mut Views, depth: u32) -> Option<()> {
    use Opcode as O;
    let instr = &module.instrs[id];
    let viewed = |&o: &InstrId| views.range((o, 0)..=(o, u32::MAX)).next().is_some();
    if !instr.operands.iter().any(viewed) {
        return Some(());
    }
    match instr.opcode {
        O::Tuple => {
            let mut start = 1;
            for &o in &instr.operands {
                copy_views(views, o, 0..=u32::MAX, id, |node| node + start);
                start += module.shapes.node_count(module.instrs[o].shape);
            }
        }
        O::GetTupleElement => {
            let o = *instr.operands.first()?;
            let index = u32::try_from(instr.int(AttrName::Index)?).ok()?;
            let shape = module.instrs[o].shape;
            let start = module.shapes.node_of_index(shape, &[index])?;
            let end = start + module.shapes.node_count(instr.shape);
            copy_views(views, o, start..=end - 1, id, |node| node - start);
        }
        O::Bitcast => {
            let o = *instr.operands.first()?;
            let view = views.get(&(o, 0))?.clone();
            let seen = rebase(module, view, module.instrs[o].shape, instr.shape)?;
            views.insert((id, 0), seen);
        }
        O::Fusion => {
            let inner = instr.comp(AttrName::Calls)?;
            let params = &module.computations[inner].params;
            let mut arguments = Views::new();
            for (&o, &param) in instr.operands.iter().zip(params) {
                for (part, view) in views.range((o, 0)..=(o, u32::MAX)) {
                    arguments.insert((param, part.1), view.clone());
                }
            }
            for (node, view) in walk(module, inner, arguments, depth + 1)? {
                views.insert((id, node), view);
            }
        }
        O::DynamicSlice => {
            let (&array, starts) = instr.operands.split_first()?;
            if starts.iter().any(viewed) {
                return None;
            }
            let Some(View::Whole(of)) = views.get(&(array, 0)) else {
                return None;
            };
            let slice = Slice {
                of: *of,
                cut: instr.shape,
                starts: starts.into(),
                seen: instr.shape,
            };
            // The slice is cut from the array as it lies in memory.
            if !lie_alike(module, *of, module.instrs[array].shape) {
                return None;
            }
            views.insert((id, 0), View::Slice(slice));
        }
        O::DynamicUpdateSlice => {
            let view = update_slice(module, id, views)?;
            views.insert((id, 0), view);
        }
        O::Scatter => {
            let arrays = instr.operands.len().saturating_sub(1) / 2;
            if instr.operands.get(arrays..)?.iter().any(viewed) {
                return None;
            }
            let is_tuple = module.shapes.tuple(instr.shape).is_some();
            for (i, &o) in instr.operands[..arrays].iter().enumerate() {
                if let Some(view) = views.get(&(o, 0)).cloned() {
                    if !matches!(view, View::Whole(_)) {
                        return None;
                    }
                    let node = if is_tuple { 1 + i as u32 } else { 0 };
                    views.insert((id, node), view);
                }
            }
        }
        O::Reduce => {
            let (arrays, inits) = instr.operands.split_at(instr.operands.len() / 2);
            let whole = |&o: &InstrId| matches!(views.get(&(o, 0)), Some(View::Whole(_)) | None);
            if inits.iter().any(viewed) || !arrays.iter().all(whole) {
                return None;
            }
            for node in 0..module.shapes.node_count(instr.shape) {
                views.insert((id, node), View::Aside);
            }
        }
        op if is_elementwise(op) => {
            let view = elementwise(module, id, views)?;
            views.insert((id, 0), view);
        }
        _ => return None,
    }
    Some(())
}

/// The view of an elementwise result: that of its viewed operands, which must agree.
fn elementwise(module: &Module, id: InstrId, views: &Views) -> Option<View> {
    let instr = &module.instrs[id];
    let result = module.shapes.array(instr.shape)?;
    let mut agreed: Option<View> = None;
    for &o in &instr.operands {
        let Some(view) = views.get(&(o, 0)) else {
            continue;
        };
        let dims = &module.shapes.array(module.instrs[o].shape)?.dims;
        if *view == View::Aside || *dims != result.dims {
            return None;
        }
        match &agreed {
            Some(known) if known != view => return None,
            _ => agreed = Some(view.clone()),
        }
    }
    agreed
}

/// The view of `dynamic-update-slice(array, update, starts...)`.
fn update_slice(module: &Module, id: InstrId, views: &Views) -> Option<View> {
    let instr = &module.instrs[id];
    let (&array, rest) = instr.operands.split_first()?;
    let (&update, starts) = rest.split_first()?;
    if starts.iter().any(|&s| views.contains_key(&(s, 0))) {
        return None;
    }
    match (views.get(&(array, 0)), views.get(&(update, 0))) {
        (Some(&View::Whole(of)), None) => Some(View::Whole(of)),
        (Some(&View::Whole(of)), Some(View::Slice(slice))) => {
            let same_place = slice.of == of
                && slice.starts.as_slice() == starts
                && dims(module, slice.cut)? == dims(module, module.instrs[update].shape)?
                && dims(module, slice.seen)? == dims(module, slice.cut)?
                && lie_alike(module, slice.seen, slice.cut);
            same_place.then_some(View::Whole(of))
        }
        (None | Some(View::Aside), Some(View::Whole(_) | View::Slice(_)))
        | (Some(View::Aside), None) => Some(View::Aside),
        _ => None,
    }
}

/// The view after a bitcast from `from` to `to`: the same bytes seen as another array. It follows
/// only where the operand lies in memory as the view does.
fn rebase(module: &Module, view: View, from: ShapeId, to: ShapeId) -> Option<View> {
    match view {
        View::Whole(seen) => lie_alike(module, seen, from).then_some(View::Whole(to)),
        View::Slice(slice) => {
            lie_alike(module, slice.seen, from).then_some(View::Slice(Slice { seen: to, ..slice }))
        }
        View::Aside => Some(View::Aside),
    }
}

fn copy_views(
    views: &mut Views,
    from: InstrId,
    nodes: std::ops::RangeInclusive<u32>,
    to: InstrId,
    renumber: impl Fn(u32) -> u32,
) {
    let copied: Vec<(u32, View)> = views
        .range((from, *nodes.start())..=(from, *nodes.end()))
        .map(|(part, view)| (renumber(part.1), view.clone()))
        .collect();
    for (node, view) in copied {
        views.insert((to, node), view);
    }
}

fn dims(module: &Module, shape: ShapeId) -> Option<&[u64]> {
    Some(&module.shapes.array(shape)?.dims)
}

fn lie_alike(module: &Module, a: ShapeId, b: ShapeId) -> bool {
    match (module.shapes.get(a), module.shapes.get(b)) {
        (Shape::Array(a), Shape::Array(b)) => same_bytes(a, b),
        _ => false,
    }
}

fn part_shape(module: &Module, id: InstrId, node: u32) -> ShapeId {
    let shape = module.instrs[id].shape;
    let index = module.shapes.index_of_node(shape, node);
    module.shapes.subshape(shape, &index).unwrap_or(shape)
}

/// Whether element `i` of the result reads each operand of the result's dimensions at `i` only.
pub(crate) fn is_elementwise(op: Opcode) -> bool {
    op.is_elementwise()
        || matches!(
            op,
            Opcode::Clamp | Opcode::Copy | Opcode::Map | Opcode::BitcastConvert
        )
}

/// Whether element `i` of the one lies at the same bytes as element `i` of the other.
pub(crate) fn same_bytes(a: &ArrayShape, b: &ArrayShape) -> bool {
    let bits = |s: &ArrayShape| match s.layout.as_ref().map_or(0, |l| l.element_size_in_bits) {
        0 => 8 * s.element_type.byte_width(),
        n => u64::from(n),
    };
    let plain = Layout::default();
    let rest = |s: &ArrayShape| {
        let l = s.layout.as_ref().unwrap_or(&plain);
        (
            l.tiles.clone(),
            l.tail_padding_alignment,
            l.split_configs.clone(),
            l.dynamic_shape_metadata_prefix_bytes,
        )
    };
    a.dims == b.dims
        && bits(a) == bits(b)
        && a.minor_to_major() == b.minor_to_major()
        && rest(a) == rest(b)
}
