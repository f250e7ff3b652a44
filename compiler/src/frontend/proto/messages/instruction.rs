//! Instructions and their small parts.

use prost::Message;

use super::{
    CollectiveDeviceList, ConvolutionDims, DotDims, FrontendAttributes, GatherDims, IotaGroups,
    Literal, MeshGroups, OriginalValue, PaddingConfig, RaggedDotDims, ReplicaGroup, ResultAccuracy,
    ScatterDims, Shape, Sharding, SliceDim, Statistics, Window,
};

/// `xla.HloInstructionProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Instruction {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) opcode: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) shape: Option<Shape>,
    #[prost(message, optional, tag = "7")]
    pub(crate) metadata: Option<Metadata>,
    #[prost(message, optional, boxed, tag = "8")]
    pub(crate) literal: Option<Box<Literal>>,
    #[prost(int64, tag = "9")]
    pub(crate) parameter_number: i64,
    #[prost(string, tag = "11")]
    pub(crate) fusion_kind: String,
    #[prost(int64, tag = "13")]
    pub(crate) tuple_index: i64,
    #[prost(int64, repeated, tag = "14")]
    pub(crate) dimensions: Vec<i64>,
    #[prost(message, optional, tag = "15")]
    pub(crate) window: Option<Window>,
    #[prost(message, optional, tag = "16")]
    pub(crate) convolution_dimension_numbers: Option<ConvolutionDims>,
    #[prost(message, repeated, tag = "17")]
    pub(crate) slice_dimensions: Vec<SliceDim>,
    #[prost(int32, tag = "18")]
    pub(crate) exponent_bits: i32,
    #[prost(int32, tag = "19")]
    pub(crate) mantissa_bits: i32,
    #[prost(int64, repeated, tag = "20")]
    pub(crate) dynamic_slice_sizes: Vec<i64>,
    #[prost(message, optional, tag = "21")]
    pub(crate) padding_config: Option<PaddingConfig>,
    #[prost(bytes = "vec", tag = "22")]
    pub(crate) outfeed_config: Vec<u8>,
    #[prost(int32, tag = "23")]
    pub(crate) distribution: i32,
    #[prost(float, tag = "24")]
    pub(crate) epsilon: f32,
    #[prost(int64, tag = "25")]
    pub(crate) feature_index: i64,
    #[prost(int64, tag = "26")]
    pub(crate) channel_id: i64,
    #[prost(bytes = "vec", tag = "27")]
    pub(crate) infeed_config: Vec<u8>,
    #[prost(string, tag = "28")]
    pub(crate) custom_call_target: String,
    #[prost(message, optional, tag = "29")]
    pub(crate) outfeed_shape: Option<Shape>,
    #[prost(message, optional, tag = "30")]
    pub(crate) dot_dimension_numbers: Option<DotDims>,
    #[prost(int32, tag = "31")]
    pub(crate) fft_type: i32,
    #[prost(int64, repeated, tag = "32")]
    pub(crate) fft_length: Vec<i64>,
    #[prost(message, optional, tag = "33")]
    pub(crate) gather_dimension_numbers: Option<GatherDims>,
    #[prost(int64, repeated, tag = "34")]
    pub(crate) gather_slice_sizes: Vec<i64>,
    #[prost(int64, tag = "35")]
    pub(crate) id: i64,
    #[prost(int64, repeated, tag = "36")]
    pub(crate) operand_ids: Vec<i64>,
    #[prost(int64, repeated, tag = "37")]
    pub(crate) control_predecessor_ids: Vec<i64>,
    #[prost(int64, repeated, tag = "38")]
    pub(crate) called_computation_ids: Vec<i64>,
    #[prost(message, optional, tag = "40")]
    pub(crate) sharding: Option<Sharding>,
    #[prost(bytes = "vec", tag = "43")]
    pub(crate) backend_config: Vec<u8>,
    #[prost(bool, tag = "47")]
    pub(crate) is_host_transfer: bool,
    #[prost(message, optional, tag = "48")]
    pub(crate) scatter_dimension_numbers: Option<ScatterDims>,
    #[prost(message, repeated, tag = "49")]
    pub(crate) replica_groups: Vec<ReplicaGroup>,
    #[prost(int64, tag = "50")]
    pub(crate) feature_group_count: i64,
    #[prost(message, optional, tag = "51")]
    pub(crate) precision_config: Option<PrecisionConfig>,
    #[prost(message, repeated, tag = "52")]
    pub(crate) source_target_pairs: Vec<SourceTarget>,
    #[prost(message, optional, tag = "54")]
    pub(crate) domain_entry_sharding: Option<Sharding>,
    #[prost(message, optional, tag = "55")]
    pub(crate) domain_exit_sharding: Option<Sharding>,
    #[prost(bool, tag = "56")]
    pub(crate) constrain_layout: bool,
    #[prost(message, repeated, tag = "57")]
    pub(crate) operand_shapes_with_layout: Vec<Shape>,
    #[prost(int64, tag = "58")]
    pub(crate) batch_group_count: i64,
    #[prost(message, optional, tag = "59")]
    pub(crate) triangular_solve_options: Option<TriangularSolveOptions>,
    #[prost(bool, tag = "60")]
    pub(crate) is_stable: bool,
    #[prost(message, optional, tag = "62")]
    pub(crate) cholesky_options: Option<CholeskyOptions>,
    #[prost(message, optional, tag = "61")]
    pub(crate) parameter_replication: Option<ParameterReplication>,
    #[prost(string, tag = "63")]
    pub(crate) comparison_direction: String,
    #[prost(bool, tag = "65")]
    pub(crate) custom_call_has_side_effect: bool,
    #[prost(int64, tag = "66")]
    pub(crate) delta: i64,
    #[prost(bool, tag = "67")]
    pub(crate) indices_are_sorted: bool,
    #[prost(message, optional, tag = "68")]
    pub(crate) frontend_attributes: Option<FrontendAttributes>,
    #[prost(bool, tag = "69")]
    pub(crate) unique_indices: bool,
    #[prost(int32, tag = "70")]
    pub(crate) rng_algorithm: i32,
    #[prost(bool, tag = "71")]
    pub(crate) use_global_device_ids: bool,
    #[prost(string, tag = "72")]
    pub(crate) comparison_type: String,
    #[prost(message, repeated, tag = "74")]
    pub(crate) output_operand_aliasing: Vec<OutputOperandAliasing>,
    #[prost(int32, tag = "75")]
    pub(crate) padding_type: i32,
    #[prost(int32, tag = "76")]
    pub(crate) custom_call_schedule: i32,
    #[prost(int32, tag = "77")]
    pub(crate) custom_call_api_version: i32,
    #[prost(string, tag = "79")]
    pub(crate) async_execution_thread: String,
    #[prost(int32, optional, tag = "80")]
    pub(crate) cross_program_prefetch_index: Option<i32>,
    #[prost(int64, tag = "81")]
    pub(crate) k: i64,
    #[prost(message, optional, tag = "82")]
    pub(crate) statistics_viz: Option<Statistics>,
    #[prost(bool, tag = "85")]
    pub(crate) largest: bool,
    #[prost(message, optional, tag = "87")]
    pub(crate) collective_device_list: Option<CollectiveDeviceList>,
    #[prost(message, optional, tag = "88")]
    pub(crate) original_value: Option<OriginalValue>,
    #[prost(bool, tag = "89")]
    pub(crate) is_composite: bool,
    #[prost(message, optional, tag = "90")]
    pub(crate) ragged_dot_dimension_numbers: Option<RaggedDotDims>,
    #[prost(message, optional, tag = "91")]
    pub(crate) result_accuracy: Option<ResultAccuracy>,
    #[prost(message, optional, tag = "92")]
    pub(crate) iota_collective_device_list: Option<IotaGroups>,
    #[prost(message, optional, tag = "93")]
    pub(crate) mesh_axes_replica_group_list: Option<MeshGroups>,
    #[prost(bool, tag = "94")]
    pub(crate) is_reverse: bool,
    #[prost(int64, tag = "95")]
    pub(crate) num_carries: i64,
    /// 0 not said, 1 true, 2 false (`xla.TriState`).
    #[prost(int32, tag = "96")]
    pub(crate) is_associative: i32,
    #[prost(int32, tag = "97")]
    pub(crate) conv_kind: i32,
    #[prost(message, optional, tag = "98")]
    pub(crate) sparsity_config: Option<SparsityConfig>,
    #[prost(message, optional, tag = "99")]
    pub(crate) backend_config_payload: Option<Payload>,
}

/// `xla.Payload`: bytes, or the number of one of the module's payloads.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Payload {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(crate) value: Option<Vec<u8>>,
    #[prost(int64, optional, tag = "2")]
    pub(crate) id: Option<i64>,
}

/// `xla.SparsityConfig`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SparsityConfig {
    #[prost(message, optional, tag = "1")]
    pub(crate) lhs: Option<TensorSparsity>,
    #[prost(message, optional, tag = "2")]
    pub(crate) rhs: Option<TensorSparsity>,
}

/// `xla.SparsityConfig.TensorSparsityConfig`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorSparsity {
    #[prost(int64, tag = "1")]
    pub(crate) num_non_zero: i64,
    #[prost(int64, tag = "2")]
    pub(crate) block_size: i64,
    #[prost(int64, tag = "3")]
    pub(crate) dimension: i64,
    #[prost(int64, tag = "4")]
    pub(crate) stride: i64,
}

/// `xla.OpMetadata`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Metadata {
    #[prost(string, tag = "1")]
    pub(crate) op_type: String,
    #[prost(string, tag = "2")]
    pub(crate) op_name: String,
    #[prost(string, tag = "3")]
    pub(crate) source_file: String,
    #[prost(int32, tag = "4")]
    pub(crate) source_line: i32,
    #[prost(int32, repeated, tag = "5")]
    pub(crate) profile_type: Vec<i32>,
    #[prost(int32, tag = "15")]
    pub(crate) stack_frame_id: i32,
    #[prost(string, tag = "16")]
    pub(crate) scheduling_name: String,
    #[prost(string, tag = "12")]
    pub(crate) deduplicated_name: String,
    #[prost(int32, tag = "17")]
    pub(crate) source_end_line: i32,
    #[prost(int32, tag = "18")]
    pub(crate) source_column: i32,
    #[prost(int32, tag = "19")]
    pub(crate) source_end_column: i32,
}

/// `xla.PrecisionConfig`: precisions 0 default, 1 high, 2 highest.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PrecisionConfig {
    #[prost(int32, repeated, tag = "1")]
    pub(crate) operand_precision: Vec<i32>,
    #[prost(int32, tag = "2")]
    pub(crate) algorithm: i32,
}

/// `xla.SourceTarget`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SourceTarget {
    #[prost(int64, tag = "1")]
    pub(crate) source: i64,
    #[prost(int64, tag = "2")]
    pub(crate) target: i64,
}

/// `xla.TriangularSolveOptions`: transpose 1 no, 2 yes, 3 adjoint.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TriangularSolveOptions {
    #[prost(bool, tag = "1")]
    pub(crate) left_side: bool,
    #[prost(bool, tag = "2")]
    pub(crate) lower: bool,
    #[prost(bool, tag = "3")]
    pub(crate) unit_diagonal: bool,
    #[prost(int32, tag = "4")]
    pub(crate) transpose_a: i32,
}

/// `xla.CholeskyOptions`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct CholeskyOptions {
    #[prost(bool, tag = "1")]
    pub(crate) lower: bool,
}

/// `xla.OutputOperandAliasing`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OutputOperandAliasing {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) output: Vec<i64>,
    #[prost(int64, tag = "2")]
    pub(crate) operand: i64,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) operand_part: Vec<i64>,
}

/// `xla.ParameterReplication`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ParameterReplication {
    #[prost(bool, repeated, tag = "1")]
    pub(crate) replicated_at_leaf_buffers: Vec<bool>,
}
