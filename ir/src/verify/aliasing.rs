//! Arrays that are declared to lie in the same bytes.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use super::error::{ErrorKind, Place, Sink};
use crate::entity::{InstrId, SecondaryMap, ShapeId};
use crate::module::{AliasKind, Module};
use crate::padding::shape_bytes;
use crate::shape::{DisplayIndex, Shape};

type Set<K> = IndexSet<K, FxBuildHasher>;

/// `input_output_alias`, `buffer_donor` and `output_to_operand_aliasing`.
pub(super) fn check(sink: &mut Sink<'_>) {
    check_input_output(sink);
    let mut planned = SecondaryMap::filled(sink.module.computations.len(), false);
    for comp in sink.module.planned_computations() {
        planned[comp] = true;
    }
    for (id, instr) in sink.instrs() {
        if !instr.operand_aliases().is_empty() {
            check_operand_aliases(sink, id, planned[instr.computation]);
        }
    }
}

fn check_input_output(sink: &mut Sink<'_>) {
    let module = sink.module;
    let mut outputs: Set<&[u32]> = Set::default();
    let mut arguments: Set<(u32, &[u32])> = Set::default();
    for (n, alias) in (0..).zip(&module.input_output_alias) {
        let place = Place::Alias(n);
        let output = DisplayIndex(&alias.output_index).to_string();
        let argument = format!(
            "({}, {})",
            alias.parameter,
            DisplayIndex(&alias.parameter_index)
        );
        let what = format!("input_output_alias {output}: {argument}");
        let to = module.instrs[module.entry().root].shape;
        let to = module.shapes.subshape(to, &alias.output_index);
        let from = argument_shape(module, alias.parameter, &alias.parameter_index);
        let (Some(to), Some(from)) = (to, from) else {
            let missing = if to.is_none() {
                format!("the entry has no output {output}")
            } else {
                format!("the entry has no parameter {argument}")
            };
            sink.error(
                ErrorKind::Alias,
                place,
                format!("{what}: {missing}"),
                "remove the entry, or correct its indices",
            );
            continue;
        };
        if !outputs.insert(&alias.output_index) {
            sink.error(
                ErrorKind::Alias,
                place,
                format!("{what}: output {output} already has an alias"),
                "keep one of the two",
            );
        }
        if !arguments.insert((alias.parameter, &alias.parameter_index)) {
            sink.error(
                ErrorKind::Alias,
                place,
                format!("{what}: parameter {argument} already has an output"),
                "keep one of the two",
            );
        }
        if let Some(why) = different_bytes(module, from, to) {
            let message = format!("{what}: {why}");
            if alias.kind == AliasKind::Must {
                let remedy = "give both the same layout, or make it a may-alias";
                sink.error(ErrorKind::Alias, place, message, remedy);
            } else {
                let remedy = "the output gets bytes of its own";
                sink.warning(ErrorKind::Alias, place, message, remedy);
            }
        }
    }
    for (n, donor) in (0..).zip(&module.buffer_donors) {
        let place = Place::Donor(n);
        let argument = format!(
            "({}, {})",
            donor.parameter,
            DisplayIndex(&donor.parameter_index)
        );
        if argument_shape(module, donor.parameter, &donor.parameter_index).is_none() {
            sink.error(
                ErrorKind::Alias,
                place,
                format!("buffer_donor {argument}: the entry has no such parameter"),
                "remove the entry, or correct its index",
            );
        }
        if !arguments.insert((donor.parameter, &donor.parameter_index)) {
            sink.error(
                ErrorKind::Alias,
                place,
                format!("buffer_donor {argument}: this parameter is given away twice"),
                "keep one of the two",
            );
        }
    }
}

fn argument_shape(module: &Module, parameter: u32, index: &[u32]) -> Option<ShapeId> {
    let &param = module.entry().params.get(parameter as usize)?;
    module.shapes.subshape(module.instrs[param].shape, index)
}

/// Inside a fusion (`planned` is false) nothing has bytes of its own, and XLA lets tiles and
/// memory spaces of such pairs differ.
fn check_operand_aliases(sink: &mut Sink<'_>, id: InstrId, planned: bool) {
    let module = sink.module;
    let instr = &module.instrs[id];
    let mut outputs: Set<&[u32]> = Set::default();
    for alias in instr.operand_aliases() {
        let output = DisplayIndex(&alias.output_index).to_string();
        let what = format!(
            "output_to_operand_aliasing {output}: ({}, {})",
            alias.operand,
            DisplayIndex(&alias.operand_index)
        );
        let to = module.shapes.subshape(instr.shape, &alias.output_index);
        let from = instr.operands.get(alias.operand as usize).and_then(|&o| {
            module
                .shapes
                .subshape(module.instrs[o].shape, &alias.operand_index)
        });
        let wrong = match (to, from) {
            (None, _) => Some(format!("there is no output {output}")),
            (_, None) => Some("there is no such operand".to_owned()),
            (Some(to), Some(from)) if planned => different_bytes(module, from, to),
            _ => None,
        };
        if let Some(why) = wrong {
            sink.error(
                ErrorKind::OperandAlias,
                Place::Instr(id),
                format!("{what}: {why}"),
                "remove the entry, or correct its indices",
            );
        } else if !outputs.insert(&alias.output_index) {
            sink.error(
                ErrorKind::OperandAlias,
                Place::Instr(id),
                format!("{what}: output {output} already has an alias"),
                "keep one of the two",
            );
        }
    }
}

/// Why the two can't lie in the same bytes, if they can't. Tuples are compared leaf by leaf.
fn different_bytes(module: &Module, a: ShapeId, b: ShapeId) -> Option<String> {
    let shapes = &module.shapes;
    let (left, right) = (shapes.preorder(a), shapes.preorder(b));
    if left.len() != right.len() {
        return Some(format!(
            "{} and {} differ in structure",
            shapes.display_without_layout(a),
            shapes.display_without_layout(b)
        ));
    }
    for (&x, &y) in left.iter().zip(&right) {
        // What has no size is an error of its own.
        let (Ok(m), Ok(n)) = (shape_bytes(shapes, x), shape_bytes(shapes, y)) else {
            continue;
        };
        if m != n {
            return Some(format!(
                "{} has {} bytes, but {} has {}",
                shapes.display(x),
                m.get(),
                shapes.display(y),
                n.get()
            ));
        }
        let (p, q) = (memory_space(module, x), memory_space(module, y));
        if p != q {
            return Some(format!(
                "{} is in memory space {p}, but {} in {q}",
                shapes.display(x),
                shapes.display(y)
            ));
        }
    }
    None
}

fn memory_space(module: &Module, shape: ShapeId) -> u32 {
    match module.shapes.get(shape) {
        Shape::Array(a) => a.memory_space(),
        Shape::Buffer(inner) => memory_space(module, *inner),
        _ => 0,
    }
}
