//! Operations in which devices exchange data.

use slabplan_ir::Opcode;
use slabplan_ir::attr::{AttrName, AttrValue};
use slabplan_ir::entity::InstrId;
use slabplan_ir::module::Module;

use crate::exec::ExecError;
use crate::exec::device_groups::{Groups, device_groups};
use crate::exec::fusion::Fusion;
use crate::exec::kernels::{ArrayMut, ArrayRef, KernelError};
use crate::exec::program::{ArrayInfo, Leaf};
use crate::exec::recycle::Refs;

/// A collective, prepared. It works on the dense form of all members' operands, put one after
/// another in the exchange: member 0's operands, member 1's, ...; then one result.
#[derive(Debug)]
pub(crate) struct Collective {
    /// The arrays that each member gives.
    pub(crate) operands: Box<[Leaf]>,
    /// The arrays that each member gets.
    pub(crate) results: Box<[Leaf]>,
    /// Who works together.
    pub(crate) groups: Groups,
    kind: Kind,
    /// Where the dense form of each operand begins, from the start of its member's part.
    operand_at: Box<[usize]>,
    operand_bytes: Box<[usize]>,
    /// Bytes of one member's operands.
    member_bytes: usize,
    /// Bytes of the largest result.
    result_bytes: usize,
    /// For each result, how its dense bytes divide.
    strips: Box<[Strip]>,
}

/// An array as `outer` strips of `bytes`, along the dimension that is split or joined.
#[derive(Clone, Copy, Debug)]
struct Strip {
    outer: usize,
    bytes: usize,
}

#[derive(Debug)]
enum Kind {
    AllReduce(Reducer),
    ReduceScatter(Reducer),
    AllGather,
    /// One array, split and joined along a dimension.
    AllToAllSplit,
    /// One operand for each member.
    AllToAllTuple,
    /// For each member of a group, whose operand it gets.
    Permute(Box<[Option<usize>]>),
    Broadcast,
    /// Rows from everybody to everybody, as many as the operands say.
    RaggedAllToAll(Ragged),
}

/// A `ragged-all-to-all`: operands are input, output, and where each piece starts, how long it is, where it
/// goes in the receiver's output, and how long what is received is.
#[derive(Clone, Copy, Debug)]
struct Ragged {
    /// Bytes of a row of input and output.
    row: usize,
    /// Pieces for each member.
    pieces: usize,
    /// Bytes of an offset or a size.
    width: usize,
}

/// A reduction's computation on scalars.
#[derive(Debug)]
struct Reducer {
    computation: Fusion,
    element: ArrayElement,
}

#[derive(Clone, Copy, Debug)]
struct ArrayElement {
    element_type: slabplan_ir::ElementType,
    bytes: usize,
}

impl Collective {
    /// Prepares `instr`, a collective or the start of an asynchronous one.
    pub(crate) fn prepare(
        module: &Module,
        instr: InstrId,
        (operands, operand_infos): (&[Leaf], &[&ArrayInfo]),
        (results, result_infos): (&[Leaf], &[&ArrayInfo]),
    ) -> Result<Self, ExecError> {
        let groups = device_groups(module, instr)?;
        let error = |what: &str| ExecError::Unsupported {
            instr: module.name_of(instr).to_owned(),
            what: what.to_owned(),
        };
        let ragged = module.instrs[instr].opcode == Opcode::RaggedAllToAll;
        if operands.len() != results.len() && !ragged {
            return Err(error("its in-place form is not supported"));
        }
        let kind = kind(module, instr, operand_infos, &groups)?;
        let along = module.instrs[instr]
            .ints(AttrName::Dimensions)
            .first()
            .map(|&d| d as usize);
        // The strip that one member contributes or receives.
        let strips: Box<[Strip]> = match &kind {
            Kind::AllGather => operand_infos.iter().map(|i| strip(i, along, 1)).collect(),
            Kind::ReduceScatter(_) => result_infos.iter().map(|i| strip(i, along, 1)).collect(),
            Kind::AllToAllSplit => result_infos
                .iter()
                .map(|i| strip(i, along, groups.size()))
                .collect(),
            _ => result_infos.iter().map(|i| strip(i, None, 1)).collect(),
        };
        let n = groups.size();
        let fits = operand_infos.iter().zip(result_infos).all(|(o, r)| {
            let (o, r) = (o.map.dense_bytes(), r.map.dense_bytes());
            match kind {
                Kind::AllGather => r == o * n,
                Kind::ReduceScatter(_) => o == r * n,
                Kind::RaggedAllToAll(_) => true,
                _ => o == r,
            }
        });
        let divides = strips.iter().zip(result_infos).all(|(s, r)| match kind {
            Kind::AllToAllSplit => s.outer * s.bytes * n == r.map.dense_bytes(),
            _ => true,
        });
        if !fits || !divides {
            return Err(error(
                "operand and result shapes do not fit the device groups",
            ));
        }
        if matches!(kind, Kind::AllToAllTuple) && operands.len() != n {
            return Err(error("it needs one operand for each device of a group"));
        }
        let mut member_bytes = 0;
        let mut operand_at = Vec::new();
        for info in operand_infos {
            operand_at.push(member_bytes);
            member_bytes += info.map.dense_bytes();
        }
        Ok(Self {
            operands: operands.into(),
            results: results.into(),
            groups,
            kind,
            operand_at: operand_at.into(),
            operand_bytes: operand_infos.iter().map(|i| i.map.dense_bytes()).collect(),
            member_bytes,
            result_bytes: result_infos
                .iter()
                .map(|i| i.map.dense_bytes())
                .max()
                .unwrap_or(0),
            strips,
        })
    }

    /// Bytes of the exchange it works in.
    pub(crate) fn exchange_bytes(&self) -> usize {
        self.results_at() + self.result_bytes + self.reduced_bytes() + self.scratch_bytes()
    }

    /// The member's output with the pieces that all members send it. What does not fit is left out.
    fn receive_pieces(&self, ragged: &Ragged, inputs: &[u8], member: usize, out: &mut [u8]) {
        out.copy_from_slice(&inputs[self.operand_range(member, 1)]);
        for sender in 0..self.groups.size() {
            let operand = |n: usize| &inputs[self.operand_range(sender, n)];
            let number = |n: usize, at: usize| -> Option<usize> {
                let bytes = &operand(n)[at * ragged.width..][..ragged.width];
                let mut wide = [0; 8];
                wide[..bytes.len()].copy_from_slice(bytes);
                usize::try_from(u64::from_le_bytes(wide))
                    .ok()?
                    .checked_mul(ragged.row)
            };
            for piece in 0..ragged.pieces {
                let at = member * ragged.pieces + piece;
                let piece = number(2, at).zip(number(3, at)).zip(number(4, at));
                let Some(((from, bytes), to)) = piece else {
                    continue;
                };
                let source = from
                    .checked_add(bytes)
                    .and_then(|end| operand(0).get(from..end));
                let target = to.checked_add(bytes).and_then(|end| out.get_mut(to..end));
                if let (Some(source), Some(target)) = (source, target) {
                    target.copy_from_slice(source);
                }
            }
        }
    }

    /// Bytes of the exchange that hold operand `n` of member `member`.
    pub(crate) fn operand_range(&self, member: usize, n: usize) -> std::ops::Range<usize> {
        let start = member * self.member_bytes + self.operand_at[n];
        start..start + self.operand_bytes[n]
    }

    /// Where the result is put in the exchange.
    pub(crate) fn results_at(&self) -> usize {
        self.groups.size() * self.member_bytes
    }

    /// Computes result `n` of member `member` from the operands of all `members` in the exchange.
    pub(crate) fn run(
        &self,
        (member, members): (usize, usize),
        n: usize,
        exchange: &mut [u8],
        refs: &mut Refs,
    ) -> Result<(), KernelError> {
        let (inputs, rest) = exchange.split_at_mut(self.results_at());
        let bytes = match self.kind {
            Kind::AllGather => self.operand_bytes[n] * members,
            Kind::ReduceScatter(_) => self.operand_bytes[n] / members,
            Kind::RaggedAllToAll(_) => self.operand_bytes[1],
            _ => self.operand_bytes[n],
        };
        let (out, rest) = rest.split_at_mut(bytes);
        let of = |m: usize| &inputs[self.operand_range(m, n)];
        let strip = self.strips[n];
        let strips = |at: usize| at * strip.bytes..(at + 1) * strip.bytes;
        match &self.kind {
            Kind::AllReduce(reducer) => {
                self.reduce(reducer, (inputs, members), n, out, rest, refs)?;
            }
            Kind::ReduceScatter(reducer) => {
                let (all, scratch) = rest.split_at_mut(self.operand_bytes[n]);
                self.reduce(reducer, (inputs, members), n, all, scratch, refs)?;
                for o in 0..strip.outer {
                    let from = strips(o * members + member);
                    out[strips(o)].copy_from_slice(&all[from]);
                }
            }
            Kind::AllGather => {
                for o in 0..strip.outer {
                    for m in 0..members {
                        let to = strips(o * members + m);
                        out[to].copy_from_slice(&of(m)[strips(o)]);
                    }
                }
            }
            Kind::AllToAllSplit => {
                for o in 0..strip.outer {
                    for m in 0..members {
                        let from = strips(o * members + member);
                        let to = strips(o * members + m);
                        out[to].copy_from_slice(&of(m)[from]);
                    }
                }
            }
            Kind::AllToAllTuple => {
                out.copy_from_slice(&inputs[self.operand_range(n, member)]);
            }
            Kind::Permute(source) => match source[member] {
                Some(m) => out.copy_from_slice(of(m)),
                None => out.fill(0),
            },
            Kind::Broadcast => out.copy_from_slice(of(0)),
            Kind::RaggedAllToAll(ragged) => self.receive_pieces(ragged, inputs, member, out),
        }
        Ok(())
    }

    /// Reduces operand `n` over the members, in their order.
    fn reduce(
        &self,
        reducer: &Reducer,
        (inputs, members): (&[u8], usize),
        n: usize,
        out: &mut [u8],
        rest: &mut [u8],
        refs: &mut Refs,
    ) -> Result<(), KernelError> {
        out.copy_from_slice(&inputs[self.operand_range(0, n)]);
        let width = reducer.element.bytes;
        let (value, scratch) = rest.split_at_mut(width);
        let scratch = &mut scratch[..reducer.computation.scratch_bytes()];
        let element_type = reducer.element.element_type;
        for m in 1..members {
            let other = &inputs[self.operand_range(m, n)];
            for (a, b) in out.chunks_exact_mut(width).zip(other.chunks_exact(width)) {
                let result = ArrayMut {
                    element_type,
                    dims: &[],
                    data: &mut *value,
                };
                let operands = [scalar(element_type, a), scalar(element_type, b)];
                let computation = &reducer.computation;
                computation.run(&operands, &mut [result], scratch, refs)?;
                a.copy_from_slice(value);
            }
        }
        Ok(())
    }

    /// Room for a whole operand, reduced but not yet scattered.
    fn reduced_bytes(&self) -> usize {
        match self.kind {
            Kind::ReduceScatter(_) => self.operand_bytes.iter().copied().max().unwrap_or(0),
            _ => 0,
        }
    }

    fn scratch_bytes(&self) -> usize {
        match &self.kind {
            Kind::AllReduce(r) | Kind::ReduceScatter(r) => {
                r.element.bytes + r.computation.scratch_bytes()
            }
            _ => 0,
        }
    }
}

/// What the operands of a `ragged-all-to-all` must satisfy.
fn ragged(
    module: &Module,
    instr: InstrId,
    operands: &[&ArrayInfo],
    groups: &Groups,
) -> Result<Ragged, ExecError> {
    let error = |what: &str| ExecError::Unsupported {
        instr: module.name_of(instr).to_owned(),
        what: what.to_owned(),
    };
    let &[input, output, starts, sizes, places, received] = operands else {
        return Err(error("it does not have six operands"));
    };
    let rows_agree = !input.dims.is_empty()
        && input.dims.get(1..) == output.dims.get(1..)
        && input.element_type == output.element_type;
    let lists = [starts, sizes, places, received];
    let lists_agree = lists.iter().all(|l| {
        *l.dims == *starts.dims && l.element_type == starts.element_type && l.dims.len() == 1
    });
    let pieces = starts.dims.first().map_or(0, |&n| n as usize);
    if !rows_agree || !lists_agree || !pieces.is_multiple_of(groups.size().max(1)) {
        return Err(error("its operands do not fit each other or the groups"));
    }
    let rows: u64 = input.dims[1..].iter().product();
    Ok(Ragged {
        row: rows as usize * input.element_type.byte_width() as usize,
        pieces: pieces / groups.size().max(1),
        width: starts.element_type.byte_width() as usize,
    })
}

fn scalar(element_type: slabplan_ir::ElementType, data: &[u8]) -> ArrayRef<'_> {
    ArrayRef {
        element_type,
        dims: &[],
        data,
    }
}

fn kind(
    module: &Module,
    instr: InstrId,
    operands: &[&ArrayInfo],
    groups: &Groups,
) -> Result<Kind, ExecError> {
    use Opcode as O;
    let i = &module.instrs[instr];
    Ok(match i.opcode {
        O::AllReduce | O::AllReduceStart => Kind::AllReduce(reducer(module, instr, operands)?),
        O::ReduceScatter => Kind::ReduceScatter(reducer(module, instr, operands)?),
        O::AllGather | O::AllGatherStart => Kind::AllGather,
        O::AllToAll if i.ints(AttrName::Dimensions).is_empty() => Kind::AllToAllTuple,
        O::AllToAll => Kind::AllToAllSplit,
        O::CollectiveBroadcast => Kind::Broadcast,
        O::RaggedAllToAll => Kind::RaggedAllToAll(ragged(module, instr, operands, groups)?),
        _ => {
            let mut source = vec![None; groups.size()];
            if let Some(AttrValue::Pairs(pairs)) = i.attr(AttrName::SourceTargetPairs) {
                for &(from, to) in pairs {
                    let valid = |n: i64| usize::try_from(n).is_ok_and(|n| n < source.len());
                    if !valid(from) || !valid(to) {
                        return Err(ExecError::Unsupported {
                            instr: module.name_of(instr).to_owned(),
                            what: format!("there is no device {}", from.max(to)),
                        });
                    }
                    if source[to as usize].replace(from as usize).is_some() {
                        return Err(ExecError::Unsupported {
                            instr: module.name_of(instr).to_owned(),
                            what: format!("two devices send to device {to}"),
                        });
                    }
                }
            }
            Kind::Permute(source.into())
        }
    })
}

fn reducer(module: &Module, instr: InstrId, operands: &[&ArrayInfo]) -> Result<Reducer, ExecError> {
    let error = |what: &str| ExecError::Unsupported {
        instr: module.name_of(instr).to_owned(),
        what: what.to_owned(),
    };
    let comp = module.instrs[instr]
        .comp(AttrName::ToApply)
        .ok_or_else(|| error("it has no reduction"))?;
    let root = module.instrs[module.computations[comp].root].shape;
    let scalar = module.shapes.array(root).filter(|a| a.rank() == 0);
    let element_type = scalar
        .filter(|_| module.computations[comp].params.len() == 2)
        .ok_or_else(|| error("its reduction is not one of two scalars"))?
        .element_type;
    if operands.iter().any(|o| o.element_type != element_type) {
        return Err(error(
            "its reduction has another element type than its operands",
        ));
    }
    Ok(Reducer {
        computation: Fusion::of_computation(module, comp)?,
        element: ArrayElement {
            element_type,
            bytes: element_type.byte_width() as usize,
        },
    })
}

/// The strips of `info` along dimension `along`, each divided into `parts`.
fn strip(info: &ArrayInfo, along: Option<usize>, parts: usize) -> Strip {
    let outer: u64 = info.dims[..along.unwrap_or(0).min(info.dims.len())]
        .iter()
        .product();
    let outer = outer as usize;
    let bytes = info.map.dense_bytes();
    Strip {
        outer,
        bytes: bytes / outer.max(1) / parts.max(1),
    }
}
