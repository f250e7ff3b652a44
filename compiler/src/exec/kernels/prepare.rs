//! What every kernel needs while it is prepared: shapes and attributes, checked.

use slabplan_ir::attr::AttrName;
use slabplan_ir::{ArrayShape, CompId, Instr, InstrId, Module, Shape};
use smallvec::SmallVec;

use super::KernelError;
use super::scalar::width;
use crate::exec::tiled::plain_strides;

/// Most dimensions a kernel handles; index vectors of this length live on the stack.
pub(super) const MAX_RANK: usize = 24;

/// A list of dimension sizes or numbers.
pub(super) type Dims = SmallVec<[usize; 6]>;

/// An instruction being prepared.
#[derive(Clone, Copy)]
pub(super) struct Prepare<'m> {
    /// Its module.
    pub(super) module: &'m Module,
    /// Its id.
    pub(super) id: InstrId,
    /// The instruction.
    pub(super) instr: &'m Instr,
    /// Shapes to take for those of its operands.
    pub(super) operand_shapes: Option<&'m [ArrayShape]>,
    /// Shapes to take for those of its results.
    pub(super) result_shapes: Option<&'m [ArrayShape]>,
    /// Whether arrays lie as their layouts say, where those are plain; else all are row-major.
    pub(super) in_layout: bool,
    /// Most threads that the kernel may use at once.
    pub(super) threads: usize,
}

impl<'m> Prepare<'m> {
    /// Of instruction `id`.
    pub(super) fn new(module: &'m Module, id: InstrId) -> Self {
        Self {
            module,
            id,
            instr: &module.instrs[id],
            operand_shapes: None,
            result_shapes: None,
            in_layout: false,
            threads: 1,
        }
    }

    /// An error about this instruction.
    pub(super) fn error(&self, message: String) -> KernelError {
        KernelError::Instruction {
            name: self.module.name_of(self.id).to_owned(),
            opcode: self.instr.opcode,
            message,
        }
    }

    /// An error unless `condition` holds.
    pub(super) fn require(&self, condition: bool, message: &str) -> Result<(), KernelError> {
        if condition {
            Ok(())
        } else {
            Err(self.error(message.to_owned()))
        }
    }

    /// Shape of operand `i`, an array.
    pub(super) fn operand(&self, i: usize) -> Result<&'m ArrayShape, KernelError> {
        if let Some(shape) = self.operand_shapes.and_then(|shapes| shapes.get(i)) {
            return Ok(shape);
        }
        let &operand = self
            .instr
            .operands
            .get(i)
            .ok_or_else(|| self.error(format!("has no operand {i}")))?;
        let shape = self
            .module
            .shapes
            .array(self.module.instrs[operand].shape)
            .ok_or_else(|| self.error(format!("operand {i} is not an array")))?;
        self.check(shape)?;
        Ok(shape)
    }

    /// Shapes of all operands.
    pub(super) fn operands(&self) -> Result<Vec<&'m ArrayShape>, KernelError> {
        (0..self.instr.operands.len())
            .map(|i| self.operand(i))
            .collect()
    }

    /// Shape of the result, an array.
    pub(super) fn result(&self) -> Result<&'m ArrayShape, KernelError> {
        match self.results()?[..] {
            [shape] => Ok(shape),
            _ => Err(self.error("result is not one array".into())),
        }
    }

    /// Shapes of the result's arrays: one, or the elements of a flat tuple.
    pub(super) fn results(&self) -> Result<Vec<&'m ArrayShape>, KernelError> {
        if let Some(shapes) = self.result_shapes {
            return Ok(shapes.iter().collect());
        }
        let shapes = &self.module.shapes;
        let id = self.instr.shape;
        let arrays = match shapes.get(id) {
            Shape::Array(a) => vec![a],
            Shape::Tuple(elements) => elements
                .iter()
                .map(|&e| shapes.array(e))
                .collect::<Option<_>>()
                .ok_or_else(|| self.error("result nests tuples".into()))?,
            _ => return Err(self.error("result is not an array".into())),
        };
        for a in &arrays {
            self.check(a)?;
        }
        Ok(arrays)
    }

    fn check(&self, shape: &ArrayShape) -> Result<(), KernelError> {
        self.require(
            shape.rank() <= MAX_RANK,
            "an array has more than 24 dimensions",
        )?;
        self.element_count(shape).map(|_| ())
    }

    /// Elements of `shape`.
    pub(super) fn element_count(&self, shape: &ArrayShape) -> Result<usize, KernelError> {
        shape
            .element_count()
            .and_then(|n| n.checked_mul(shape.element_type.byte_width()))
            .filter(|&n| isize::try_from(n).is_ok())
            .map(|n| n as usize / width(shape.element_type))
            .ok_or_else(|| self.error("an array is too large to execute".into()))
    }

    /// Elements between neighbours along each dimension of an array of `shape`.
    ///
    /// For kernels whose [`Run::is_strided`](super::Run::is_strided) says so; others get their
    /// arrays row-major.
    pub(super) fn strides(&self, shape: &ArrayShape) -> Dims {
        let plain = self.in_layout.then(|| plain_strides(shape)).flatten();
        plain.unwrap_or_else(|| row_major_strides(&dims(shape)))
    }

    /// The same in layouts, if `a` and `b` have one in common, and with all arrays row-major if not.
    pub(super) fn in_one_layout(&self, a: &ArrayShape, b: &ArrayShape) -> Self {
        Self {
            in_layout: self.in_layout && self.strides(a) == self.strides(b),
            ..*self
        }
    }

    /// An integer attribute that must be there.
    pub(super) fn int(&self, name: AttrName) -> Result<i64, KernelError> {
        self.instr
            .int(name)
            .ok_or_else(|| self.error(format!("has no {}", name.name())))
    }

    /// An integer attribute that must be there and not be negative.
    pub(super) fn size(&self, name: AttrName) -> Result<usize, KernelError> {
        usize::try_from(self.int(name)?)
            .map_err(|_| self.error(format!("{} is negative", name.name())))
    }

    /// A positive count; 1 where it is absent.
    pub(super) fn count(&self, name: AttrName) -> Result<usize, KernelError> {
        match self.instr.int(name) {
            None => Ok(1),
            Some(n) if n > 0 => Ok(n as usize),
            Some(_) => Err(self.error(format!("{} is not positive", name.name()))),
        }
    }

    /// A list of sizes, empty where it is absent.
    pub(super) fn sizes(&self, name: AttrName) -> Result<Dims, KernelError> {
        self.instr
            .ints(name)
            .iter()
            .map(|&n| usize::try_from(n))
            .collect::<Result<_, _>>()
            .map_err(|_| self.error(format!("{} has a negative entry", name.name())))
    }

    /// A list of different dimension numbers below `rank`, empty where it is absent.
    pub(super) fn dimensions(&self, name: AttrName, rank: usize) -> Result<Dims, KernelError> {
        let dims = self.sizes(name)?;
        let different = (1..dims.len()).all(|i| !dims[..i].contains(&dims[i]));
        if different && dims.iter().all(|&d| d < rank) {
            Ok(dims)
        } else {
            Err(self.error(format!(
                "{} is not a list of different dimensions",
                name.name()
            )))
        }
    }

    /// One dimension number below `rank`.
    pub(super) fn dimension(&self, name: AttrName, rank: usize) -> Result<usize, KernelError> {
        match self.dimensions(name, rank)?[..] {
            [d] => Ok(d),
            _ => Err(self.error(format!("{} is not one dimension", name.name()))),
        }
    }

    /// A word or a number, as text.
    pub(super) fn word(&self, name: AttrName) -> Option<&'m str> {
        self.module.attr_text(self.id, name)
    }

    /// A computation that must be there.
    pub(super) fn computation(&self, name: AttrName) -> Result<CompId, KernelError> {
        self.instr
            .comp(name)
            .ok_or_else(|| self.error(format!("has no {}", name.name())))
    }
}

/// Dimension sizes of `shape`.
pub(super) fn dims(shape: &ArrayShape) -> Dims {
    shape.dims.iter().map(|&d| d as usize).collect()
}

/// Elements between neighbours along each dimension of a row-major array.
pub(super) fn row_major_strides(dims: &[usize]) -> Dims {
    let mut strides = Dims::from_elem(1, dims.len());
    for i in (1..dims.len()).rev() {
        // A dimension of size 0 makes all strides meaningless; the array has no elements then.
        strides[i - 1] = strides[i] * dims[i].max(1);
    }
    strides
}
