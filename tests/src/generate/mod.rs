//! Modules that are right by construction: whatever bytes choose, a valid module comes out.
//!
//! Every operation takes values that exist, or makes what it needs, so nothing is thrown away.
//! Few array types in a module, and a bias to recent values, make values meet in the same loops,
//! branches and in-place operations. Loops count up to a small constant, so every run ends.

mod asynchronous;
mod contraction;
mod control;
mod elementwise;
mod entry;
mod fusion;
mod movement;
mod scope;
mod source;
mod tuples;
mod types;
mod update;

use std::fmt::Write as _;

use arbitrary::Unstructured;
use slabplan_ir::ElementType;

use scope::{Role, Scope, Value};
use source::{Source, Style};
use types::{Array, Type, literal, scalar_literal};

/// Instructions after which no more are begun; what is open is still finished.
const ENOUGH: usize = 160;
/// Deepest nesting of computations.
const DEEPEST: usize = 3;

/// The text of a module that `bytes` choose. No bytes give the smallest module; more bytes
/// longer ones, up to a few hundred instructions.
pub fn module(bytes: &mut Unstructured<'_>) -> String {
    let mut source = Source::new(bytes);
    let style = Style::new(&mut source);
    let generator = Generator {
        source,
        style,
        finished: String::new(),
        helpers: Vec::new(),
        callees: Vec::new(),
        instructions: 0,
        names: 0,
    };
    generator.entry()
}

/// A computation that `call` may name again.
#[derive(Clone)]
struct Callee {
    name: String,
    parameters: Vec<Type>,
    result: Type,
    /// Instructions it runs, those of what it calls included: each call gets a copy of them all.
    weight: usize,
}

struct Generator<'u, 'b> {
    source: Source<'u, 'b>,
    style: Style,
    /// Text of the computations that are complete.
    finished: String,
    /// Names of the reducers and comparators among them.
    helpers: Vec<String>,
    callees: Vec<Callee>,
    instructions: usize,
    names: usize,
}

/// One kind of operation: adds to the computation, or nothing where no value fits.
type Operation<'u, 'b> = fn(&mut Generator<'u, 'b>, &mut Scope) -> Option<()>;

impl<'u, 'b> Generator<'u, 'b> {
    /// What may stand in a fusion. More entries make an operation more frequent.
    const FUSED: [Operation<'u, 'b>; 22] = [
        Self::unary,
        Self::binary,
        Self::binary,
        Self::compare,
        Self::select,
        Self::convert,
        Self::broadcast,
        Self::transpose,
        Self::bitcast,
        Self::reshape,
        Self::reverse,
        Self::slice,
        Self::pad,
        Self::concatenate,
        Self::iota,
        Self::constant,
        Self::reduce,
        Self::dynamic_slice,
        Self::dynamic_update_slice,
        Self::dynamic_update_slice,
        Self::scatter,
        Self::copy,
    ];

    /// What else may stand where values have bytes.
    const PLANNED: [Operation<'u, 'b>; 32] = [
        Self::while_loop,
        Self::while_loop,
        Self::while_loop,
        Self::conditional,
        Self::conditional,
        Self::conditional,
        Self::call,
        Self::call_again,
        Self::fusion,
        Self::fusion,
        Self::fusion,
        Self::tuple,
        Self::tuple,
        Self::get_tuple_element,
        Self::get_tuple_element,
        Self::opt_barrier,
        Self::add_dependency,
        Self::dynamic_update_slice,
        Self::scatter,
        Self::gather,
        Self::dot,
        Self::sort,
        Self::all_reduce,
        Self::copy,
        Self::async_generic,
        Self::async_generic,
        Self::async_sugared,
        Self::copy_start,
        Self::collective_start,
        Self::progress,
        Self::progress,
        Self::progress,
    ];
}

impl<'u, 'b> Generator<'u, 'b> {
    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}.{}", self.names)
    }

    /// Whether the computation may grow further.
    fn goes_on(&self) -> bool {
        !self.source.is_empty() && self.instructions < ENOUGH
    }

    /// Adds up to `most` operations.
    fn fill(&mut self, s: &mut Scope, most: usize) {
        for _ in 0..most {
            if !self.goes_on() {
                return;
            }
            let planned = s.is_planned() && self.source.chance(3, 5);
            let table: &[Operation<'u, 'b>] = if planned {
                &Self::PLANNED
            } else {
                &Self::FUSED
            };
            let _ = table[self.source.below(table.len())](self, s);
        }
    }

    /// Writes one instruction; its value may be named from here on.
    fn emit(
        &mut self,
        s: &mut Scope,
        ty: Type,
        opcode: &str,
        operands: &[&Value],
        attributes: &str,
    ) -> Value {
        let value = self.emit_unnamed(s, ty, opcode, operands, attributes);
        s.values.push(value.clone());
        value
    }

    /// Writes one instruction whose value later operations do not find by themselves.
    fn emit_unnamed(
        &mut self,
        s: &mut Scope,
        ty: Type,
        opcode: &str,
        operands: &[&Value],
        attributes: &str,
    ) -> Value {
        let operands: Vec<&str> = operands.iter().map(|v| v.name.as_str()).collect();
        self.emit_text(s, ty, opcode, &operands.join(", "), attributes)
    }

    fn emit_text(
        &mut self,
        s: &mut Scope,
        ty: Type,
        opcode: &str,
        operands: &str,
        attributes: &str,
    ) -> Value {
        self.instructions += 1;
        let name = self.name(opcode);
        let mut line = format!("{name} = {ty} {opcode}({operands}){attributes}");
        if s.is_planned()
            && opcode != "parameter"
            && self.source.chance(1, 40)
            && let Some(before) = self.source.one_of(&s.values)
        {
            let _ = write!(line, ", control-predecessors={{{}}}", before.name);
        }
        s.lines.push(line);
        Value { name, ty }
    }

    /// A value whose type passes, more often a recent one.
    fn pick(&mut self, s: &Scope, passes: impl Fn(&Type) -> bool) -> Option<Value> {
        let fitting: Vec<&Value> = s.values.iter().filter(|v| passes(&v.ty)).collect();
        let recent = fitting.len().saturating_sub(4);
        let from = if self.source.chance(1, 2) { 0 } else { recent };
        self.source.one_of(&fitting[from..]).map(|v| (*v).clone())
    }

    fn pick_array(&mut self, s: &Scope, passes: impl Fn(&Array) -> bool) -> Option<(Value, Array)> {
        let value = self.pick(s, |t| t.array().is_some_and(&passes))?;
        let array = value.ty.array()?.clone();
        Some((value, array))
    }

    /// An existing value of this type, or a new one.
    fn value(&mut self, s: &mut Scope, ty: &Type) -> Value {
        if self.source.chance(3, 4)
            && let Some(found) = self.pick(s, |t| t == ty)
        {
            return found;
        }
        self.new_value(s, ty)
    }

    /// A value of this type that a new instruction computes.
    fn new_value(&mut self, s: &mut Scope, ty: &Type) -> Value {
        match ty {
            Type::Array(a) => self.new_array(s, a),
            Type::Tuple(elements) => {
                let elements: Vec<Value> = elements.iter().map(|e| self.value(s, e)).collect();
                let operands: Vec<&Value> = elements.iter().collect();
                self.emit(s, ty.clone(), "tuple", &operands, "")
            }
            Type::Token => self.emit(s, Type::Token, "after-all", &[], ""),
        }
    }

    fn new_array(&mut self, s: &mut Scope, a: &Array) -> Value {
        let ty = Type::Array(a.clone());
        if self.source.chance(3, 4)
            && let Some((x, _)) = self.pick_array(s, |b| b.element == a.element && b.same_dims(a))
        {
            let y = self.pick_array(s, |b| b.element == a.element && b.same_dims(a));
            let (y, _) = y.unwrap_or((x.clone(), a.clone()));
            let opcode = self.binary_opcode(a.element);
            return self.emit(s, ty, opcode, &[&x, &y], "");
        }
        let n = self.source.below(28) as u64;
        if a.dims.iter().product::<u64>() <= 40 && self.source.chance(1, 4) {
            let text = literal(a, n);
            return self.constant_of(s, ty, &text);
        }
        let scalar = self.scalar(s, a.element);
        if a.dims.is_empty() {
            return scalar;
        }
        self.emit(s, ty, "broadcast", &[&scalar], ", dimensions={}")
    }

    /// A scalar of this element type: an existing one, or a constant.
    fn scalar(&mut self, s: &mut Scope, element: ElementType) -> Value {
        if self.source.chance(1, 2)
            && let Some(found) = self.pick(s, |t| t.is_scalar(element))
        {
            return found;
        }
        let n = self.source.below(28) as u64;
        self.scalar_constant(s, element, &scalar_literal(element, n))
    }

    fn scalar_constant(&mut self, s: &mut Scope, element: ElementType, text: &str) -> Value {
        let ty = self.style.scalar(element);
        self.constant_of(s, ty, text)
    }

    fn constant_of(&mut self, s: &mut Scope, ty: Type, text: &str) -> Value {
        self.instructions += 1;
        let name = self.name("constant");
        s.lines.push(format!("{name} = {ty} constant({text})"));
        let value = Value { name, ty };
        s.values.push(value.clone());
        value
    }

    /// A constant of a type the module likes.
    fn constant(&mut self, s: &mut Scope) -> Option<()> {
        let array = self.any_array()?;
        let text = literal(&array, self.source.below(28) as u64);
        self.constant_of(s, Type::Array(array), &text);
        Some(())
    }

    /// A type the module likes.
    fn any_array(&mut self) -> Option<Array> {
        self.source.one_of(&self.style.palette).cloned()
    }

    /// A scalar to index with; results clamp it.
    fn index(&mut self, s: &mut Scope) -> Value {
        if self.source.chance(2, 3)
            && let Some(found) = self.pick(s, |t| t.is_scalar(ElementType::S32))
        {
            return found;
        }
        let n = self.source.below(5);
        self.scalar_constant(s, ElementType::S32, &n.to_string())
    }

    /// The name of a computation of two scalars that runs inside one instruction.
    fn helper(&mut self, opcode: &str, element: ElementType) -> String {
        let name = format!("{opcode}_{}", element.name());
        if !self.helpers.contains(&name) {
            let scalar = self.style.scalar(element);
            let (result, attributes) = match opcode {
                "compare" => (self.style.scalar(ElementType::Pred), ", direction=LT"),
                _ => (scalar.clone(), ""),
            };
            let _ = write!(
                self.finished,
                "{name} {{\n  a = {scalar} parameter(0)\n  b = {scalar} parameter(1)\n  \
                 ROOT r = {result} {opcode}(a, b){attributes}\n}}\n\n"
            );
            self.helpers.push(name.clone());
        }
        name
    }

    /// Completes a computation: whatever is in flight arrives, then its text is kept.
    fn finish(&mut self, s: &mut Scope, name: &str, root: &Value, suffix: &str) {
        self.finish_all(s);
        let text = s.finish(name, &root.name);
        self.finished.push_str(text.trim_end());
        self.finished.push_str(suffix);
        self.finished.push_str("\n\n");
    }
}
