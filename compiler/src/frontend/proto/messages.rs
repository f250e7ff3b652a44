//! The messages of `xla/service/hlo.proto` and `xla/xla_data.proto` that a module is read from.
//!
//! Declared by hand with their field numbers; fields that neither planning nor
//! execution looks at are left out, and skipped on reading.

use std::collections::BTreeMap;

use prost::Message;

/// `xla.HloProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HloProto {
    #[prost(message, optional, tag = "1")]
    pub(super) hlo_module: Option<HloModule>,
}

/// `xla.HloModuleProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HloModule {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) computations: Vec<Computation>,
    #[prost(message, optional, tag = "4")]
    pub(super) host_program_shape: Option<ProgramShape>,
    #[prost(int64, tag = "6")]
    pub(super) entry_computation_id: i64,
    #[prost(message, optional, tag = "7")]
    pub(super) schedule: Option<Schedule>,
    #[prost(message, optional, tag = "8")]
    pub(super) input_output_alias: Option<InputOutputAlias>,
    #[prost(message, optional, tag = "17")]
    pub(super) stack_frame_index: Option<StackFrameIndex>,
    #[prost(message, optional, tag = "18")]
    pub(super) buffer_donor: Option<BufferDonor>,
    #[prost(message, optional, tag = "19")]
    pub(super) frontend_attributes: Option<FrontendAttributes>,
}

/// `xla.HloScheduleProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Schedule {
    #[prost(btree_map = "int64, message", tag = "1")]
    pub(super) sequences: BTreeMap<i64, Sequence>,
}

/// `xla.HloScheduleProto.InstructionSequence`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Sequence {
    #[prost(int64, repeated, tag = "1")]
    pub(super) instruction_ids: Vec<i64>,
}

/// `xla.HloInputOutputAliasProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InputOutputAlias {
    #[prost(message, repeated, tag = "1")]
    pub(super) entries: Vec<AliasEntry>,
}

/// `xla.HloInputOutputAliasProto.AliasEntryProto`; kind 2 is must-alias.
#[derive(Clone, PartialEq, Message)]
pub(super) struct AliasEntry {
    #[prost(int64, repeated, tag = "1")]
    pub(super) output_shape_index: Vec<i64>,
    #[prost(int64, tag = "2")]
    pub(super) parameter_number: i64,
    #[prost(int64, repeated, tag = "3")]
    pub(super) parameter_shape_index: Vec<i64>,
    #[prost(int32, tag = "4")]
    pub(super) kind: i32,
}

/// `xla.HloBufferDonorProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct BufferDonor {
    #[prost(message, repeated, tag = "1")]
    pub(super) entries: Vec<DonorEntry>,
}

/// `xla.HloBufferDonorProto.BufferDonorEntryProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DonorEntry {
    #[prost(int64, tag = "1")]
    pub(super) parameter_number: i64,
    #[prost(int64, repeated, tag = "2")]
    pub(super) parameter_shape_index: Vec<i64>,
}

/// `xla.StackFrameIndexProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StackFrameIndex {
    #[prost(string, repeated, tag = "1")]
    pub(super) file_names: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(super) function_names: Vec<String>,
    #[prost(message, repeated, tag = "3")]
    pub(super) file_locations: Vec<FileLocation>,
    #[prost(message, repeated, tag = "4")]
    pub(super) stack_frames: Vec<StackFrame>,
}

/// `xla.StackFrameIndexProto.FileLocation`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FileLocation {
    #[prost(int32, tag = "1")]
    pub(super) file_name_id: i32,
    #[prost(int32, tag = "2")]
    pub(super) function_name_id: i32,
    #[prost(int32, tag = "3")]
    pub(super) line: i32,
    #[prost(int32, tag = "4")]
    pub(super) column: i32,
    #[prost(int32, tag = "5")]
    pub(super) end_line: i32,
    #[prost(int32, tag = "6")]
    pub(super) end_column: i32,
}

/// `xla.StackFrameIndexProto.StackFrame`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StackFrame {
    #[prost(int32, tag = "1")]
    pub(super) file_location_id: i32,
    #[prost(int32, tag = "2")]
    pub(super) parent_frame_id: i32,
}

/// `xla.FrontendAttributes`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FrontendAttributes {
    #[prost(btree_map = "string, string", tag = "1")]
    pub(super) map: BTreeMap<String, String>,
}

/// `xla.HloComputationProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Computation {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) instructions: Vec<Instruction>,
    #[prost(int64, tag = "5")]
    pub(super) id: i64,
    #[prost(int64, tag = "6")]
    pub(super) root_id: i64,
    #[prost(string, tag = "8")]
    pub(super) execution_thread: String,
}

/// `xla.HloInstructionProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Instruction {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) opcode: String,
    #[prost(message, optional, tag = "3")]
    pub(super) shape: Option<Shape>,
    #[prost(message, optional, tag = "7")]
    pub(super) metadata: Option<Metadata>,
    #[prost(message, optional, boxed, tag = "8")]
    pub(super) literal: Option<Box<Literal>>,
    #[prost(int64, tag = "9")]
    pub(super) parameter_number: i64,
    #[prost(string, tag = "11")]
    pub(super) fusion_kind: String,
    #[prost(int64, tag = "13")]
    pub(super) tuple_index: i64,
    #[prost(int64, repeated, tag = "14")]
    pub(super) dimensions: Vec<i64>,
    #[prost(message, optional, tag = "15")]
    pub(super) window: Option<Window>,
    #[prost(message, optional, tag = "16")]
    pub(super) convolution_dimension_numbers: Option<ConvolutionDims>,
    #[prost(message, repeated, tag = "17")]
    pub(super) slice_dimensions: Vec<SliceDim>,
    #[prost(int32, tag = "18")]
    pub(super) exponent_bits: i32,
    #[prost(int32, tag = "19")]
    pub(super) mantissa_bits: i32,
    #[prost(int64, repeated, tag = "20")]
    pub(super) dynamic_slice_sizes: Vec<i64>,
    #[prost(message, optional, tag = "21")]
    pub(super) padding_config: Option<PaddingConfig>,
    #[prost(bytes = "vec", tag = "22")]
    pub(super) outfeed_config: Vec<u8>,
    #[prost(int32, tag = "23")]
    pub(super) distribution: i32,
    #[prost(float, tag = "24")]
    pub(super) epsilon: f32,
    #[prost(int64, tag = "25")]
    pub(super) feature_index: i64,
    #[prost(int64, tag = "26")]
    pub(super) channel_id: i64,
    #[prost(bytes = "vec", tag = "27")]
    pub(super) infeed_config: Vec<u8>,
    #[prost(string, tag = "28")]
    pub(super) custom_call_target: String,
    #[prost(message, optional, tag = "29")]
    pub(super) outfeed_shape: Option<Shape>,
    #[prost(message, optional, tag = "30")]
    pub(super) dot_dimension_numbers: Option<DotDims>,
    #[prost(int32, tag = "31")]
    pub(super) fft_type: i32,
    #[prost(int64, repeated, tag = "32")]
    pub(super) fft_length: Vec<i64>,
    #[prost(message, optional, tag = "33")]
    pub(super) gather_dimension_numbers: Option<GatherDims>,
    #[prost(int64, repeated, tag = "34")]
    pub(super) gather_slice_sizes: Vec<i64>,
    #[prost(int64, tag = "35")]
    pub(super) id: i64,
    #[prost(int64, repeated, tag = "36")]
    pub(super) operand_ids: Vec<i64>,
    #[prost(int64, repeated, tag = "37")]
    pub(super) control_predecessor_ids: Vec<i64>,
    #[prost(int64, repeated, tag = "38")]
    pub(super) called_computation_ids: Vec<i64>,
    #[prost(bytes = "vec", tag = "43")]
    pub(super) backend_config: Vec<u8>,
    #[prost(bool, tag = "47")]
    pub(super) is_host_transfer: bool,
    #[prost(message, optional, tag = "48")]
    pub(super) scatter_dimension_numbers: Option<ScatterDims>,
    #[prost(message, repeated, tag = "49")]
    pub(super) replica_groups: Vec<ReplicaGroup>,
    #[prost(int64, tag = "50")]
    pub(super) feature_group_count: i64,
    #[prost(message, optional, tag = "51")]
    pub(super) precision_config: Option<PrecisionConfig>,
    #[prost(message, repeated, tag = "52")]
    pub(super) source_target_pairs: Vec<SourceTarget>,
    #[prost(bool, tag = "56")]
    pub(super) constrain_layout: bool,
    #[prost(message, repeated, tag = "57")]
    pub(super) operand_shapes_with_layout: Vec<Shape>,
    #[prost(int64, tag = "58")]
    pub(super) batch_group_count: i64,
    #[prost(message, optional, tag = "59")]
    pub(super) triangular_solve_options: Option<TriangularSolveOptions>,
    #[prost(bool, tag = "60")]
    pub(super) is_stable: bool,
    #[prost(message, optional, tag = "62")]
    pub(super) cholesky_options: Option<CholeskyOptions>,
    #[prost(string, tag = "63")]
    pub(super) comparison_direction: String,
    #[prost(bool, tag = "65")]
    pub(super) custom_call_has_side_effect: bool,
    #[prost(int64, tag = "66")]
    pub(super) delta: i64,
    #[prost(bool, tag = "67")]
    pub(super) indices_are_sorted: bool,
    #[prost(message, optional, tag = "68")]
    pub(super) frontend_attributes: Option<FrontendAttributes>,
    #[prost(bool, tag = "69")]
    pub(super) unique_indices: bool,
    #[prost(int32, tag = "70")]
    pub(super) rng_algorithm: i32,
    #[prost(bool, tag = "71")]
    pub(super) use_global_device_ids: bool,
    #[prost(string, tag = "72")]
    pub(super) comparison_type: String,
    #[prost(message, repeated, tag = "74")]
    pub(super) output_operand_aliasing: Vec<OutputOperandAliasing>,
    #[prost(int32, tag = "75")]
    pub(super) padding_type: i32,
    #[prost(int32, tag = "76")]
    pub(super) custom_call_schedule: i32,
    #[prost(int32, tag = "77")]
    pub(super) custom_call_api_version: i32,
    #[prost(string, tag = "79")]
    pub(super) async_execution_thread: String,
    #[prost(int32, optional, tag = "80")]
    pub(super) cross_program_prefetch_index: Option<i32>,
    #[prost(int64, tag = "81")]
    pub(super) k: i64,
    #[prost(bool, tag = "85")]
    pub(super) largest: bool,
    #[prost(message, optional, tag = "87")]
    pub(super) collective_device_list: Option<CollectiveDeviceList>,
    #[prost(bool, tag = "89")]
    pub(super) is_composite: bool,
    #[prost(message, optional, tag = "90")]
    pub(super) ragged_dot_dimension_numbers: Option<RaggedDotDims>,
    #[prost(message, optional, tag = "93")]
    pub(super) mesh_axes_replica_group_list: Option<MeshGroups>,
}

/// `xla.OpMetadata`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Metadata {
    #[prost(string, tag = "1")]
    pub(super) op_type: String,
    #[prost(string, tag = "2")]
    pub(super) op_name: String,
    #[prost(string, tag = "3")]
    pub(super) source_file: String,
    #[prost(int32, tag = "4")]
    pub(super) source_line: i32,
    #[prost(int32, tag = "15")]
    pub(super) stack_frame_id: i32,
    #[prost(string, tag = "16")]
    pub(super) scheduling_name: String,
    #[prost(string, tag = "12")]
    pub(super) deduplicated_name: String,
}

/// `xla.ShapeProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Shape {
    #[prost(int32, tag = "2")]
    pub(super) element_type: i32,
    #[prost(int64, repeated, tag = "3")]
    pub(super) dimensions: Vec<i64>,
    #[prost(message, repeated, tag = "4")]
    pub(super) tuple_shapes: Vec<Shape>,
    #[prost(message, optional, tag = "5")]
    pub(super) layout: Option<Layout>,
    #[prost(bool, repeated, tag = "6")]
    pub(super) is_dynamic_dimension: Vec<bool>,
}

/// `xla.LayoutProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Layout {
    #[prost(int64, repeated, tag = "1")]
    pub(super) minor_to_major: Vec<i64>,
    #[prost(message, repeated, tag = "6")]
    pub(super) tiles: Vec<Tile>,
    #[prost(int64, tag = "7")]
    pub(super) element_size_in_bits: i64,
    #[prost(int64, tag = "8")]
    pub(super) memory_space: i64,
    #[prost(int64, tag = "15")]
    pub(super) dynamic_shape_metadata_prefix_bytes: i64,
    #[prost(int64, tag = "16")]
    pub(super) tail_padding_alignment_in_elements: i64,
    #[prost(message, repeated, tag = "17")]
    pub(super) split_configs: Vec<SplitConfig>,
}

/// `xla.TileProto`; the smallest integer stands for `*`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Tile {
    #[prost(int64, repeated, tag = "1")]
    pub(super) dimensions: Vec<i64>,
}

/// `xla.SplitConfigProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SplitConfig {
    #[prost(int64, tag = "1")]
    pub(super) dimension: i64,
    #[prost(int64, repeated, tag = "2")]
    pub(super) split_indices: Vec<i64>,
}

/// `xla.ProgramShapeProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ProgramShape {
    #[prost(message, repeated, tag = "1")]
    pub(super) parameters: Vec<Shape>,
    #[prost(message, optional, tag = "2")]
    pub(super) result: Option<Shape>,
}

/// `xla.LiteralProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Literal {
    #[prost(message, optional, tag = "1")]
    pub(super) shape: Option<Shape>,
    #[prost(bool, repeated, tag = "2")]
    pub(super) preds: Vec<bool>,
    #[prost(bytes = "vec", tag = "3")]
    pub(super) u8s: Vec<u8>,
    #[prost(int32, repeated, tag = "4")]
    pub(super) s32s: Vec<i32>,
    #[prost(int64, repeated, tag = "5")]
    pub(super) s64s: Vec<i64>,
    #[prost(uint32, repeated, tag = "6")]
    pub(super) u32s: Vec<u32>,
    #[prost(uint64, repeated, tag = "7")]
    pub(super) u64s: Vec<u64>,
    #[prost(float, repeated, tag = "8")]
    pub(super) f32s: Vec<f32>,
    #[prost(double, repeated, tag = "9")]
    pub(super) f64s: Vec<f64>,
    #[prost(message, repeated, tag = "10")]
    pub(super) tuple_literals: Vec<Literal>,
    #[prost(bytes = "vec", tag = "11")]
    pub(super) f16s: Vec<u8>,
    #[prost(float, repeated, tag = "12")]
    pub(super) c64s: Vec<f32>,
    #[prost(bytes = "vec", tag = "13")]
    pub(super) bf16s: Vec<u8>,
    #[prost(bytes = "vec", tag = "15")]
    pub(super) s8s: Vec<u8>,
    #[prost(bytes = "vec", tag = "16")]
    pub(super) u16s: Vec<u8>,
    #[prost(bytes = "vec", tag = "17")]
    pub(super) s16s: Vec<u8>,
    #[prost(double, repeated, tag = "18")]
    pub(super) c128s: Vec<f64>,
    #[prost(bytes = "vec", tag = "19")]
    pub(super) f8e5m2s: Vec<u8>,
    #[prost(bytes = "vec", tag = "20")]
    pub(super) f8e4m3fns: Vec<u8>,
    #[prost(bytes = "vec", tag = "21")]
    pub(super) s4s: Vec<u8>,
    #[prost(bytes = "vec", tag = "22")]
    pub(super) u4s: Vec<u8>,
    #[prost(bytes = "vec", tag = "23")]
    pub(super) f8e4m3b11fnuzs: Vec<u8>,
    #[prost(bytes = "vec", tag = "24")]
    pub(super) f8e5m2fnuzs: Vec<u8>,
    #[prost(bytes = "vec", tag = "25")]
    pub(super) f8e4m3fnuzs: Vec<u8>,
    #[prost(bytes = "vec", tag = "26")]
    pub(super) s2s: Vec<u8>,
    #[prost(bytes = "vec", tag = "27")]
    pub(super) u2s: Vec<u8>,
    #[prost(bytes = "vec", tag = "28")]
    pub(super) f8e4m3s: Vec<u8>,
    #[prost(bytes = "vec", tag = "29")]
    pub(super) f8e3m4s: Vec<u8>,
    #[prost(bytes = "vec", tag = "30")]
    pub(super) s1s: Vec<u8>,
    #[prost(bytes = "vec", tag = "31")]
    pub(super) u1s: Vec<u8>,
    #[prost(bytes = "vec", tag = "32")]
    pub(super) f4e2m1fns: Vec<u8>,
    #[prost(bytes = "vec", tag = "33")]
    pub(super) f8e8m0fnus: Vec<u8>,
}

/// `xla.Window`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Window {
    #[prost(message, repeated, tag = "1")]
    pub(super) dimensions: Vec<WindowDim>,
}

/// `xla.WindowDimension`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct WindowDim {
    #[prost(int64, tag = "1")]
    pub(super) size: i64,
    #[prost(int64, tag = "2")]
    pub(super) stride: i64,
    #[prost(int64, tag = "3")]
    pub(super) padding_low: i64,
    #[prost(int64, tag = "4")]
    pub(super) padding_high: i64,
    #[prost(int64, tag = "5")]
    pub(super) window_dilation: i64,
    #[prost(int64, tag = "6")]
    pub(super) base_dilation: i64,
    #[prost(bool, tag = "7")]
    pub(super) window_reversal: bool,
}

/// `xla.ConvolutionDimensionNumbers`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ConvolutionDims {
    #[prost(int64, tag = "3")]
    pub(super) kernel_input_feature: i64,
    #[prost(int64, tag = "4")]
    pub(super) kernel_output_feature: i64,
    #[prost(int64, repeated, tag = "6")]
    pub(super) kernel_spatial: Vec<i64>,
    #[prost(int64, tag = "7")]
    pub(super) input_batch: i64,
    #[prost(int64, tag = "8")]
    pub(super) input_feature: i64,
    #[prost(int64, tag = "9")]
    pub(super) output_batch: i64,
    #[prost(int64, tag = "10")]
    pub(super) output_feature: i64,
    #[prost(int64, repeated, tag = "11")]
    pub(super) input_spatial: Vec<i64>,
    #[prost(int64, repeated, tag = "12")]
    pub(super) output_spatial: Vec<i64>,
}

/// `xla.HloInstructionProto.SliceDimensions`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SliceDim {
    #[prost(int64, tag = "1")]
    pub(super) start: i64,
    #[prost(int64, tag = "2")]
    pub(super) limit: i64,
    #[prost(int64, tag = "3")]
    pub(super) stride: i64,
}

/// `xla.PaddingConfig`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PaddingConfig {
    #[prost(message, repeated, tag = "1")]
    pub(super) dimensions: Vec<PaddingDim>,
}

/// `xla.PaddingConfig.PaddingConfigDimension`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PaddingDim {
    #[prost(int64, tag = "1")]
    pub(super) low: i64,
    #[prost(int64, tag = "2")]
    pub(super) high: i64,
    #[prost(int64, tag = "3")]
    pub(super) interior: i64,
}

/// `xla.DotDimensionNumbers`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DotDims {
    #[prost(int64, repeated, tag = "1")]
    pub(super) lhs_contracting: Vec<i64>,
    #[prost(int64, repeated, tag = "2")]
    pub(super) rhs_contracting: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(super) lhs_batch: Vec<i64>,
    #[prost(int64, repeated, tag = "4")]
    pub(super) rhs_batch: Vec<i64>,
}

/// `xla.RaggedDotDimensionNumbers`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RaggedDotDims {
    #[prost(message, optional, tag = "1")]
    pub(super) dot: Option<DotDims>,
    #[prost(int64, repeated, tag = "2")]
    pub(super) lhs_ragged: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(super) rhs_group: Vec<i64>,
}

/// `xla.GatherDimensionNumbers`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GatherDims {
    #[prost(int64, repeated, tag = "1")]
    pub(super) offset_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "2")]
    pub(super) collapsed_slice_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(super) start_index_map: Vec<i64>,
    #[prost(int64, tag = "4")]
    pub(super) index_vector_dim: i64,
    #[prost(int64, repeated, tag = "5")]
    pub(super) operand_batching_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "6")]
    pub(super) start_indices_batching_dims: Vec<i64>,
}

/// `xla.ScatterDimensionNumbers`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ScatterDims {
    #[prost(int64, repeated, tag = "1")]
    pub(super) update_window_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "2")]
    pub(super) inserted_window_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(super) to_operand_dims: Vec<i64>,
    #[prost(int64, tag = "4")]
    pub(super) index_vector_dim: i64,
    #[prost(int64, repeated, tag = "5")]
    pub(super) input_batching_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "6")]
    pub(super) scatter_indices_batching_dims: Vec<i64>,
}

/// `xla.ReplicaGroup`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ReplicaGroup {
    #[prost(int64, repeated, tag = "1")]
    pub(super) replica_ids: Vec<i64>,
}

/// `xla.CollectiveDeviceListProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CollectiveDeviceList {
    #[prost(message, repeated, tag = "1")]
    pub(super) replica_groups: Vec<ReplicaGroup>,
    #[prost(message, optional, tag = "2")]
    pub(super) iota: Option<IotaGroups>,
}

/// `xla.IotaReplicaGroupListProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct IotaGroups {
    #[prost(int64, tag = "1")]
    pub(super) num_replica_groups: i64,
    #[prost(int64, tag = "2")]
    pub(super) num_devices_per_group: i64,
    #[prost(int64, repeated, tag = "3")]
    pub(super) iota_reshape_dims: Vec<i64>,
    #[prost(int32, repeated, tag = "4")]
    pub(super) iota_transpose_perm: Vec<i32>,
}

/// `xla.MeshAxesReplicaGroupListProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MeshGroups {
    #[prost(message, optional, tag = "1")]
    pub(super) mesh: Option<Mesh>,
    #[prost(message, repeated, tag = "2")]
    pub(super) axes: Vec<AxisRef>,
}

/// `xla.MeshProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Mesh {
    #[prost(message, repeated, tag = "1")]
    pub(super) axes: Vec<MeshAxis>,
    #[prost(int64, repeated, tag = "2")]
    pub(super) device_ids: Vec<i64>,
    #[prost(message, optional, tag = "3")]
    pub(super) device_order: Option<DeviceOrder>,
}

/// One axis of a mesh.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MeshAxis {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(int64, tag = "2")]
    pub(super) size: i64,
}

/// The devices of a mesh as a transposed iota.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DeviceOrder {
    #[prost(int64, repeated, tag = "1")]
    pub(super) reshape_dims: Vec<i64>,
    #[prost(int32, repeated, tag = "2")]
    pub(super) transpose_perm: Vec<i32>,
}

/// `xla.AxisRefProto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct AxisRef {
    #[prost(int64, tag = "1")]
    pub(super) index: i64,
    #[prost(message, optional, tag = "2")]
    pub(super) sub_axis: Option<SubAxis>,
}

/// A part of a mesh axis; only that there is one matters here.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SubAxis {}

/// `xla.PrecisionConfig`: precisions 0 default, 1 high, 2 highest.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PrecisionConfig {
    #[prost(int32, repeated, tag = "1")]
    pub(super) operand_precision: Vec<i32>,
}

/// `xla.SourceTarget`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SourceTarget {
    #[prost(int64, tag = "1")]
    pub(super) source: i64,
    #[prost(int64, tag = "2")]
    pub(super) target: i64,
}

/// `xla.TriangularSolveOptions`: transpose 1 no, 2 yes, 3 adjoint.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TriangularSolveOptions {
    #[prost(bool, tag = "1")]
    pub(super) left_side: bool,
    #[prost(bool, tag = "2")]
    pub(super) lower: bool,
    #[prost(bool, tag = "3")]
    pub(super) unit_diagonal: bool,
    #[prost(int32, tag = "4")]
    pub(super) transpose_a: i32,
}

/// `xla.CholeskyOptions`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CholeskyOptions {
    #[prost(bool, tag = "1")]
    pub(super) lower: bool,
}

/// `xla.OutputOperandAliasing`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OutputOperandAliasing {
    #[prost(int64, repeated, tag = "1")]
    pub(super) output: Vec<i64>,
    #[prost(int64, tag = "2")]
    pub(super) operand: i64,
    #[prost(int64, repeated, tag = "3")]
    pub(super) operand_part: Vec<i64>,
}
