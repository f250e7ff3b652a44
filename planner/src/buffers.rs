//! Must-alias classes as buffers: size, memory space, role, and when their bytes are in use.

use slabplan_ir::entity::{PrimaryMap, SecondaryMap};
use slabplan_ir::padding::{logical_bytes, shape_bytes};
use slabplan_ir::plan::BufferKind;
use slabplan_ir::shape::{Shape, ShapePool};
use slabplan_ir::{Bytes, Module, ShapeId, Target};

use crate::dataflow::{Dataflow, ValueId};
use crate::error::PlanError;
use crate::interference::{ClassId, Classes};
use crate::liveness::{Liveness, Ranges, normalise};
use crate::order::ProgramOrder;
use crate::ports::Ports;

/// One buffer: a must-alias class with its facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its values, in value order; none of scratch.
    pub values: Vec<ValueId>,
    /// Memory space.
    pub space: u32,
    /// Bytes: the most that any of its positions needs.
    pub size: Bytes,
    /// What it is for.
    pub kind: BufferKind,
    /// When its bytes are in use.
    pub live: Ranges,
}

/// All buffers, by class.
pub type Buffers = PrimaryMap<ClassId, Buffer>;

/// Gives every class its facts. O(positions + intervals log intervals).
pub fn buffers(
    module: &Module,
    target: &Target,
    order: &ProgramOrder,
    flow: &Dataflow,
    ports: &Ports,
    live: &Liveness,
    classes: &Classes,
) -> Result<Buffers, PlanError> {
    let sizes = class_sizes(module, order, flow, classes)?;
    let mut buffers = Buffers::with_capacity(classes.members().len());
    for (class, values) in classes.members().iter() {
        let mut ranges: Ranges = values
            .iter()
            .flat_map(|&v| live.of(v).iter().copied())
            .collect();
        normalise(&mut ranges);
        buffers.push(Buffer {
            space: class_space(module, target, flow, values)?,
            size: sizes[class],
            kind: class_kind(module, flow, ports, values),
            live: ranges,
            values: values.clone(),
        });
    }
    Ok(buffers)
}

/// The memory space of the array at a position of this shape.
pub fn space_of(shapes: &ShapePool, id: ShapeId) -> u32 {
    match shapes.get(id) {
        Shape::Array(a) => a.memory_space(),
        Shape::Buffer(inner) => space_of(shapes, *inner),
        _ => 0,
    }
}

/// Bytes of the elements of the array at a position of this shape, without padding.
pub fn logical_size(shapes: &ShapePool, id: ShapeId) -> Bytes {
    match shapes.get(id) {
        Shape::Array(a) => logical_bytes(a).unwrap_or(Bytes::ZERO),
        Shape::Buffer(inner) => logical_size(shapes, *inner),
        _ => Bytes::ZERO,
    }
}

fn class_sizes(
    module: &Module,
    order: &ProgramOrder,
    flow: &Dataflow,
    classes: &Classes,
) -> Result<SecondaryMap<ClassId, Bytes>, PlanError> {
    let by_shape: Vec<_> = module
        .shapes
        .ids()
        .map(|id| shape_bytes(&module.shapes, id))
        .collect();
    let size_of = |id: ShapeId| by_shape[slabplan_ir::EntityId::index(id)];
    let mut sizes = SecondaryMap::filled(classes.members().len(), Bytes::ZERO);
    for &instr in order.sequence() {
        for (pos, value) in flow.leaves(instr) {
            let size = size_of(flow.positions.shape(pos)).map_err(|error| PlanError::Size {
                value: flow.positions.display(module, pos),
                error,
            })?;
            let class = classes.of(value);
            sizes[class] = sizes[class].max(size);
        }
    }
    Ok(sizes)
}

fn class_space(
    module: &Module,
    target: &Target,
    flow: &Dataflow,
    values: &[ValueId],
) -> Result<u32, PlanError> {
    let space = |v: ValueId| space_of(&module.shapes, flow.positions.shape(flow.values[v].def));
    let first = space(values[0]);
    if let Some(&other) = values.iter().find(|&&v| space(v) != first) {
        return Err(PlanError::SpaceMismatch {
            first: flow.display(module, values[0]),
            first_space: first,
            second: flow.display(module, other),
            second_space: space(other),
        });
    }
    if target.space(first).is_none() {
        return Err(PlanError::UnknownSpace {
            value: flow.display(module, values[0]),
            space: first,
            target: target.name.clone(),
        });
    }
    Ok(first)
}

fn class_kind(module: &Module, flow: &Dataflow, ports: &Ports, values: &[ValueId]) -> BufferKind {
    if let Some(argument) = values.iter().find_map(|&v| ports.argument(v)) {
        return BufferKind::Parameter {
            number: module.instrs[argument.instr]
                .parameter_number()
                .unwrap_or(0),
            index: flow.positions.index(module, argument.pos),
            donated: argument.donated,
        };
    }
    if values.iter().any(|&v| ports.is_constant(v)) {
        BufferKind::Constant
    } else if values.iter().any(|&v| ports.is_output(v)) {
        BufferKind::Output
    } else {
        BufferKind::Temp
    }
}
