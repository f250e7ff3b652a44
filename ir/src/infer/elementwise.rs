//! Operations whose result has the dimensions of their operands.

use super::{
    ElementMatch, InferError, Inference, Inferred, LayoutSource, Op, PlainArray, describe,
    same_dims,
};
use crate::ElementType as E;
use crate::opcode::Opcode;
use crate::shape::ArrayShape;

/// An elementwise operation: element types by operation, dimensions equal.
pub(super) fn infer(op: Op<'_>) -> Inference {
    use Opcode as O;
    match op.instr.opcode {
        O::Select => select(op),
        O::Compare => {
            let a = same_operands(op, 0, 1)?;
            with_type(op, a, E::Pred)
        }
        O::Complex => complex(op),
        O::Real | O::Imag => real_part(op),
        O::Abs if op.array(0)?.element_type.is_complex() => real_part(op),
        O::IsFinite => {
            let a = op.array(0)?;
            require(op, a, a.element_type.is_float(), "floating-point")?;
            with_type(op, a, E::Pred)
        }
        O::ReducePrecision => {
            let a = op.array(0)?;
            require(op, a, a.element_type.is_float(), "floating-point")?;
            op.same_as_operand(0)
        }
        o if op.len() == 1 => {
            let a = op.array(0)?;
            check_unary(op, o, a)?;
            op.same_as_operand(0)
        }
        o => {
            let a = same_operands(op, 0, 1)?;
            check_binary(op, o, a)?;
            widest_of_two(op)
        }
    }
}

/// `clamp(min, x, max)`: bounds are scalars or of the shape of `x`.
pub(super) fn clamp(op: Op<'_>) -> Inference {
    let x = op.array(1)?;
    for i in [0, 2] {
        let bound = op.array(i)?;
        if !same_kind(bound.element_type, x.element_type) {
            return op.fail(format!(
                "operand {i} is {}, but the clamped operand is {}",
                describe(bound),
                describe(x)
            ));
        }
        if bound.rank() != 0 && !same_dims(&bound.dims, &x.dims) {
            return op.fail(format!(
                "operand {i} must be a scalar or have the dimensions of {}, but is {}",
                describe(x),
                describe(bound)
            ));
        }
    }
    op.same_as_operand(1)
}

/// `select(pred, on_true, on_false)`: the predicate is a scalar or of the shape of the others.
fn select(op: Op<'_>) -> Inference {
    let pred = op.array(0)?;
    if pred.element_type != E::Pred {
        return op.fail(format!(
            "operand 0 must be of type pred, but is {}",
            describe(pred)
        ));
    }
    let on_true = same_operands(op, 1, 2)?;
    if pred.rank() != 0 && !same_dims(&pred.dims, &on_true.dims) {
        return op.fail(format!(
            "operand 0 is {}, but the choices are {}",
            describe(pred),
            describe(on_true)
        ));
    }
    op.same_as_operand(1)
}

fn complex(op: Op<'_>) -> Inference {
    let a = same_operands(op, 0, 1)?;
    match a.element_type {
        E::F32 => with_type(op, a, E::C64),
        E::F64 => with_type(op, a, E::C128),
        _ => op.fail(format!("takes f32 or f64, but is given {}", describe(a))),
    }
}

fn real_part(op: Op<'_>) -> Inference {
    let a = op.array(0)?;
    match a.element_type {
        E::C64 => with_type(op, a, E::F32),
        E::C128 => with_type(op, a, E::F64),
        t if t.is_float() => op.same_as_operand(0),
        _ => require(op, a, false, "floating-point or complex").map(|()| None),
    }
}

/// Of two operands that differ in precision only, the result has the wider type.
fn widest_of_two(op: Op<'_>) -> Inference {
    let (a, b) = (op.array(0)?, op.array(1)?);
    op.same_as_operand(usize::from(
        b.element_type.bits() > a.element_type.bits() && a.element_type.is_float(),
    ))
}

/// `a`, which is like operand 0, with other elements.
fn with_type(op: Op<'_>, a: &ArrayShape, element_type: E) -> Inference {
    Ok(Some(Inferred::Array(PlainArray {
        layout: LayoutSource::Same(op.shape(0)),
        ..PlainArray::like(a, element_type)
    })))
}

/// Operands `i` and `j` agree in dimensions, and in type up to precision: HLO has no implicit broadcast.
fn same_operands(op: Op<'_>, i: usize, j: usize) -> Result<&ArrayShape, InferError> {
    let (a, b) = (op.array(i)?, op.array(j)?);
    if !same_dims(&a.dims, &b.dims) {
        return op.fail(format!(
            "operands {i} and {j} must have equal dimensions, but are {} and {}",
            describe(a),
            describe(b)
        ));
    }
    if !same_kind(a.element_type, b.element_type) {
        return op.fail(format!(
            "operands {i} and {j} must have equal element types, but are {} and {}",
            describe(a),
            describe(b)
        ));
    }
    Ok(a)
}

fn same_kind(a: E, b: E) -> bool {
    ElementMatch::AnyPrecision.accepts(a, b)
}

fn require(op: Op<'_>, a: &ArrayShape, holds: bool, what: &str) -> Result<(), InferError> {
    if holds {
        return Ok(());
    }
    op.fail(format!(
        "takes {what} elements, but is given {}",
        describe(a)
    ))
}

fn check_unary(op: Op<'_>, opcode: Opcode, a: &ArrayShape) -> Result<(), InferError> {
    use Opcode as O;
    let t = a.element_type;
    match opcode {
        O::Floor | O::Ceil | O::RoundNearestAfz | O::RoundNearestEven | O::Erf => {
            require(op, a, t.is_float(), "floating-point")
        }
        O::Clz | O::Popcnt => require(op, a, t.is_integer(), "integer"),
        O::Not => require(op, a, t.is_integer() || t == E::Pred, "integer or pred"),
        O::Negate => require(op, a, t != E::Pred, "numeric"),
        O::Abs | O::Sign => require(
            op,
            a,
            t.is_signed_integer() || t.is_float() || t.is_complex(),
            "signed",
        ),
        _ => require(
            op,
            a,
            t.is_float() || t.is_complex(),
            "floating-point or complex",
        ),
    }
}

fn check_binary(op: Op<'_>, opcode: Opcode, a: &ArrayShape) -> Result<(), InferError> {
    use Opcode as O;
    let t = a.element_type;
    match opcode {
        O::And | O::Or | O::Xor => {
            require(op, a, t.is_integer() || t == E::Pred, "integer or pred")
        }
        O::ShiftLeft | O::ShiftRightArithmetic | O::ShiftRightLogical => {
            require(op, a, t.is_integer(), "integer")
        }
        O::Subtract | O::Power | O::Divide | O::Remainder | O::Atan2 => {
            require(op, a, t != E::Pred, "numeric")
        }
        _ => Ok(()),
    }
}
