//! Operations of HLO and the facts about each that do not depend on an instance.

use std::fmt;

/// How many operands an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly this many.
    Exactly(u8),
    /// At least this many.
    AtLeast(u8),
}

impl Arity {
    /// Whether `n` operands are right.
    pub const fn accepts(self, n: usize) -> bool {
        match self {
            Arity::Exactly(k) => n == k as usize,
            Arity::AtLeast(k) => n >= k as usize,
        }
    }
}

/// The group an operation belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpClass {
    /// Each element of the result depends on the elements at the same place in the operands.
    Elementwise,
    /// Defines no bytes: the result is an operand or a part of one.
    Forward,
    /// Runs whole computations: `while`, `conditional`, `call`.
    Control,
    /// Starts, continues or ends an operation that runs beside others.
    Async,
    /// Talks to other devices.
    Collective,
    /// Everything else.
    Other,
}

macro_rules! opcodes {
    ($($variant:ident = $name:literal, $arity:ident($n:literal), $class:ident;)*) => {
        /// An operation of HLO.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "each is named as HLO text names it")]
        pub enum Opcode { $($variant,)* }

        impl Opcode {
            /// All operations, in the order of their names.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$variant,)*];

            /// The name HLO text uses.
            pub const fn name(self) -> &'static str {
                match self { $(Opcode::$variant => $name,)* }
            }

            /// The operation called `name`.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Opcode::$variant),)* _ => None }
            }

            /// How many operands it takes.
            pub const fn arity(self) -> Arity {
                match self { $(Opcode::$variant => Arity::$arity($n),)* }
            }

            /// The group it belongs to.
            pub const fn class(self) -> OpClass {
                match self { $(Opcode::$variant => OpClass::$class,)* }
            }
        }
    };
}

opcodes! {
    Abs = "abs", Exactly(1), Elementwise;
    Acos = "acos", Exactly(1), Elementwise;
    Acosh = "acosh", Exactly(1), Elementwise;
    Add = "add", Exactly(2), Elementwise;
    AddDependency = "add-dependency", Exactly(2), Forward;
    AfterAll = "after-all", AtLeast(0), Other;
    AllGather = "all-gather", AtLeast(1), Collective;
    AllGatherDone = "all-gather-done", Exactly(1), Async;
    AllGatherStart = "all-gather-start", AtLeast(1), Async;
    AllReduce = "all-reduce", AtLeast(0), Collective;
    AllReduceDone = "all-reduce-done", Exactly(1), Async;
    AllReduceStart = "all-reduce-start", AtLeast(1), Async;
    AllToAll = "all-to-all", AtLeast(1), Collective;
    And = "and", Exactly(2), Elementwise;
    Asin = "asin", Exactly(1), Elementwise;
    Asinh = "asinh", Exactly(1), Elementwise;
    AsyncDone = "async-done", AtLeast(1), Async;
    AsyncStart = "async-start", AtLeast(0), Async;
    AsyncUpdate = "async-update", AtLeast(1), Async;
    Atan2 = "atan2", Exactly(2), Elementwise;
    Atanh = "atanh", Exactly(1), Elementwise;
    BatchNormGrad = "batch-norm-grad", Exactly(5), Other;
    BatchNormInference = "batch-norm-inference", Exactly(5), Other;
    BatchNormTraining = "batch-norm-training", Exactly(3), Other;
    Bitcast = "bitcast", Exactly(1), Forward;
    BitcastConvert = "bitcast-convert", Exactly(1), Other;
    Broadcast = "broadcast", Exactly(1), Other;
    Call = "call", AtLeast(0), Control;
    Cbrt = "cbrt", Exactly(1), Elementwise;
    Ceil = "ceil", Exactly(1), Elementwise;
    Cholesky = "cholesky", Exactly(1), Other;
    Clamp = "clamp", Exactly(3), Other;
    CollectiveBroadcast = "collective-broadcast", AtLeast(1), Collective;
    CollectivePermute = "collective-permute", AtLeast(1), Collective;
    CollectivePermuteDone = "collective-permute-done", Exactly(1), Async;
    CollectivePermuteStart = "collective-permute-start", AtLeast(1), Async;
    Compare = "compare", Exactly(2), Elementwise;
    Complex = "complex", Exactly(2), Elementwise;
    Concatenate = "concatenate", AtLeast(1), Other;
    Conditional = "conditional", AtLeast(2), Control;
    Constant = "constant", Exactly(0), Other;
    Convert = "convert", Exactly(1), Elementwise;
    Convolution = "convolution", Exactly(2), Other;
    Copy = "copy", Exactly(1), Other;
    CopyDone = "copy-done", Exactly(1), Async;
    CopyStart = "copy-start", Exactly(1), Async;
    Cos = "cosine", Exactly(1), Elementwise;
    Cosh = "cosh", Exactly(1), Elementwise;
    Clz = "count-leading-zeros", Exactly(1), Elementwise;
    CustomCall = "custom-call", AtLeast(0), Other;
    Divide = "divide", Exactly(2), Elementwise;
    Domain = "domain", Exactly(1), Forward;
    Dot = "dot", AtLeast(2), Other;
    DynamicReshape = "dynamic-reshape", AtLeast(1), Other;
    DynamicSlice = "dynamic-slice", AtLeast(1), Other;
    DynamicUpdateSlice = "dynamic-update-slice", AtLeast(2), Other;
    Erf = "erf", Exactly(1), Elementwise;
    Exp = "exponential", Exactly(1), Elementwise;
    Expm1 = "exponential-minus-one", Exactly(1), Elementwise;
    Fft = "fft", Exactly(1), Other;
    Floor = "floor", Exactly(1), Elementwise;
    Fusion = "fusion", AtLeast(0), Other;
    Gather = "gather", Exactly(2), Other;
    GetDimensionSize = "get-dimension-size", Exactly(1), Other;
    GetTupleElement = "get-tuple-element", Exactly(1), Forward;
    Imag = "imag", Exactly(1), Elementwise;
    Infeed = "infeed", Exactly(1), Other;
    Iota = "iota", Exactly(0), Other;
    IsFinite = "is-finite", Exactly(1), Elementwise;
    Log = "log", Exactly(1), Elementwise;
    Log1p = "log-plus-one", Exactly(1), Elementwise;
    Logistic = "logistic", Exactly(1), Elementwise;
    Map = "map", AtLeast(1), Other;
    Maximum = "maximum", Exactly(2), Elementwise;
    Minimum = "minimum", Exactly(2), Elementwise;
    Multiply = "multiply", Exactly(2), Elementwise;
    Negate = "negate", Exactly(1), Elementwise;
    Not = "not", Exactly(1), Elementwise;
    OptimizationBarrier = "opt-barrier", Exactly(1), Forward;
    Or = "or", Exactly(2), Elementwise;
    Outfeed = "outfeed", Exactly(2), Other;
    Pad = "pad", Exactly(2), Other;
    Parameter = "parameter", Exactly(0), Other;
    PartitionId = "partition-id", Exactly(0), Other;
    Popcnt = "popcnt", Exactly(1), Elementwise;
    Power = "power", Exactly(2), Elementwise;
    RaggedAllToAll = "ragged-all-to-all", Exactly(6), Collective;
    RaggedDot = "ragged-dot", AtLeast(3), Other;
    Real = "real", Exactly(1), Elementwise;
    Recv = "recv", Exactly(1), Async;
    RecvDone = "recv-done", Exactly(1), Async;
    Reduce = "reduce", AtLeast(2), Other;
    ReducePrecision = "reduce-precision", Exactly(1), Elementwise;
    ReduceScatter = "reduce-scatter", AtLeast(1), Collective;
    ReduceWindow = "reduce-window", AtLeast(2), Other;
    Remainder = "remainder", Exactly(2), Elementwise;
    ReplicaId = "replica-id", Exactly(0), Other;
    Reshape = "reshape", Exactly(1), Other;
    Reverse = "reverse", Exactly(1), Other;
    Rng = "rng", AtLeast(0), Other;
    RngBitGenerator = "rng-bit-generator", Exactly(1), Other;
    RngGetAndUpdateState = "rng-get-and-update-state", Exactly(0), Other;
    RoundNearestAfz = "round-nearest-afz", Exactly(1), Elementwise;
    RoundNearestEven = "round-nearest-even", Exactly(1), Elementwise;
    Rsqrt = "rsqrt", Exactly(1), Elementwise;
    ScaledDot = "scaled-dot", Exactly(4), Other;
    Scan = "scan", AtLeast(1), Other;
    Scatter = "scatter", AtLeast(3), Other;
    Select = "select", Exactly(3), Elementwise;
    SelectAndScatter = "select-and-scatter", Exactly(3), Other;
    Send = "send", Exactly(2), Async;
    SendDone = "send-done", Exactly(1), Async;
    SetDimensionSize = "set-dimension-size", Exactly(2), Other;
    ShiftLeft = "shift-left", Exactly(2), Elementwise;
    ShiftRightArithmetic = "shift-right-arithmetic", Exactly(2), Elementwise;
    ShiftRightLogical = "shift-right-logical", Exactly(2), Elementwise;
    Sign = "sign", Exactly(1), Elementwise;
    Sin = "sine", Exactly(1), Elementwise;
    Sinh = "sinh", Exactly(1), Elementwise;
    Slice = "slice", Exactly(1), Other;
    Sort = "sort", AtLeast(1), Other;
    Sqrt = "sqrt", Exactly(1), Elementwise;
    StochasticConvert = "stochastic-convert", Exactly(2), Elementwise;
    Subtract = "subtract", Exactly(2), Elementwise;
    Tan = "tan", Exactly(1), Elementwise;
    Tanh = "tanh", Exactly(1), Elementwise;
    TopK = "topk", Exactly(1), Other;
    Transpose = "transpose", Exactly(1), Other;
    TriangularSolve = "triangular-solve", Exactly(2), Other;
    Tuple = "tuple", AtLeast(0), Other;
    While = "while", Exactly(1), Control;
    Xor = "xor", Exactly(2), Elementwise;
}

impl Opcode {
    /// Whether each element of the result depends on the operands' elements at the same place only.
    pub const fn is_elementwise(self) -> bool {
        matches!(self.class(), OpClass::Elementwise)
    }

    /// Whether the operation must run, and in its order, even if nobody uses its result.
    ///
    /// Custom-calls say so one by one: see [`crate::module::Module::has_side_effect`].
    pub const fn always_has_side_effect(self) -> bool {
        use Opcode as O;
        matches!(
            self,
            O::AfterAll
                | O::Infeed
                | O::Outfeed
                | O::Send
                | O::SendDone
                | O::Recv
                | O::RecvDone
                | O::Rng
                | O::RngGetAndUpdateState
        ) || matches!(self.class(), OpClass::Collective)
            || matches!(
                self,
                O::AllGatherStart
                    | O::AllGatherDone
                    | O::AllReduceStart
                    | O::AllReduceDone
                    | O::CollectivePermuteStart
                    | O::CollectivePermuteDone
            )
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
