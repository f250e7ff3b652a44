//! A module and a plan, flattened into steps with every place resolved.

use std::collections::BTreeMap;

use slabplan_ir::{ElementType, InstrId};

use crate::exec::collective::Collective;
use crate::exec::fusion::Fusion;
use crate::exec::kernels::Kernel;
use crate::exec::mail::{Slots, Transfer};
use crate::exec::tiled::TiledMap;

/// What to do next. Addresses count steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Runs an operation: index into [`Program::ops`].
    Op(u32),
    /// Moves values: index into [`Program::moves`].
    Move(u32),
    /// Meets other devices: index into [`Program::collectives`].
    Collective(u32),
    /// Sends to another device or receives from one: index into [`Program::transfers`].
    Transfer(u32),
    /// Writes a device number.
    DeviceId(u32),
    /// Fills bytes whose live range has ended: index into [`Program::ended`].
    Poison(u32),
    /// Reads a predicate into the flag: index into [`Program::leaves`].
    Test(u32),
    /// Continues at the address if the flag is false.
    JumpUnless(u32),
    /// Continues at the address.
    Jump(u32),
    /// Continues at the address that a branch index selects: index into [`Program::switches`].
    Switch(u32),
    /// Runs a computation.
    Call(u32),
    /// Goes back to after the call; at the outermost level the program ends.
    Return,
}

/// The type of an array and where its elements lie in its padded bytes.
#[derive(Clone, Debug)]
pub(crate) struct ArrayInfo {
    pub(crate) element_type: ElementType,
    pub(crate) dims: Box<[u64]>,
    pub(crate) map: TiledMap,
    /// Whether the layout only orders dimensions.
    pub(crate) plain: bool,
}

/// An array in a slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) slab: u32,
    pub(crate) offset: usize,
    /// Index into [`Program::arrays`].
    pub(crate) array: u32,
}

/// Where an operation finds an operand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Access {
    /// Where it lies: in this part of the slabs between the results, from this byte on.
    Slab { part: usize, start: usize },
    /// In dense form, brought to this byte of the operation's scratch from where it lies.
    Staged {
        at: usize,
        part: usize,
        start: usize,
    },
    /// In the memory of a result, which is computed over it.
    Result,
}

/// An operand of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    pub(crate) leaf: Leaf,
    /// Bytes of it that are taken.
    pub(crate) bytes: usize,
    pub(crate) access: Access,
}

/// Where an operation writes a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Where it lies.
    Slab,
    /// To this byte of the operation's scratch, as it lies in the slab, since operands lie there.
    Raw(usize),
    /// To this byte of the operation's scratch in dense form.
    Dense(usize),
}

/// A result of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultLeaf {
    pub(crate) leaf: Leaf,
    /// Bytes of it that are computed.
    pub(crate) bytes: usize,
    pub(crate) way: Way,
}

/// Bytes cut out of a slab to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) slab: u32,
    pub(crate) start: usize,
    pub(crate) len: usize,
    pub(crate) to: CutOut,
}

/// What cut bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutOut {
    /// The result with this number.
    Result(usize),
    /// What the operation works in.
    Scratch,
}

/// What carries out an operation.
#[derive(Debug)]
pub(crate) enum Body {
    /// One HLO operation.
    Kernel(Kernel),
    /// A fusion's computation, or one instruction as if it were fused.
    Fusion(Fusion),
}

impl Body {
    /// Bytes that are taken of an array as it lies; `None` if it must be brought into dense form.
    pub(crate) fn bytes_in_place(&self, info: &ArrayInfo) -> Option<usize> {
        if let Self::Fusion(fusion) = self
            && fusion.is_over_memory()
            && !info.dims.is_empty()
        {
            return Some(info.map.padded_bytes());
        }
        let taken = info.map.is_dense() || (info.plain && self.is_strided());
        taken.then(|| info.map.dense_bytes())
    }

    /// Whether arrays of a plain layout are taken as they lie.
    fn is_strided(&self) -> bool {
        match self {
            Self::Kernel(kernel) => kernel.is_strided(),
            Self::Fusion(_) => true,
        }
    }

    /// Whether operand `n` may be the memory of result `result`.
    pub(crate) fn may_overwrite(&self, n: usize, result: usize) -> bool {
        match self {
            Self::Kernel(kernel) => kernel.may_overwrite(n, result),
            Self::Fusion(fusion) => fusion.may_overwrite(n, result),
        }
    }

    /// Computes result `result` over operand `n` from now on.
    pub(crate) fn overwrite(&mut self, n: usize, result: usize) {
        match self {
            Self::Kernel(kernel) => kernel.overwrite(n, result),
            Self::Fusion(fusion) => fusion.overwrite(n, result),
        }
    }
}

/// An operation that reads operands and writes results.
#[derive(Debug)]
pub(crate) struct Op {
    pub(crate) body: Body,
    /// Arrays of all operands, flattened.
    pub(crate) operands: Box<[Operand]>,
    /// Arrays of the result, flattened.
    pub(crate) results: Box<[ResultLeaf]>,
    /// Results that are written in the slabs, ascending by place. What lies between them are the
    /// parts that operands are read from.
    pub(crate) cuts: Box<[Cut]>,
    /// What the operation works in: operands in dense form, results that can't be written where they
    /// lie, and what `body` needs.
    pub(crate) scratch: ByteRange,
    /// Where results and what `body` needs begin in it.
    pub(crate) results_at: usize,
    pub(crate) body_at: usize,
}

/// A value to move.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub(crate) from: Leaf,
    pub(crate) to: Leaf,
    /// Where it is put in the scratch meanwhile; none if it goes there at once, byte by byte.
    pub(crate) stage: Option<usize>,
    /// Whether both lie alike, so that bytes are moved as they are.
    pub(crate) raw: bool,
}

/// Values that change place at once: all are read before any is written.
#[derive(Debug)]
pub(crate) struct Moves {
    pub(crate) list: Box<[Move]>,
    pub(crate) scratch: ByteRange,
    /// Most threads for one of them.
    pub(crate) threads: usize,
}

/// Where to go for each branch of a conditional.
#[derive(Debug)]
pub(crate) struct Switch {
    /// The branch index (`s32`), or a predicate for which true is branch 0.
    pub(crate) index: Leaf,
    pub(crate) targets: Box<[u32]>,
}

/// A device number that is a value of the program.
#[derive(Debug)]
pub(crate) struct DeviceId {
    pub(crate) to: Leaf,
    /// Whether the replica is asked for, rather than the partition.
    pub(crate) replica: bool,
}

/// Bytes of a slab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByteRange {
    pub(crate) slab: u32,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A constant and its value in dense form.
#[derive(Debug)]
pub(crate) struct ConstantData {
    pub(crate) leaf: Leaf,
    pub(crate) data: Box<[u8]>,
}

/// The slab of one memory space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlabInfo {
    pub(crate) bytes: usize,
    /// Bytes to allocate at least.
    pub(crate) reserve: usize,
    pub(crate) alignment: usize,
}

/// Everything a run needs to know; nothing of the module is looked at again.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) steps: Vec<Step>,
    /// Index into [`names`](Self::names) for every step.
    pub(crate) name_of_step: Vec<u32>,
    pub(crate) names: Vec<Box<str>>,
    /// Where the entry computation begins.
    pub(crate) entry: u32,
    pub(crate) arrays: Vec<ArrayInfo>,
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) ops: Vec<Op>,
    pub(crate) moves: Vec<Moves>,
    pub(crate) collectives: Vec<Collective>,
    pub(crate) transfers: Vec<Transfer>,
    pub(crate) device_ids: Vec<DeviceId>,
    pub(crate) switches: Vec<Switch>,
    pub(crate) ended: Vec<Box<[ByteRange]>>,
    pub(crate) constants: Vec<ConstantData>,
    /// Arrays of the entry parameters, flattened.
    pub(crate) inputs: Vec<Leaf>,
    /// Arrays of the entry's result, flattened.
    pub(crate) outputs: Vec<Leaf>,
    /// The slabs of the plan, and one more for scratch that the plan has no place for.
    pub(crate) slabs: Vec<SlabInfo>,
    /// What each instruction works in, by instruction: the most of any step that belongs to it.
    pub(crate) requests: BTreeMap<InstrId, usize>,
    /// Bytes in which devices exchange arrays.
    pub(crate) exchange: usize,
    /// What lies between one device that sends and another that receives.
    pub(crate) mail: Slots,
    /// Bytes in which padding is poisoned.
    pub(crate) spare: usize,
    /// Largest number of operands, of results and of parts of the slabs of any operation.
    pub(crate) most_refs: usize,
    /// Calls within calls.
    pub(crate) call_depth: usize,
    /// Steps that a run on one device takes, about.
    pub(crate) expected: Option<u64>,
    pub(crate) replicas: usize,
    pub(crate) partitions: usize,
}

impl Program {
    /// The array information of a leaf.
    pub(crate) fn info(&self, leaf: Leaf) -> &ArrayInfo {
        &self.arrays[leaf.array as usize]
    }

    /// The bytes of a leaf, padding included.
    pub(crate) fn bytes_of(&self, leaf: Leaf) -> std::ops::Range<usize> {
        leaf.offset..leaf.offset + self.info(leaf).map.padded_bytes()
    }

    /// The same with its slab.
    pub(crate) fn range_of(&self, leaf: Leaf) -> ByteRange {
        let bytes = self.bytes_of(leaf);
        ByteRange {
            slab: leaf.slab,
            start: bytes.start,
            end: bytes.end,
        }
    }

    /// The name of the instruction that a step belongs to.
    pub(crate) fn name(&self, step: u32) -> &str {
        &self.names[self.name_of_step[step as usize] as usize]
    }

    /// Bytes of scratch that the plan has no place for.
    pub(crate) fn unplanned_scratch(&self) -> usize {
        self.slabs.last().map_or(0, |s| s.bytes)
    }

    /// Steps of a run on all devices, about; `None` where a loop runs nobody knows how often.
    pub(crate) fn expected_steps(&self) -> Option<u64> {
        Some(self.expected?.saturating_mul(self.devices() as u64))
    }

    /// Replicas times partitions.
    pub(crate) fn devices(&self) -> usize {
        self.replicas * self.partitions
    }
}
