//! `dot` with any batch and contracting dimensions, on operands and a result of any plain layout.

use slabplan_ir::attr::AttrName;
use slabplan_ir::{ArrayShape, ElementType};

use super::convert::Convert;
use super::matmul::{
    Matrix, Rows, Size, StridedLines, StridedSink, accumulator_type, is_vector, match_accumulator,
    multiply, multiply_vector, position,
};
use super::prepare::{Dims, Prepare, dims};
use super::scalar::width;
use super::walk::{Axes, merge};
use super::widen::Widen;
use super::{ArrayMut, ArrayRef, KernelError, Run};

/// Products and sums below which one thread does all.
const SEQUENTIAL: usize = 1 << 18;

#[derive(Debug)]
struct Dot {
    accumulator: ElementType,
    /// The operand whose free dimensions are the rows, and the other one.
    left: Side,
    right: Side,
    size: Size,
    /// Rows of all products of the batch, one after another, and the columns, in the result.
    rows: Axes,
    columns: Axes,
    all_rows: usize,
    /// Bytes of the product before it is converted to the result's type, if it is another.
    product: Option<(usize, Convert)>,
    /// Most tasks that run at once, and the scratch of each.
    parts: usize,
    part_bytes: usize,
}

/// One operand.
#[derive(Debug)]
struct Side {
    /// Its number.
    operand: usize,
    matrix: Matrix,
    batch: Axes,
    widen: Widen,
}

/// The dimensions of one operand by their role.
struct Roles {
    sizes: Dims,
    strides: Dims,
    batch: Dims,
    contracting: Dims,
    free: Dims,
}

impl Roles {
    fn new(
        p: &Prepare<'_>,
        shape: &ArrayShape,
        batch: AttrName,
        contracting: AttrName,
    ) -> Result<Self, KernelError> {
        let sizes = dims(shape);
        let batch = p.dimensions(batch, sizes.len())?;
        let contracting = p.dimensions(contracting, sizes.len())?;
        p.require(
            !batch.iter().any(|d| contracting.contains(d)),
            "a dimension is both batch and contracting",
        )?;
        Ok(Self {
            strides: p.strides(shape),
            free: (0..sizes.len())
                .filter(|d| !batch.contains(d) && !contracting.contains(d))
                .collect(),
            sizes,
            batch,
            contracting,
        })
    }

    fn sizes_of<'a>(&'a self, which: &'a Dims) -> impl Iterator<Item = usize> + 'a {
        which.iter().map(|&d| self.sizes[d])
    }

    fn count(&self, which: &Dims) -> usize {
        self.sizes_of(which).product()
    }

    fn axes(&self, which: &Dims) -> Axes {
        merge(which.iter().map(|&d| (self.sizes[d], self.strides[d])))
    }

    fn side(
        &self,
        p: &Prepare<'_>,
        operand: usize,
        accumulator: ElementType,
    ) -> Result<Side, KernelError> {
        Ok(Side {
            operand,
            matrix: Matrix {
                lines: self.axes(&self.free),
                depth: self.axes(&self.contracting),
            },
            batch: self.axes(&self.batch),
            widen: Widen::new(p, p.operand(operand)?, accumulator)?,
        })
    }
}

/// Prepares a `dot`.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    use AttrName as A;
    p.require(
        p.instr.operands.len() == 2,
        "sparse operands are not supported",
    )?;
    let (x, y, result) = (p.operand(0)?, p.operand(1)?, p.result()?);
    let lhs = Roles::new(p, x, A::LhsBatchDims, A::LhsContractingDims)?;
    let rhs = Roles::new(p, y, A::RhsBatchDims, A::RhsContractingDims)?;
    let out = dims(result);
    let expected = lhs
        .sizes_of(&lhs.batch)
        .chain(lhs.sizes_of(&lhs.free))
        .chain(rhs.sizes_of(&rhs.free));
    p.require(
        lhs.sizes_of(&lhs.batch).eq(rhs.sizes_of(&rhs.batch))
            && lhs
                .sizes_of(&lhs.contracting)
                .eq(rhs.sizes_of(&rhs.contracting))
            && expected.eq(out.iter().copied()),
        "operands and result do not match",
    )?;
    let ty = result.element_type;
    let accumulator =
        accumulator_type(ty).ok_or_else(|| p.error(format!("not defined on {ty}")))?;
    // Dimensions of the result: batch, free of the left operand, free of the right.
    let strides = p.strides(result);
    let out_axes = |from: usize, to: usize| out[from..to].iter().zip(&strides[from..to]);
    let (batch, middle) = (lhs.batch.len(), lhs.batch.len() + lhs.free.len());
    let axes = |from, to| out_axes(from, to).map(|(&n, &s)| (n, s));
    let by_lhs = (
        merge(axes(0, batch).chain(axes(batch, middle))),
        merge(axes(middle, out.len())),
    );
    let by_rhs = (
        merge(axes(0, batch).chain(axes(middle, out.len()))),
        merge(axes(batch, middle)),
    );
    // The rows are those of the operand whose dimensions lie further out in the result.
    let swapped = !are_nested(&by_lhs) && are_nested(&by_rhs);
    let (mut left, mut right) = (lhs.side(p, 0, accumulator)?, rhs.side(p, 1, accumulator)?);
    let (mut rows, mut columns) = (lhs.count(&lhs.free), rhs.count(&rhs.free));
    let mut places = by_lhs;
    if swapped {
        std::mem::swap(&mut left, &mut right);
        std::mem::swap(&mut rows, &mut columns);
        places = by_rhs;
    }
    let size = Size {
        rows,
        columns,
        depth: lhs.count(&lhs.contracting),
    };
    let too_large = || p.error("is too large to execute".into());
    let all_rows = lhs
        .count(&lhs.batch)
        .checked_mul(rows)
        .ok_or_else(too_large)?;
    let work = all_rows.saturating_mul(columns).saturating_mul(size.depth);
    let parts = if are_nested(&places) && work >= SEQUENTIAL {
        p.threads
    } else {
        1
    };
    let product_bytes = p
        .element_count(result)?
        .checked_mul(width(accumulator))
        .ok_or_else(too_large)?;
    let convert = (ty != accumulator).then(|| Convert::new(accumulator, ty));
    Ok(Box::new(Dot {
        accumulator,
        left,
        right,
        size,
        all_rows,
        rows: places.0,
        columns: places.1,
        product: convert.flatten().map(|c| (product_bytes, c)),
        parts,
        part_bytes: size
            .scratch_bytes(width(accumulator))
            .filter(|b| b.checked_mul(parts).is_some())
            .ok_or_else(too_large)?,
    }))
}

/// Whether each row lies behind the whole of the one before.
fn are_nested((rows, columns): &(Axes, Axes)) -> bool {
    let all: Axes = rows.iter().chain(columns).copied().collect();
    all.windows(2)
        .all(|w| w[1].1.saturating_mul(w[1].0) <= w[0].1)
}

impl Run for Dot {
    fn is_strided(&self) -> bool {
        true
    }

    fn scratch_bytes(&self) -> usize {
        self.left.widen.scratch_bytes()
            + self.right.widen.scratch_bytes()
            + self.product.map_or(0, |(bytes, _)| bytes)
            + self.parts * self.part_bytes
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]) {
        let out = &mut *results[0].data;
        if out.is_empty() {
            return;
        }
        let (left, scratch) = scratch.split_at_mut(self.left.widen.scratch_bytes());
        let (right, scratch) = scratch.split_at_mut(self.right.widen.scratch_bytes());
        let left = self
            .left
            .widen
            .apply(operands[self.left.operand].data, left);
        let right = self
            .right
            .widen
            .apply(operands[self.right.operand].data, right);
        match &self.product {
            None => self.multiply(left, right, out, scratch),
            Some((bytes, convert)) => {
                let (product, scratch) = scratch.split_at_mut(*bytes);
                self.multiply(left, right, product, scratch);
                convert.apply(product, out);
            }
        }
    }
}

impl Dot {
    fn multiply(&self, left: &[u8], right: &[u8], out: &mut [u8], scratch: &mut [u8]) {
        match_accumulator!(self.accumulator, T => {
            let w = width(self.accumulator);
            let rows = Rows {
                first: 0,
                last: self.all_rows,
                base: 0,
                parts: self.parts,
                part_bytes: self.part_bytes,
            };
            rows.in_parallel(
                out,
                scratch,
                &|row| position(&self.rows, row) * w,
                &|rows, out, scratch| self.rows::<T>(rows, left, right, out, scratch),
            );
        });
    }

    /// Computes some of the rows.
    fn rows<T: super::matmul::Accumulator>(
        &self,
        rows: Rows,
        left: &[u8],
        right: &[u8],
        out: &mut [u8],
        scratch: &mut [u8],
    ) {
        let mut row = rows.first;
        while row < rows.last {
            let (batch, first) = (row / self.size.rows, row % self.size.rows);
            let last = self.size.rows.min(first + rows.last - row);
            let mut sink = StridedSink {
                data: out,
                base: rows.base,
                first_row: row,
                rows: &self.rows,
                columns: &self.columns,
            };
            let of_batch = |side: &'_ Side| position(&side.batch, batch) * T::BYTES;
            let (from_left, from_right) = (of_batch(&self.left), of_batch(&self.right));
            let left = StridedLines {
                matrix: &self.left.matrix,
                data: &left[from_left.min(left.len())..],
            };
            let right = StridedLines {
                matrix: &self.right.matrix,
                data: &right[from_right.min(right.len())..],
            };
            let rows = (first, last);
            if is_vector(self.size, left.matrix, right.matrix) {
                multiply_vector::<T>(&left, &right, self.size.depth, rows, &mut sink);
            } else {
                multiply::<T>(&left, &right, self.size, rows, &mut sink, scratch);
            }
            row += last - first;
        }
    }
}
