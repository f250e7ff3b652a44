//! Attributes of an instruction proto as HLO text.

use std::fmt::{Display, Write};

use slabplan_ir::ElementType;

use super::enums::{
    API_VERSIONS, DOT_ALGORITHMS, FFT_TYPES, PADDING_TYPES, PRECISIONS, RNG_ALGORITHMS,
    RNG_DISTRIBUTIONS, SCHEDULES, TRANSPOSES, word,
};
use super::messages::{
    ConvolutionDims, DotDims, FrontendAttributes, Instruction, Metadata, PaddingConfig, Window,
};
use super::replica_groups::write_replica_groups;
use super::shape::{join, write_shape};
use super::sharding::write_sharding;
use super::text::{Names, escape, write_shapes};

/// Attributes are appended one by one, each after a comma.
pub(super) struct Writer<'a> {
    pub(super) out: &'a mut String,
}

impl Writer<'_> {
    pub(super) fn attr(&mut self, name: &str, value: impl Display) {
        let _ = write!(self.out, ", {name}={value}");
    }

    fn flag(&mut self, name: &str, value: bool) {
        if value {
            self.attr(name, "true");
        }
    }

    /// A list in braces, absent where empty.
    fn ints(&mut self, name: &str, values: &[i64]) {
        if !values.is_empty() {
            self.braced(name, values);
        }
    }

    /// A list in braces, also where empty.
    fn braced(&mut self, name: &str, values: &[i64]) {
        self.attr(name, format_args!("{{{}}}", join(values)));
    }

    fn quoted(&mut self, name: &str, value: &[u8]) {
        if !value.is_empty() {
            self.attr(name, format_args!("\"{}\"", escape(value)));
        }
    }
}

/// Appends all attributes.
pub(super) fn write_attributes(
    out: &mut String,
    i: &Instruction,
    names: &Names<'_>,
) -> Result<(), String> {
    let mut w = Writer { out };
    write_own(&mut w, i)?;
    write_collective(&mut w, i)?;
    if i.opcode != "custom-call" {
        write_operand_aliasing(&mut w, i);
    }
    write_computations(&mut w, i, names)?;
    if !i.control_predecessor_ids.is_empty() {
        let list = i
            .control_predecessor_ids
            .iter()
            .map(|&id| Ok(format!("%{}", names.instruction(id)?)))
            .collect::<Result<Vec<_>, String>>()?;
        w.attr(
            "control-predecessors",
            format_args!("{{{}}}", list.join(", ")),
        );
    }
    if let Some(p) = &i.parameter_replication
        && !p.replicated_at_leaf_buffers.is_empty()
    {
        let words = join(&p.replicated_at_leaf_buffers);
        w.attr("parameter_replication", format_args!("{{{words}}}"));
    }
    if let Some(s) = &i.sharding {
        w.out.push_str(", sharding=");
        write_sharding(w.out, s)?;
    }
    write_frontend_attributes(&mut w, i.frontend_attributes.as_ref());
    if let Some(m) = &i.metadata {
        write_metadata(&mut w, m);
    }
    match std::str::from_utf8(&i.backend_config) {
        Ok(config) if is_dictionary(config) => {
            w.attr("backend_config", format_args!("{config}"));
        }
        _ => w.quoted("backend_config", &i.backend_config),
    }
    Ok(())
}

/// Whether the text is one JSON dictionary from its first brace to its last (XLA's `LexesAsJsonDict`):
/// such a configuration stands in HLO text as it is.
fn is_dictionary(text: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            '{' if !in_string => depth += 1,
            '}' if !in_string => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1 == text.len();
                }
            }
            _ => {}
        }
        if depth == 0 {
            return false;
        }
    }
    false
}

/// `, frontend_attributes={k="v",...}` of an instruction or of the module, if there are any.
pub(super) fn write_frontend_attributes(
    w: &mut Writer<'_>,
    attributes: Option<&FrontendAttributes>,
) {
    let Some(f) = attributes.filter(|f| !f.map.is_empty()) else {
        return;
    };
    let list: Vec<String> = f
        .map
        .iter()
        .map(|(k, v)| frontend_attribute(k, v))
        .collect();
    w.attr(
        "frontend_attributes",
        format_args!("{{{}}}", list.join(",")),
    );
}

fn frontend_attribute(key: &str, value: &str) -> String {
    // Dictionaries are written as they are, everything else as a string.
    if value.starts_with('{') && value.ends_with('}') {
        format!("{key}={value}")
    } else {
        format!("{key}=\"{}\"", escape(value.as_bytes()))
    }
}

/// The attributes that belong to one operation each.
fn write_own(w: &mut Writer<'_>, i: &Instruction) -> Result<(), String> {
    match i.opcode.as_str() {
        "iota" => w.attr("iota_dimension", i.dimensions.first().copied().unwrap_or(0)),
        "broadcast" | "transpose" | "reverse" | "concatenate" | "reduce" | "map" | "sort"
        | "get-dimension-size" | "set-dimension-size" => w.braced("dimensions", &i.dimensions),
        "reshape" => {
            if let Some(&d) = i.dimensions.first() {
                w.attr("inferred_dimension", d);
            }
        }
        "get-tuple-element" => w.attr("index", i.tuple_index),
        "fusion" => w.attr("kind", &i.fusion_kind),
        "compare" => {
            w.attr("direction", &i.comparison_direction);
            if !i.comparison_type.is_empty() {
                w.attr("type", &i.comparison_type);
            }
        }
        "slice" => {
            let dims = i
                .slice_dimensions
                .iter()
                .map(|d| format!("[{}:{}:{}]", d.start, d.limit, d.stride.max(1)));
            w.attr(
                "slice",
                format_args!("{{{}}}", dims.collect::<Vec<_>>().join(", ")),
            );
        }
        "dynamic-slice" => w.braced("dynamic_slice_sizes", &i.dynamic_slice_sizes),
        "pad" => write_padding(w, i.padding_config.as_ref()),
        "reduce-precision" => {
            w.attr("exponent_bits", i.exponent_bits);
            w.attr("mantissa_bits", i.mantissa_bits);
        }
        "rng" => w.attr("distribution", word(&RNG_DISTRIBUTIONS, i.distribution)?),
        "rng-bit-generator" => w.attr("algorithm", word(&RNG_ALGORITHMS, i.rng_algorithm)?),
        "rng-get-and-update-state" => w.attr("delta", i.delta),
        "fft" => {
            w.attr("fft_type", word(&FFT_TYPES, i.fft_type)?);
            w.braced("fft_length", &i.fft_length);
        }
        "batch-norm-training" | "batch-norm-inference" | "batch-norm-grad" => {
            w.attr("epsilon", i.epsilon);
            w.attr("feature_index", i.feature_index);
        }
        "cholesky" => w.flag(
            "lower",
            i.cholesky_options.as_ref().is_some_and(|o| o.lower),
        ),
        "triangular-solve" => {
            if let Some(o) = &i.triangular_solve_options {
                w.flag("left_side", o.left_side);
                w.flag("lower", o.lower);
                w.flag("unit_diagonal", o.unit_diagonal);
                w.attr("transpose_a", word(&TRANSPOSES, o.transpose_a)?);
            }
        }
        "topk" => {
            w.attr("k", i.k);
            w.attr("largest", i.largest);
        }
        "infeed" => w.quoted("infeed_config", &i.infeed_config),
        "outfeed" => {
            w.quoted("outfeed_config", &i.outfeed_config);
            if let Some(s) = &i.outfeed_shape {
                w.out.push_str(", outfeed_shape=");
                write_shape(w.out, s)?;
            }
        }
        "custom-call" => write_custom_call(w, i)?,
        "copy-start" => {
            if let Some(n) = i.cross_program_prefetch_index {
                w.attr("cross_program_prefetch_index", n);
            }
        }
        _ => {}
    }
    write_dimension_numbers(w, i)?;
    w.flag("is_stable", i.is_stable);
    w.flag("indices_are_sorted", i.indices_are_sorted);
    w.flag("unique_indices", i.unique_indices);
    w.flag("is_host_transfer", i.is_host_transfer);
    w.flag("is_composite", i.is_composite);
    if !matches!(i.async_execution_thread.as_str(), "" | "main") {
        w.quoted(
            "async_execution_thread",
            i.async_execution_thread.as_bytes(),
        );
    }
    Ok(())
}

/// Windows, convolutions, dots, gathers and scatters.
fn write_dimension_numbers(w: &mut Writer<'_>, i: &Instruction) -> Result<(), String> {
    if let Some(window) = i.window.as_ref().filter(|w| !w.dimensions.is_empty()) {
        write_window(w, window);
    }
    if let Some(c) = &i.convolution_dimension_numbers {
        w.attr("dim_labels", dim_labels(c));
    }
    if i.feature_group_count > 1 {
        w.attr("feature_group_count", i.feature_group_count);
    }
    if i.batch_group_count > 1 {
        w.attr("batch_group_count", i.batch_group_count);
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
    Ok(())
}

fn write_dot(w: &mut Writer<'_>, d: &DotDims) {
    w.ints("lhs_batch_dims", &d.lhs_batch);
    w.ints("lhs_contracting_dims", &d.lhs_contracting);
    w.ints("rhs_batch_dims", &d.rhs_batch);
    w.ints("rhs_contracting_dims", &d.rhs_contracting);
}

fn write_padding(w: &mut Writer<'_>, padding: Option<&PaddingConfig>) {
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

/// `b01f_01io->b01f`.
fn dim_labels(c: &ConvolutionDims) -> String {
    let side = |named: &[(i64, char)], spatial: &[i64]| {
        let mut letters = vec!['?'; named.len() + spatial.len()];
        let mut put = |at: i64, letter: char| {
            if let Some(slot) = usize::try_from(at).ok().and_then(|n| letters.get_mut(n)) {
                *slot = letter;
            }
        };
        for &(at, letter) in named {
            put(at, letter);
        }
        for (n, &at) in spatial.iter().enumerate() {
            put(at, char::from_digit(n as u32, 10).unwrap_or('?'));
        }
        letters.into_iter().collect::<String>()
    };
    format!(
        "{}_{}->{}",
        side(
            &[(c.input_batch, 'b'), (c.input_feature, 'f')],
            &c.input_spatial
        ),
        side(
            &[
                (c.kernel_input_feature, 'i'),
                (c.kernel_output_feature, 'o')
            ],
            &c.kernel_spatial
        ),
        side(
            &[(c.output_batch, 'b'), (c.output_feature, 'f')],
            &c.output_spatial
        ),
    )
}

/// `, output_to_operand_aliasing={{0}: (1, {})}`, if there is any.
fn write_operand_aliasing(w: &mut Writer<'_>, i: &Instruction) {
    if i.output_operand_aliasing.is_empty() {
        return;
    }
    let entries = i.output_operand_aliasing.iter().map(|a| {
        format!(
            "{{{}}}: ({}, {{{}}})",
            join(&a.output),
            a.operand,
            join(&a.operand_part)
        )
    });
    let list = entries.collect::<Vec<_>>().join(", ");
    w.attr("output_to_operand_aliasing", format_args!("{{{list}}}"));
}

fn write_custom_call(w: &mut Writer<'_>, i: &Instruction) -> Result<(), String> {
    w.attr(
        "custom_call_target",
        format_args!("\"{}\"", escape(i.custom_call_target.as_bytes())),
    );
    if i.constrain_layout && !i.operand_shapes_with_layout.is_empty() {
        w.out.push_str(", operand_layout_constraints={");
        write_shapes(w.out, &i.operand_shapes_with_layout)?;
        w.out.push('}');
    }
    w.flag("custom_call_has_side_effect", i.custom_call_has_side_effect);
    write_operand_aliasing(w, i);
    if i.padding_type != 0 {
        w.attr("padding_type", word(&PADDING_TYPES, i.padding_type)?);
    }
    if i.custom_call_schedule != 0 {
        w.attr("schedule", word(&SCHEDULES, i.custom_call_schedule)?);
    }
    // Version 1 is what the text means without the attribute.
    if i.custom_call_api_version > 1 {
        w.attr(
            "api_version",
            word(&API_VERSIONS, i.custom_call_api_version)?,
        );
    }
    Ok(())
}

/// The computations an instruction calls, under the names that its operation has for them.
fn write_computations(
    w: &mut Writer<'_>,
    i: &Instruction,
    names: &Names<'_>,
) -> Result<(), String> {
    let mut called = i
        .called_computation_ids
        .iter()
        .map(|&id| names.computation(id))
        .collect::<Result<Vec<_>, _>>()?;
    let attributes: &[&str] = match (i.opcode.as_str(), called.len()) {
        (_, 0) => return Ok(()),
        ("fusion" | "async-start", _) => &["calls"],
        // The chain's later links repeat the computation, which the start names already.
        ("async-update" | "async-done", _) => return Ok(()),
        // The proto has the body first, the text the condition.
        ("while", _) => {
            called.reverse();
            &["condition", "body"]
        }
        ("select-and-scatter", _) => &["select", "scatter"],
        ("conditional", 2) if chooses_by_predicate(i, names)? => {
            &["true_computation", "false_computation"]
        }
        ("conditional", _) => &["branch_computations"],
        ("custom-call", _) => &["called_computations"],
        _ => &["to_apply"],
    };
    if let [list @ ("branch_computations" | "called_computations")] = attributes {
        let all: Vec<String> = called.iter().map(|c| format!("%{c}")).collect();
        w.attr(list, format_args!("{{{}}}", all.join(", ")));
        return Ok(());
    }
    for (name, computation) in attributes.iter().zip(called) {
        w.attr(name, format_args!("%{computation}"));
    }
    Ok(())
}

/// Whether a conditional's first operand is a `pred`, and not a branch number.
fn chooses_by_predicate(i: &Instruction, names: &Names<'_>) -> Result<bool, String> {
    let &id = i
        .operand_ids
        .first()
        .ok_or("a conditional without operands")?;
    let shape = names.shape(id)?;
    Ok(shape.element_type == ElementType::Pred.proto_number() as i32)
}

fn write_collective(w: &mut Writer<'_>, i: &Instruction) -> Result<(), String> {
    if i.channel_id > 0 {
        w.attr("channel_id", i.channel_id);
    }
    write_replica_groups(w, i)?;
    if i.opcode != "custom-call" {
        w.flag("constrain_layout", i.constrain_layout);
    }
    match i.opcode.as_str() {
        "all-gather" | "all-gather-start" => w.braced("dimensions", &i.dimensions),
        "all-to-all" => w.ints("dimensions", &i.dimensions),
        _ => {}
    }
    w.flag("use_global_device_ids", i.use_global_device_ids);
    if i.opcode == "reduce-scatter" {
        w.braced("dimensions", &i.dimensions);
    }
    if !i.source_target_pairs.is_empty() {
        let pairs = i
            .source_target_pairs
            .iter()
            .map(|p| format!("{{{},{}}}", p.source, p.target));
        w.attr(
            "source_target_pairs",
            format_args!("{{{}}}", pairs.collect::<Vec<_>>().join(",")),
        );
    }
    Ok(())
}

fn write_metadata(w: &mut Writer<'_>, m: &Metadata) {
    let fields = write_metadata_fields(m);
    if !fields.is_empty() {
        w.attr("metadata", format_args!("{{{fields}}}"));
    }
}

/// `op_name="..." source_line=3`, in XLA's order.
pub(super) fn write_metadata_fields(m: &Metadata) -> String {
    let mut parts = Vec::new();
    let mut string = |name: &str, value: &str| {
        if !value.is_empty() {
            parts.push(format!("{name}=\"{}\"", escape(value.as_bytes())));
        }
    };
    string("op_type", &m.op_type);
    string("op_name", &m.op_name);
    string("source_file", &m.source_file);
    let mut number = |name: &str, value: i32| {
        if value != 0 {
            parts.push(format!("{name}={value}"));
        }
    };
    number("source_line", m.source_line);
    number("source_end_line", m.source_end_line);
    number("source_column", m.source_column);
    number("source_end_column", m.source_end_column);
    number("stack_frame_id", m.stack_frame_id);
    if !m.profile_type.is_empty() {
        parts.push(format!("profile_type={{{}}}", join(&m.profile_type)));
    }
    let mut string = |name: &str, value: &str| {
        if !value.is_empty() {
            parts.push(format!("{name}=\"{}\"", escape(value.as_bytes())));
        }
    };
    string("deduplicated_name", &m.deduplicated_name);
    string("scheduling_name", &m.scheduling_name);
    parts.join(" ")
}
