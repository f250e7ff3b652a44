//! Elementwise operations of any arity, as one value that runs on whole arrays or on registers.

use slabplan_ir::attr::AttrName;
use slabplan_ir::{ArrayShape, ElementType, InstrId, Module, Opcode};

use super::compare::{Direction, clamp, compare, select};
use super::convert::Convert;
use super::fused_loop::Arithmetic;
use super::lanes::{Loop1, Loop2, Loop3, fill};
use super::mixed::converts_on_the_way;
use super::precision::ReducePrecision;
use super::prepare::Prepare;
use super::scalar::width;
use super::stochastic::StochasticConvert;
use super::unary::unary;
use super::{ArrayMut, ArrayRef, KernelError, Run, binary::binary};

/// An elementwise operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Elementwise {
    /// The operand's bytes.
    Copy,
    /// One operand.
    Unary(Loop1),
    /// Two operands, and what a fused loop can join it with others as.
    Binary(Loop2, Option<Arithmetic>),
    /// Three operands.
    Ternary(Loop3),
    /// `convert`.
    Convert(Convert),
    /// `reduce-precision`.
    ReducePrecision(ReducePrecision),
    /// `stochastic-convert`.
    StochasticConvert(StochasticConvert),
    /// An operation on narrow floats.
    Narrow(Narrow),
}

impl Elementwise {
    /// The operation of an instruction, if it is an elementwise one on elements of one type.
    pub(crate) fn of(module: &Module, instr: InstrId) -> Result<Option<Self>, KernelError> {
        let p = Prepare::new(module, instr);
        let elementwise = p.instr.opcode.is_elementwise() || p.instr.opcode == Opcode::Clamp;
        if !elementwise || converts_on_the_way(&p)? {
            return Ok(None);
        }
        Self::new(&p)
    }

    /// The operation of `p`'s instruction, if it is an elementwise one.
    pub(super) fn new(p: &Prepare<'_>) -> Result<Option<Self>, KernelError> {
        let opcode = p.instr.opcode;
        if !(opcode.is_elementwise() || opcode == Opcode::Clamp) {
            return Ok(None);
        }
        let ty = p.operand(0)?.element_type;
        let to = p.result()?.element_type;
        let op = match opcode {
            Opcode::Select => select(width(to)).map(Self::Ternary),
            Opcode::Convert => Convert::new(ty, to).map(Self::Convert),
            Opcode::ReducePrecision => reduce_precision(p, ty)?,
            Opcode::StochasticConvert => StochasticConvert::new(ty, p.operand(1)?.element_type, to)
                .map(Self::StochasticConvert),
            _ if is_narrow(ty) => {
                plain(p, ElementType::F32)?.and_then(|op| Narrow::new(op, ty, to).map(Self::Narrow))
            }
            _ => plain(p, ty)?.map(|op| match op {
                Plain::Two(f) if ty == ElementType::F32 => Self::Binary(f, Arithmetic::of(opcode)),
                op => Self::from(op),
            }),
        };
        let op = op.ok_or_else(|| p.error(format!("not defined on {ty}")))?;
        p.require(
            p.instr.operands.len() == op.arity(),
            "wrong number of operands",
        )?;
        p.require(
            types_fit(p)?,
            "operands and result do not have the types the operation takes",
        )?;
        Ok(Some(op))
    }

    /// How many operands it takes.
    pub(super) fn arity(&self) -> usize {
        match self {
            Self::Copy | Self::Unary(_) | Self::Convert(_) | Self::ReducePrecision(_) => 1,
            Self::Binary(..) | Self::StochasticConvert(_) => 2,
            Self::Ternary(_) => 3,
            Self::Narrow(narrow) => narrow.op.arity(),
        }
    }

    /// Computes every element of `out`; `args` has as many entries as [`arity`](Self::arity) says,
    /// each with as many elements as `out`.
    #[inline]
    pub(super) fn apply(&self, args: &[&[u8]], out: &mut [u8]) {
        match (self, args) {
            (Self::Copy, &[x]) => out.copy_from_slice(x),
            (Self::Unary(f), &[x]) => f(x, out),
            (Self::Binary(f, _), &[x, y]) => f(x, y, out),
            (Self::Ternary(f), &[x, y, z]) => f(x, y, z, out),
            (Self::Convert(c), &[x]) => c.apply(x, out),
            (Self::ReducePrecision(r), &[x]) => r.apply(x, out),
            (Self::StochasticConvert(s), &[x, random]) => s.apply(x, random, out),
            (Self::Narrow(narrow), args) => narrow.apply(args, out),
            _ => unreachable!("arity is checked when a kernel is prepared"),
        }
    }
}

/// Whether operands and result have the element types the operation takes.
fn types_fit(p: &Prepare<'_>) -> Result<bool, KernelError> {
    use ElementType as E;
    use Opcode as O;
    let operands = p.operands()?;
    let ty = operands[0].element_type;
    let to = p.result()?.element_type;
    let same = |rest: &[&ArrayShape], ty| rest.iter().all(|o| o.element_type == ty);
    Ok(match (p.instr.opcode, ty) {
        (O::Convert | O::StochasticConvert, _) => true,
        (O::Select, _) => ty == E::Pred && same(&operands[1..], to),
        (O::Compare | O::IsFinite, _) => to == E::Pred && same(&operands, ty),
        (O::Abs | O::Real | O::Imag, E::C64) => to == E::F32,
        (O::Abs | O::Real | O::Imag, E::C128) => to == E::F64,
        (O::Complex, E::F32) => to == E::C64 && same(&operands, ty),
        (O::Complex, E::F64) => to == E::C128 && same(&operands, ty),
        _ => to == ty && same(&operands, ty),
    })
}

/// An operation that is one loop.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plain {
    One(Loop1),
    Two(Loop2),
    Three(Loop3),
}

impl Plain {
    fn arity(self) -> usize {
        match self {
            Plain::One(_) => 1,
            Plain::Two(_) => 2,
            Plain::Three(_) => 3,
        }
    }
}

impl From<Plain> for Elementwise {
    fn from(op: Plain) -> Self {
        match op {
            Plain::One(f) => Self::Unary(f),
            Plain::Two(f) => Self::Binary(f, None),
            Plain::Three(f) => Self::Ternary(f),
        }
    }
}

/// The loop of `p`'s instruction on elements of type `ty`.
fn plain(p: &Prepare<'_>, ty: ElementType) -> Result<Option<Plain>, KernelError> {
    Ok(match p.instr.opcode {
        Opcode::Compare => {
            let direction = p
                .word(AttrName::Direction)
                .and_then(Direction::from_name)
                .ok_or_else(|| p.error("has no direction".into()))?;
            let total = p.word(AttrName::Type) == Some("TOTALORDER");
            compare(direction, total, ty).map(Plain::Two)
        }
        Opcode::Clamp => clamp(ty).map(Plain::Three),
        opcode => unary(opcode, ty)
            .map(Plain::One)
            .or_else(|| binary(opcode, ty).map(Plain::Two)),
    })
}

/// Whether arithmetic on `ty` is done in `f32`.
pub(super) fn is_narrow(ty: ElementType) -> bool {
    ty.is_float() && ty.bits() < 32
}

/// An operation on floats narrower than `f32`: computed in `f32` and rounded once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Narrow {
    op: Plain,
    /// From the operands' type.
    widen: Convert,
    /// To the result's type, unless that is `pred`.
    round: Option<Convert>,
    /// Bytes of an element of an operand and of the result.
    from: usize,
    to: usize,
}

impl Narrow {
    fn new(op: Plain, from: ElementType, to: ElementType) -> Option<Self> {
        let round = if to == ElementType::Pred {
            None
        } else {
            Some(Convert::new(ElementType::F32, to)?)
        };
        Some(Self {
            op,
            widen: Convert::new(from, ElementType::F32)?,
            round,
            from: width(from),
            to: width(to),
        })
    }

    fn apply(&self, args: &[&[u8]], out: &mut [u8]) {
        let mut wide = [[0u8; CHUNK * 4]; 3];
        let mut result = [0u8; CHUNK * 4];
        for (chunk, out) in out.chunks_mut(CHUNK * self.to).enumerate() {
            let n = out.len() / self.to;
            for (wide, arg) in wide.iter_mut().zip(args) {
                let arg = &arg[chunk * CHUNK * self.from..][..n * self.from];
                self.widen.apply(arg, &mut wide[..n * 4]);
            }
            let [x, y, z] = &wide;
            let (x, y, z) = (&x[..n * 4], &y[..n * 4], &z[..n * 4]);
            let target = match self.round {
                Some(_) => &mut result[..n * 4],
                None => &mut *out,
            };
            match self.op {
                Plain::One(f) => f(x, target),
                Plain::Two(f) => f(x, y, target),
                Plain::Three(f) => f(x, y, z, target),
            }
            if let Some(round) = self.round {
                round.apply(&result[..n * 4], out);
            }
        }
    }
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
