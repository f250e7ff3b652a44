//! Groups and meshes of devices.

use prost::Message;

/// `xla.ReplicaGroup`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReplicaGroup {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) replica_ids: Vec<i64>,
}

/// `xla.CollectiveDeviceListProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct CollectiveDeviceList {
    #[prost(message, repeated, tag = "1")]
    pub(crate) replica_groups: Vec<ReplicaGroup>,
    /// Where XLA had it before it moved to the instruction: read, not written.
    #[prost(message, optional, tag = "2")]
    pub(crate) iota: Option<IotaGroups>,
}

/// `xla.IotaReplicaGroupListProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct IotaGroups {
    #[prost(int64, tag = "1")]
    pub(crate) num_replica_groups: i64,
    #[prost(int64, tag = "2")]
    pub(crate) num_devices_per_group: i64,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) iota_reshape_dims: Vec<i64>,
    #[prost(int32, repeated, tag = "4")]
    pub(crate) iota_transpose_perm: Vec<i32>,
}

/// `xla.MeshAxesReplicaGroupListProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct MeshGroups {
    #[prost(message, optional, tag = "1")]
    pub(crate) mesh: Option<Mesh>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) axes: Vec<AxisRef>,
}

/// `xla.MeshProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Mesh {
    #[prost(message, repeated, tag = "1")]
    pub(crate) axes: Vec<MeshAxis>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) device_ids: Vec<i64>,
    #[prost(message, optional, tag = "3")]
    pub(crate) device_order: Option<DeviceOrder>,
}

/// One axis of a mesh.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct MeshAxis {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(int64, tag = "2")]
    pub(crate) size: i64,
}

/// The devices of a mesh as a transposed iota.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeviceOrder {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) reshape_dims: Vec<i64>,
    #[prost(int32, repeated, tag = "2")]
    pub(crate) transpose_perm: Vec<i32>,
}

/// `xla.AxisRefProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AxisRef {
    #[prost(int64, tag = "1")]
    pub(crate) index: i64,
    #[prost(message, optional, tag = "2")]
    pub(crate) sub_axis: Option<SubAxis>,
}

/// A part of a mesh axis: `size` devices, of which `pre_size` equal parts come before.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SubAxis {
    #[prost(int64, tag = "1")]
    pub(crate) pre_size: i64,
    #[prost(int64, tag = "2")]
    pub(crate) size: i64,
}

/// `xla.DeviceAssignmentProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeviceAssignment {
    #[prost(int32, tag = "1")]
    pub(crate) replica_count: i32,
    #[prost(int32, tag = "2")]
    pub(crate) computation_count: i32,
    #[prost(message, repeated, tag = "3")]
    pub(crate) computation_devices: Vec<ComputationDevice>,
}

/// `xla.DeviceAssignmentProto.ComputationDevice`: the device of every replica.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ComputationDevice {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) replica_device_ids: Vec<i64>,
}
