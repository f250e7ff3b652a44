//! Attributes of instructions.

use slabplan_ir::Opcode;
use slabplan_ir::attr::{
    Attr, AttrName, AttrValue, ConvDimLabels, PaddingDim, SliceDim, WindowDim,
};
use slabplan_ir::strings::Str;

use super::scan::Scan;
use super::{Writer, devices, literal, scan, shape, sharding, tracking};
use crate::frontend::proto::enums::{
    API_VERSIONS, CONVOLUTION_KINDS, DOT_ALGORITHMS, FFT_TYPES, PADDING_TYPES, PRECISIONS,
    RNG_ALGORITHMS, RNG_DISTRIBUTIONS, SCHEDULES, TRANSPOSES, number,
};
use crate::frontend::proto::messages::{
    self, CholeskyOptions, ConvolutionDims, DotDims, GatherDims, Instruction,
    OutputOperandAliasing, PaddingConfig, ParameterReplication, PrecisionConfig, RaggedDotDims,
    ScatterDims, SourceTarget, TriangularSolveOptions, Window,
};

impl Writer<'_> {
    /// Puts an attribute where the proto has it.
    pub(super) fn attribute(
        &mut self,
        opcode: Opcode,
        attr: &Attr,
        i: &mut Instruction,
    ) -> Result<(), String> {
        match &attr.value {
            AttrValue::Int(n) => return int(opcode, attr.name, *n, i),
            AttrValue::Bool(b) => self.flag(attr.name, *b, i),
            AttrValue::Ident(word) => return self.ident(opcode, attr.name, *word, i),
            AttrValue::Idents(words) => {
                let words = words
                    .iter()
                    .map(|&w| number(&PRECISIONS, self.module.str(w)));
                let precision = i
                    .precision_config
                    .get_or_insert_with(PrecisionConfig::default);
                precision.operand_precision = words.collect::<Result<_, _>>()?;
            }
            AttrValue::Raw(text) => return self.raw(attr.name, *text, i),
            AttrValue::Ints(list) => self.ints(attr.name, list, i),
            AttrValue::Comp(comp) => {
                let id = self.comp_ids[*comp];
                // The proto has a while's body first, the text its condition.
                if attr.name == AttrName::Body {
                    i.called_computation_ids.insert(0, id);
                } else {
                    i.called_computation_ids.push(id);
                }
            }
            AttrValue::Comps(comps) => {
                i.called_computation_ids
                    .extend(comps.iter().map(|&c| self.comp_ids[c]));
            }
            AttrValue::Instrs(instrs) => {
                i.control_predecessor_ids = instrs.iter().map(|&p| self.ids[p]).collect();
            }
            AttrValue::Window(dims) => i.window = Some(window(dims)),
            AttrValue::DimLabels(labels) => {
                i.convolution_dimension_numbers = Some(convolution(labels));
            }
            AttrValue::Padding(dims) => i.padding_config = Some(padding(dims)),
            AttrValue::Slice(dims) => i.slice_dimensions = dims.iter().map(slice).collect(),
            AttrValue::Pairs(pairs) => {
                let pairs = pairs.iter();
                i.source_target_pairs = pairs
                    .map(|&(source, target)| SourceTarget { source, target })
                    .collect();
            }
            AttrValue::ReplicaGroups(groups) => {
                let text = |s| self.module.str(s).to_owned();
                return devices::replica_groups(groups, text, i);
            }
            AttrValue::Shape(id) => {
                i.outfeed_shape = Some(shape::shape(&self.module.shapes, *id));
            }
            AttrValue::Shapes(ids) => {
                i.constrain_layout = true;
                i.operand_shapes_with_layout = ids
                    .iter()
                    .map(|&s| shape::shape(&self.module.shapes, s))
                    .collect();
            }
            AttrValue::Aliasing(aliases) => {
                let aliases = aliases.iter().map(|a| OutputOperandAliasing {
                    output: shape::index(&a.output_index),
                    operand: i64::from(a.operand),
                    operand_part: shape::index(&a.operand_index),
                });
                i.output_operand_aliasing = aliases.collect();
            }
        }
        Ok(())
    }

    fn flag(&mut self, name: AttrName, value: bool, i: &mut Instruction) {
        let field = match name {
            AttrName::ConstrainLayout => &mut i.constrain_layout,
            AttrName::CustomCallHasSideEffect => &mut i.custom_call_has_side_effect,
            AttrName::IndicesAreSorted => &mut i.indices_are_sorted,
            AttrName::IsComposite => &mut i.is_composite,
            AttrName::IsHostTransfer => &mut i.is_host_transfer,
            AttrName::IsStable => &mut i.is_stable,
            AttrName::IsReverse => &mut i.is_reverse,
            AttrName::IsAssociative => {
                i.is_associative = if value { 1 } else { 2 };
                return;
            }
            AttrName::Largest => &mut i.largest,
            AttrName::UniqueIndices => &mut i.unique_indices,
            AttrName::UseGlobalDeviceIds => &mut i.use_global_device_ids,
            AttrName::Lower => match &mut i.triangular_solve_options {
                Some(options) => &mut options.lower,
                None if i.opcode == "cholesky" => {
                    let options = i
                        .cholesky_options
                        .get_or_insert_with(CholeskyOptions::default);
                    &mut options.lower
                }
                None => &mut solve(i).lower,
            },
            AttrName::LeftSide => &mut solve(i).left_side,
            AttrName::UnitDiagonal => &mut solve(i).unit_diagonal,
            other => return self.leave_out(other.name()),
        };
        *field = value;
    }

    fn ident(
        &mut self,
        opcode: Opcode,
        name: AttrName,
        word: Str,
        i: &mut Instruction,
    ) -> Result<(), String> {
        let text = self.module.str(word);
        let bytes = || scan::unquoted(text);
        let string =
            || String::from_utf8(scan::unquoted(text)?).map_err(|_| "not UTF-8".to_owned());
        match name {
            AttrName::Kind => text.clone_into(&mut i.fusion_kind),
            AttrName::Direction => text.clone_into(&mut i.comparison_direction),
            AttrName::Type => text.clone_into(&mut i.comparison_type),
            AttrName::CustomCallTarget => i.custom_call_target = string()?,
            AttrName::AsyncExecutionThread => {
                i.async_execution_thread = string()?;
                if i.async_execution_thread == "main" {
                    i.async_execution_thread.clear();
                }
            }
            AttrName::InfeedConfig => i.infeed_config = bytes()?,
            AttrName::OutfeedConfig => i.outfeed_config = bytes()?,
            AttrName::ApiVersion => i.custom_call_api_version = number(&API_VERSIONS, text)?,
            AttrName::Schedule => i.custom_call_schedule = number(&SCHEDULES, text)?,
            AttrName::PaddingType => i.padding_type = number(&PADDING_TYPES, text)?,
            AttrName::ConvolutionKind => i.conv_kind = number(&CONVOLUTION_KINDS, text)?,
            AttrName::FftType => i.fft_type = number(&FFT_TYPES, text)?,
            AttrName::Distribution => i.distribution = number(&RNG_DISTRIBUTIONS, text)?,
            AttrName::TransposeA => solve(i).transpose_a = number(&TRANSPOSES, text)?,
            AttrName::Algorithm if opcode == Opcode::RngBitGenerator => {
                i.rng_algorithm = number(&RNG_ALGORITHMS, text)?;
            }
            AttrName::Algorithm => {
                let precision = i
                    .precision_config
                    .get_or_insert_with(PrecisionConfig::default);
                precision.algorithm = number(&DOT_ALGORITHMS, text)?;
            }
            AttrName::Epsilon => {
                i.epsilon = text
                    .parse()
                    .map_err(|_| format!("`{text}` is not a number"))?;
            }
            other => self.leave_out(other.name()),
        }
        Ok(())
    }

    fn raw(&mut self, name: AttrName, raw: Str, i: &mut Instruction) -> Result<(), String> {
        let text = self.module.str(raw);
        match name {
            AttrName::BackendConfig => i.backend_config = scan::unquoted(text)?,
            AttrName::Metadata => i.metadata = Some(scan::metadata(text)?),
            AttrName::FrontendAttributes => {
                i.frontend_attributes = Some(scan::frontend_attributes(text)?);
            }
            AttrName::Sharding => {
                i.sharding = Some(sharding::sharding(text)?);
            }
            AttrName::Domain => domain(text, i)?,
            AttrName::Statistics => i.statistics_viz = Some(tracking::statistics(text)?),
            AttrName::Origin => i.original_value = Some(tracking::origin(text)?),
            AttrName::ResultAccuracy => {
                i.result_accuracy = Some(tracking::result_accuracy(text)?);
            }
            AttrName::SparsityConfig => {
                i.sparsity_config = Some(tracking::sparsity_config(text)?);
            }
            AttrName::SliceSizes => i.dynamic_slice_sizes = slice_sizes(text)?,
            AttrName::Literal => {
                i.literal = literal::with_shape(text)?.map(Box::new);
            }
            AttrName::DimLabels => {
                i.convolution_dimension_numbers = Some(partial_labels(text)?);
            }
            AttrName::ParameterReplication => {
                let words = text.trim_matches(['{', '}']).split(',');
                let replicated_at_leaf_buffers = words.map(|w| w.trim() == "true").collect();
                i.parameter_replication = Some(ParameterReplication {
                    replicated_at_leaf_buffers,
                });
            }
            _ => return self.ident(Opcode::Tuple, name, raw, i),
        }
        Ok(())
    }

    fn ints(&mut self, name: AttrName, list: &[i64], i: &mut Instruction) {
        let field = match name {
            AttrName::Dimensions => &mut i.dimensions,
            AttrName::DynamicSliceSizes => &mut i.dynamic_slice_sizes,
            AttrName::FftLength => &mut i.fft_length,
            AttrName::SliceSizes if i.opcode == "gather" => &mut i.gather_slice_sizes,
            AttrName::SliceSizes => &mut i.dynamic_slice_sizes,
            AttrName::OffsetDims => &mut gather(i).offset_dims,
            AttrName::CollapsedSliceDims => &mut gather(i).collapsed_slice_dims,
            AttrName::StartIndexMap => &mut gather(i).start_index_map,
            AttrName::OperandBatchingDims => &mut gather(i).operand_batching_dims,
            AttrName::StartIndicesBatchingDims => &mut gather(i).start_indices_batching_dims,
            AttrName::UpdateWindowDims => &mut scatter(i).update_window_dims,
            AttrName::InsertedWindowDims => &mut scatter(i).inserted_window_dims,
            AttrName::ScatterDimsToOperandDims => &mut scatter(i).to_operand_dims,
            AttrName::InputBatchingDims => &mut scatter(i).input_batching_dims,
            AttrName::ScatterIndicesBatchingDims => &mut scatter(i).scatter_indices_batching_dims,
            AttrName::LhsContractingDims => &mut dot(i).lhs_contracting,
            AttrName::RhsContractingDims => &mut dot(i).rhs_contracting,
            AttrName::LhsBatchDims => &mut dot(i).lhs_batch,
            AttrName::RhsBatchDims => &mut dot(i).rhs_batch,
            AttrName::LhsRaggedDims => &mut ragged(i).lhs_ragged,
            AttrName::RhsGroupDims => &mut ragged(i).rhs_group,
            other => return self.leave_out(other.name()),
        };
        *field = list.to_vec();
    }
}

fn int(opcode: Opcode, name: AttrName, n: i64, i: &mut Instruction) -> Result<(), String> {
    let small = || i32::try_from(n).map_err(|_| format!("{n} is too large"));
    match name {
        AttrName::BatchGroupCount => i.batch_group_count = n,
        AttrName::ChannelId => i.channel_id = n,
        AttrName::CrossProgramPrefetchIndex => i.cross_program_prefetch_index = Some(small()?),
        AttrName::Delta => i.delta = n,
        AttrName::ExponentBits => i.exponent_bits = small()?,
        AttrName::MantissaBits => i.mantissa_bits = small()?,
        AttrName::FeatureGroupCount => i.feature_group_count = n,
        AttrName::FeatureIndex => i.feature_index = n,
        AttrName::Index => i.tuple_index = n,
        AttrName::IndexVectorDim if opcode == Opcode::Scatter => scatter(i).index_vector_dim = n,
        AttrName::IndexVectorDim => gather(i).index_vector_dim = n,
        AttrName::InferredDimension | AttrName::IotaDimension => i.dimensions = vec![n],
        AttrName::K => i.k = n,
        AttrName::NumCarries => i.num_carries = n,
        _ => return Err("it has no place in the proto that is written".to_owned()),
    }
    Ok(())
}

/// `{kind="sharding", entry={...}, exit={...}}`: the proto enters where the text exits.
fn domain(text: &str, i: &mut Instruction) -> Result<(), String> {
    Scan::new(text).fields(|scan, key| {
        match key {
            "kind" => match scan.string()?.as_slice() {
                b"sharding" => {}
                _ => return Err("a domain of something else than shardings".to_owned()),
            },
            "entry" => i.domain_exit_sharding = Some(sharding::sharding(scan.dictionary()?)?),
            "exit" => i.domain_entry_sharding = Some(sharding::sharding(scan.dictionary()?)?),
            _ => return Err(format!("unknown key `{key}`")),
        }
        Ok(())
    })
}

/// `{{1,2},{3,4}}`: the proto has them in one list.
fn slice_sizes(text: &str) -> Result<Vec<i64>, String> {
    let mut scan = Scan::new(text);
    let mut sizes = Vec::new();
    scan.expect("{")?;
    while !scan.eat("}") {
        scan.eat(",");
        scan.expect("{")?;
        sizes.extend(scan.ints::<i64>("}")?);
    }
    Ok(sizes)
}

/// `b?f_?io->b0f`: labels with dimensions that mean nothing.
fn partial_labels(text: &str) -> Result<ConvolutionDims, String> {
    let form = || "malformed dimension labels".to_owned();
    let (input, rest) = text.split_once('_').ok_or_else(form)?;
    let (kernel, output) = rest.split_once("->").ok_or_else(form)?;
    let place = |side: &str, label: char| side.find(label).map(|at| at as i64);
    let spatial = |side: &str| {
        ('0'..='9')
            .map_while(|label| place(side, label))
            .collect::<Vec<i64>>()
    };
    Ok(ConvolutionDims {
        kernel_input_feature: place(kernel, 'i').ok_or_else(form)?,
        kernel_output_feature: place(kernel, 'o').ok_or_else(form)?,
        kernel_spatial: spatial(kernel),
        input_batch: place(input, 'b').ok_or_else(form)?,
        input_feature: place(input, 'f').ok_or_else(form)?,
        output_batch: place(output, 'b').ok_or_else(form)?,
        output_feature: place(output, 'f').ok_or_else(form)?,
        input_spatial: spatial(input),
        output_spatial: spatial(output),
    })
}

fn solve(i: &mut Instruction) -> &mut TriangularSolveOptions {
    i.triangular_solve_options
        .get_or_insert_with(TriangularSolveOptions::default)
}

fn gather(i: &mut Instruction) -> &mut GatherDims {
    i.gather_dimension_numbers
        .get_or_insert_with(GatherDims::default)
}

fn scatter(i: &mut Instruction) -> &mut ScatterDims {
    i.scatter_dimension_numbers
        .get_or_insert_with(ScatterDims::default)
}

fn ragged(i: &mut Instruction) -> &mut RaggedDotDims {
    i.ragged_dot_dimension_numbers
        .get_or_insert_with(RaggedDotDims::default)
}

fn dot(i: &mut Instruction) -> &mut DotDims {
    if i.opcode == "ragged-dot" {
        return ragged(i).dot.get_or_insert_with(DotDims::default);
    }
    i.dot_dimension_numbers.get_or_insert_with(DotDims::default)
}

fn window(dims: &[WindowDim]) -> Window {
    let dim = |d: &WindowDim| messages::WindowDim {
        size: d.size,
        stride: d.stride,
        padding_low: d.pad_low,
        padding_high: d.pad_high,
        window_dilation: d.window_dilation,
        base_dilation: d.base_dilation,
        window_reversal: d.reversal,
    };
    Window {
        dimensions: dims.iter().map(dim).collect(),
    }
}

fn convolution(labels: &ConvDimLabels) -> ConvolutionDims {
    let list = |dims: &[usize]| dims.iter().map(|&d| d as i64).collect();
    ConvolutionDims {
        kernel_input_feature: labels.kernel_input_feature as i64,
        kernel_output_feature: labels.kernel_output_feature as i64,
        kernel_spatial: list(&labels.kernel_spatial),
        input_batch: labels.input_batch as i64,
        input_feature: labels.input_feature as i64,
        output_batch: labels.output_batch as i64,
        output_feature: labels.output_feature as i64,
        input_spatial: list(&labels.input_spatial),
        output_spatial: list(&labels.output_spatial),
    }
}

fn padding(dims: &[PaddingDim]) -> PaddingConfig {
    let dim = |d: &PaddingDim| messages::PaddingDim {
        low: d.low,
        high: d.high,
        interior: d.interior,
    };
    PaddingConfig {
        dimensions: dims.iter().map(dim).collect(),
    }
}

fn slice(d: &SliceDim) -> messages::SliceDim {
    messages::SliceDim {
        start: d.start,
        limit: d.limit,
        stride: d.stride,
    }
}
