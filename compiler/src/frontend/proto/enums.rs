//! Words of HLO text for the enums of the protos: each list by number.

/// `xla.PrecisionConfig.Precision`
pub(super) const PRECISIONS: [&str; 3] = ["default", "high", "highest"];

/// `xla.PrecisionConfig.Algorithm`
pub(super) const DOT_ALGORITHMS: [&str; 14] = [
    "unset",
    "dot_any_f8_any_f8_f32",
    "dot_any_f8_any_f8_f32_fast_accum",
    "dot_f16_f16_f16",
    "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16",
    "dot_bf16_bf16_f32",
    "dot_bf16_bf16_f32_x3",
    "dot_bf16_bf16_f32_x6",
    "dot_tf32_tf32_f32",
    "dot_tf32_tf32_f32_x3",
    "dot_f32_f32_f32",
    "dot_f64_f64_f64",
    "dot_bf16_bf16_f32_x9",
];

/// `xla.ConvolutionKind`
pub(super) const CONVOLUTION_KINDS: [&str; 4] = ["unset", "fprop", "dgrad", "wgrad"];

/// `xla.RandomAlgorithm`
pub(super) const RNG_ALGORITHMS: [&str; 3] = ["rng_default", "rng_three_fry", "rng_philox"];

/// `xla.RandomDistribution`
pub(super) const RNG_DISTRIBUTIONS: [&str; 3] = ["rng_invalid", "rng_uniform", "rng_normal"];

/// `xla.FftType`
pub(super) const FFT_TYPES: [&str; 4] = ["FFT", "IFFT", "RFFT", "IRFFT"];

/// `xla.TriangularSolveOptions.Transpose`
pub(super) const TRANSPOSES: [&str; 4] =
    ["TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"];

/// `xla.PaddingType`; the first is the text's silence.
pub(super) const PADDING_TYPES: [&str; 3] = ["PADDING_INVALID", "PADDING_VALID", "PADDING_SAME"];

/// `xla.CustomCallSchedule`; the first is the text's silence.
pub(super) const SCHEDULES: [&str; 3] = ["SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"];

/// `xla.CustomCallApiVersion`; the second is the text's silence.
pub(super) const API_VERSIONS: [&str; 5] = [
    "API_VERSION_UNSPECIFIED",
    "API_VERSION_ORIGINAL",
    "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI",
];

/// The word of a number.
pub(super) fn word<'a>(words: &[&'a str], number: i32) -> Result<&'a str, String> {
    let found = usize::try_from(number).ok().and_then(|n| words.get(n));
    found.copied().ok_or_else(|| {
        format!(
            "unknown enum value {number}; known are 0 to {}",
            words.len() - 1
        )
    })
}

/// The number of a word.
pub(super) fn number(words: &[&str], word: &str) -> Result<i32, String> {
    let found = words.iter().position(|&w| w == word);
    found
        .map(|n| n as i32)
        .ok_or_else(|| format!("unknown word `{word}`; known are {}", words.join(", ")))
}
