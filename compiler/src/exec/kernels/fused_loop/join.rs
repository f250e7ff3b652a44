//! Operations joined two at a time.
//!
//! Each step of a loop goes over a block in the first cache. Two steps of arithmetic, of which the second alone
//! takes the result of the first, become one step of three operands, so that the value between them
//! stays in a register of the machine. Nothing is rounded otherwise: results stay the same bit by bit.

use slabplan_ir::Opcode;
use smallvec::smallvec;

use super::{LoopSpec, Operand, Step};
use crate::exec::kernels::elementwise::Elementwise;
use crate::exec::kernels::lanes::{Loop3, vector3};
use crate::exec::kernels::real::Real;

/// An operation on two `f32` that can be joined with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Maximum,
    Minimum,
}

impl Arithmetic {
    /// That of an instruction on `f32`.
    pub(crate) fn of(opcode: Opcode) -> Option<Self> {
        Some(match opcode {
            Opcode::Add => Self::Add,
            Opcode::Subtract => Self::Subtract,
            Opcode::Multiply => Self::Multiply,
            Opcode::Maximum => Self::Maximum,
            Opcode::Minimum => Self::Minimum,
            _ => return None,
        })
    }
}

/// Joins the steps of a loop where it can. O(steps).
pub(super) fn join(spec: &mut LoopSpec) {
    let mut uses = vec![0u32; spec.steps.len()];
    let args = spec.steps.iter().flat_map(|s| s.args.iter());
    for operand in args.chain([&spec.write.value]) {
        if let Operand::Step(s) = *operand {
            uses[s] += 1;
        }
    }
    let mut is_joined = vec![false; spec.steps.len()];
    for at in 0..spec.steps.len() {
        if let Some((first, step)) = joined(&spec.steps, &uses, at) {
            is_joined[first] = true;
            spec.steps[at] = step;
        }
    }
    drop_steps(spec, &is_joined);
}

/// Step `at` with a step that it alone uses, and which one that is.
fn joined(steps: &[Step], uses: &[u32], at: usize) -> Option<(usize, Step)> {
    let outer = arithmetic(&steps[at])?;
    let args = &steps[at].args;
    (0..2).find_map(|side| {
        let Operand::Step(first) = args[side] else {
            return None;
        };
        let inner = arithmetic(&steps[first]).filter(|_| uses[first] == 1)?;
        let [a, b] = steps[first].args[..] else {
            return None;
        };
        let step = Step {
            op: Elementwise::Ternary(pair(outer, inner, side == 0)),
            args: smallvec![a, b, args[1 - side]],
            width: steps[at].width,
        };
        Some((first, step))
    })
}

fn arithmetic(step: &Step) -> Option<Arithmetic> {
    match step.op {
        Elementwise::Binary(_, arithmetic) => arithmetic,
        _ => None,
    }
}

/// Takes steps out and counts the others anew.
fn drop_steps(spec: &mut LoopSpec, dropped: &[bool]) {
    let mut kept = 0;
    let number: Vec<usize> = dropped
        .iter()
        .map(|&dropped| {
            kept += usize::from(!dropped);
            kept.saturating_sub(1)
        })
        .collect();
    let mut is_dropped = dropped.iter();
    spec.steps.retain(|_| is_dropped.next() == Some(&false));
    let args = spec.steps.iter_mut().flat_map(|s| s.args.iter_mut());
    for operand in args.chain([&mut spec.write.value]) {
        if let Operand::Step(s) = operand {
            *s = number[*s];
        }
    }
}

/// An operation as a type, to be compiled into loops.
trait Operation {
    fn of(x: f32, y: f32) -> f32;
}

macro_rules! operations {
    ($($name:ident: |$x:ident, $y:ident| $value:expr;)*) => {$(
        struct $name;
        impl Operation for $name {
            #[inline(always)]
            fn of($x: f32, $y: f32) -> f32 {
                $value
            }
        }
    )*};
}
operations! {
    Add: |x, y| x + y;
    Subtract: |x, y| x - y;
    Multiply: |x, y| x * y;
    Maximum: |x, y| x.max_nan(y);
    Minimum: |x, y| x.min_nan(y);
}

/// `outer(inner(a, b), c)`, or `outer(c, inner(a, b))` where the inner one is not on the left.
fn pair(outer: Arithmetic, inner: Arithmetic, left: bool) -> Loop3 {
    match outer {
        Arithmetic::Add => with::<Add>(inner, left),
        Arithmetic::Subtract => with::<Subtract>(inner, left),
        Arithmetic::Multiply => with::<Multiply>(inner, left),
        Arithmetic::Maximum => with::<Maximum>(inner, left),
        Arithmetic::Minimum => with::<Minimum>(inner, left),
    }
}

fn with<O: Operation>(inner: Arithmetic, left: bool) -> Loop3 {
    match inner {
        Arithmetic::Add => on_side::<O, Add>(left),
        Arithmetic::Subtract => on_side::<O, Subtract>(left),
        Arithmetic::Multiply => on_side::<O, Multiply>(left),
        Arithmetic::Maximum => on_side::<O, Maximum>(left),
        Arithmetic::Minimum => on_side::<O, Minimum>(left),
    }
}

fn on_side<O: Operation, I: Operation>(left: bool) -> Loop3 {
    if left {
        |a, b, c, out| vector3(a, b, c, out, |a, b, c: f32| O::of(I::of(a, b), c))
    } else {
        |a, b, c, out| vector3(a, b, c, out, |a, b, c: f32| O::of(c, I::of(a, b)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Opcode; 5] = [
        Opcode::Add,
        Opcode::Subtract,
        Opcode::Multiply,
        Opcode::Maximum,
        Opcode::Minimum,
    ];

    fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|x| x.to_le_bytes()).collect()
    }

    /// Every pair on either side, beside its two loops one after the other.
    #[test]
    fn pairs_are_their_operations_one_after_the_other() {
        use crate::exec::kernels::binary::binary;
        use slabplan_ir::ElementType::F32;
        let edges = [
            0.0,
            -0.0,
            1.5,
            -3.25,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            1e38,
        ];
        let mut columns = [Vec::new(), Vec::new(), Vec::new()];
        for (i, j, k) in (0..512).map(|n| (n % 8, n / 8 % 8, n / 64)) {
            for (column, n) in columns.iter_mut().zip([i, j, k]) {
                column.push(edges[n]);
            }
        }
        let [a, b, c] = columns.map(|values| bytes(&values));
        let mut inner_result = vec![0; a.len()];
        let (mut expected, mut found) = (inner_result.clone(), inner_result.clone());
        for outer in ALL {
            for inner in ALL {
                for left in [true, false] {
                    binary(inner, F32).unwrap()(&a, &b, &mut inner_result);
                    let (x, y) = if left {
                        (&inner_result, &c)
                    } else {
                        (&c, &inner_result)
                    };
                    binary(outer, F32).unwrap()(x, y, &mut expected);
                    let arithmetic = |opcode| Arithmetic::of(opcode).unwrap();
                    pair(arithmetic(outer), arithmetic(inner), left)(&a, &b, &c, &mut found);
                    let same = expected.chunks(4).zip(found.chunks(4)).all(|(x, y)| {
                        let [x, y] = [x, y].map(|v| f32::from_le_bytes(v.try_into().unwrap()));
                        x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan())
                    });
                    assert!(same, "{outer:?} of {inner:?}, left: {left}");
                }
            }
        }
    }

    #[test]
    fn a_value_that_two_steps_or_the_result_take_stays() {
        use super::super::{Access, Read, Write};
        use crate::exec::kernels::binary::binary;
        use slabplan_ir::ElementType::F32;
        let step = |opcode, args: [Operand; 2]| Step {
            op: Elementwise::Binary(binary(opcode, F32).unwrap(), Arithmetic::of(opcode)),
            args: smallvec![args[0], args[1]],
            width: 4,
        };
        let access = || Access {
            start: 0,
            steps: smallvec![1],
        };
        let (x, step_at) = (Operand::Read(0), Operand::Step);
        let mut spec = LoopSpec {
            dims: smallvec![8],
            reads: vec![Read {
                input: Some(0),
                width: 4,
                access: access(),
            }],
            // (x - x) is used twice, x * x once, by a sum that is used once.
            steps: vec![
                step(Opcode::Subtract, [x, x]),
                step(Opcode::Multiply, [x, x]),
                step(Opcode::Add, [step_at(0), step_at(1)]),
                step(Opcode::Maximum, [step_at(2), step_at(0)]),
            ],
            write: Write {
                value: step_at(3),
                width: 4,
                access: access(),
            },
        };
        join(&mut spec);
        let args: Vec<&[Operand]> = spec.steps.iter().map(|s| &s.args[..]).collect();
        assert_eq!(
            args,
            [&[x, x][..], &[x, x, step_at(0)], &[step_at(1), step_at(0)]]
        );
        assert_eq!(spec.write.value, step_at(2));
    }
}
