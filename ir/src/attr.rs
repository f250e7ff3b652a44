//! Attributes of instructions: `dimensions={0,1}`, `calls=%f`, `metadata={...}`.
//!
//! What planning or execution looks at is kept typed; the rest is kept as the
//! text between its delimiters, so that it prints back unchanged.

use smallvec::SmallVec;

use crate::entity::{CompId, InstrId, ShapeId};
use crate::shape::ShapeIndex;
use crate::strings::Str;

/// The grammar of an attribute's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttrKind {
    /// Integer.
    Int,
    /// `true` or `false`.
    Bool,
    /// Number kept as text.
    Float,
    /// Identifier: `LE`, `kLoop`.
    Ident,
    /// `{highest,default}`.
    Idents,
    /// Quoted string.
    String,
    /// `{0,1}`.
    Ints,
    /// Balanced braces, a quoted string or a single word, kept as text.
    Raw,
    /// A computation, by name or inline.
    Comp,
    /// `{%a, %b}` of computations.
    Comps,
    /// `{%a, %b}` of instructions.
    Instrs,
    /// `{size=3x3 pad=1_1x1_1}`.
    Window,
    /// `b01f_01io->b01f`.
    DimLabels,
    /// `0_0_0x1_1`.
    Padding,
    /// `{[0:4:1], [2:5]}`.
    Slice,
    /// `{{0,1},{1,0}}`.
    Pairs,
    /// `{{0,1},{2,3}}` or `[2,2]<=[4]T(0)`.
    ReplicaGroups,
    /// One shape.
    Shape,
    /// `{f32[2]{0}, f32[]}`.
    Shapes,
    /// `{ {0}: (1, {}) }`.
    Aliasing,
}

macro_rules! attrs {
    ($($variant:ident = $name:literal, $kind:ident;)*) => {
        /// Name of an attribute.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "each is named as HLO text names it")]
        pub enum AttrName { $($variant,)* }

        impl AttrName {
            /// All attribute names.
            pub const ALL: &'static [AttrName] = &[$(AttrName::$variant,)*];

            /// The name HLO text uses.
            pub const fn name(self) -> &'static str {
                match self { $(AttrName::$variant => $name,)* }
            }

            /// The attribute called `name`.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(AttrName::$variant),)* _ => None }
            }

            /// The grammar of its value.
            pub const fn kind(self) -> AttrKind {
                match self { $(AttrName::$variant => AttrKind::$kind,)* }
            }
        }
    };
}

attrs! {
    Algorithm = "algorithm", Ident;
    ApiVersion = "api_version", Ident;
    AsyncExecutionThread = "async_execution_thread", String;
    BackendConfig = "backend_config", Raw;
    BatchGroupCount = "batch_group_count", Int;
    Body = "body", Comp;
    BranchComputations = "branch_computations", Comps;
    CalledComputations = "called_computations", Comps;
    Calls = "calls", Comp;
    ChannelId = "channel_id", Int;
    CollapsedSliceDims = "collapsed_slice_dims", Ints;
    Condition = "condition", Comp;
    ConstrainLayout = "constrain_layout", Bool;
    ControlPredecessors = "control-predecessors", Instrs;
    ConvolutionKind = "convolution_kind", Ident;
    CrossProgramPrefetchIndex = "cross_program_prefetch_index", Int;
    CustomCallHasSideEffect = "custom_call_has_side_effect", Bool;
    CustomCallTarget = "custom_call_target", String;
    Delta = "delta", Int;
    DimLabels = "dim_labels", DimLabels;
    Dimensions = "dimensions", Ints;
    Direction = "direction", Ident;
    Distribution = "distribution", Ident;
    Domain = "domain", Raw;
    DynamicSliceSizes = "dynamic_slice_sizes", Ints;
    Epsilon = "epsilon", Float;
    ExponentBits = "exponent_bits", Int;
    FalseComputation = "false_computation", Comp;
    FeatureGroupCount = "feature_group_count", Int;
    FeatureIndex = "feature_index", Int;
    FftLength = "fft_length", Ints;
    FftType = "fft_type", Ident;
    FrontendAttributes = "frontend_attributes", Raw;
    Index = "index", Int;
    IndexVectorDim = "index_vector_dim", Int;
    IndicesAreSorted = "indices_are_sorted", Bool;
    InfeedConfig = "infeed_config", String;
    InferredDimension = "inferred_dimension", Int;
    InputBatchingDims = "input_batching_dims", Ints;
    InsertedWindowDims = "inserted_window_dims", Ints;
    IotaDimension = "iota_dimension", Int;
    IsAssociative = "is_associative", Bool;
    IsComposite = "is_composite", Bool;
    IsHostTransfer = "is_host_transfer", Bool;
    IsReverse = "is_reverse", Bool;
    IsStable = "is_stable", Bool;
    K = "k", Int;
    Kind = "kind", Ident;
    Largest = "largest", Bool;
    LeftSide = "left_side", Bool;
    LhsBatchDims = "lhs_batch_dims", Ints;
    LhsContractingDims = "lhs_contracting_dims", Ints;
    LhsRaggedDims = "lhs_ragged_dims", Ints;
    Literal = "literal", Raw;
    Lower = "lower", Bool;
    MantissaBits = "mantissa_bits", Int;
    Metadata = "metadata", Raw;
    Mode = "mode", Ident;
    NumCarries = "num_carries", Int;
    OffsetDims = "offset_dims", Ints;
    OperandBatchingDims = "operand_batching_dims", Ints;
    OperandLayoutConstraints = "operand_layout_constraints", Shapes;
    OperandPrecision = "operand_precision", Idents;
    Origin = "origin", Raw;
    OutfeedConfig = "outfeed_config", String;
    OutfeedShape = "outfeed_shape", Shape;
    OutputToOperandAliasing = "output_to_operand_aliasing", Aliasing;
    Padding = "padding", Padding;
    PaddingType = "padding_type", Ident;
    ParameterReplication = "parameter_replication", Raw;
    ReplicaGroups = "replica_groups", ReplicaGroups;
    ResultAccuracy = "result_accuracy", Raw;
    RhsBatchDims = "rhs_batch_dims", Ints;
    RhsContractingDims = "rhs_contracting_dims", Ints;
    RhsGroupDims = "rhs_group_dims", Ints;
    Scatter = "scatter", Comp;
    ScatterDimsToOperandDims = "scatter_dims_to_operand_dims", Ints;
    ScatterIndicesBatchingDims = "scatter_indices_batching_dims", Ints;
    Schedule = "schedule", Ident;
    Select = "select", Comp;
    Sharding = "sharding", Raw;
    Slice = "slice", Slice;
    SliceSizes = "slice_sizes", Ints;
    SourceTargetPairs = "source_target_pairs", Pairs;
    SparsityConfig = "sparsity_config", Raw;
    StartIndexMap = "start_index_map", Ints;
    StartIndicesBatchingDims = "start_indices_batching_dims", Ints;
    Statistics = "statistics", Raw;
    ToApply = "to_apply", Comp;
    TransposeA = "transpose_a", Ident;
    TrueComputation = "true_computation", Comp;
    Type = "type", Ident;
    UniqueIndices = "unique_indices", Bool;
    UnitDiagonal = "unit_diagonal", Bool;
    UpdateWindowDims = "update_window_dims", Ints;
    UseGlobalDeviceIds = "use_global_device_ids", Bool;
    Window = "window", Window;
}

/// One dimension of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowDim {
    /// Elements the window covers.
    pub size: i64,
    /// Step between windows.
    pub stride: i64,
    /// Padding before; may be negative.
    pub pad_low: i64,
    /// Padding after; may be negative.
    pub pad_high: i64,
    /// Distance between elements of the base (1: none added).
    pub base_dilation: i64,
    /// Distance between elements of the window (1: none added).
    pub window_dilation: i64,
    /// Whether the window runs backwards.
    pub reversal: bool,
}

impl Default for WindowDim {
    fn default() -> Self {
        Self {
            size: 1,
            stride: 1,
            pad_low: 0,
            pad_high: 0,
            base_dilation: 1,
            window_dilation: 1,
            reversal: false,
        }
    }
}

/// The meaning of each dimension of a convolution's operands and result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvDimLabels {
    /// Batch dimension of the input.
    pub input_batch: usize,
    /// Feature dimension of the input.
    pub input_feature: usize,
    /// Spatial dimensions of the input, spatial dimension 0 first.
    pub input_spatial: SmallVec<[usize; 3]>,
    /// Input-feature dimension of the kernel.
    pub kernel_input_feature: usize,
    /// Output-feature dimension of the kernel.
    pub kernel_output_feature: usize,
    /// Spatial dimensions of the kernel.
    pub kernel_spatial: SmallVec<[usize; 3]>,
    /// Batch dimension of the output.
    pub output_batch: usize,
    /// Feature dimension of the output.
    pub output_feature: usize,
    /// Spatial dimensions of the output.
    pub output_spatial: SmallVec<[usize; 3]>,
}

/// Padding of one dimension of `pad`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PaddingDim {
    /// Elements before; may be negative.
    pub low: i64,
    /// Elements after; may be negative.
    pub high: i64,
    /// Elements between neighbours.
    pub interior: i64,
}

/// One dimension of `slice`: `[start:limit:stride]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceDim {
    /// First index.
    pub start: i64,
    /// One past the last index.
    pub limit: i64,
    /// Step.
    pub stride: i64,
}

/// Which devices take part in one collective together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaGroups {
    /// `{{0,1},{2,3}}`; empty means all devices.
    List(Vec<Vec<i64>>),
    /// `[groups,size]<=[reshape]T(transpose)`.
    Iota {
        /// Groups and devices in each.
        dims: SmallVec<[i64; 2]>,
        /// The iota's shape before transposing.
        reshape: SmallVec<[i64; 4]>,
        /// Permutation of `reshape`, empty if none is written.
        transpose: SmallVec<[i64; 4]>,
    },
    /// A form that is kept as text only.
    Raw(Str),
}

/// One entry of `output_to_operand_aliasing`: `{output}: (operand, {index})`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperandAlias {
    /// Part of the result.
    pub output_index: ShapeIndex,
    /// Operand number.
    pub operand: u32,
    /// Part of the operand.
    pub operand_index: ShapeIndex,
}

/// Value of an attribute; the variant follows from [`AttrName::kind`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttrValue {
    /// Integer.
    Int(i64),
    /// Boolean.
    Bool(bool),
    /// Word or number, kept as text ([`AttrKind::Ident`], [`AttrKind::Float`]).
    Ident(Str),
    /// Words in braces.
    Idents(Box<[Str]>),
    /// Text with its delimiters (quotes or braces), kept verbatim ([`AttrKind::String`], [`AttrKind::Raw`]).
    Raw(Str),
    /// Integers.
    Ints(SmallVec<[i64; 4]>),
    /// A computation.
    Comp(CompId),
    /// Computations.
    Comps(Box<[CompId]>),
    /// Instructions.
    Instrs(Box<[InstrId]>),
    /// A window, one entry a dimension.
    Window(Box<[WindowDim]>),
    /// Dimension labels of a convolution.
    DimLabels(Box<ConvDimLabels>),
    /// Padding, one entry a dimension.
    Padding(Box<[PaddingDim]>),
    /// Slice, one entry a dimension.
    Slice(Box<[SliceDim]>),
    /// Pairs of devices.
    Pairs(Box<[(i64, i64)]>),
    /// Groups of devices.
    ReplicaGroups(Box<ReplicaGroups>),
    /// A shape.
    Shape(ShapeId),
    /// Shapes.
    Shapes(Box<[ShapeId]>),
    /// Aliases of outputs to operands.
    Aliasing(Box<[OperandAlias]>),
}

/// One attribute of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attr {
    /// Its name.
    pub name: AttrName,
    /// Its value.
    pub value: AttrValue,
}
