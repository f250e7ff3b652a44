//! What XLA remembers about values: where they came from, statistics, accuracy.

use prost::Message;

use super::HloModule;

/// `xla.StatisticsViz`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Statistics {
    #[prost(int64, tag = "1")]
    pub(crate) index_to_visualize: i64,
    #[prost(message, repeated, tag = "2")]
    pub(crate) statistics: Vec<Statistic>,
}

/// `xla.Statistic`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Statistic {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(double, tag = "2")]
    pub(crate) value: f64,
}

/// `xla.ResultAccuracy`: a mode (0 default, 1 highest) or a tolerance.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResultAccuracy {
    #[prost(int32, optional, tag = "1")]
    pub(crate) mode: Option<i32>,
    #[prost(message, optional, tag = "2")]
    pub(crate) tolerance: Option<Tolerance>,
}

/// `xla.ResultAccuracy.Tolerance`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Tolerance {
    #[prost(double, tag = "1")]
    pub(crate) atol: f64,
    #[prost(double, tag = "2")]
    pub(crate) rtol: f64,
    #[prost(int64, tag = "3")]
    pub(crate) ulps: i64,
}

/// `xla.OriginalValueProto`: an element for every leaf of a result.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OriginalValue {
    #[prost(message, repeated, tag = "1")]
    pub(crate) elements: Vec<OriginalElement>,
    #[prost(bool, tag = "2")]
    pub(crate) is_synthetic_call: bool,
}

/// `xla.OriginalValueElementProto`: without an array where nobody knows.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OriginalElement {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) shape_index: Vec<i64>,
    #[prost(message, optional, tag = "2")]
    pub(crate) original_array: Option<OriginalArray>,
}

/// `xla.OriginalArrayProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OriginalArray {
    #[prost(string, tag = "1")]
    pub(crate) instruction_name: String,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) shape_index: Vec<i64>,
}

/// `xla.OriginalValueRecoveryTableProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RecoveryTable {
    #[prost(message, repeated, tag = "1")]
    pub(crate) entries: Vec<RecoveryEntry>,
}

/// `xla.OriginalValueRecoveryTableProto.Entry`: how the old array is computed from the new one.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RecoveryEntry {
    #[prost(message, optional, tag = "1")]
    pub(crate) old_original_array: Option<OriginalArray>,
    #[prost(message, optional, tag = "2")]
    pub(crate) new_original_array: Option<OriginalArray>,
    #[prost(message, optional, tag = "3")]
    pub(crate) recovery_module: Option<HloModule>,
}
