//! Operations that run computations, and the plumbing of tuples and asynchronous pairs.

use super::{ElementMatch, InferError, Inference, Inferred, Op, PlainArray, describe, same_shape};
use crate::ElementType;
use crate::attr::AttrName;
use crate::entity::CompId;

pub(super) fn get_tuple_element(op: Op<'_>) -> Inference {
    let index = op.int(AttrName::Index)?;
    match usize::try_from(index) {
        Ok(i) => op.element_of_operand(0, i),
        Err(_) => op.fail(format!("has index {index}")),
    }
}

pub(super) fn call(op: Op<'_>) -> Inference {
    let comp = op.comp(AttrName::ToApply)?;
    check_arguments(op, comp, 0)?;
    Ok(Some(Inferred::Same(op.cx.result(comp))))
}

/// A fused computation may leave trailing operands unused: it then has fewer parameters.
pub(super) fn fusion(op: Op<'_>) -> Inference {
    let comp = op.comp(AttrName::Calls)?;
    let params = op.cx.params(comp);
    if params.len() > op.len() {
        return op.fail(format!(
            "has {} operand(s), but its computation has {} parameter(s)",
            op.len(),
            params.len()
        ));
    }
    for (i, param) in params.enumerate() {
        check_argument(op, i, param, i)?;
    }
    Ok(Some(Inferred::Same(op.cx.result(comp))))
}

/// Condition and body both take the state; the body gives it back.
pub(super) fn while_loop(op: Op<'_>) -> Inference {
    let condition = op.comp(AttrName::Condition)?;
    let body = op.comp(AttrName::Body)?;
    check_arguments(op, condition, 0)?;
    check_arguments(op, body, 0)?;
    let verdict = op.cx.result(condition);
    let is_pred = op
        .cx
        .shapes
        .array(verdict)
        .is_some_and(|a| a.rank() == 0 && a.element_type == ElementType::Pred);
    if !is_pred {
        return op.fail(format!(
            "needs a condition that gives pred[], but it gives {}",
            op.text(verdict)
        ));
    }
    let next = op.cx.result(body);
    if !same_shape(op.cx.shapes, next, op.shape(0), ElementMatch::AnyPrecision) {
        return op.fail(format!(
            "has a state of {}, but its body gives {}",
            op.text(op.shape(0)),
            op.text(next)
        ));
    }
    Ok(Some(Inferred::Same(next)))
}

/// Operand 0 chooses; operand `i + 1` is the argument of branch `i`.
pub(super) fn conditional(op: Op<'_>) -> Inference {
    let branches = op.instr.branches();
    let selector = op.array(0)?;
    let two_way = selector.element_type == ElementType::Pred;
    if selector.rank() != 0 || !(two_way || selector.element_type == ElementType::S32) {
        return op.fail(format!(
            "chooses by pred[] or s32[], but is given {}",
            describe(selector)
        ));
    }
    if branches.is_empty() || (two_way && branches.len() != 2) {
        return op.fail(format!("has {} branch(es)", branches.len()));
    }
    if op.len() != branches.len() + 1 {
        return op.fail(format!(
            "of {} branches needs {} operands, given {}",
            branches.len(),
            branches.len() + 1,
            op.len()
        ));
    }
    let first = op.cx.result(branches[0]);
    for (i, &branch) in branches.iter().enumerate() {
        let given = op.cx.params(branch).len();
        if given != 1 {
            return op.fail(format!(
                "needs branches of one parameter, branch {i} has {given}"
            ));
        }
        check_arguments(op, branch, i + 1)?;
        let result = op.cx.result(branch);
        if !same_shape(op.cx.shapes, result, first, ElementMatch::AnyPrecision) {
            return op.fail(format!(
                "has a branch 0 that gives {} and a branch {i} that gives {}",
                op.text(first),
                op.text(result)
            ));
        }
    }
    Ok(Some(Inferred::Same(first)))
}

/// Element 1 of the start's result; a start that does not bind its output yet has `()` there,
/// and then the text must say.
pub(super) fn async_done(op: Op<'_>) -> Inference {
    let unbound = op
        .cx
        .shapes
        .tuple(op.shape(0))
        .and_then(|t| t.get(1))
        .is_some_and(|&e| op.cx.shapes.tuple(e).is_some_and(<[_]>::is_empty));
    if unbound {
        return Ok(None);
    }
    op.element_of_operand(0, 1)
}

/// `(destination, source, u32[])`.
pub(super) fn copy_start(op: Op<'_>) -> Inference {
    let operand = Inferred::Same(op.shape(0));
    Ok(Some(Inferred::Tuple(vec![
        operand.clone(),
        operand,
        context(),
    ])))
}

/// `(operand, u32[], token[])`.
pub(super) fn send(op: Op<'_>) -> Inference {
    Ok(Some(Inferred::Tuple(vec![
        Inferred::Same(op.shape(0)),
        context(),
        Inferred::Token,
    ])))
}

/// `(data, token[])`.
pub(super) fn recv_done(op: Op<'_>) -> Inference {
    match op.element_of_operand(0, 0)? {
        Some(data) => Ok(Some(Inferred::Tuple(vec![data, Inferred::Token]))),
        None => Ok(None),
    }
}

fn context() -> Inferred {
    Inferred::Array(PlainArray::new(ElementType::U32, &[]))
}

/// Operands from `first` on (for a branch: that one alone) are the arguments of `comp`.
fn check_arguments(op: Op<'_>, comp: CompId, first: usize) -> Result<(), InferError> {
    let params = op.cx.params(comp);
    let given = if first == 0 { op.len() } else { 1 };
    if params.len() != given {
        return op.fail(format!(
            "passes {given} argument(s) to a computation of {} parameter(s)",
            params.len()
        ));
    }
    for (i, param) in params.enumerate() {
        check_argument(op, first + i, param, i)?;
    }
    Ok(())
}

fn check_argument(
    op: Op<'_>,
    operand: usize,
    param: crate::ShapeId,
    number: usize,
) -> Result<(), InferError> {
    let given = op.shape(operand);
    if same_shape(op.cx.shapes, given, param, ElementMatch::AnyPrecision) {
        return Ok(());
    }
    op.fail(format!(
        "passes {} (operand {operand}) to parameter {number}, which is {}",
        op.text(given),
        op.text(param)
    ))
}
