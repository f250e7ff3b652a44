//! Gives the entry's arguments and results the layouts that `entry_computation_layout` promises.
//!
//! An argument is read in the caller's layout where its users only read elements; what hands its bytes
//! on, or means bytes, gets a copy in the layout it was written for. A result that an
//! operation computes anew is computed in the caller's layout; any other is copied into it.

use slabplan_ir::attr::{Attr, AttrName, AttrValue};
use slabplan_ir::edit::{Names, Placement, Side};
use slabplan_ir::instr::Instr;
use slabplan_ir::module::{EntryLayout, Users};
use slabplan_ir::{ArrayShape, InstrId, Module, Opcode, Shape, ShapeId};

/// Completes the promised layouts with those of parameters and root where the header leaves a
/// layout out. To be done before layouts are assigned.
pub(super) fn complete(module: &mut Module) {
    let Some(mut layout) = module.entry_layout.take() else {
        return;
    };
    let entry = module.entry().clone();
    for (promised, &param) in layout.parameters.iter_mut().zip(&entry.params) {
        *promised = completed(module, *promised, module.instrs[param].shape);
    }
    layout.result = completed(module, layout.result, module.instrs[entry.root].shape);
    module.entry_layout = Some(layout);
}

/// `promised` with the layouts of `inside` where it has none.
fn completed(module: &mut Module, promised: ShapeId, inside: ShapeId) -> ShapeId {
    let shapes = &module.shapes;
    match (shapes.get(promised), shapes.get(inside)) {
        (Shape::Array(p), Shape::Array(i)) if p.layout.is_none() && i.layout.is_some() => {
            let array = ArrayShape {
                layout: i.layout.clone(),
                ..p.clone()
            };
            module.shapes.intern_array(array)
        }
        (Shape::Tuple(p), Shape::Tuple(i)) => {
            let pairs: Vec<_> = p.iter().copied().zip(i.iter().copied()).collect();
            let elements: Vec<ShapeId> = pairs
                .into_iter()
                .map(|(p, i)| completed(module, p, i))
                .collect();
            module.shapes.intern_tuple(&elements)
        }
        _ => promised,
    }
}

/// Gives parameters and root the promised layouts; returns whether anything changed. Every array
/// has a layout by now. O(module + copies).
pub(super) fn enforce(module: &mut Module) -> bool {
    let Some(EntryLayout { parameters, result }) = module.entry_layout.clone() else {
        return false;
    };
    let entry = module.entry().clone();
    let differs = |i: InstrId, promised: ShapeId| module.instrs[i].shape != promised;
    let mut pairs = entry.params.iter().zip(&parameters);
    if !differs(entry.root, result) && !pairs.any(|(&p, &shape)| differs(p, shape)) {
        return false;
    }
    let users = module.users();
    let names = Names::new(module);
    let is_tuple = module.instrs[entry.root].opcode == Opcode::Tuple;
    let mut edit = Relayout {
        root_tuple: (is_tuple && users.of(entry.root).is_empty()).then_some(entry.root),
        module,
        users,
        names,
        after: Vec::new(),
    };
    for (&param, &promised) in entry.params.iter().zip(&parameters) {
        edit.set_argument(param, promised);
    }
    let root = edit.result(entry.root, result);
    let after = std::mem::take(&mut edit.after);
    module.computations[module.entry].root = root;
    module.place(&after);
    true
}

struct Relayout<'a> {
    module: &'a mut Module,
    users: Users,
    names: Names,
    /// The root, if it is a tuple of the root's own: its operands are looked at one by one.
    root_tuple: Option<InstrId>,
    /// New instructions that stand after others.
    after: Vec<Placement>,
}

impl Relayout<'_> {
    /// Gives an argument, or a part taken out of one, its promised shape.
    fn set_argument(&mut self, value: InstrId, promised: ShapeId) {
        let old = self.module.instrs[value].shape;
        if old == promised {
            return;
        }
        self.module.instrs[value].shape = promised;
        let mut users: Vec<InstrId> = self.users.of(value).to_vec();
        users.dedup();
        let mut copy = None;
        for user in users {
            let i = &self.module.instrs[user];
            if i.opcode == Opcode::GetTupleElement {
                let index = i.int(AttrName::Index).unwrap_or(0) as u32;
                if let Some(part) = self.module.shapes.subshape(promised, &[index]) {
                    self.set_argument(user, part);
                }
            } else if Some(user) != self.root_tuple && !reads_elements(self.module, user, value) {
                let copy = *copy.get_or_insert_with(|| self.in_layout(value, old, value));
                self.module.replace_operand(user, value, copy);
            }
        }
    }

    /// The same value in the layouts of `shape`, by instructions after `anchor`.
    fn in_layout(&mut self, value: InstrId, shape: ShapeId, anchor: InstrId) -> InstrId {
        if self.module.instrs[value].shape == shape {
            return value;
        }
        let Some(elements) = self.module.shapes.tuple(shape).map(<[ShapeId]>::to_vec) else {
            return self.push("copy", Opcode::Copy, shape, &[value], anchor);
        };
        let mut parts = Vec::with_capacity(elements.len());
        for (k, &element) in (0..).zip(&elements) {
            let inside = self.module.instrs[value].shape;
            let inside = self.module.shapes.subshape(inside, &[k]);
            let inside = inside.expect("both shapes have the same parts");
            let part = self.element(value, k, inside, anchor);
            parts.push(self.in_layout(part, element, anchor));
        }
        self.push("tuple", Opcode::Tuple, shape, &parts, anchor)
    }

    fn element(&mut self, tuple: InstrId, k: u32, shape: ShapeId, anchor: InstrId) -> InstrId {
        let i = &self.module.instrs[tuple];
        if i.opcode == Opcode::Tuple {
            return i.operands[k as usize];
        }
        let name = "get-tuple-element";
        let part = self.push(name, Opcode::GetTupleElement, shape, &[tuple], anchor);
        self.module.instrs[part].attrs.push(Attr {
            name: AttrName::Index,
            value: AttrValue::Int(k.into()),
        });
        part
    }

    fn push(
        &mut self,
        name: &str,
        opcode: Opcode,
        shape: ShapeId,
        operands: &[InstrId],
        anchor: InstrId,
    ) -> InstrId {
        let name = self.names.instruction(&mut self.module.strings, name);
        let comp = self.module.entry;
        let instr = self
            .module
            .instrs
            .push(Instr::new(name, opcode, shape, comp, operands));
        self.after.push(Placement {
            instr,
            side: Side::After,
            anchor,
        });
        instr
    }

    /// The value that the entry returns in the place of `root`, in the promised layouts.
    fn result(&mut self, root: InstrId, promised: ShapeId) -> InstrId {
        let i = &self.module.instrs[root];
        let up_to_date = |o: &InstrId| self.module.instrs[*o].shape;
        let is_root_tuple = self.root_tuple == Some(root);
        if i.shape == promised
            && (!is_root_tuple
                || self
                    .module
                    .shapes
                    .tuple(promised)
                    .is_some_and(|e| i.operands.iter().map(up_to_date).eq(e.iter().copied())))
        {
            return root;
        }
        if self.root_tuple != Some(root) {
            if self.computes_anew(root, 0) {
                self.module.instrs[root].shape = promised;
                return root;
            }
            return self.in_layout(root, promised, root);
        }
        // The root's own tuple: each output is given its layout where it is computed.
        let operands = i.operands.clone();
        let elements = self.module.shapes.tuple(promised).map(<[ShapeId]>::to_vec);
        let mut sorted = operands.to_vec();
        sorted.sort_unstable();
        let mut parts = Vec::with_capacity(operands.len());
        for (&operand, &element) in operands.iter().zip(&elements.unwrap_or_default()) {
            let same = self.module.instrs[operand].shape == element;
            let at = sorted.partition_point(|&o| o < operand);
            let once = sorted.get(at + 1) != Some(&operand);
            parts.push(if same {
                operand
            } else if once && self.computes_anew(operand, 1) {
                self.module.instrs[operand].shape = element;
                operand
            } else {
                self.before_root(operand, element, root)
            });
        }
        self.module.instrs[root].operands = parts.into();
        self.module.instrs[root].shape = promised;
        root
    }

    /// As [`in_layout`](Self::in_layout), by instructions right before `root`.
    fn before_root(&mut self, value: InstrId, shape: ShapeId, root: InstrId) -> InstrId {
        let from = self.after.len();
        let copy = self.in_layout(value, shape, root);
        for placement in &mut self.after[from..] {
            placement.side = Side::Before;
        }
        copy
    }

    /// Whether the operation may write its result in any layout: it computes it element by element, and
    /// besides `roots` uses by the root's tuple its users read elements only.
    fn computes_anew(&self, instr: InstrId, roots: usize) -> bool {
        let users = self.users.of(instr);
        let reads = |&&u: &&InstrId| reads_elements(self.module, u, instr);
        let array = self.module.shapes.array(self.module.instrs[instr].shape);
        array.is_some()
            && writes_elements(self.module.instrs[instr].opcode)
            && users.iter().filter(reads).count() + roots == users.len()
    }
}

/// Whether the result's layout is the operation's own choice.
fn writes_elements(opcode: Opcode) -> bool {
    use Opcode as O;
    opcode.is_elementwise()
        || matches!(
            opcode,
            O::Broadcast
                | O::Clamp
                | O::Concatenate
                | O::Convolution
                | O::Copy
                | O::Dot
                | O::DynamicSlice
                | O::Gather
                | O::Iota
                | O::Pad
                | O::Reduce
                | O::ReduceWindow
                | O::Reshape
                | O::Reverse
                | O::Slice
                | O::Transpose
        )
}

/// Whether `user` reads the elements of the array `value` wherever they lie, and hands no byte on.
fn reads_elements(module: &Module, user: InstrId, value: InstrId) -> bool {
    let i = &module.instrs[user];
    let is_array = module.shapes.array(module.instrs[value].shape).is_some();
    // The operand that is written in place lies where the result lies.
    let is_update = i.opcode == Opcode::DynamicUpdateSlice && i.operands[0] != value;
    is_array && (writes_elements(i.opcode) || is_update)
}
