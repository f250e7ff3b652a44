//! `dot` with any batch and contracting dimensions.

use slabplan_ir::attr::AttrName;
use slabplan_ir::{ArrayShape, ElementType};

use super::convert::Convert;
use super::matmul::{Panels, Rows, accumulator_type, match_accumulator, multiply_add};
use super::pack::Pack;
use super::prepare::{Dims, Prepare, dims, row_major_strides};
use super::scalar::width;
use super::walk::{Axes, Walk, volume};
use super::{ArrayMut, ArrayRef, KernelError, Run};

#[derive(Debug)]
struct Dot {
    accumulator: ElementType,
    lhs: Pack,
    rhs: Pack,
    rows: usize,
    panels: Panels,
    panel_bytes: usize,
    /// The product's bytes in the accumulator's type, and what it is converted with.
    product_bytes: usize,
    convert: Option<Convert>,
    /// Bytes of one product in the result.
    result_bytes: usize,
    /// Batch dimensions, with steps in bytes of the left and the right operand.
    lhs_batch: Axes,
    rhs_batch: Axes,
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
            strides: row_major_strides(&sizes),
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

    /// Size and step in elements.
    fn axes<'a>(&'a self, which: &'a Dims) -> impl Iterator<Item = (usize, isize)> + 'a {
        which
            .iter()
            .map(|&d| (self.sizes[d], self.strides[d] as isize))
    }

    fn batch_axes(&self, width: usize) -> Axes {
        let axes = self.batch.iter();
        axes.map(|&d| (self.sizes[d], self.strides[d] * width))
            .collect()
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
    let expected = lhs
        .sizes_of(&lhs.batch)
        .chain(lhs.sizes_of(&lhs.free))
        .chain(rhs.sizes_of(&rhs.free));
    p.require(
        lhs.sizes_of(&lhs.batch).eq(rhs.sizes_of(&rhs.batch))
            && lhs
                .sizes_of(&lhs.contracting)
                .eq(rhs.sizes_of(&rhs.contracting))
            && expected.eq(dims(result)),
        "operands and result do not match",
    )?;
    let ty = result.element_type;
    let accumulator =
        accumulator_type(ty).ok_or_else(|| p.error(format!("not defined on {ty}")))?;
    let left: Vec<_> = lhs
        .axes(&lhs.free)
        .chain(lhs.axes(&lhs.contracting))
        .collect();
    let right: Vec<_> = rhs
        .axes(&rhs.contracting)
        .chain(rhs.axes(&rhs.free))
        .collect();
    let rows = lhs.count(&lhs.free);
    let panels = Panels {
        depth: lhs.count(&lhs.contracting),
        columns: rhs.count(&rhs.free),
    };
    let bytes = |elements: Option<usize>, ty: ElementType| {
        elements
            .and_then(|n| n.checked_mul(width(ty)))
            .ok_or_else(|| p.error("is too large to execute".into()))
    };
    let product = rows.checked_mul(panels.columns);
    let convert = (ty != accumulator)
        .then(|| Convert::new(accumulator, ty))
        .flatten();
    Ok(Box::new(Dot {
        accumulator,
        lhs: Pack::new(p, x.element_type, accumulator, &left)?,
        rhs: Pack::new(p, y.element_type, accumulator, &right)?,
        rows,
        panels,
        panel_bytes: bytes(panels.elements(), accumulator)?,
        product_bytes: bytes(product, accumulator)?,
        convert,
        result_bytes: bytes(product, ty)?,
        lhs_batch: lhs.batch_axes(width(x.element_type)),
        rhs_batch: rhs.batch_axes(width(y.element_type)),
    }))
}

impl Run for Dot {
    fn scratch_bytes(&self) -> usize {
        let product = if self.convert.is_some() {
            self.product_bytes
        } else {
            0
        };
        self.lhs.scratch_bytes() + self.rhs.scratch_bytes() + self.panel_bytes + product
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]) {
        if results[0].data.is_empty() || volume(&self.lhs_batch) == 0 {
            return;
        }
        let (lhs_scratch, scratch) = scratch.split_at_mut(self.lhs.scratch_bytes());
        let (rhs_scratch, scratch) = scratch.split_at_mut(self.rhs.scratch_bytes());
        let (panels, product) = scratch.split_at_mut(self.panel_bytes);
        let (mut lhs_batch, mut rhs_batch) =
            (Walk::new(&self.lhs_batch), Walk::new(&self.rhs_batch));
        for out in results[0].data.chunks_exact_mut(self.result_bytes) {
            let lhs = self
                .lhs
                .apply(operands[0].data, lhs_batch.position(), lhs_scratch);
            let rhs = self
                .rhs
                .apply(operands[1].data, rhs_batch.position(), rhs_scratch);
            match &self.convert {
                None => self.multiply(lhs, rhs, panels, out),
                Some(convert) => {
                    self.multiply(lhs, rhs, panels, product);
                    convert.apply(product, out);
                }
            }
            lhs_batch.advance();
            rhs_batch.advance();
        }
    }
}

impl Dot {
    fn multiply(&self, lhs: &[u8], rhs: &[u8], panels: &mut [u8], out: &mut [u8]) {
        out.fill(0);
        let rows = Rows {
            data: lhs,
            stride: self.panels.depth,
            count: self.rows,
        };
        match_accumulator!(self.accumulator, T => {
            self.panels.pack::<T>(rhs, panels);
            multiply_add::<T>(rows, self.panels.depth, self.panels, panels, 0, out);
        });
    }
}
