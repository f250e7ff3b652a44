//! Shapes and layouts.

use prost::Message;

/// `xla.ShapeProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Shape {
    #[prost(int32, tag = "2")]
    pub(crate) element_type: i32,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) dimensions: Vec<i64>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) tuple_shapes: Vec<Shape>,
    #[prost(message, optional, tag = "5")]
    pub(crate) layout: Option<Layout>,
    #[prost(bool, repeated, tag = "6")]
    pub(crate) is_dynamic_dimension: Vec<bool>,
}

/// `xla.LayoutProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Layout {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) minor_to_major: Vec<i64>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) tiles: Vec<Tile>,
    #[prost(int64, tag = "7")]
    pub(crate) element_size_in_bits: i64,
    #[prost(int64, tag = "8")]
    pub(crate) memory_space: i64,
    #[prost(int64, tag = "15")]
    pub(crate) dynamic_shape_metadata_prefix_bytes: i64,
    #[prost(int64, tag = "16")]
    pub(crate) tail_padding_alignment_in_elements: i64,
    #[prost(message, repeated, tag = "17")]
    pub(crate) split_configs: Vec<SplitConfig>,
}

/// `xla.TileProto`; the smallest integer stands for `*`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Tile {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) dimensions: Vec<i64>,
}

/// `xla.SplitConfigProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SplitConfig {
    #[prost(int64, tag = "1")]
    pub(crate) dimension: i64,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) split_indices: Vec<i64>,
}

/// `xla.ProgramShapeProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProgramShape {
    #[prost(message, repeated, tag = "1")]
    pub(crate) parameters: Vec<Shape>,
    #[prost(message, optional, tag = "2")]
    pub(crate) result: Option<Shape>,
    #[prost(string, repeated, tag = "3")]
    pub(crate) parameter_names: Vec<String>,
}
