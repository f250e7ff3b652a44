//! `convolution`: any dimension labels, strides, dilations, padding, groups and window reversal.
//!
//! Rows of the matrix product are places of the output; the window elements that
//! a block of rows meets are copied side by side and multiplied with the kernel
//! at once. Window elements that meet only padding or gaps cost nothing, which
//! matters since XLA:TPU writes batched matrix products as convolutions whose
//! windows mostly meet gaps.

use slabplan_ir::ElementType;
use slabplan_ir::attr::{AttrName, ConvDimLabels};
use smallvec::SmallVec;

use super::convert::Convert;
use super::matmul::{Accumulator, Panels, Rows, accumulator_type, match_accumulator, multiply_add};
use super::pack::Pack;
use super::prepare::{Dims, Prepare, dims, row_major_strides};
use super::scalar::{Scalar, width};
use super::strided::StridedCopy;
use super::walk::{Axes, Walk, volume};
use super::window::{Axis, axes};
use super::{ArrayMut, ArrayRef, KernelError, Run};

/// Places of the output computed at a time.
const BLOCK: usize = 64;
/// Most spatial dimensions.
const MAX_SPATIAL: usize = 8;
/// Columns of the left-hand matrix multiplied at a time, if one window element has no more.
const COLUMNS: usize = 1024;

#[derive(Debug)]
struct Convolution {
    accumulator: ElementType,
    /// Spatial dimensions, with steps of input and output in elements.
    spatial: SmallVec<[(Axis, usize, usize); 3]>,
    window: Axes,
    places: Axes,
    groups: usize,
    /// Output places of one group in the batch dimension; steps of input and output.
    batch: (usize, usize, usize),
    /// Input features of one group and their step.
    features: (usize, usize),
    /// Elements between the groups' first inputs.
    group_step: usize,
    /// Output features of one group, and their step.
    outputs: (usize, usize),
    /// The whole input in the accumulator's type.
    input: Pack,
    /// One group's kernel as a matrix: (window elements x input features) x output features.
    kernel: Pack,
    /// Byte of the kernel's element under the window's first, and bytes between groups.
    kernel_start: usize,
    kernel_group_step: usize,
    panels: Panels,
    panel_bytes: usize,
    /// Window elements multiplied at a time.
    taps: usize,
    convert: Option<Convert>,
    result_width: usize,
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
    let (x_steps, k_steps, out_steps) = (
        row_major_strides(&xs),
        row_major_strides(&ks),
        row_major_strides(&out),
    );

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

    // The kernel as a matrix; a reversed window is read from its far end.
    let mut kernel_start = 0;
    let mut kernel_axes = Vec::new();
    for (w, &d) in windows.iter().zip(&labels.kernel_spatial) {
        let step = k_steps[d] as isize;
        if w.reversal {
            kernel_start += ks[d].saturating_sub(1) * k_steps[d];
        }
        kernel_axes.push((ks[d], if w.reversal { -step } else { step }));
    }
    kernel_axes.push((k_features, k_steps[labels.kernel_input_feature] as isize));
    let group_outputs = k_outputs / groups;
    let output_step = k_steps[labels.kernel_output_feature];
    kernel_axes.push((group_outputs, output_step as isize));

    let too_large = || p.error("is too large to execute".into());
    let elements = |sizes: &[usize]| sizes.iter().try_fold(1usize, |n, &s| n.checked_mul(s));
    let depth = elements(
        &kernel_axes[..kernel_axes.len() - 1]
            .iter()
            .map(|a| a.0)
            .collect::<Vec<_>>(),
    );
    let panels = Panels {
        depth: depth.ok_or_else(too_large)?,
        columns: group_outputs,
    };
    let batch_per_group = in_batch / batch_groups;
    let (x_batch_step, x_feature_step) =
        (x_steps[labels.input_batch], x_steps[labels.input_feature]);
    let input_axes: Vec<(usize, isize)> = xs
        .iter()
        .zip(&x_steps)
        .map(|(&n, &s)| (n, s as isize))
        .collect();
    let spatial = axes
        .iter()
        .zip(labels.input_spatial.iter().zip(&labels.output_spatial))
        .map(|(&axis, (&i, &o))| (axis, x_steps[i], out_steps[o]))
        .collect();
    Ok(Box::new(Convolution {
        accumulator,
        spatial,
        window: axes.iter().map(|a| (a.window, 0)).collect(),
        places: labels.output_spatial.iter().map(|&d| (out[d], 0)).collect(),
        groups,
        batch: (
            batch_per_group,
            x_batch_step,
            out_steps[labels.output_batch],
        ),
        features: (k_features, x_feature_step),
        group_step: if batch_groups > 1 {
            batch_per_group * x_batch_step
        } else {
            k_features * x_feature_step
        },
        outputs: (group_outputs, out_steps[labels.output_feature]),
        input: Pack::new(p, x.element_type, accumulator, &input_axes)?,
        kernel: Pack::new(p, k.element_type, accumulator, &kernel_axes)?,
        kernel_start: kernel_start * width(k.element_type),
        kernel_group_step: group_outputs * output_step * width(k.element_type),
        panels,
        panel_bytes: panels
            .elements()
            .and_then(|n| n.checked_mul(width(accumulator)))
            .ok_or_else(too_large)?,
        taps: (COLUMNS / k_features.max(1)).max(1),
        convert: (ty != accumulator)
            .then(|| Convert::new(accumulator, ty))
            .flatten(),
        result_width: width(ty),
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
    fn scratch_bytes(&self) -> usize {
        self.input.scratch_bytes()
            + self.kernel.scratch_bytes()
            + self.panel_bytes
            + self.block_bytes()
            + self.sum_bytes()
            + self.converted_bytes()
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]) {
        if results[0].data.is_empty() {
            return;
        }
        match_accumulator!(self.accumulator, T => self.run_typed::<T>(operands, results, scratch));
    }
}

/// A place of the output: its index along the spatial dimensions and in the batch.
#[derive(Clone, Copy, Default)]
struct Place {
    spatial: [usize; MAX_SPATIAL],
    batch: usize,
}

impl Convolution {
    fn block_bytes(&self) -> usize {
        BLOCK * self.taps * self.features.0 * width(self.accumulator)
    }

    fn sum_bytes(&self) -> usize {
        BLOCK * self.outputs.0 * width(self.accumulator)
    }

    fn converted_bytes(&self) -> usize {
        if self.convert.is_some() {
            BLOCK * self.outputs.0 * self.result_width
        } else {
            0
        }
    }

    fn run_typed<T: Accumulator>(
        &self,
        operands: &[ArrayRef<'_>],
        results: &mut [ArrayMut<'_>],
        scratch: &mut [u8],
    ) {
        let (input_scratch, scratch) = scratch.split_at_mut(self.input.scratch_bytes());
        let (kernel_scratch, scratch) = scratch.split_at_mut(self.kernel.scratch_bytes());
        let (panels, scratch) = scratch.split_at_mut(self.panel_bytes);
        let (columns, scratch) = scratch.split_at_mut(self.block_bytes());
        let (sums, converted) = scratch.split_at_mut(self.sum_bytes());
        let input = self.input.apply(operands[0].data, 0, input_scratch);
        let rows = volume(&self.places) * self.batch.0;
        for group in 0..self.groups {
            let start = self.kernel_start + group * self.kernel_group_step;
            let kernel = self.kernel.apply(operands[1].data, start, kernel_scratch);
            self.panels.pack::<T>(kernel, panels);
            let mut spatial = Walk::new(&self.places);
            let mut batch = 0;
            for first in (0..rows).step_by(BLOCK) {
                let mut places = [Place::default(); BLOCK];
                let places = &mut places[..BLOCK.min(rows - first)];
                for place in &mut *places {
                    place.spatial[..self.spatial.len()].copy_from_slice(spatial.index());
                    place.batch = batch;
                    batch += 1;
                    if batch == self.batch.0 {
                        batch = 0;
                        spatial.advance();
                    }
                }
                let sums = &mut sums[..places.len() * self.outputs.0 * T::BYTES];
                sums.fill(0);
                self.block::<T>(
                    &input[group * self.group_step * T::BYTES..],
                    places,
                    columns,
                    panels,
                    sums,
                );
                let converted = match &self.convert {
                    None => sums,
                    Some(convert) => {
                        let out =
                            &mut converted[..places.len() * self.outputs.0 * self.result_width];
                        convert.apply(sums, out);
                        out
                    }
                };
                self.write(group, places, converted, results[0].data);
            }
        }
    }

    /// Adds to `sums` the products of the elements under the windows of `places` with the kernel.
    fn block<T: Scalar + Accumulator>(
        &self,
        input: &[u8],
        places: &[Place],
        columns: &mut [u8],
        kernel: &[u8],
        sums: &mut [u8],
    ) {
        let features = self.features.0;
        let stride = self.taps * features;
        let mut multiply = |columns: &[u8], first: usize, held: usize| {
            let rows = Rows {
                data: columns,
                stride,
                count: places.len(),
            };
            let depth = held * features;
            multiply_add::<T>(rows, depth, self.panels, kernel, first * features, sums);
        };
        let mut window = Walk::new(&self.window);
        // Consecutive window elements held in `columns`: the first one's number, and how many.
        let (mut first, mut held) = (0, 0);
        for tap in 0..volume(&self.window) {
            let mut met = [None; BLOCK];
            let met = &mut met[..places.len()];
            for (met, place) in met.iter_mut().zip(places) {
                *met = self.input_position(place, window.index());
            }
            window.advance();
            if held > 0 && (held == self.taps || met.iter().all(Option::is_none)) {
                multiply(columns, first, held);
                held = 0;
            }
            if met.iter().all(Option::is_none) {
                continue;
            }
            if held == 0 {
                first = tap;
            }
            for (row, &mut met) in met.iter_mut().enumerate() {
                let at = (row * stride + held * features) * T::BYTES;
                let out = &mut columns[at..at + features * T::BYTES];
                match met {
                    Some(from) => self.read_features::<T>(input, from, out),
                    None => out.fill(0),
                }
            }
            held += 1;
        }
        if held > 0 {
            multiply(columns, first, held);
        }
    }

    /// The input element (of feature 0) that a window element meets at a place.
    fn input_position(&self, place: &Place, element: &[usize]) -> Option<usize> {
        let mut position = place.batch * self.batch.1;
        for ((&(axis, step, _), &at), &k) in self.spatial.iter().zip(&place.spatial).zip(element) {
            position += axis.meets(at, k)? * step;
        }
        Some(position)
    }

    fn read_features<T: Scalar>(&self, input: &[u8], from: usize, out: &mut [u8]) {
        let w = T::BYTES;
        let step = self.features.1;
        if step == 1 {
            let n = out.len();
            out.copy_from_slice(&input[from * w..][..n]);
            return;
        }
        for (f, out) in out.chunks_exact_mut(w).enumerate() {
            out.copy_from_slice(&input[(from + f * step) * w..][..w]);
        }
    }

    /// Writes the sums of one group at its places.
    fn write(&self, group: usize, places: &[Place], sums: &[u8], out: &mut [u8]) {
        let w = self.result_width;
        let (count, step) = self.outputs;
        let copy = StridedCopy::new(w, [(count, 1, step as isize)]);
        for (row, place) in places.iter().enumerate() {
            let mut to = place.batch * self.batch.2 + group * count * step;
            for (&(_, _, step), &at) in self.spatial.iter().zip(&place.spatial) {
                to += at * step;
            }
            copy.run(sums, row * count * w, out, to * w);
        }
    }
}
