//! Which dimension is which, as HLO text: windows, convolutions, dots, gathers, scatters, padding.

use std::fmt::Write;

use super::attributes::Writer;
use super::enums::{CONVOLUTION_KINDS, DOT_ALGORITHMS, PRECISIONS, word};
use super::messages::{
    ConvolutionDims, DotDims, Instruction, PaddingConfig, SparsityConfig, TensorSparsity, Window,
};

/// Windows, convolutions, dots, gathers and scatters.
pub(super) fn write_dimension_numbers(w: &mut Writer<'_>, i: &Instruction) -> Result<(), String> {
    if let Some(window) = i.window.as_ref().filter(|w| !w.dimensions.is_empty()) {
        write_window(w, window);
    }
    if let Some(c) = &i.convolution_dimension_numbers {
        w.attr("dim_labels", dim_labels(c)?);
    }
    if i.feature_group_count > 1 {
        w.attr("feature_group_count", i.feature_group_count);
    }
    if i.batch_group_count > 1 {
        w.attr("batch_group_count", i.batch_group_count);
    }
    if i.conv_kind != 0 {
        w.attr("convolution_kind", word(&CONVOLUTION_KINDS, i.conv_kind)?);
    }
    let ragged = i.ragged_dot_dimension_numbers.as_ref();
    if let Some(d) = i
        .dot_dimension_numbers
        .as_ref()
        .or(ragged.and_then(|r| r.dot.as_ref()))
    {
        write_dot(w, d);
    }
    if let Some(r) = ragged {
        w.ints("lhs_ragged_dims", &r.lhs_ragged);
        w.ints("rhs_group_dims", &r.rhs_group);
    }
    if let Some(g) = &i.gather_dimension_numbers {
        w.braced("offset_dims", &g.offset_dims);
        w.braced("collapsed_slice_dims", &g.collapsed_slice_dims);
        w.braced("start_index_map", &g.start_index_map);
        w.ints("operand_batching_dims", &g.operand_batching_dims);
        w.ints(
            "start_indices_batching_dims",
            &g.start_indices_batching_dims,
        );
        w.attr("index_vector_dim", g.index_vector_dim);
        w.braced("slice_sizes", &i.gather_slice_sizes);
    }
    if let Some(s) = &i.scatter_dimension_numbers {
        w.braced("update_window_dims", &s.update_window_dims);
        w.braced("inserted_window_dims", &s.inserted_window_dims);
        w.braced("scatter_dims_to_operand_dims", &s.to_operand_dims);
        w.ints("input_batching_dims", &s.input_batching_dims);
        w.ints(
            "scatter_indices_batching_dims",
            &s.scatter_indices_batching_dims,
        );
        w.attr("index_vector_dim", s.index_vector_dim);
    }
    if let Some(p) = &i.precision_config {
        if p.operand_precision.iter().any(|&n| n != 0) {
            let words = p.operand_precision.iter().map(|&n| word(&PRECISIONS, n));
            let words = words.collect::<Result<Vec<_>, _>>()?;
            w.attr("operand_precision", format_args!("{{{}}}", words.join(",")));
        }
        if p.algorithm != 0 {
            w.attr("algorithm", word(&DOT_ALGORITHMS, p.algorithm)?);
        }
    }
    if let Some(s) = &i.sparsity_config {
        write_sparsity(w, s);
    }
    Ok(())
}

/// `, sparsity_config={lhs={sparsity=2x4 dimension=3 stride=1}}`, if an operand is sparse.
fn write_sparsity(w: &mut Writer<'_>, s: &SparsityConfig) {
    let side = |name: &str, side: &Option<TensorSparsity>| {
        side.as_ref().map(|t| {
            format!(
                "{name}={{sparsity={}x{} dimension={} stride={}}}",
                t.num_non_zero, t.block_size, t.dimension, t.stride
            )
        })
    };
    let sides = [side("lhs", &s.lhs), side("rhs", &s.rhs)];
    let sides: Vec<String> = sides.into_iter().flatten().collect();
    if !sides.is_empty() {
        w.attr("sparsity_config", format_args!("{{{}}}", sides.join(" ")));
    }
}

fn write_dot(w: &mut Writer<'_>, d: &DotDims) {
    w.ints("lhs_batch_dims", &d.lhs_batch);
    w.ints("lhs_contracting_dims", &d.lhs_contracting);
    w.ints("rhs_batch_dims", &d.rhs_batch);
    w.ints("rhs_contracting_dims", &d.rhs_contracting);
}

/// `, padding=1_1_0x...` of a pad.
pub(super) fn write_padding(w: &mut Writer<'_>, padding: Option<&PaddingConfig>) {
    let dims = padding.map(|p| p.dimensions.as_slice()).unwrap_or_default();
    let list = dims
        .iter()
        .map(|d| format!("{}_{}_{}", d.low, d.high, d.interior));
    w.attr("padding", list.collect::<Vec<_>>().join("x"));
}

fn write_window(w: &mut Writer<'_>, window: &Window) {
    let dims = &window.dimensions;
    let column = |f: &dyn Fn(usize) -> String| (0..dims.len()).map(f).collect::<Vec<_>>().join("x");
    let mut text = format!("size={}", column(&|d| dims[d].size.to_string()));
    let mut part = |name: &str, used: bool, f: &dyn Fn(usize) -> String| {
        if used {
            let _ = write!(text, " {name}={}", column(f));
        }
    };
    part("stride", dims.iter().any(|d| d.stride != 1), &|d| {
        dims[d].stride.to_string()
    });
    part(
        "pad",
        dims.iter()
            .any(|d| d.padding_low != 0 || d.padding_high != 0),
        &|d| format!("{}_{}", dims[d].padding_low, dims[d].padding_high),
    );
    part(
        "lhs_dilate",
        dims.iter().any(|d| d.base_dilation != 1),
        &|d| dims[d].base_dilation.to_string(),
    );
    part(
        "rhs_dilate",
        dims.iter().any(|d| d.window_dilation != 1),
        &|d| dims[d].window_dilation.to_string(),
    );
    part(
        "rhs_reversal",
        dims.iter().any(|d| d.window_reversal),
        &|d| u8::from(dims[d].window_reversal).to_string(),
    );
    w.attr("window", format_args!("{{{text}}}"));
}

/// `b01f_01io->b01f`; a dimension without a meaning is `?`.
fn dim_labels(c: &ConvolutionDims) -> Result<String, String> {
    Ok(format!(
        "{}_{}->{}",
        labels(
            [(c.input_batch, 'b'), (c.input_feature, 'f')],
            &c.input_spatial
        )?,
        labels(
            [
                (c.kernel_input_feature, 'i'),
                (c.kernel_output_feature, 'o')
            ],
            &c.kernel_spatial
        )?,
        labels(
            [(c.output_batch, 'b'), (c.output_feature, 'f')],
            &c.output_spatial
        )?,
    ))
}

/// The labels of one array, by the places of its dimensions.
fn labels(named: [(i64, char); 2], spatial: &[i64]) -> Result<String, String> {
    /// More than a convolution has.
    const MOST: usize = 32;
    let mut letters = Vec::new();
    let spatial = spatial.iter().zip('0'..='9').map(|(&at, c)| (at, c));
    for (at, letter) in named.into_iter().chain(spatial) {
        let at = usize::try_from(at).ok().filter(|&n| n < MOST);
        let at = at.ok_or("a convolution with a dimension out of range")?;
        if letters.len() <= at {
            letters.resize(at + 1, '?');
        }
        letters[at] = letter;
    }
    Ok(letters.into_iter().collect())
}
