//! `dynamic-slice` and `dynamic-update-slice`: a box whose place is known only at run time.

use slabplan_ir::attr::AttrName;
use slabplan_ir::{ArrayShape, Opcode};

use super::index::{Indices, clamp_start};
use super::prepare::{Dims, Prepare, dims};
use super::scalar::width;
use super::strided::StridedCopy;
use super::{ArrayMut, ArrayRef, KernelError, Run};

/// Where the box starts: read from scalar operands, one a dimension, or from one vector.
#[derive(Debug)]
struct Starts {
    /// Number of the first operand that holds an index.
    first: usize,
    readers: Vec<Indices>,
    vector: bool,
    /// Sizes of the box and of the array it lies in.
    window: Dims,
    bounds: Dims,
    /// Bytes between neighbours of the array.
    steps: Dims,
}

impl Starts {
    fn new(
        p: &Prepare<'_>,
        first: usize,
        array: &ArrayShape,
        window: &Dims,
    ) -> Result<Self, KernelError> {
        let bounds = dims(array);
        let w = width(array.element_type);
        p.require(
            window.len() == bounds.len() && window.iter().zip(&bounds).all(|(s, b)| s <= b),
            "the slice is larger than the array",
        )?;
        let given = p.instr.operands.len() - first;
        let vector = given == 1 && p.operand(first)?.dims.as_slice() == [bounds.len() as u64];
        p.require(
            vector || given == bounds.len(),
            "wrong number of start indices",
        )?;
        let mut readers = Vec::new();
        for d in 0..bounds.len() {
            let operand = p.operand(if vector { first } else { first + d })?;
            p.require(
                vector || operand.dims.is_empty(),
                "a start index is not a scalar",
            )?;
            let reader = Indices::new(operand.element_type)
                .ok_or_else(|| p.error("a start index is not an integer".into()))?;
            readers.push(reader);
        }
        Ok(Self {
            first,
            readers,
            vector,
            window: window.clone(),
            steps: p.strides(array).iter().map(|s| s * w).collect(),
            bounds,
        })
    }

    /// Byte position of the box's first element, moved so that the box lies in the array.
    fn position(&self, operands: &[ArrayRef<'_>]) -> usize {
        let mut position = 0;
        for (d, reader) in self.readers.iter().enumerate() {
            let start = if self.vector {
                reader.get(operands[self.first].data, d)
            } else {
                reader.get(operands[self.first + d].data, 0)
            };
            position += clamp_start(start, self.window[d], self.bounds[d]) * self.steps[d];
        }
        position
    }
}

/// `dynamic-slice` copies out of the array, `dynamic-update-slice` into it.
#[derive(Debug)]
struct DynamicSlice {
    starts: Starts,
    copy: StridedCopy,
    update: bool,
    /// Whether the result has the array's elements already.
    in_place: bool,
    strided: bool,
}

/// Prepares a `dynamic-slice` or a `dynamic-update-slice`.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let update = p.instr.opcode == Opcode::DynamicUpdateSlice;
    let (array, result) = (p.operand(0)?, p.result()?);
    // What is updated keeps its layout.
    let p = &if update {
        p.in_one_layout(array, result)
    } else {
        *p
    };
    let part = if update { p.operand(1)? } else { result };
    p.require(
        array.element_type == result.element_type && part.element_type == result.element_type,
        "operands and result differ in element type",
    )?;
    let window = if update {
        p.require(
            array.dims == result.dims,
            "operand and result differ in shape",
        )?;
        dims(part)
    } else {
        p.sizes(AttrName::DynamicSliceSizes)?
    };
    p.require(
        dims(part) == window,
        "dynamic_slice_sizes differ from the result",
    )?;
    let starts = Starts::new(p, if update { 2 } else { 1 }, array, &window)?;
    let whole = p.strides(array);
    let small = p.strides(part);
    let axes = window
        .iter()
        .zip(whole)
        .zip(small)
        .map(|((&n, whole), small)| {
            let (whole, small) = (whole as isize, small as isize);
            if update {
                (n, small, whole)
            } else {
                (n, whole, small)
            }
        });
    Ok(Box::new(DynamicSlice {
        copy: StridedCopy::new(width(array.element_type), axes),
        starts,
        update,
        in_place: false,
        strided: p.in_layout,
    }))
}

impl Run for DynamicSlice {
    fn is_strided(&self) -> bool {
        self.strided
    }

    fn may_overwrite(&self, operand: usize, result: usize) -> bool {
        self.update && (operand, result) == (0, 0)
    }

    fn overwrite(&mut self, _: usize, _: usize) {
        self.in_place = true;
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], _: &mut [u8]) {
        let position = self.starts.position(operands);
        let out = &mut *results[0].data;
        if self.update {
            if !self.in_place {
                out.copy_from_slice(operands[0].data);
            }
            self.copy.run(operands[1].data, 0, out, position);
        } else {
            self.copy.run(operands[0].data, position, out, 0);
        }
    }
}
