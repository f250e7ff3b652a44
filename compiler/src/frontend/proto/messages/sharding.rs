//! How arrays are divided among devices.

use prost::Message;

use super::Metadata;

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
    /// Only whether there is one: the named form has no place here yet.
    #[prost(message, optional, tag = "14")]
    pub(crate) named_sharding: Option<NamedSharding>,
}

/// `xla.NamedShardingProto`; only that there is one matters here.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct NamedSharding {}
