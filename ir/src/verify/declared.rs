//! Results that the text declares: whether the operation can give them.

use crate::ElementType;
use crate::attr::AttrName;
use crate::entity::ShapeId;
use crate::infer::{ElementMatch, same_dims, same_shape};
use crate::instr::Instr;
use crate::module::Module;
use crate::opcode::Opcode;
use crate::padding::{logical_bytes, padded_bytes};
use crate::shape::{ArrayShape, Shape, UNBOUNDED};

/// What is wrong, to be read after the operation's name.
type Check = Result<(), String>;

/// Checks an instruction whose shape [`crate::infer::infer`] leaves to the text.
pub(super) fn check(module: &Module, instr: &Instr) -> Check {
    use Opcode as O;
    let op = Declared { module, instr };
    match instr.opcode {
        O::Convert | O::StochasticConvert => op.keeps_dims(),
        O::BitcastConvert => op.bitcast_convert(),
        O::Bitcast => op.bitcast(),
        O::Reshape | O::DynamicReshape => op.reshape(),
        O::Broadcast => op.broadcast(),
        O::Iota => op.iota(),
        O::Rng => op.result_array().map(|_| ()),
        O::RngBitGenerator => op.rng_bit_generator(),
        O::Infeed => op.infeed(),
        O::AllGather => op.gathers(instr.shape),
        O::AllGatherStart => op.start_of_gather(),
        O::ReduceScatter => op.scatters(),
        O::CollectivePermuteStart => op.start_of_permute(),
        O::AsyncStart => op.async_start(),
        O::AsyncUpdate => op.async_update(),
        O::Recv => op.recv(),
        _ => Ok(()),
    }
}

#[derive(Clone, Copy)]
struct Declared<'a> {
    module: &'a Module,
    instr: &'a Instr,
}

impl<'a> Declared<'a> {
    fn operand(self, i: usize) -> ShapeId {
        self.module.instrs[self.instr.operands[i]].shape
    }

    fn text(self, shape: ShapeId) -> String {
        self.module.shapes.display_without_layout(shape).to_string()
    }

    /// `gives RESULT from OPERAND 0`.
    fn cannot(self) -> Check {
        Err(format!(
            "cannot give {} from {}",
            self.text(self.instr.shape),
            self.text(self.operand(0))
        ))
    }

    fn array(self, shape: ShapeId) -> Result<&'a ArrayShape, String> {
        let found = match self.module.shapes.get(shape) {
            Shape::Buffer(inner) => self.module.shapes.array(*inner),
            Shape::Array(a) => Some(a),
            _ => None,
        };
        found.ok_or_else(|| format!("works on arrays, not on {}", self.text(shape)))
    }

    fn result_array(self) -> Result<&'a ArrayShape, String> {
        self.array(self.instr.shape)
    }

    fn same(self, a: ShapeId, b: ShapeId) -> bool {
        same_shape(&self.module.shapes, a, b, ElementMatch::AnyPrecision)
    }

    fn elements_of(self, shape: ShapeId) -> Result<&'a [ShapeId], String> {
        self.module
            .shapes
            .tuple(shape)
            .ok_or_else(|| format!("gives a tuple, not {}", self.text(shape)))
    }

    fn keeps_dims(self) -> Check {
        let (a, r) = (self.array(self.operand(0))?, self.result_array()?);
        if same_dims(&a.dims, &r.dims) {
            Ok(())
        } else {
            self.cannot()
        }
    }

    /// Types of different widths trade bits with the last dimension.
    fn bitcast_convert(self) -> Check {
        let (a, r) = (self.array(self.operand(0))?, self.result_array()?);
        let (from, to) = (
            u64::from(a.element_type.bits()),
            u64::from(r.element_type.bits()),
        );
        let fits = match from.cmp(&to) {
            std::cmp::Ordering::Equal => same_dims(&a.dims, &r.dims),
            std::cmp::Ordering::Less => {
                split_last(&a.dims, to / from).is_some_and(|outer| same_dims(outer, &r.dims))
            }
            std::cmp::Ordering::Greater => {
                split_last(&r.dims, from / to).is_some_and(|outer| same_dims(outer, &a.dims))
            }
        };
        if fits { Ok(()) } else { self.cannot() }
    }

    /// The same bytes under another description: equal when padded, or equal without padding.
    fn bitcast(self) -> Check {
        let (from, to) = (self.operand(0), self.instr.shape);
        if self.same(from, to) {
            return Ok(());
        }
        let (Ok(a), Ok(r)) = (self.array(from), self.array(to)) else {
            return self.cannot();
        };
        let unbounded = a.dims.contains(&UNBOUNDED) || r.dims.contains(&UNBOUNDED);
        if unbounded || padded_bytes(a) == padded_bytes(r) || logical_bytes(a) == logical_bytes(r) {
            Ok(())
        } else {
            self.cannot()
        }
    }

    fn reshape(self) -> Check {
        let (a, r) = (self.array(self.operand(0))?, self.result_array()?);
        let unbounded = a.dims.contains(&UNBOUNDED) || r.dims.contains(&UNBOUNDED);
        let same_count = unbounded || a.element_count() == r.element_count();
        if same_count && ElementMatch::AnyPrecision.accepts(a.element_type, r.element_type) {
            Ok(())
        } else {
            self.cannot()
        }
    }

    /// Dimension `i` of the operand becomes dimension `dimensions[i]` of the result.
    fn broadcast(self) -> Check {
        let (a, r) = (self.array(self.operand(0))?, self.result_array()?);
        let to = self.instr.ints(AttrName::Dimensions);
        if to.len() != a.rank() {
            return Err(format!(
                "of {} needs {} dimension number(s), given {}",
                self.text(self.operand(0)),
                a.rank(),
                to.len()
            ));
        }
        let fits = to.iter().zip(&a.dims).all(|(&d, &size)| {
            usize::try_from(d)
                .ok()
                .and_then(|d| r.dims.get(d))
                .is_some_and(|&n| n == size || n == UNBOUNDED || size == UNBOUNDED)
        });
        if fits && ElementMatch::AnyPrecision.accepts(a.element_type, r.element_type) {
            Ok(())
        } else {
            Err(format!(
                "along dimensions {to:?} cannot give {} from {}",
                self.text(self.instr.shape),
                self.text(self.operand(0))
            ))
        }
    }

    fn iota(self) -> Check {
        let r = self.result_array()?;
        let d = self.instr.int(AttrName::IotaDimension).unwrap_or(0);
        if r.element_type == ElementType::Pred {
            return Err("counts in numbers, not in pred".to_owned());
        }
        if usize::try_from(d).is_ok_and(|d| d < r.rank()) {
            Ok(())
        } else {
            Err(format!(
                "has no dimension {d} in {}",
                self.text(self.instr.shape)
            ))
        }
    }

    /// Random bits alone, or with the next state in front.
    fn rng_bit_generator(self) -> Check {
        match self.module.shapes.tuple(self.instr.shape) {
            None => self.result_array().map(|_| ()),
            Some(&[state, bits]) if self.same(state, self.operand(0)) => {
                self.array(bits).map(|_| ())
            }
            Some(_) => self.cannot(),
        }
    }

    fn infeed(self) -> Check {
        match self.elements_of(self.instr.shape)? {
            [_, token] if matches!(self.module.shapes.get(*token), Shape::Token) => Ok(()),
            _ => Err(format!(
                "gives data and a token, not {}",
                self.text(self.instr.shape)
            )),
        }
    }

    /// The operands' shapes.
    fn operand_shapes(self) -> Vec<ShapeId> {
        (0..self.instr.operands.len())
            .map(|i| self.operand(i))
            .collect()
    }

    /// The parts of a result that is like `n` operands: itself, or the elements of a tuple.
    fn parts(self, result: ShapeId, n: usize) -> Result<Vec<ShapeId>, String> {
        if n == 1 && self.module.shapes.tuple(result).is_none() {
            return Ok(vec![result]);
        }
        let parts = self.elements_of(result)?;
        if parts.len() == n {
            return Ok(parts.to_vec());
        }
        Err(format!(
            "of {n} operand(s) gives as many results, not {}",
            self.text(result)
        ))
    }

    /// `large[i]` is `small[i]` with the dimension of attribute `dimensions` a multiple.
    fn multiplies(self, small: &[ShapeId], large: &[ShapeId]) -> Check {
        let dim = match *self.instr.ints(AttrName::Dimensions) {
            [d] => usize::try_from(d).unwrap_or(usize::MAX),
            _ => return Err("needs attribute dimensions with exactly one entry".to_owned()),
        };
        for (&s, &l) in small.iter().zip(large) {
            let (a, b) = (self.array(s)?, self.array(l)?);
            let fits = a.rank() == b.rank()
                && dim < a.rank()
                && ElementMatch::AnyPrecision.accepts(a.element_type, b.element_type)
                && (0..a.rank()).all(|d| {
                    let (x, y) = (a.dims[d], b.dims[d]);
                    let multiple = x == 0 || y.is_multiple_of(x);
                    x == UNBOUNDED || y == UNBOUNDED || x == y || (d == dim && multiple)
                });
            if !fits {
                return Err(format!(
                    "along dimension {dim} does not turn {} into {}",
                    self.text(self.operand(0)),
                    self.text(self.instr.shape)
                ));
            }
        }
        Ok(())
    }

    fn gathers(self, result: ShapeId) -> Check {
        let operands = self.operand_shapes();
        let parts = self.parts(result, operands.len())?;
        self.multiplies(&operands, &parts)
    }

    fn scatters(self) -> Check {
        let operands = self.operand_shapes();
        let parts = self.parts(self.instr.shape, operands.len())?;
        self.multiplies(&parts, &operands)
    }

    /// `(operand(s), result(s))`.
    fn start_of_gather(self) -> Check {
        match self.elements_of(self.instr.shape)? {
            &[_, result, ..] => self.gathers(result),
            _ => self.cannot(),
        }
    }

    /// `(operand(s), result(s), contexts...)`; with `slice_sizes` the result is like operand 1.
    fn start_of_permute(self) -> Check {
        let &[_, result, ..] = self.elements_of(self.instr.shape)? else {
            return self.cannot();
        };
        let in_place = self.instr.attr(AttrName::SliceSizes).is_some();
        let operands = if in_place && self.instr.operands.len() == 4 {
            vec![self.operand(1)]
        } else {
            self.operand_shapes()
        };
        let parts = self.parts(result, operands.len())?;
        if operands.iter().zip(&parts).all(|(&a, &b)| self.same(a, b)) {
            Ok(())
        } else {
            self.cannot()
        }
    }

    /// `((operands...), result, contexts...)`. Operands and result may be bound by a later update.
    fn async_start(self) -> Check {
        let shape = self.instr.shape;
        let &[bound, result, ..] = self.elements_of(shape)? else {
            return Err(format!(
                "gives its operands and its result, not {}",
                self.text(shape)
            ));
        };
        let bound = self.elements_of(bound)?;
        let operands = &self.instr.operands;
        let shapes_fit = bound.len() == operands.len()
            && bound
                .iter()
                .enumerate()
                .all(|(i, &b)| self.same(b, self.operand(i)));
        if !shapes_fit {
            return Err(format!(
                "has element 0 of {}, which is not the shapes of its operands",
                self.text(shape)
            ));
        }
        let Some(comp) = self.instr.comp(AttrName::Calls) else {
            return Ok(());
        };
        let comp = &self.module.computations[comp];
        let shape_of = |i| self.module.instrs[i].shape;
        let args_fit = comp.params.len() >= bound.len()
            && comp
                .params
                .iter()
                .zip(bound)
                .all(|(&p, &b)| self.same(shape_of(p), b));
        let root = shape_of(comp.root);
        let late = self.elements_of(result).is_ok_and(<[_]>::is_empty);
        if args_fit && (late || self.same(root, result)) {
            return Ok(());
        }
        Err(format!(
            "of {} does not fit its computation, which gives {}",
            self.text(shape),
            self.text(root)
        ))
    }

    /// The start's tuple, which may have grown by operands and a result.
    fn async_update(self) -> Check {
        let before = self.elements_of(self.operand(0))?;
        let after = self.elements_of(self.instr.shape)?;
        let grows = |a: ShapeId, b: ShapeId| match (
            self.module.shapes.tuple(a),
            self.module.shapes.tuple(b),
        ) {
            (Some(a), Some(b)) => {
                a.len() <= b.len() && a.iter().zip(b).all(|(&x, &y)| self.same(x, y))
            }
            (Some([]), None) => true,
            _ => self.same(a, b),
        };
        let fits =
            before.len() == after.len() && before.iter().zip(after).all(|(&a, &b)| grows(a, b));
        if fits { Ok(()) } else { self.cannot() }
    }

    /// `(data, u32[], token[])`.
    fn recv(self) -> Check {
        match *self.elements_of(self.instr.shape)? {
            [_, context, token]
                if matches!(self.module.shapes.get(token), Shape::Token)
                    && self.module.shapes.array(context).is_some() =>
            {
                Ok(())
            }
            _ => Err(format!(
                "gives (data, u32[], token[]), not {}",
                self.text(self.instr.shape)
            )),
        }
    }
}

/// `dims` without its last entry, if that is `last`.
fn split_last(dims: &[u64], last: u64) -> Option<&[u64]> {
    match dims {
        [outer @ .., n] if *n == last => Some(outer),
        _ => None,
    }
}
