//! How arrays are divided among devices.

use prost::Message;

use super::{AxisRef, Mesh, Metadata};

/// `xla.OpSharding`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Sharding {
    #[prost(int32, tag = "1")]
    pub(crate) kind: i32,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) tile_assignment_dimensions: Vec<i64>,
    #[prost(int64, repeated, tag = "4")]
    pub(crate) tile_assignment_devices: Vec<i64>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) tuple_shardings: Vec<Sharding>,
    #[prost(bool, tag = "6")]
    pub(crate) replicate_on_last_tile_dim: bool,
    #[prost(message, repeated, tag = "7")]
    pub(crate) metadata: Vec<Metadata>,
    #[prost(int32, repeated, tag = "8")]
    pub(crate) last_tile_dims: Vec<i32>,
    #[prost(int64, repeated, tag = "9")]
    pub(crate) iota_reshape_dims: Vec<i64>,
    #[prost(int32, repeated, tag = "10")]
    pub(crate) iota_transpose_perm: Vec<i32>,
    #[prost(bool, tag = "11")]
    pub(crate) is_shard_group: bool,
    #[prost(int64, tag = "12")]
    pub(crate) shard_group_id: i64,
    #[prost(int32, tag = "13")]
    pub(crate) shard_group_type: i32,
    #[prost(message, optional, tag = "14")]
    pub(crate) named: Option<NamedSharding>,
}

/// `xla.NamedShardingProto`: a division along the axes of a mesh.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct NamedSharding {
    #[prost(message, optional, tag = "2")]
    pub(crate) mesh: Option<Mesh>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) dim_shardings: Vec<DimSharding>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) replicated_axes: Vec<AxisRef>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) unreduced_axes: Vec<AxisRef>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) metadata: Vec<Metadata>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) manual_axes: Vec<AxisRef>,
}

/// `xla.NamedShardingProto.DimensionSharding`: one that is open may be divided further.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DimSharding {
    #[prost(message, repeated, tag = "1")]
    pub(crate) axes: Vec<AxisRef>,
    #[prost(bool, tag = "2")]
    pub(crate) is_closed: bool,
}
