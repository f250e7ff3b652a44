//! Attributes of an instruction proto as HLO text.

use std::fmt::{Display, Write};

use slabplan_ir::ElementType;

use super::dimension_numbers::{write_dimension_numbers, write_padding};
use super::enums::{
    API_VERSIONS, FFT_TYPES, PADDING_TYPES, RNG_ALGORITHMS, RNG_DISTRIBUTIONS, SCHEDULES,
    TRANSPOSES, word,
};
use super::literal::write_literal_with_shape;
use super::messages::{FrontendAttributes, Instruction, Metadata, Shape};
use super::replica_groups::write_replica_groups;
use super::shape::{self, join, write_shape};
use super::sharding::write_sharding;
use super::text::{Names, escape, write_shapes};
use super::tracking;

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
    pub(super) fn ints(&mut self, name: &str, values: &[i64]) {
        if !values.is_empty() {
            self.braced(name, values);
        }
    }

    /// A list in braces, also where empty.
    pub(super) fn braced(&mut self, name: &str, values: &[i64]) {
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
    write_own(&mut w, i, names)?;
    write_collective(&mut w, i, names)?;
    if i.opcode != "custom-call" {
        write_operand_aliasing(&mut w, i);
    }
    write_computations(&mut w, i, names)?;
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
    if let Some(a) = &i.result_accuracy
        && let Some(text) = tracking::result_accuracy(a)?
    {
        w.attr("result_accuracy", text);
    }
    write_frontend_attributes(&mut w, i.frontend_attributes.as_ref());
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
    if let Some(s) = &i.statistics_viz
        && !s.statistics.is_empty()
    {
        w.attr("statistics", tracking::statistics(s));
    }
    if let Some(value) = &i.original_value {
        w.attr("origin", tracking::origin(value)?);
    }
    if let Some(m) = &i.metadata {
        write_metadata(&mut w, m);
    }
    let config = backend_config(i, names)?;
    match std::str::from_utf8(config) {
        Ok(config) if is_dictionary(config) => {
            w.attr("backend_config", format_args!("{config}"));
        }
        _ => w.quoted("backend_config", config),
    }
    Ok(())
}

/// The configuration where it stands in the instruction, or else among the module's payloads.
fn backend_config<'a>(i: &'a Instruction, names: &Names<'a>) -> Result<&'a [u8], String> {
    match &i.backend_config_payload {
        Some(p) if i.backend_config.is_empty() => match (&p.value, p.id) {
            (Some(value), _) => Ok(value),
            (None, Some(id)) => names.payload(id),
            (None, None) => Ok(&[]),
        },
        _ => Ok(&i.backend_config),
    }
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
fn write_own(w: &mut Writer<'_>, i: &Instruction, names: &Names<'_>) -> Result<(), String> {
    match i.opcode.as_str() {
        "iota" => w.attr("iota_dimension", i.dimensions.first().copied().unwrap_or(0)),
        "broadcast" | "transpose" | "reverse" | "concatenate" | "reduce" | "map" | "sort"
        | "get-dimension-size" | "set-dimension-size" => w.braced("dimensions", &i.dimensions),
        "scan" => {
            w.braced("dimensions", &i.dimensions);
            w.attr("num_carries", i.num_carries);
            w.flag("is_reverse", i.is_reverse);
            match i.is_associative {
                0 => {}
                1 => w.attr("is_associative", "true"),
                2 => w.attr("is_associative", "false"),
                n => return Err(format!("unknown truth {n}; known are 0 to 2")),
            }
        }
        "domain" => write_domain(w, i)?,
        "reshape" => {
            if let Some(&d) = i.dimensions.first() {
                w.attr("inferred_dimension", d);
            }
        }
        "get-tuple-element" => w.attr("index", i.tuple_index),
        "fusion" => w.attr("kind", &i.fusion_kind),
        "compare" => {
            w.attr("direction", &i.comparison_direction);
            // XLA's protos always say it, its text only where it is not the operands' own.
            if !i.comparison_type.is_empty() && i.comparison_type != own_comparison(i, names)? {
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
        "copy-start" => {
            if let Some(n) = i.cross_program_prefetch_index {
                w.attr("cross_program_prefetch_index", n);
            }
        }
        _ => {}
    }
    write_dimension_numbers(w, i)?;
    if i.opcode == "custom-call" {
        write_custom_call(w, i)?;
    }
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

/// How a comparison's operands are compared unless it says otherwise.
fn own_comparison(i: &Instruction, names: &Names<'_>) -> Result<&'static str, String> {
    let &operand = i
        .operand_ids
        .first()
        .ok_or("a comparison without operands")?;
    let number = names.shape(operand)?.element_type;
    let element_type = u32::try_from(number)
        .ok()
        .and_then(ElementType::from_proto_number);
    Ok(match element_type {
        Some(t) if t.is_float() || t.is_complex() => "FLOAT",
        Some(t) if t.is_signed_integer() => "SIGNED",
        _ => "UNSIGNED",
    })
}

/// `, domain={kind="sharding", entry={...}, exit={...}}`. The text enters where the proto exits: one
/// looks at the edge from its user, the other from its operand.
fn write_domain(w: &mut Writer<'_>, i: &Instruction) -> Result<(), String> {
    let (Some(entry), Some(exit)) = (&i.domain_exit_sharding, &i.domain_entry_sharding) else {
        return Err("a domain without shardings on both sides".to_owned());
    };
    w.out.push_str(", domain={kind=\"sharding\", entry=");
    write_sharding(w.out, entry)?;
    w.out.push_str(", exit=");
    write_sharding(w.out, exit)?;
    w.out.push('}');
    Ok(())
}

fn write_custom_call(w: &mut Writer<'_>, i: &Instruction) -> Result<(), String> {
    if i.padding_type != 0 {
        w.attr("padding_type", word(&PADDING_TYPES, i.padding_type)?);
    }
    w.attr(
        "custom_call_target",
        format_args!("\"{}\"", escape(i.custom_call_target.as_bytes())),
    );
    let constraints = &i.operand_shapes_with_layout;
    if i.constrain_layout && (!constraints.is_empty() || i.operand_ids.is_empty()) {
        w.out.push_str(", operand_layout_constraints={");
        write_shapes(w.out, constraints)?;
        w.out.push('}');
    }
    w.flag("custom_call_has_side_effect", i.custom_call_has_side_effect);
    if let Some(literal) = i.literal.as_deref() {
        w.out.push_str(", literal=");
        write_literal_with_shape(w.out, literal)?;
    }
    write_operand_aliasing(w, i);
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

fn write_collective(w: &mut Writer<'_>, i: &Instruction, names: &Names<'_>) -> Result<(), String> {
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
    if i.opcode.starts_with("collective-permute") && !i.dynamic_slice_sizes.is_empty() {
        let operand = i.operand_ids.first().ok_or("slices of no operand")?;
        let slices = slice_sizes(&i.dynamic_slice_sizes, names.shape(*operand)?)?;
        w.attr("slice_sizes", slices);
    }
    Ok(())
}

/// `{{1,2},{3,4}}`: the proto has all sizes in one list, equally many slices of each array.
fn slice_sizes(sizes: &[i64], operand: &Shape) -> Result<String, String> {
    let arrays = match operand.element_type {
        shape::TUPLE => &operand.tuple_shapes[..],
        _ => std::slice::from_ref(operand),
    };
    let all: usize = arrays.iter().map(|a| a.dimensions.len()).sum();
    if all == 0 || !sizes.len().is_multiple_of(all) {
        return Err(format!("{} sizes of slices of rank {all}", sizes.len()));
    }
    let slices_each = sizes.len() / all;
    let mut rest = sizes;
    let mut lists = Vec::new();
    for array in arrays {
        for _ in 0..slices_each {
            let (slice, others) = rest.split_at(array.dimensions.len());
            lists.push(format!("{{{}}}", join(slice)));
            rest = others;
        }
    }
    Ok(format!("{{{}}}", lists.join(",")))
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
