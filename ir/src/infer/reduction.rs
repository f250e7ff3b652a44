//! Operations that apply a computation to elements: reductions, windows, sorts, maps, statistics.

use smallvec::SmallVec;

use super::contraction::window_output;
use super::{
    Dims, ElementMatch, InferError, Inference, Inferred, Op, PlainArray, array, describe,
    dynamic_from, result, same_dims,
};
use crate::ElementType;
use crate::attr::AttrName;
use crate::entity::CompId;
use crate::shape::ArrayShape;

/// Operands: N arrays of equal dimensions, then N initial scalars.
pub(super) fn reduce(op: Op<'_>) -> Inference {
    let n = inputs_with_inits(op)?;
    let a = op.array(0)?;
    let dropped = op.dimension_numbers(AttrName::Dimensions, a.rank())?;
    let kept = (0..a.rank()).filter(|d| !dropped.contains(d));
    let dims: Dims = kept.clone().map(|d| a.dims[d]).collect();
    let dynamic = dynamic_from(a, kept);
    accumulated(op, n, &dims, dynamic)
}

/// Operands: N arrays of equal dimensions, then N initial scalars.
pub(super) fn reduce_window(op: Op<'_>) -> Inference {
    let n = inputs_with_inits(op)?;
    let dims = windows_over(op, op.array(0)?)?;
    accumulated(op, n, &dims, 0)
}

/// Operands: an array, one source value for each window, an initial scalar.
pub(super) fn select_and_scatter(op: Op<'_>) -> Inference {
    let (a, source) = (op.array(0)?, op.array(1)?);
    let expected = windows_over(op, a)?;
    if source.dims != expected {
        return op.fail(format!(
            "has {} for windows of dimensions {expected:?}",
            describe(source)
        ));
    }
    check_params(op, AttrName::Select, 2)?;
    check_params(op, AttrName::Scatter, 2)?;
    op.same_as_operand(0)
}

/// Arrays of equal dimensions in, one array of the computation's result type out.
pub(super) fn map(op: Op<'_>) -> Inference {
    let a = op.array(0)?;
    check_equal_dims(op, op.len())?;
    let comp = check_params(op, AttrName::ToApply, op.len())?;
    match op.cx.shapes.array(op.cx.result(comp)) {
        Some(r) if r.rank() == 0 => result(r.element_type, a.dims.clone(), a.dynamic),
        _ => op.fail("needs a computation that gives a scalar"),
    }
}

/// Operands of equal dimensions, sorted together; the comparator sees two elements of each.
pub(super) fn sort(op: Op<'_>) -> Inference {
    op.dimension(op.array(0)?.rank())?;
    check_equal_dims(op, op.len())?;
    let comp = check_params(op, AttrName::ToApply, 2 * op.len())?;
    let given = op.cx.result(comp);
    let is_pred = op
        .cx
        .shapes
        .array(given)
        .is_some_and(|r| r.rank() == 0 && r.element_type == ElementType::Pred);
    if !is_pred {
        return op.fail(format!(
            "needs a comparator that gives pred[], to_apply gives {}",
            op.text(given)
        ));
    }
    for (i, param) in op.cx.params(comp).enumerate() {
        let element = op.array(i / 2)?.element_type;
        let fits = op.cx.shapes.array(param).is_some_and(|p| {
            p.rank() == 0 && ElementMatch::AnyPrecision.accepts(p.element_type, element)
        });
        if !fits {
            return op.fail(format!(
                "comparator takes {} as parameter {i}, but is given {element}[]",
                op.text(param)
            ));
        }
    }
    if op.len() == 1 {
        op.same_as_operand(0)
    } else {
        Ok(Some(op.tuple_of_operands()))
    }
}

/// The `k` extreme elements of the last dimension and their places.
pub(super) fn topk(op: Op<'_>) -> Inference {
    let a = op.array(0)?;
    let k = op.int(AttrName::K)?;
    let Some(&last) = a.dims.last() else {
        return op.fail("takes an array of rank 1 or more");
    };
    if k < 0 || k as u64 > last {
        return op.fail(format!("takes {k} of a dimension of {last} elements"));
    }
    let mut dims = a.dims.clone();
    *dims.last_mut().expect("rank is 1 or more") = k as u64;
    let values = PlainArray::new(a.element_type, &dims);
    let places = PlainArray::new(ElementType::S32, &dims);
    Ok(Some(Inferred::Tuple(vec![
        Inferred::Array(values),
        Inferred::Array(places),
    ])))
}

/// `(normalised or gradient, per feature, per feature)`.
pub(super) fn batch_norm_with_statistics(op: Op<'_>) -> Inference {
    let a = op.array(0)?;
    let feature = op.int(AttrName::FeatureIndex)?;
    let Some(&count) = usize::try_from(feature).ok().and_then(|f| a.dims.get(f)) else {
        return op.fail(format!("has no feature dimension {feature}"));
    };
    let per_feature = array(op.array(1)?.element_type, &[count]);
    let (Some(mean), Some(variance)) = (per_feature.clone(), per_feature) else {
        return Ok(None);
    };
    Ok(Some(Inferred::Tuple(vec![
        Inferred::Same(op.shape(0)),
        mean,
        variance,
    ])))
}

/// Checks that operands are N arrays and N initial scalars; gives N.
fn inputs_with_inits(op: Op<'_>) -> Result<usize, InferError> {
    if !op.len().is_multiple_of(2) {
        return op.fail(format!(
            "takes N arrays and N initial values, given {} operand(s)",
            op.len()
        ));
    }
    let n = op.len() / 2;
    check_equal_dims(op, n)?;
    for i in 0..n {
        let (a, init) = (op.array(i)?, op.array(n + i)?);
        if init.rank() != 0
            || !ElementMatch::AnyPrecision.accepts(init.element_type, a.element_type)
        {
            return op.fail(format!(
                "needs an initial value (operand {}) that is a scalar of the type of {}, given {}",
                n + i,
                describe(a),
                describe(init)
            ));
        }
    }
    Ok(n)
}

fn check_equal_dims(op: Op<'_>, n: usize) -> Result<(), InferError> {
    let first = op.array(0)?;
    for i in 1..n {
        let a = op.array(i)?;
        if !same_dims(&first.dims, &a.dims) {
            return op.fail(format!(
                "operands 0 and {i} must have equal dimensions, but are {} and {}",
                describe(first),
                describe(a)
            ));
        }
    }
    Ok(())
}

/// N results of the given dimensions, with the types that the reducer gives.
fn accumulated(op: Op<'_>, n: usize, dims: &Dims, dynamic: u64) -> Inference {
    let comp = check_params(op, AttrName::ToApply, 2 * n)?;
    let shapes = op.cx.shapes;
    let given = op.cx.result(comp);
    let roots: SmallVec<[_; 2]> = match shapes.tuple(given) {
        Some(elements) => elements.iter().copied().collect(),
        None => std::iter::once(given).collect(),
    };
    if roots.len() != n {
        return op.fail(format!(
            "of {n} array(s) needs a computation with {n} result(s), to_apply gives {}",
            op.text(given)
        ));
    }
    let mut outputs = Vec::with_capacity(n);
    for (i, &root) in roots.iter().enumerate() {
        let input = op.array(i)?.element_type;
        let Some(r) = shapes
            .array(root)
            .filter(|r| r.rank() == 0 && ElementMatch::AnyPrecision.accepts(r.element_type, input))
        else {
            return op.fail(format!(
                "computation must give a scalar of type {input} for operand {i}, but gives {}",
                op.text(root)
            ));
        };
        outputs.push(PlainArray {
            dynamic,
            ..PlainArray::new(r.element_type, dims)
        });
    }
    let tuple = shapes.tuple(given).is_some();
    Ok(match outputs.pop() {
        Some(one) if n == 1 && !tuple => Some(Inferred::Array(one)),
        last => Some(Inferred::Tuple(
            outputs
                .into_iter()
                .chain(last)
                .map(Inferred::Array)
                .collect(),
        )),
    })
}

/// How many windows fit each dimension.
fn windows_over(op: Op<'_>, a: &ArrayShape) -> Result<Dims, InferError> {
    let window = op.instr.window();
    // A scalar has the empty window, which is written by leaving the attribute out.
    if window.len() != a.rank() {
        return op.fail(format!(
            "of {} needs a window of {} dimension(s), given {}",
            describe(a),
            a.rank(),
            window.len()
        ));
    }
    window
        .iter()
        .zip(&a.dims)
        .map(|(w, &d)| window_output(op, d, w))
        .collect()
}

/// The computation of `name`, which must have `n` parameters.
fn check_params(op: Op<'_>, name: AttrName, n: usize) -> Result<CompId, InferError> {
    let comp = op.comp(name)?;
    let given = op.cx.params(comp).len();
    if given == n {
        return Ok(comp);
    }
    op.fail(format!(
        "needs a computation of {n} parameter(s), {} has {given}",
        name.name()
    ))
}
