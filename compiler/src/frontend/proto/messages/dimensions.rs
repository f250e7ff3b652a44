//! Which dimension is which: windows, convolutions, dots, gathers, scatters.

use prost::Message;

/// `xla.Window`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Window {
    #[prost(message, repeated, tag = "1")]
    pub(crate) dimensions: Vec<WindowDim>,
}

/// `xla.WindowDimension`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct WindowDim {
    #[prost(int64, tag = "1")]
    pub(crate) size: i64,
    #[prost(int64, tag = "2")]
    pub(crate) stride: i64,
    #[prost(int64, tag = "3")]
    pub(crate) padding_low: i64,
    #[prost(int64, tag = "4")]
    pub(crate) padding_high: i64,
    #[prost(int64, tag = "5")]
    pub(crate) window_dilation: i64,
    #[prost(int64, tag = "6")]
    pub(crate) base_dilation: i64,
    #[prost(bool, tag = "7")]
    pub(crate) window_reversal: bool,
}

/// `xla.ConvolutionDimensionNumbers`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ConvolutionDims {
    #[prost(int64, tag = "3")]
    pub(crate) kernel_input_feature: i64,
    #[prost(int64, tag = "4")]
    pub(crate) kernel_output_feature: i64,
    #[prost(int64, repeated, tag = "6")]
    pub(crate) kernel_spatial: Vec<i64>,
    #[prost(int64, tag = "7")]
    pub(crate) input_batch: i64,
    #[prost(int64, tag = "8")]
    pub(crate) input_feature: i64,
    #[prost(int64, tag = "9")]
    pub(crate) output_batch: i64,
    #[prost(int64, tag = "10")]
    pub(crate) output_feature: i64,
    #[prost(int64, repeated, tag = "11")]
    pub(crate) input_spatial: Vec<i64>,
    #[prost(int64, repeated, tag = "12")]
    pub(crate) output_spatial: Vec<i64>,
}

/// `xla.HloInstructionProto.SliceDimensions`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SliceDim {
    #[prost(int64, tag = "1")]
    pub(crate) start: i64,
    #[prost(int64, tag = "2")]
    pub(crate) limit: i64,
    #[prost(int64, tag = "3")]
    pub(crate) stride: i64,
}

/// `xla.PaddingConfig`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PaddingConfig {
    #[prost(message, repeated, tag = "1")]
    pub(crate) dimensions: Vec<PaddingDim>,
}

/// `xla.PaddingConfig.PaddingConfigDimension`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PaddingDim {
    #[prost(int64, tag = "1")]
    pub(crate) low: i64,
    #[prost(int64, tag = "2")]
    pub(crate) high: i64,
    #[prost(int64, tag = "3")]
    pub(crate) interior: i64,
}

/// `xla.DotDimensionNumbers`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DotDims {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) lhs_contracting: Vec<i64>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) rhs_contracting: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) lhs_batch: Vec<i64>,
    #[prost(int64, repeated, tag = "4")]
    pub(crate) rhs_batch: Vec<i64>,
}

/// `xla.RaggedDotDimensionNumbers`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RaggedDotDims {
    #[prost(message, optional, tag = "1")]
    pub(crate) dot: Option<DotDims>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) lhs_ragged: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) rhs_group: Vec<i64>,
}

/// `xla.GatherDimensionNumbers`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct GatherDims {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) offset_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) collapsed_slice_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) start_index_map: Vec<i64>,
    #[prost(int64, tag = "4")]
    pub(crate) index_vector_dim: i64,
    #[prost(int64, repeated, tag = "5")]
    pub(crate) operand_batching_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "6")]
    pub(crate) start_indices_batching_dims: Vec<i64>,
}

/// `xla.ScatterDimensionNumbers`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ScatterDims {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) update_window_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) inserted_window_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) to_operand_dims: Vec<i64>,
    #[prost(int64, tag = "4")]
    pub(crate) index_vector_dim: i64,
    #[prost(int64, repeated, tag = "5")]
    pub(crate) input_batching_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "6")]
    pub(crate) scatter_indices_batching_dims: Vec<i64>,
}
