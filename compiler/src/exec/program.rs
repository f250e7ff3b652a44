//! A module and a plan, flattened into steps with every place resolved.

use slabplan_ir::ElementType;

use crate::exec::collective::Collective;
use crate::exec::fusion::Fusion;
use crate::exec::kernels::Kernel;
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
}

/// An array in a slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) slab: u32,
    pub(crate) offset: usize,
    /// Index into [`Program::arrays`].
    pub(crate) array: u32,
}

/// An operand of an operation, or a value to move.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Staged {
    pub(crate) leaf: Leaf,
    /// Where its dense form is put in the arena; `None` where the slab holds the dense form.
    pub(crate) stage: Option<usize>,
}

/// What carries out an operation.
#[derive(Debug)]
pub(crate) enum Body {
    /// One HLO operation.
    Kernel(Kernel),
    /// A fusion's computation.
    Fusion(Fusion),
}

/// An operation that reads operands and writes results.
#[derive(Debug)]
pub(crate) struct Op {
    pub(crate) body: Body,
    /// Arrays of all operands, flattened.
    pub(crate) operands: Box<[Staged]>,
    /// Arrays of the result, flattened; their dense forms follow each other in the arena.
    pub(crate) results: Box<[Leaf]>,
    /// Where the dense forms of the results begin in the arena, after those of the operands.
    pub(crate) results_at: usize,
    /// Bytes after the results that `body` works in.
    pub(crate) scratch: usize,
}

/// Values that change place at once: all are read before any is written.
#[derive(Debug)]
pub(crate) struct Moves(pub(crate) Box<[(Staged, Leaf)]>);

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub(crate) device_ids: Vec<DeviceId>,
    pub(crate) switches: Vec<Switch>,
    pub(crate) ended: Vec<Box<[ByteRange]>>,
    pub(crate) constants: Vec<ConstantData>,
    /// Arrays of the entry parameters, flattened.
    pub(crate) inputs: Vec<Leaf>,
    /// Arrays of the entry's result, flattened.
    pub(crate) outputs: Vec<Leaf>,
    pub(crate) slabs: Vec<SlabInfo>,
    /// Bytes in which values are dense while an operation runs.
    pub(crate) arena: usize,
    /// Largest number of operands, and of results, of any operation.
    pub(crate) most_refs: usize,
    /// Calls within calls.
    pub(crate) call_depth: usize,
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

    /// The name of the instruction that a step belongs to.
    pub(crate) fn name(&self, step: u32) -> &str {
        &self.names[self.name_of_step[step as usize] as usize]
    }

    /// Replicas times partitions.
    pub(crate) fn devices(&self) -> usize {
        self.replicas * self.partitions
    }
}
