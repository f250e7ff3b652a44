//! Products and linear algebra: `dot`, `convolution`, `fft`, `cholesky`, `triangular-solve`.

use smallvec::SmallVec;

use super::{
    Dims, ElementMatch, InferError, Inference, Inferred, LayoutSource, Op, PlainArray, describe,
    result, same_dim,
};
use crate::ElementType;
use crate::attr::{AttrName, WindowDim};
use crate::shape::{ArrayShape, UNBOUNDED};

/// Batch dimensions, then the left free ones, then the right free ones.
///
/// `scaled-dot` has the scales of both sides as operands 2 and 3, which do not shape the result.
pub(super) fn dot(op: Op<'_>) -> Inference {
    let (lhs, rhs) = (op.array(0)?, op.array(1)?);
    let sides = Sides::new(op, lhs, rhs)?;
    let mut dims = sides.batch(lhs);
    dims.extend(sides.lhs_free(lhs));
    dims.extend(sides.rhs_free(rhs, &[]));
    result(wider(lhs.element_type, rhs.element_type), dims, 0)
}

/// Groups of rows are multiplied with matrices of their own; which dimension is ragged decides
/// whether the groups show in the result:
///
/// * a free dimension of the left side: `[b,m,k], [g,b,k,n] -> [b,m,n]`;
/// * a contracting one: `[b,m,k], [b,k,n] -> [g,b,m,n]`;
/// * a batch one: as `dot`.
pub(super) fn ragged_dot(op: Op<'_>) -> Inference {
    let (lhs, rhs, groups) = (op.array(0)?, op.array(1)?, op.array(2)?);
    let sides = Sides::new(op, lhs, rhs)?;
    let [ragged] = op.dimension_numbers(AttrName::LhsRaggedDims, lhs.rank())?[..] else {
        return op.fail("needs attribute lhs_ragged_dims with exactly one entry");
    };
    let group_dims = op.dimension_numbers(AttrName::RhsGroupDims, rhs.rank())?;
    let Some(&group_count) = groups.dims.last() else {
        return op.fail("needs group sizes that are an array of rank 1 or more");
    };
    let mut dims = Dims::new();
    if sides.lhs_contracting.contains(&ragged) {
        dims.push(group_count);
    }
    dims.extend(sides.batch(lhs));
    dims.extend(sides.lhs_free(lhs));
    dims.extend(sides.rhs_free(rhs, &group_dims));
    result(wider(lhs.element_type, rhs.element_type), dims, 0)
}

/// The dimension numbers of a `dot`, checked against both operands.
struct Sides {
    lhs_batch: SmallVec<[usize; 6]>,
    rhs_batch: SmallVec<[usize; 6]>,
    lhs_contracting: SmallVec<[usize; 6]>,
    rhs_contracting: SmallVec<[usize; 6]>,
}

impl Sides {
    fn new(op: Op<'_>, lhs: &ArrayShape, rhs: &ArrayShape) -> Result<Self, InferError> {
        let this = Self {
            lhs_batch: op.dimension_numbers(AttrName::LhsBatchDims, lhs.rank())?,
            rhs_batch: op.dimension_numbers(AttrName::RhsBatchDims, rhs.rank())?,
            lhs_contracting: op.dimension_numbers(AttrName::LhsContractingDims, lhs.rank())?,
            rhs_contracting: op.dimension_numbers(AttrName::RhsContractingDims, rhs.rank())?,
        };
        let pairs = [
            (&this.lhs_batch, &this.rhs_batch, "batch"),
            (&this.lhs_contracting, &this.rhs_contracting, "contracting"),
        ];
        for (l, r, what) in pairs {
            let agrees = l.len() == r.len()
                && l.iter()
                    .zip(r)
                    .all(|(&l, &r)| same_dim(lhs.dims[l], rhs.dims[r]));
            // A sparse operand has half the contracting elements; `scaled-dot` and the rest do not.
            if !agrees {
                return op.fail(format!(
                    "{what} dimensions {l:?} of {} and {r:?} of {} do not agree",
                    describe(lhs),
                    describe(rhs)
                ));
            }
        }
        if this
            .lhs_batch
            .iter()
            .any(|d| this.lhs_contracting.contains(d))
            || this
                .rhs_batch
                .iter()
                .any(|d| this.rhs_contracting.contains(d))
        {
            return op.fail("has a dimension that is both batch and contracting");
        }
        Ok(this)
    }

    fn batch(&self, lhs: &ArrayShape) -> Dims {
        self.lhs_batch.iter().map(|&d| lhs.dims[d]).collect()
    }

    fn lhs_free<'a>(&'a self, lhs: &'a ArrayShape) -> impl Iterator<Item = u64> + 'a {
        free(lhs, [&self.lhs_batch, &self.lhs_contracting, &[]])
    }

    fn rhs_free<'a>(
        &'a self,
        rhs: &'a ArrayShape,
        groups: &'a [usize],
    ) -> impl Iterator<Item = u64> + 'a {
        free(rhs, [&self.rhs_batch, &self.rhs_contracting, groups])
    }
}

/// The dimensions of `a` that are in none of the lists.
fn free<'a>(a: &'a ArrayShape, used: [&'a [usize]; 3]) -> impl Iterator<Item = u64> + 'a {
    (0..a.rank())
        .filter(move |d| !used.iter().any(|u| u.contains(d)))
        .map(|d| a.dims[d])
}

/// The result type where none is declared: the wider of the two.
fn wider(a: ElementType, b: ElementType) -> ElementType {
    if b.bits() > a.bits() { b } else { a }
}

/// Windows over the spatial dimensions, features summed in groups.
pub(super) fn convolution(op: Op<'_>) -> Inference {
    let (lhs, rhs) = (op.array(0)?, op.array(1)?);
    let Some(labels) = op.instr.dim_labels() else {
        return op.missing(AttrName::DimLabels);
    };
    let spatial = labels.input_spatial.len();
    let rank = spatial + 2;
    let in_range = |dims: &[usize], features: [usize; 2]| {
        dims.len() == spatial && dims.iter().chain(&features).all(|&d| d < rank)
    };
    if lhs.rank() != rank
        || rhs.rank() != rank
        || !in_range(
            &labels.input_spatial,
            [labels.input_batch, labels.input_feature],
        )
        || !in_range(
            &labels.kernel_spatial,
            [labels.kernel_input_feature, labels.kernel_output_feature],
        )
        || !in_range(
            &labels.output_spatial,
            [labels.output_batch, labels.output_feature],
        )
    {
        return op.fail(format!(
            "dim_labels do not fit operands {} and {}",
            describe(lhs),
            describe(rhs)
        ));
    }
    let window = op.instr.window();
    if window.len() != spatial {
        return op.fail(format!(
            "has {spatial} spatial dimension(s), but a window of {}",
            window.len()
        ));
    }

    let groups = Groups::new(op)?;
    let features = lhs.dims[labels.input_feature];
    let kernel_features = rhs.dims[labels.kernel_input_feature];
    let output = rhs.dims[labels.kernel_output_feature];
    let batch = lhs.dims[labels.input_batch];
    groups.check(op, features, kernel_features, output, batch)?;

    let mut dims = Dims::from_elem(0, rank);
    dims[labels.output_batch] = if batch == UNBOUNDED {
        batch
    } else {
        batch / groups.batch
    };
    dims[labels.output_feature] = output;
    for (i, w) in window.iter().enumerate() {
        let size = rhs.dims[labels.kernel_spatial[i]];
        if size != UNBOUNDED && i128::from(w.size) != i128::from(size) {
            return op.fail(format!(
                "window size {} of spatial dimension {i} is not the kernel's {size}",
                w.size
            ));
        }
        dims[labels.output_spatial[i]] = window_output(op, lhs.dims[labels.input_spatial[i]], w)?;
    }
    result(wider(lhs.element_type, rhs.element_type), dims, 0)
}

/// `feature_group_count` and `batch_group_count`.
struct Groups {
    feature: u64,
    batch: u64,
}

impl Groups {
    fn new(op: Op<'_>) -> Result<Self, InferError> {
        let count = |name: AttrName| match op.instr.int(name).unwrap_or(1) {
            n if n >= 1 => Ok(n as u64),
            n => op.fail(format!("has {} {n}", name.name())),
        };
        let this = Self {
            feature: count(AttrName::FeatureGroupCount)?,
            batch: count(AttrName::BatchGroupCount)?,
        };
        if this.feature > 1 && this.batch > 1 {
            return op.fail("has both feature_group_count and batch_group_count above 1");
        }
        Ok(this)
    }

    fn check(
        &self,
        op: Op<'_>,
        features: u64,
        kernel_features: u64,
        output: u64,
        batch: u64,
    ) -> Result<(), InferError> {
        let known = [features, kernel_features, output, batch]
            .iter()
            .all(|&d| d != UNBOUNDED);
        if !known {
            return Ok(());
        }
        if kernel_features.checked_mul(self.feature) != Some(features) {
            return op.fail(format!(
                "has {features} input features, but the kernel takes {kernel_features} in each of \
                 {} group(s)",
                self.feature
            ));
        }
        let groups = self.feature.max(self.batch);
        if !output.is_multiple_of(groups) || !batch.is_multiple_of(self.batch) {
            return op.fail(format!(
                "has {output} output features and a batch of {batch}, not divisible by \
                 {groups} group(s)"
            ));
        }
        Ok(())
    }
}

/// How many windows fit one dimension. Negative padding crops.
pub(super) fn window_output(op: Op<'_>, size: u64, w: &WindowDim) -> Result<u64, InferError> {
    if w.size < 0 || w.stride < 1 || w.base_dilation < 1 || w.window_dilation < 1 {
        return op.fail("has a window with a size, stride or dilation below 1");
    }
    if size == UNBOUNDED {
        return Ok(UNBOUNDED);
    }
    let dilated = |n: i128, by: i64| {
        if n == 0 {
            0
        } else {
            (n - 1) * i128::from(by) + 1
        }
    };
    let base =
        i128::from(w.pad_low) + dilated(i128::from(size), w.base_dilation) + i128::from(w.pad_high);
    let window = dilated(i128::from(w.size), w.window_dilation);
    if base <= 0 || window > base {
        return Ok(0);
    }
    op.size((base - window) / i128::from(w.stride) + 1)
}

/// `RFFT` keeps `n/2 + 1` of the last dimension, `IRFFT` gives its `fft_length`.
pub(super) fn fft(op: Op<'_>) -> Inference {
    let a = op.array(0)?;
    let lengths = op.instr.ints(AttrName::FftLength);
    if lengths.is_empty() || lengths.len() > 3 || lengths.len() > a.rank() {
        return op.fail(format!(
            "over {} dimension(s) of {}",
            lengths.len(),
            describe(a)
        ));
    }
    let Some(kind) = op.instr.ident(AttrName::FftType) else {
        return op.missing(AttrName::FftType);
    };
    let mut dims = a.dims.clone();
    let last = a.rank() - 1;
    let length = op.size(i128::from(lengths[lengths.len() - 1]))?;
    let (takes, gives) = match (op.text_of(kind), a.element_type) {
        ("FFT" | "IFFT", t) => (t.is_complex(), t),
        ("RFFT", t) => {
            dims[last] = if length == 0 { 0 } else { length / 2 + 1 };
            let real = matches!(t, ElementType::F32 | ElementType::F64);
            let complex = if t == ElementType::F64 {
                ElementType::C128
            } else {
                ElementType::C64
            };
            (real, complex)
        }
        ("IRFFT", t) => {
            dims[last] = length;
            let real = if t == ElementType::C128 {
                ElementType::F64
            } else {
                ElementType::F32
            };
            (t.is_complex(), real)
        }
        (other, _) => return op.fail(format!("has an unknown fft_type {other}")),
    };
    if !takes {
        return op.fail(format!(
            "of type {} cannot take {}",
            op.text_of(kind),
            describe(a)
        ));
    }
    Ok(Some(Inferred::Array(PlainArray {
        layout: LayoutSource::Same(op.shape(0)),
        ..PlainArray::new(gives, &dims)
    })))
}

pub(super) fn cholesky(op: Op<'_>) -> Inference {
    check_square(op, op.array(0)?)?;
    op.same_as_operand(0)
}

pub(super) fn triangular_solve(op: Op<'_>) -> Inference {
    let (a, b) = (op.array(0)?, op.array(1)?);
    check_square(op, a)?;
    // XLA prints only what is set.
    let left = op.instr.flag(AttrName::LeftSide);
    let rank = a.rank();
    let agrees = b.rank() == rank
        && ElementMatch::AnyPrecision.accepts(a.element_type, b.element_type)
        && a.dims[..rank - 2] == b.dims[..rank - 2]
        && same_dim(b.dims[rank - if left { 2 } else { 1 }], a.dims[rank - 1]);
    if !agrees {
        return op.fail(format!("cannot solve {} for {}", describe(a), describe(b)));
    }
    op.same_as_operand(1)
}

fn check_square(op: Op<'_>, a: &ArrayShape) -> Result<(), InferError> {
    let square = matches!(a.dims[..], [.., r, c] if same_dim(r, c));
    if square && (a.element_type.is_float() || a.element_type.is_complex()) {
        return Ok(());
    }
    op.fail(format!(
        "takes square matrices of floating-point or complex elements, but is given {}",
        describe(a)
    ))
}
