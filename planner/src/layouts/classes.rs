//! Values that must lie alike, and which of them the caller or an operation has decided.

use petgraph::unionfind::UnionFind;

use slabplan_ir::entity::PrimaryMap;
use slabplan_ir::{ArrayShape, EntityId, InstrId, Layout, Module, PosId, Shape, ShapeId};

use super::config::EntryOrder;
use super::error::{LayoutError, PinnedBy};
use super::relations::{Relation, relations};
use super::tiles::{Order, row_major};
use crate::alias::must_alias;
use crate::dataflow::{Dataflow, ValueId, ValueKind};
use crate::donation::donations;
use crate::order::ProgramOrder;

slabplan_ir::entity! {
    /// Values that must have one layout.
    LayoutClass = "class";
}

/// A layout that is not ours to choose.
#[derive(Clone, Debug)]
pub(super) struct Pin {
    pub(super) order: Order,
    /// The whole layout, where more than the order is given.
    pub(super) layout: Option<Layout>,
    by: PinnedBy,
    at: PosId,
}

/// One class.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// Shape of its arrays, as the module gives it.
    pub(super) array: ArrayShape,
    /// How many of its values an instruction defines: each has bytes of its own.
    pub(super) defined: u64,
    /// Set where the layout is given.
    pub(super) pin: Option<Pin>,
}

/// The classes of a module's values.
pub(super) struct Classes {
    pub(super) of_value: Vec<Option<LayoutClass>>,
    pub(super) classes: PrimaryMap<LayoutClass, Class>,
}

impl Classes {
    /// The class of the array at `pos`, if there is one.
    pub(super) fn at(&self, flow: &Dataflow, pos: PosId) -> Option<LayoutClass> {
        self.of_value[flow.at(pos)?.index()]
    }
}

/// Joins values and collects what is given. Near-linear in positions.
pub(super) fn classes(
    module: &Module,
    order: &ProgramOrder,
    flow: &Dataflow,
    entry: EntryOrder,
) -> Result<Classes, LayoutError> {
    let mut sets: UnionFind<usize> = UnionFind::new(flow.values.len());
    for pair in must_alias(module, order, flow, &donations(module)) {
        sets.union(pair.place.index(), pair.value.index());
    }
    for &instr in order.sequence() {
        if relations(module, instr).contains(&Relation::Together) {
            join_results(module, flow, instr, &mut sets);
        }
    }
    let mut class_of_set: Vec<Option<LayoutClass>> = vec![None; flow.values.len()];
    let mut out = Classes {
        of_value: vec![None; flow.values.len()],
        classes: PrimaryMap::new(),
    };
    for (id, value) in flow.values.iter() {
        let Some(array) = module.shapes.array(flow.positions.shape(value.def)) else {
            continue;
        };
        let class = *class_of_set[sets.find(id.index())].get_or_insert_with(|| {
            out.classes.push(Class {
                array: array.clone(),
                defined: 0,
                pin: None,
            })
        });
        out.of_value[id.index()] = Some(class);
        out.classes[class].defined += u64::from(value.kind == ValueKind::Defined);
    }
    pin_what_is_given(module, order, flow, entry, &mut out)?;
    Ok(out)
}

/// Results of one rank that an operation writes together.
fn join_results(module: &Module, flow: &Dataflow, instr: InstrId, sets: &mut UnionFind<usize>) {
    let rank = |v: ValueId| {
        let shape = flow.positions.shape(flow.values[v].def);
        module.shapes.array(shape).map(ArrayShape::rank)
    };
    let leaves: Vec<ValueId> = flow.leaves(instr).map(|(_, v)| v).collect();
    for pair in leaves.windows(2) {
        if rank(pair[0]) == rank(pair[1]) {
            sets.union(pair[0].index(), pair[1].index());
        }
    }
}

fn pin_what_is_given(
    module: &Module,
    order: &ProgramOrder,
    flow: &Dataflow,
    entry: EntryOrder,
    classes: &mut Classes,
) -> Result<(), LayoutError> {
    for &instr in order.sequence() {
        if relations(module, instr).contains(&Relation::Pins) {
            for pos in flow.positions.of(instr) {
                let by = PinnedBy::Operation(instr);
                pin(module, flow, classes, pos, flow.positions.shape(pos), by)?;
            }
        }
        for pos in flow.positions.of(instr) {
            pin_odd_arrays(module, flow, classes, pos)?;
        }
    }
    if entry == EntryOrder::Given {
        pin_entry(module, flow, classes)?;
    }
    Ok(())
}

/// Arrays outside HBM, dynamic ones, and those seen through a bitcast as something else, stay.
fn pin_odd_arrays(
    module: &Module,
    flow: &Dataflow,
    classes: &mut Classes,
    pos: PosId,
) -> Result<(), LayoutError> {
    let Some(class) = classes.at(flow, pos) else {
        return Ok(());
    };
    let known = &classes.classes[class].array;
    let odd = match module.shapes.get(flow.positions.shape(pos)) {
        Shape::Array(a) => {
            let given = a.layout.as_ref();
            a.rank() != known.rank()
                || a.dynamic != 0
                || a.memory_space() != 0
                || given.is_some_and(|l| {
                    !l.split_configs.is_empty()
                        || l.tail_padding_alignment.0 > 1
                        || l.dynamic_shape_metadata_prefix_bytes > 0
                })
        }
        _ => true,
    };
    if !odd {
        return Ok(());
    }
    let def = flow.at(pos).map_or(pos, |v| flow.values[v].def);
    let shape = flow.positions.shape(def);
    let by = PinnedBy::Operation(flow.positions.instr(pos));
    pin(module, flow, classes, def, shape, by)
}

fn pin_entry(module: &Module, flow: &Dataflow, classes: &mut Classes) -> Result<(), LayoutError> {
    let computation = module.entry();
    for (n, &param) in computation.params.iter().enumerate() {
        let given = module.entry_layout.as_ref().map(|l| l.parameters[n]);
        pin_leaves(module, flow, classes, param, given, PinnedBy::Parameter(n))?;
    }
    let given = module.entry_layout.as_ref().map(|l| l.result);
    pin_leaves(
        module,
        flow,
        classes,
        computation.root,
        given,
        PinnedBy::Result,
    )
}

/// Pins the arrays of `instr` to their layouts in `given`, or to those they have.
fn pin_leaves(
    module: &Module,
    flow: &Dataflow,
    classes: &mut Classes,
    instr: InstrId,
    given: Option<ShapeId>,
    by: PinnedBy,
) -> Result<(), LayoutError> {
    let shapes = module
        .shapes
        .preorder(given.unwrap_or(module.instrs[instr].shape));
    for (pos, shape) in flow.positions.of(instr).zip(shapes) {
        pin(module, flow, classes, pos, shape, by)?;
    }
    Ok(())
}

/// Fixes the class at `pos` to the layout of `shape`, or finds that it is fixed to another.
fn pin(
    module: &Module,
    flow: &Dataflow,
    classes: &mut Classes,
    pos: PosId,
    shape: ShapeId,
    by: PinnedBy,
) -> Result<(), LayoutError> {
    let (Some(class), Some(array)) = (classes.at(flow, pos), module.shapes.array(shape)) else {
        return Ok(());
    };
    let class = &mut classes.classes[class];
    let order: Order = array
        .layout
        .as_ref()
        .map_or_else(|| row_major(array.rank()), |l| l.minor_to_major.clone());
    let layout = array.layout.clone().filter(|l| !l.is_plain());
    match &mut class.pin {
        Some(pin) if pin.order != order && class.array.rank() == array.rank() => {
            Err(LayoutError::Contradiction {
                first: pin.by.describe(module).into(),
                first_value: flow.positions.display(module, pin.at).into(),
                first_order: pin.order.to_vec(),
                second: by.describe(module).into(),
                second_value: flow.positions.display(module, pos).into(),
                second_order: order.to_vec(),
            })
        }
        Some(pin) => {
            pin.layout = pin.layout.take().or(layout);
            Ok(())
        }
        None => {
            class.pin = Some(Pin {
                order,
                layout,
                by,
                at: pos,
            });
            Ok(())
        }
    }
}
