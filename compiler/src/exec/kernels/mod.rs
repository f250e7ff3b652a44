//! What each operation computes, on dense arrays.
//!
//! A [`Kernel`] is prepared once from an instruction: attributes are decoded,
//! shapes checked, loops chosen by element type. Running it allocates nothing.
//! Arrays are in the dense host form: row-major, little-endian, one byte for
//! `pred` and sub-byte elements, complex as (re, im).
//!
//! The semantics are XLA's: operation_semantics of its documentation, and its
//! HLO evaluator where the documentation is silent.

use std::fmt;

use slabplan_ir::{ElementType, InstrId, Module, Opcode};

mod prepare;

mod complex;
mod real;
mod scalar;
mod smooth;

mod binary;
mod compare;
mod convert;
mod elementwise;
pub(crate) mod fused_loop;
mod lanes;
mod precision;
mod stochastic;
mod unary;

mod bitcast;
mod dynamic_slice;
mod gather;
mod index;
mod iota;
mod mixed;
mod movement;
mod pad;
mod scatter;
mod scatter_dims;
mod strided;
mod walk;

mod convolution;
mod dot;
mod grouped_dot;
mod matmul;
mod patches;
mod widen;

mod batch_norm;
mod cholesky;
mod fft;
mod field;
mod fourier;
mod lapack;
mod triangular_solve;

mod dimension_size;
mod rng;
mod rng_stateless;

mod accumulate;
mod cumulative;
mod folds;
mod map;
mod merge_sort;
mod partial_reduce;
mod reduce;
mod reduce_window;
mod reducer;
mod scalar_program;
mod select_and_scatter;
mod sort;
mod topk;
mod window;
mod x64;

#[cfg(test)]
mod cases;

pub(crate) use elementwise::Elementwise;
pub(crate) use iota::iota_type;
pub(crate) use movement::moved_dims;

use prepare::Prepare;

/// An array a kernel reads.
#[derive(Clone, Copy, Debug)]
pub struct ArrayRef<'a> {
    /// Element type.
    pub element_type: ElementType,
    /// Dimension sizes, major to minor.
    pub dims: &'a [u64],
    /// Elements in the dense host form, at any alignment.
    pub data: &'a [u8],
}

/// An array a kernel writes.
#[derive(Debug)]
pub struct ArrayMut<'a> {
    /// Element type.
    pub element_type: ElementType,
    /// Dimension sizes, major to minor.
    pub dims: &'a [u64],
    /// Elements in the dense host form, at any alignment; every one is written.
    pub data: &'a mut [u8],
}

/// An instruction that can't be executed, or a call of a kernel with other arrays than it was prepared for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// The instruction is malformed, or of a kind the executor does not implement.
    #[error("{opcode} `{name}`: {message}")]
    Instruction {
        /// Its name.
        name: String,
        /// Its operation.
        opcode: Opcode,
        /// What is wrong with it.
        message: String,
    },
    /// The arrays given do not match the instruction's shapes.
    #[error("{what} {index} of {opcode} has {given} bytes where {expected} are expected")]
    Array {
        /// The kernel's operation.
        opcode: Opcode,
        /// `operand`, `result` or `scratch`.
        what: &'static str,
        /// Which one.
        index: usize,
        /// Bytes given; the number of arrays where that is wrong.
        given: usize,
        /// Bytes expected.
        expected: usize,
    },
}

/// Converts the elements of `x` from one type to another; false where HLO has no such conversion.
pub(crate) fn convert(from: ElementType, to: ElementType, x: &[u8], out: &mut [u8]) -> bool {
    let conversion = convert::Convert::new(from, to);
    if let Some(conversion) = &conversion {
        conversion.apply(x, out);
    }
    conversion.is_some()
}

/// What a prepared operation does.
trait Run: fmt::Debug + Send + Sync {
    /// Bytes of scratch it needs.
    fn scratch_bytes(&self) -> usize {
        0
    }
    /// Whether arrays are taken in their plain layouts: see `Prepare::strides`.
    fn is_strided(&self) -> bool {
        false
    }
    /// Whether operand `n` may be the memory of result `result`, which is then computed in place.
    fn may_overwrite(&self, _operand: usize, _result: usize) -> bool {
        false
    }
    /// From now on operand `n` is the memory of result `result`, and given as no bytes.
    fn overwrite(&mut self, _operand: usize, _result: usize) {}
    /// Computes the results. Arrays and scratch are of the sizes the kernel was prepared for.
    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]);
}

/// An instruction ready to run.
#[derive(Debug)]
pub struct Kernel {
    opcode: Opcode,
    operand_bytes: Vec<usize>,
    result_bytes: Vec<usize>,
    scratch_bytes: usize,
    run: Box<dyn Run>,
}

impl Kernel {
    /// Decodes an instruction of `module` whose operands are arrays and whose result is an array
    /// or a flat tuple of arrays. O(rank), but for embedded computations: O(their instructions).
    pub fn prepare(module: &Module, instr: InstrId) -> Result<Self, KernelError> {
        Self::of(&Prepare::new(module, instr))
    }

    /// The same for arrays that lie as their layouts say if [`is_strided`](Self::is_strided) and
    /// the layout is plain, and for at most `threads` threads.
    pub(crate) fn prepare_in_layout(
        module: &Module,
        instr: InstrId,
        threads: usize,
    ) -> Result<Self, KernelError> {
        Self::of(&Prepare {
            in_layout: true,
            threads,
            ..Prepare::new(module, instr)
        })
    }

    fn of(p: &Prepare<'_>) -> Result<Self, KernelError> {
        let bytes = |shapes: Vec<&slabplan_ir::ArrayShape>| {
            shapes
                .into_iter()
                .map(|s| Ok(p.element_count(s)? * scalar::width(s.element_type)))
                .collect::<Result<Vec<_>, KernelError>>()
        };
        let run = prepare_run(p)?;
        Ok(Self {
            opcode: p.instr.opcode,
            operand_bytes: bytes(p.operands()?)?,
            result_bytes: bytes(p.results()?)?,
            scratch_bytes: run.scratch_bytes(),
            run,
        })
    }

    /// Whether arrays of a plain layout are taken as they lie, instead of row-major.
    pub(crate) fn is_strided(&self) -> bool {
        self.run.is_strided()
    }

    /// Whether operand `operand` may be the memory of result `result`.
    pub(crate) fn may_overwrite(&self, operand: usize, result: usize) -> bool {
        self.run.may_overwrite(operand, result)
    }

    /// From now on operand `operand` is the memory of result `result`, and given as no bytes.
    pub(crate) fn overwrite(&mut self, operand: usize, result: usize) {
        self.run.overwrite(operand, result);
        self.operand_bytes[operand] = 0;
    }

    /// Bytes of scratch that [`run`](Self::run) needs, at any alignment.
    pub fn scratch_bytes(&self) -> usize {
        self.scratch_bytes
    }

    /// Computes the results from the operands; allocates nothing.
    ///
    /// `scratch` is overwritten. Errors if the arrays' sizes are not those of the instruction.
    pub fn run(
        &self,
        operands: &[ArrayRef<'_>],
        results: &mut [ArrayMut<'_>],
        scratch: &mut [u8],
    ) -> Result<(), KernelError> {
        let given = operands.iter().map(|a| a.data.len());
        self.check("operand", given, &self.operand_bytes)?;
        let given = results.iter().map(|a| a.data.len());
        self.check("result", given, &self.result_bytes)?;
        let given = scratch.len();
        let Some(scratch) = scratch.get_mut(..self.scratch_bytes) else {
            return Err(KernelError::Array {
                opcode: self.opcode,
                what: "scratch",
                index: 0,
                given,
                expected: self.scratch_bytes,
            });
        };
        self.run.run(operands, results, scratch);
        Ok(())
    }

    fn check(
        &self,
        what: &'static str,
        given: impl ExactSizeIterator<Item = usize>,
        expected: &[usize],
    ) -> Result<(), KernelError> {
        let error = |index, given, expected| {
            Err(KernelError::Array {
                opcode: self.opcode,
                what,
                index,
                given,
                expected,
            })
        };
        if given.len() != expected.len() {
            return error(expected.len(), given.len(), expected.len());
        }
        for (index, (given, &expected)) in given.zip(expected).enumerate() {
            if given != expected {
                return error(index, given, expected);
            }
        }
        Ok(())
    }
}

/// The table of operations.
fn prepare_run(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    use Opcode as O;
    if let Some(kernel) = mixed::prepare(p)? {
        return Ok(kernel);
    }
    if let Some(kernel) = elementwise::prepare(p)? {
        return Ok(kernel);
    }
    match p.instr.opcode {
        O::Broadcast
        | O::Transpose
        | O::Reverse
        | O::Slice
        | O::Concatenate
        | O::Reshape
        | O::Copy => movement::prepare(p),
        O::Bitcast => bitcast::prepare_bitcast(p),
        O::BitcastConvert => bitcast::prepare_bitcast_convert(p),
        O::BatchNormGrad | O::BatchNormInference | O::BatchNormTraining => batch_norm::prepare(p),
        O::Cholesky => cholesky::prepare(p),
        O::Convolution => convolution::prepare(p),
        O::CustomCall => custom_call(p),
        O::Dot => dot::prepare(p),
        O::DynamicReshape => Err(p.error("dynamic sizes are not executed: give a module with fixed sizes".into())),
        O::DynamicSlice | O::DynamicUpdateSlice => dynamic_slice::prepare(p),
        O::Fft => fft::prepare(p),
        O::Gather => gather::prepare(p),
        O::GetDimensionSize => dimension_size::prepare_get(p),
        O::Iota => iota::prepare(p),
        O::Map => map::prepare(p),
        O::Pad => pad::prepare(p),
        O::Reduce => reduce::prepare(p),
        O::ReduceWindow => reduce_window::prepare(p),
        O::RngBitGenerator => rng::prepare(p),
        O::Rng => rng_stateless::prepare(p),
        O::RngGetAndUpdateState => rng_stateless::prepare_state(p),
        O::RaggedDot | O::ScaledDot => grouped_dot::prepare(p),
        O::Scan => Err(p.error(
            "is not executed as it is: XLA's optimiser expands it to a while; give the optimised module".into(),
        )),
        O::Scatter => scatter::prepare(p),
        O::SelectAndScatter => select_and_scatter::prepare(p),
        O::SetDimensionSize => dimension_size::prepare_set(p),
        O::Sort => sort::prepare(p),
        O::TriangularSolve => triangular_solve::prepare(p),
        O::TopK => topk::prepare(p),
        _ => Err(p.error("is not implemented by the executor".into())),
    }
}

/// The custom-calls that the executor knows, each with what it is.
pub(crate) fn custom_call_targets() -> Vec<(String, &'static str)> {
    let known = |names: &[&str], what: &'static str| -> Vec<(String, &'static str)> {
        names.iter().map(|&n| (n.to_owned(), what)).collect()
    };
    let mut targets = known(
        &["AllocateBuffer", "ConcatBitcast"],
        "places of bytes, no computation",
    );
    targets.extend(known(
        IDENTITIES,
        "a statement about a value, which stays the same",
    ));
    targets.extend(known(
        &[
            "xla.sdy.GlobalToLocalShape",
            "xla.sdy.LocalToGlobalShape",
            "SPMDFullToShardShape",
            "SPMDShardToFullShape",
        ],
        "the border of a shard_map: each device takes its slice",
    ));
    targets.extend(known(&["TopK"], "the largest elements"));
    targets.extend(known(
        &["PartialReduce"],
        "the largest or smallest elements (`approx_max_k`, `approx_min_k`), exactly",
    ));
    targets.extend(known(
        &["X64Combine", "X64SplitHigh", "X64SplitLow"],
        "64-bit numbers and pairs of 32-bit ones",
    ));
    let algebra = lapack::targets().into_iter();
    targets.extend(algebra.map(|name| (name, "linear algebra")));
    targets
}

/// Custom-calls that give their operand back.
const IDENTITIES: &[&str] = &[
    "AssumeGatherIndicesInBound",
    "GatherScatterIndicesBitpacked",
    "annotate_device_placement",
    "Sharding",
    "xla.sdy.FuncResultSharding",
];

/// The custom-calls whose meaning is known.
fn custom_call(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let target = p.module.custom_call_target(p.id).unwrap_or_default();
    match target {
        name if IDENTITIES.contains(&name) => movement::prepare(p),
        // What is left of a border after `import-shard-map` has the shapes of one device on both sides.
        "SPMDFullToShardShape" | "SPMDShardToFullShape" => movement::prepare(p),
        "PartialReduce" => partial_reduce::prepare(p),
        "TopK" => topk::prepare(p),
        "X64Combine" | "X64SplitHigh" | "X64SplitLow" => x64::prepare(p, target),
        _ => lapack::prepare(p, target).unwrap_or_else(|| Err(p.error(unknown_target(target)))),
    }
}

/// Why a custom-call is not executed, and what to do.
fn unknown_target(target: &str) -> String {
    let remedy = match target {
        "tpu_custom_call" => {
            "is a Mosaic kernel, compiled for the TPU: run the program with the kernel's reference \
             implementation in its place (Pallas: interpret=True)"
        }
        _ if target.contains("callback") => {
            "calls back into the process that built the program: take the callback out"
        }
        _ => {
            "is not known to the executor: lower the program without it, or for a platform that needs none \
             (docs/operations.md lists the known ones)"
        }
    };
    format!("target {target:?} {remedy}")
}
