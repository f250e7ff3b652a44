//! Modules as HLO text, in XLA's own form.

use std::fmt::Write;

use crate::entity::{CompId, EntityId, InstrId, ShapeId};
use crate::instr::Payload;
use crate::module::{AliasKind, Module};
use crate::shape::DisplayIndex;

/// The text of a module, as XLA prints it.
///
/// Linear in the size of the text.
pub fn print(module: &Module) -> String {
    let mut printer = Printer::new(module);
    printer.header();
    for comp in definition_order(module) {
        printer.computation(comp);
    }
    printer.out
}

/// One instruction as a line of HLO text, without indentation and `ROOT`.
pub fn print_instruction(module: &Module, instr: InstrId) -> String {
    let mut printer = Printer::new(module);
    printer.instruction(instr);
    printer.out
}

/// Text under construction.
pub(super) struct Printer<'m> {
    pub(super) module: &'m Module,
    pub(super) out: String,
    /// Where in `out` each shape was printed first.
    shapes: Vec<Option<(u32, u32)>>,
}

/// The computations in the order of their ids, but every callee before its callers, as text and
/// protos list them. O(module).
pub fn definition_order(module: &Module) -> Vec<CompId> {
    let callees = |comp: CompId| -> Vec<CompId> {
        module.computations[comp]
            .instrs
            .iter()
            .flat_map(|&i| module.instrs[i].called_computations())
            .collect()
    };
    let mut seen = vec![false; module.computations.len()];
    let mut order = Vec::with_capacity(module.computations.len());
    for comp in module.computations.keys() {
        if std::mem::replace(&mut seen[comp.index()], true) {
            continue;
        }
        let mut stack = vec![(comp, callees(comp).into_iter())];
        while let Some((comp, rest)) = stack.last_mut() {
            let Some(callee) = rest.next() else {
                order.push(*comp);
                stack.pop();
                continue;
            };
            if !std::mem::replace(&mut seen[callee.index()], true) {
                stack.push((callee, callees(callee).into_iter()));
            }
        }
    }
    order
}

impl<'m> Printer<'m> {
    fn new(module: &'m Module) -> Self {
        Self {
            module,
            out: String::with_capacity(module.strings.text().len() + 1024),
            shapes: vec![None; module.shapes.len()],
        }
    }

    /// Formats into the text. Writing to a string can't fail.
    pub(super) fn fmt(&mut self, args: std::fmt::Arguments<'_>) {
        self.out.write_fmt(args).expect("strings take any text");
    }

    pub(super) fn shape(&mut self, shape: ShapeId) {
        let start = self.out.len();
        if let Some((from, to)) = self.shapes[shape.index()] {
            self.out.extend_from_within(from as usize..to as usize);
            return;
        }
        let module = self.module;
        self.fmt(format_args!("{}", module.shapes.display(shape)));
        if let (Ok(from), Ok(to)) = (u32::try_from(start), u32::try_from(self.out.len())) {
            self.shapes[shape.index()] = Some((from, to));
        }
    }

    fn header(&mut self) {
        let module = self.module;
        self.out.push_str("HloModule ");
        self.out.push_str(module.str(module.name));
        let listed = |name: &str| module.header.iter().any(|&(n, _)| module.str(n) == name);
        // Facts that a pass has added come before the listed ones.
        for (name, set) in [
            ("is_scheduled", module.is_scheduled),
            ("input_output_alias", !module.input_output_alias.is_empty()),
            ("buffer_donor", !module.buffer_donors.is_empty()),
            ("entry_computation_layout", module.entry_layout.is_some()),
            ("replica_count", module.replica_count != 1),
            ("num_partitions", module.num_partitions != 1),
        ] {
            if set && !listed(name) {
                self.header_field(name);
            }
        }
        for &(name, value) in &module.header {
            if value.is_empty() {
                self.header_field(module.str(name));
            } else {
                self.fmt(format_args!(", {}={}", module.str(name), module.str(value)));
            }
        }
        self.out.push_str("\n\n");
        if !module.preamble.is_empty() {
            self.out.push_str(module.str(module.preamble));
            self.out.push_str("\n\n\n");
        }
    }

    /// A header attribute that is a field of the module.
    fn header_field(&mut self, name: &str) {
        let module = self.module;
        self.fmt(format_args!(", {name}="));
        match name {
            "is_scheduled" => self.fmt(format_args!("{}", module.is_scheduled)),
            "replica_count" => self.fmt(format_args!("{}", module.replica_count)),
            "num_partitions" => self.fmt(format_args!("{}", module.num_partitions)),
            "input_output_alias" => {
                self.out.push('{');
                for (i, alias) in module.input_output_alias.iter().enumerate() {
                    let kind = match alias.kind {
                        AliasKind::May => "may-alias",
                        AliasKind::Must => "must-alias",
                    };
                    self.fmt(format_args!(
                        "{} {}: ({}, {}, {kind})",
                        if i == 0 { "" } else { "," },
                        DisplayIndex(&alias.output_index),
                        alias.parameter,
                        DisplayIndex(&alias.parameter_index),
                    ));
                }
                self.out.push_str(" }");
            }
            "buffer_donor" => {
                self.out.push('{');
                for (i, donor) in module.buffer_donors.iter().enumerate() {
                    self.fmt(format_args!(
                        "{} ({}, {})",
                        if i == 0 { "" } else { "," },
                        donor.parameter,
                        DisplayIndex(&donor.parameter_index),
                    ));
                }
                self.out.push_str(" }");
            }
            _ => self.entry_layout(),
        }
    }

    fn entry_layout(&mut self) {
        let Some(layout) = &self.module.entry_layout else {
            return self.out.push_str("{}");
        };
        self.out.push_str("{(");
        for (i, &shape) in layout.parameters.iter().enumerate() {
            self.separate(i);
            self.shape(shape);
        }
        self.out.push_str(")->");
        self.shape(layout.result);
        self.out.push('}');
    }

    /// What comes before item `i` of a long list: XLA counts every fifth.
    pub(super) fn separate(&mut self, i: usize) {
        if i > 0 {
            self.out.push_str(", ");
            if i.is_multiple_of(5) {
                self.fmt(format_args!("/*index={i}*/"));
            }
        }
    }

    fn computation(&mut self, id: CompId) {
        let module = self.module;
        let comp = &module.computations[id];
        if id == module.entry {
            self.out.push_str("ENTRY ");
        }
        self.out.push('%');
        self.out.push_str(module.str(comp.name));
        if comp.has_signature {
            self.out.push_str(" (");
            for (i, &param) in comp.params.iter().enumerate() {
                if i > 0 {
                    self.out.push_str(", ");
                }
                self.out.push_str(module.name_of(param));
                self.out.push_str(": ");
                self.shape_without_layout(module.instrs[param].shape);
            }
            self.out.push_str(") -> ");
            self.shape_without_layout(module.instrs[comp.root].shape);
        }
        self.out.push_str(" {\n");
        for &instr in &comp.instrs {
            self.out.push_str("  ");
            if instr == comp.root {
                self.out.push_str("ROOT ");
            }
            self.instruction(instr);
            self.out.push('\n');
        }
        self.out.push('}');
        if let Some(thread) = comp.execution_thread {
            self.fmt(format_args!(", execution_thread={}", module.str(thread)));
        }
        self.out.push_str("\n\n");
    }

    fn shape_without_layout(&mut self, shape: ShapeId) {
        let module = self.module;
        self.fmt(format_args!(
            "{}",
            module.shapes.display_without_layout(shape)
        ));
    }

    fn instruction(&mut self, id: InstrId) {
        let module = self.module;
        let instr = &module.instrs[id];
        self.out.push('%');
        self.out.push_str(module.str(instr.name));
        self.out.push_str(" = ");
        self.shape(instr.shape);
        self.out.push(' ');
        self.out.push_str(instr.opcode.name());
        self.out.push('(');
        match instr.payload {
            Payload::None => {
                for (i, &operand) in instr.operands.iter().enumerate() {
                    self.separate(i);
                    self.out.push('%');
                    self.out.push_str(module.name_of(operand));
                }
            }
            Payload::Parameter(n) => self.fmt(format_args!("{n}")),
            Payload::Literal(text) => self.out.push_str(module.str(text)),
        }
        self.out.push(')');
        for attr in &instr.attrs {
            self.out.push_str(", ");
            self.out.push_str(attr.name.name());
            self.out.push('=');
            self.attr_value(&attr.value);
        }
    }
}
