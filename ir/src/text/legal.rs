//! Which attributes each operation takes.
//!
//! Source: XLA's `hlo_parser.cc`, function by function of `CreateInstruction`.

#[allow(clippy::enum_glob_use, reason = "a table of attribute names")]
use crate::attr::AttrName::{self, *};
use crate::opcode::Opcode;

/// Attributes of one operation.
pub(super) struct Legal {
    /// Those that must be given.
    pub(super) required: &'static [AttrName],
    /// Those that may be given, beside [`COMMON`].
    pub(super) optional: &'static [AttrName],
}

/// Attributes that any instruction may have.
pub(super) const COMMON: &[AttrName] = &[
    Sharding,
    FrontendAttributes,
    Statistics,
    ParameterReplication,
    ControlPredecessors,
    Origin,
    Metadata,
    BackendConfig,
];

const fn legal(required: &'static [AttrName], optional: &'static [AttrName]) -> Legal {
    Legal { required, optional }
}

/// The attributes of `opcode`.
pub(super) const fn attributes(opcode: Opcode) -> Legal {
    use Opcode as O;
    match opcode {
        O::AllGather | O::AllGatherStart => legal(
            &[Dimensions],
            &[
                ReplicaGroups,
                ChannelId,
                ConstrainLayout,
                UseGlobalDeviceIds,
                Mode,
            ],
        ),
        O::AllReduce | O::AllReduceStart => legal(
            &[ToApply],
            &[
                ReplicaGroups,
                ChannelId,
                ConstrainLayout,
                UseGlobalDeviceIds,
                Mode,
            ],
        ),
        O::ReduceScatter => legal(
            &[ToApply, Dimensions],
            &[
                ReplicaGroups,
                ChannelId,
                ConstrainLayout,
                UseGlobalDeviceIds,
                Mode,
            ],
        ),
        O::AllToAll => legal(
            &[],
            &[ReplicaGroups, ChannelId, Dimensions, ConstrainLayout, Mode],
        ),
        O::RaggedAllToAll | O::CollectiveBroadcast => {
            legal(&[], &[ReplicaGroups, ChannelId, Dimensions, Mode])
        }
        O::CollectivePermute | O::CollectivePermuteStart => {
            legal(&[SourceTargetPairs], &[ChannelId, SliceSizes, Mode])
        }
        O::AsyncStart => legal(&[Calls], &[AsyncExecutionThread, OutputToOperandAliasing]),
        O::AsyncUpdate | O::AsyncDone => legal(&[], &[Calls, AsyncExecutionThread]),
        O::CopyStart => legal(&[], &[CrossProgramPrefetchIndex]),
        O::Reshape => legal(&[], &[InferredDimension]),
        O::Sort => legal(&[Dimensions, ToApply], &[IsStable]),
        O::While => legal(&[Condition, Body], &[]),
        // One of two forms: see `check_conditional`.
        O::Conditional => legal(
            &[],
            &[TrueComputation, FalseComputation, BranchComputations],
        ),
        O::Call => legal(&[ToApply], &[IsComposite, OutputToOperandAliasing]),
        O::Send | O::SendDone | O::Recv | O::RecvDone => legal(&[], &[ChannelId, IsHostTransfer]),
        O::GetTupleElement => legal(&[Index], &[]),
        O::Fusion => legal(&[Kind, Calls], &[OutputToOperandAliasing]),
        O::CustomCall => legal(
            &[CustomCallTarget],
            &[
                Window,
                DimLabels,
                FeatureGroupCount,
                BatchGroupCount,
                OperandLayoutConstraints,
                CustomCallHasSideEffect,
                ToApply,
                CalledComputations,
                OutputToOperandAliasing,
                PaddingType,
                Literal,
                OperandPrecision,
                Schedule,
                ApiVersion,
            ],
        ),
        O::Dot | O::ScaledDot => legal(
            &[],
            &[
                LhsContractingDims,
                RhsContractingDims,
                LhsBatchDims,
                RhsBatchDims,
                OperandPrecision,
                Algorithm,
            ],
        ),
        O::RaggedDot => legal(
            &[],
            &[
                LhsContractingDims,
                RhsContractingDims,
                LhsBatchDims,
                RhsBatchDims,
                LhsRaggedDims,
                RhsGroupDims,
                OperandPrecision,
            ],
        ),
        O::Convolution => legal(
            &[DimLabels],
            &[
                Window,
                FeatureGroupCount,
                BatchGroupCount,
                OperandPrecision,
                ConvolutionKind,
                SparsityConfig,
            ],
        ),
        O::Gather => legal(
            &[
                OffsetDims,
                CollapsedSliceDims,
                StartIndexMap,
                IndexVectorDim,
                SliceSizes,
            ],
            &[
                IndicesAreSorted,
                OperandBatchingDims,
                StartIndicesBatchingDims,
            ],
        ),
        O::Scatter => legal(
            &[
                UpdateWindowDims,
                InsertedWindowDims,
                ScatterDimsToOperandDims,
                IndexVectorDim,
                ToApply,
            ],
            &[
                IndicesAreSorted,
                UniqueIndices,
                InputBatchingDims,
                ScatterIndicesBatchingDims,
            ],
        ),
        O::Reduce => legal(&[ToApply, Dimensions], &[]),
        O::ReduceWindow => legal(&[ToApply], &[Window]),
        O::Map => legal(&[ToApply], &[Dimensions]),
        O::Scan => legal(
            &[ToApply, Dimensions, NumCarries],
            &[IsReverse, IsAssociative],
        ),
        O::TopK => legal(&[K], &[Largest]),
        O::SelectAndScatter => legal(&[Select, Scatter], &[Window]),
        O::Slice => legal(&[Slice], &[]),
        O::DynamicSlice => legal(&[DynamicSliceSizes], &[]),
        O::Pad => legal(&[Padding], &[]),
        O::Iota => legal(&[IotaDimension], &[]),
        O::Concatenate | O::Transpose | O::Reverse | O::GetDimensionSize | O::SetDimensionSize => {
            legal(&[Dimensions], &[])
        }
        O::Broadcast => legal(&[], &[Dimensions]),
        O::Compare => legal(&[Direction], &[Type]),
        O::Fft => legal(&[FftType, FftLength], &[]),
        O::Cholesky => legal(&[], &[Lower]),
        O::TriangularSolve => legal(&[], &[LeftSide, Lower, UnitDiagonal, TransposeA]),
        O::Rng => legal(&[Distribution], &[]),
        O::RngBitGenerator => legal(&[Algorithm], &[]),
        O::RngGetAndUpdateState => legal(&[Delta], &[]),
        O::ReducePrecision => legal(&[ExponentBits, MantissaBits], &[]),
        O::BatchNormGrad | O::BatchNormInference | O::BatchNormTraining => {
            legal(&[Epsilon, FeatureIndex], &[])
        }
        O::Infeed => legal(&[], &[InfeedConfig]),
        O::Outfeed => legal(&[], &[OutfeedConfig, OutfeedShape]),
        O::Domain => legal(&[Domain], &[]),
        O::Acos
        | O::Acosh
        | O::Asin
        | O::Asinh
        | O::Atanh
        | O::Cbrt
        | O::Cos
        | O::Cosh
        | O::Erf
        | O::Exp
        | O::Expm1
        | O::Log
        | O::Log1p
        | O::Logistic
        | O::Rsqrt
        | O::Sin
        | O::Sinh
        | O::Sqrt
        | O::Tan
        | O::Tanh => legal(&[], &[ResultAccuracy]),
        _ => legal(&[], &[]),
    }
}
