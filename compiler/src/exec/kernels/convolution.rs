//! `convolution`: any dimension labels, strides, dilations, padding, groups and window reversal.
//!
//! A matrix product: rows are places of the output, columns its features, and each sum goes over
//! the window's elements and the input features. What a place meets under its window is read
//! from the input while the product [packs](Patches) its blocks.

use slabplan_ir::ElementType;
use slabplan_ir::attr::{AttrName, ConvDimLabels};

use super::convert::Convert;
use super::matmul::{
    Accumulator, Matrix, Rows, Size, StridedLines, StridedSink, accumulator_type,
    match_accumulator, multiply, position,
};
use super::patches::{Patches, Spatial};
use super::prepare::{Dims, Prepare, dims};
use super::scalar::width;
use super::walk::{Axes, merge};
use super::widen::Widen;
use super::window::axes;
use super::{ArrayMut, ArrayRef, KernelError, Run};

/// Most spatial dimensions.
pub(super) const MAX_SPATIAL: usize = 8;
/// Products and sums below which one thread does all.
const SEQUENTIAL: usize = 1 << 18;

#[derive(Debug)]
struct Convolution {
    accumulator: ElementType,
    patches: Patches,
    /// One group's kernel: output features by (window elements and input features).
    kernel: Matrix,
    size: Size,
    /// Places and features of one group in the output, steps in elements.
    rows: Axes,
    columns: Axes,
    groups: usize,
    /// Elements between the groups' first inputs, kernels and outputs.
    group_steps: [usize; 3],
    input: Widen,
    weights: Widen,
    /// Bytes of the product before it is converted to the result's type, if it is another.
    product: Option<(usize, Convert)>,
    /// Most tasks that run at once, and the scratch of each.
    parts: usize,
    part_bytes: usize,
}

/// Prepares a `convolution`.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (x, k, result) = (p.operand(0)?, p.operand(1)?, p.result()?);
    let labels = p
        .instr
        .dim_labels()
        .ok_or_else(|| p.error("has no dim_labels".into()))?;
    let (xs, ks, out) = (dims(x), dims(k), dims(result));
    check_labels(p, labels, xs.len(), ks.len(), out.len())?;
    p.require(
        labels.input_spatial.len() <= MAX_SPATIAL,
        "has more than 8 spatial dimensions",
    )?;
    let pick =
        |sizes: &Dims, which: &[usize]| -> Dims { which.iter().map(|&d| sizes[d]).collect() };
    let windows = p.instr.window();
    let axes = axes(
        p,
        windows,
        &pick(&xs, &labels.input_spatial),
        &pick(&out, &labels.output_spatial),
    )?;
    let (x_steps, k_steps, out_steps) = (p.strides(x), p.strides(k), p.strides(result));

    let feature_groups = p.count(AttrName::FeatureGroupCount)?;
    let batch_groups = p.count(AttrName::BatchGroupCount)?;
    let (in_batch, in_features) = (xs[labels.input_batch], xs[labels.input_feature]);
    let (k_features, k_outputs) = (
        ks[labels.kernel_input_feature],
        ks[labels.kernel_output_feature],
    );
    let groups = feature_groups.saturating_mul(batch_groups);
    p.require(
        (feature_groups == 1 || batch_groups == 1)
            && in_features == k_features.saturating_mul(feature_groups)
            && k_outputs.is_multiple_of(groups)
            && in_batch.is_multiple_of(batch_groups)
            && out[labels.output_batch] == in_batch / batch_groups
            && out[labels.output_feature] == k_outputs
            && pick(&ks, &labels.kernel_spatial)
                .iter()
                .eq(axes.iter().map(|a| &a.window)),
        "operands, groups and result do not match",
    )?;
    let ty = result.element_type;
    let accumulator =
        accumulator_type(ty).ok_or_else(|| p.error(format!("not defined on {ty}")))?;
    let batch = in_batch / batch_groups;
    let outputs = k_outputs / groups;

    let spatial = axes
        .iter()
        .zip(windows)
        .zip(&labels.input_spatial)
        .map(|((&axis, w), &d)| Spatial {
            axis,
            step: x_steps[d],
            reversed: w.reversal,
        })
        .collect();
    // The output's dimensions but the features, as they follow each other in memory.
    let mut places: Vec<usize> = (0..out.len())
        .filter(|&d| d != labels.output_feature)
        .collect();
    places.sort_by_key(|&d| std::cmp::Reverse(out_steps[d]));
    let patches = Patches {
        spatial,
        places: places
            .iter()
            .map(|&d| (out[d], labels.output_spatial.iter().position(|&s| s == d)))
            .collect(),
        batch_step: x_steps[labels.input_batch],
        features: k_features,
        feature_step: x_steps[labels.input_feature],
    };
    let kernel_depth = labels
        .kernel_spatial
        .iter()
        .chain([&labels.kernel_input_feature])
        .map(|&d| (ks[d], k_steps[d]));
    let kernel = Matrix {
        lines: [(outputs, k_steps[labels.kernel_output_feature])]
            .into_iter()
            .collect(),
        depth: merge(kernel_depth),
    };
    let too_large = || p.error("is too large to execute".into());
    let product = |sizes: &[usize]| sizes.iter().try_fold(1usize, |n, &s| n.checked_mul(s));
    let depth = ks
        .iter()
        .enumerate()
        .filter(|(d, _)| *d != labels.kernel_output_feature)
        .map(|(_, &n)| n);
    let size = Size {
        rows: product(&places.iter().map(|&d| out[d]).collect::<Dims>()).ok_or_else(too_large)?,
        columns: outputs,
        depth: product(&depth.collect::<Dims>()).ok_or_else(too_large)?,
    };
    let rows: Axes = places.iter().map(|&d| (out[d], out_steps[d])).collect();
    let columns: Axes = [(outputs, out_steps[labels.output_feature])]
        .into_iter()
        .collect();
    let nested = rows
        .iter()
        .all(|r| out_steps[labels.output_feature].saturating_mul(outputs) <= r.1 || r.0 == 1);
    let work = size
        .rows
        .saturating_mul(size.columns)
        .saturating_mul(size.depth);
    let parts = if nested && work >= SEQUENTIAL {
        p.threads
    } else {
        1
    };
    let product_bytes = p
        .element_count(result)?
        .checked_mul(width(accumulator))
        .ok_or_else(too_large)?;
    let convert = (ty != accumulator).then(|| Convert::new(accumulator, ty));
    Ok(Box::new(Convolution {
        accumulator,
        patches,
        kernel,
        size,
        rows,
        columns,
        groups,
        group_steps: [
            if batch_groups > 1 {
                batch * x_steps[labels.input_batch]
            } else {
                k_features * x_steps[labels.input_feature]
            },
            outputs * k_steps[labels.kernel_output_feature],
            outputs * out_steps[labels.output_feature],
        ],
        input: Widen::new(p, x, accumulator)?,
        weights: Widen::new(p, k, accumulator)?,
        product: convert.flatten().map(|c| (product_bytes, c)),
        parts,
        part_bytes: size
            .scratch_bytes(width(accumulator))
            .filter(|b| b.checked_mul(parts).is_some())
            .ok_or_else(too_large)?,
    }))
}

/// Every dimension of each array has exactly one label.
fn check_labels(
    p: &Prepare<'_>,
    labels: &ConvDimLabels,
    input: usize,
    kernel: usize,
    output: usize,
) -> Result<(), KernelError> {
    let complete = |rank: usize, spatial: &[usize], two: [usize; 2]| {
        let all: Vec<usize> = spatial.iter().copied().chain(two).collect();
        all.len() == rank && (0..rank).all(|d| all.contains(&d))
    };
    p.require(
        complete(
            input,
            &labels.input_spatial,
            [labels.input_batch, labels.input_feature],
        ) && complete(
            kernel,
            &labels.kernel_spatial,
            [labels.kernel_input_feature, labels.kernel_output_feature],
        ) && complete(
            output,
            &labels.output_spatial,
            [labels.output_batch, labels.output_feature],
        ),
        "dim_labels do not match the operands and the result",
    )
}

impl Run for Convolution {
    fn is_strided(&self) -> bool {
        true
    }

    fn scratch_bytes(&self) -> usize {
        self.input.scratch_bytes()
            + self.weights.scratch_bytes()
            + self.product.map_or(0, |(bytes, _)| bytes)
            + self.parts * self.part_bytes
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]) {
        let out = &mut *results[0].data;
        if out.is_empty() {
            return;
        }
        let (input, scratch) = scratch.split_at_mut(self.input.scratch_bytes());
        let (weights, scratch) = scratch.split_at_mut(self.weights.scratch_bytes());
        let input = self.input.apply(operands[0].data, input);
        let weights = self.weights.apply(operands[1].data, weights);
        match &self.product {
            None => self.groups(input, weights, out, scratch),
            Some((bytes, convert)) => {
                let (product, scratch) = scratch.split_at_mut(*bytes);
                self.groups(input, weights, product, scratch);
                convert.apply(product, out);
            }
        }
    }
}

impl Convolution {
    fn groups(&self, input: &[u8], weights: &[u8], out: &mut [u8], scratch: &mut [u8]) {
        match_accumulator!(self.accumulator, T => {
            for group in 0..self.groups {
                let [input_at, weights_at, out_at] =
                    self.group_steps.map(|step| group * step * width(self.accumulator));
                self.group::<T>(
                    &input[input_at.min(input.len())..],
                    &weights[weights_at.min(weights.len())..],
                    &mut out[out_at..],
                    scratch,
                );
            }
        });
    }

    fn group<T: Accumulator>(
        &self,
        input: &[u8],
        weights: &[u8],
        out: &mut [u8],
        scratch: &mut [u8],
    ) {
        let rows = Rows {
            first: 0,
            last: self.size.rows,
            base: 0,
            parts: self.parts,
            part_bytes: self.part_bytes,
        };
        rows.in_parallel(
            out,
            scratch,
            &|row| position(&self.rows, row) * width(self.accumulator),
            &|rows, out, scratch| {
                let mut sink = StridedSink {
                    data: out,
                    base: rows.base,
                    first_row: rows.first,
                    rows: &self.rows,
                    columns: &self.columns,
                };
                let weights = StridedLines {
                    matrix: &self.kernel,
                    data: weights,
                };
                let range = (rows.first, rows.last);
                let patches = self.patches.of(input);
                multiply::<T>(&patches, &weights, self.size, range, &mut sink, scratch);
            },
        );
    }
}
