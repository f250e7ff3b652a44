//! Elementwise operations of any arity, as one value that runs on whole arrays or on registers.

use slabplan_ir::attr::AttrName;
use slabplan_ir::{ElementType, Opcode};

use super::compare::{Direction, clamp, compare, select};
use super::convert::Convert;
use super::lanes::{Loop1, Loop2, Loop3, fill};
use super::precision::ReducePrecision;
use super::prepare::Prepare;
use super::scalar::width;
use super::stochastic::StochasticConvert;
use super::unary::unary;
use super::{ArrayMut, ArrayRef, KernelError, Run, binary::binary};

/// An elementwise operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Elementwise {
    /// The operand's bytes.
    Copy,
    /// One operand.
    Unary(Loop1),
    /// Two operands.
    Binary(Loop2),
    /// Three operands.
    Ternary(Loop3),
    /// `convert`.
    Convert(Convert),
    /// `reduce-precision`.
    ReducePrecision(ReducePrecision),
    /// `stochastic-convert`.
    StochasticConvert(StochasticConvert),
}

impl Elementwise {
    /// The operation of `p`'s instruction, if it is an elementwise one.
    pub(super) fn new(p: &Prepare<'_>) -> Result<Option<Self>, KernelError> {
        let opcode = p.instr.opcode;
        if !(opcode.is_elementwise() || opcode == Opcode::Clamp) {
            return Ok(None);
        }
        let ty = p.operand(0)?.element_type;
        let op = match opcode {
            Opcode::Compare => compare_op(p, ty)?,
            Opcode::Select => select(width(p.result()?.element_type)).map(Self::Ternary),
            Opcode::Clamp => clamp(p.result()?.element_type).map(Self::Ternary),
            Opcode::Convert => Convert::new(ty, p.result()?.element_type).map(Self::Convert),
            Opcode::ReducePrecision => reduce_precision(p, ty)?,
            Opcode::StochasticConvert => {
                StochasticConvert::new(ty, p.operand(1)?.element_type, p.result()?.element_type)
                    .map(Self::StochasticConvert)
            }
            _ => unary(opcode, ty)
                .map(Self::Unary)
                .or_else(|| binary(opcode, ty).map(Self::Binary)),
        };
        let op = op.ok_or_else(|| p.error(format!("not defined on {ty}")))?;
        p.require(
            p.instr.operands.len() == op.arity(),
            "wrong number of operands",
        )?;
        Ok(Some(op))
    }

    /// How many operands it takes.
    pub(super) fn arity(&self) -> usize {
        match self {
            Self::Copy | Self::Unary(_) | Self::Convert(_) | Self::ReducePrecision(_) => 1,
            Self::Binary(_) | Self::StochasticConvert(_) => 2,
            Self::Ternary(_) => 3,
        }
    }

    /// Computes every element of `out`; `args` has as many entries as [`arity`](Self::arity) says,
    /// each with as many elements as `out`.
    #[inline]
    pub(super) fn apply(&self, args: &[&[u8]], out: &mut [u8]) {
        match (self, args) {
            (Self::Copy, &[x]) => out.copy_from_slice(x),
            (Self::Unary(f), &[x]) => f(x, out),
            (Self::Binary(f), &[x, y]) => f(x, y, out),
            (Self::Ternary(f), &[x, y, z]) => f(x, y, z, out),
            (Self::Convert(c), &[x]) => c.apply(x, out),
            (Self::ReducePrecision(r), &[x]) => r.apply(x, out),
            (Self::StochasticConvert(s), &[x, random]) => s.apply(x, random, out),
            _ => unreachable!("arity is checked when a kernel is prepared"),
        }
    }
}

fn compare_op(p: &Prepare<'_>, ty: ElementType) -> Result<Option<Elementwise>, KernelError> {
    let direction = p
        .word(AttrName::Direction)
        .and_then(Direction::from_name)
        .ok_or_else(|| p.error("has no direction".into()))?;
    let total = p.word(AttrName::Type) == Some("TOTALORDER");
    Ok(compare(direction, total, ty).map(Elementwise::Binary))
}

fn reduce_precision(p: &Prepare<'_>, ty: ElementType) -> Result<Option<Elementwise>, KernelError> {
    let bits = |name, least| {
        u32::try_from(p.int(name)?)
            .ok()
            .filter(|&b| least <= b && b <= 64)
            .ok_or_else(|| p.error(format!("{} is out of range", name.name())))
    };
    let exponent = bits(AttrName::ExponentBits, 1)?;
    let mantissa = bits(AttrName::MantissaBits, 0)?;
    Ok(ReducePrecision::new(ty, exponent, mantissa).map(Elementwise::ReducePrecision))
}

/// An elementwise operation on whole arrays; an operand of one element stands for as many as needed.
#[derive(Debug)]
struct ElementwiseKernel {
    op: Elementwise,
    /// Bytes of an element of the result.
    width: usize,
    /// For each operand, its element width, and whether it is a scalar to be repeated.
    operands: Vec<(usize, bool)>,
}

/// Prepares an elementwise instruction; `None` if it is not one.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Option<Box<dyn Run>>, KernelError> {
    let Some(op) = Elementwise::new(p)? else {
        return Ok(None);
    };
    let result = p.result()?;
    let count = p.element_count(result)?;
    let mut operands = Vec::new();
    for i in 0..op.arity() {
        let operand = p.operand(i)?;
        let repeated = operand.dims != result.dims;
        p.require(
            !repeated || operand.dims.is_empty(),
            "operands and result differ in shape",
        )?;
        operands.push((width(operand.element_type), repeated && count != 1));
    }
    Ok(Some(Box::new(ElementwiseKernel {
        op,
        width: width(result.element_type),
        operands,
    })))
}

/// Elements computed at a time where an operand is repeated.
const CHUNK: usize = 64;

impl Run for ElementwiseKernel {
    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], _: &mut [u8]) {
        let out = &mut *results[0].data;
        let mut args: [&[u8]; 3] = [&[]; 3];
        let n = self.operands.len();
        if !self.operands.iter().any(|&(_, repeated)| repeated) {
            for (arg, operand) in args.iter_mut().zip(operands) {
                *arg = operand.data;
            }
            self.op.apply(&args[..n], out);
            return;
        }
        let mut repeats = [[0u8; CHUNK * 16]; 3];
        for (repeat, (operand, &(width, repeated))) in
            repeats.iter_mut().zip(operands.iter().zip(&self.operands))
        {
            if repeated {
                fill(operand.data, &mut repeat[..CHUNK * width]);
            }
        }
        for (chunk, out) in out.chunks_mut(CHUNK * self.width).enumerate() {
            let count = out.len() / self.width;
            for (i, arg) in args[..n].iter_mut().enumerate() {
                let (width, repeated) = self.operands[i];
                *arg = if repeated {
                    &repeats[i][..count * width]
                } else {
                    &operands[i].data[chunk * CHUNK * width..][..count * width]
                };
            }
            self.op.apply(&args[..n], out);
        }
    }
}
