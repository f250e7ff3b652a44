//! Inferred shapes beside those that XLA's own parser infers for the same text (jaxlib 0.10.2).

use super::{Context, Inferred, infer};
use crate::module::Module;
use crate::text::parse;

const BEFORE: &str = "HloModule m

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}

less2 {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  ROOT e = pred[] compare(a, b), direction=LT
}

two {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  ROOT e = (f32[], f32[]) tuple(a, d)
}

callee {
  a = f32[4,6] parameter(0)
  ROOT r = f32[6,4] transpose(a), dimensions={1,0}
}

callee2 {
  a = f32[4,6] parameter(0)
  ROOT r = f32[6,4] transpose(a), dimensions={1,0}
}

go {
  a = (f32[4,6], s32[]) parameter(0)
  ROOT r = pred[] constant(true)
}

keep {
  ROOT a = (f32[4,6], s32[]) parameter(0)
}

ENTRY main {
x = f32[4,6] parameter(0)
y = f32[4,6] parameter(1)
i = s32[] parameter(2)
b = bf16[4,6] parameter(3)
c = c64[4,6] parameter(4)
n = s32[4,6] parameter(5)
v = f32[8,3,5] parameter(6)
w = f32[8,5,7] parameter(7)
img = f32[2,9,9,3] parameter(8)
ker = f32[3,3,3,16] parameter(9)
sq = f32[5,8,8] parameter(10)
rhs = f32[5,8,2] parameter(11)
zero = f32[] constant(0)
idx = s32[10,1] parameter(12)
upd = f32[10,6] parameter(13)
t = (f32[4,6], s32[]) parameter(14)
gs = s32[3] parameter(15)
rl = f32[11,5] parameter(16)
rr = f32[3,5,7] parameter(17)
img2 = f32[2,9,9,12] parameter(18)
sub = f32[2,3] parameter(19)
six = f32[6] parameter(20)
";

/// (instruction, shape that XLA infers)
const CASES: &[(&str, &str)] = &[
    ("negate(x)", "f32[4,6]"),
    ("abs(c)", "f32[4,6]"),
    ("real(c)", "f32[4,6]"),
    ("imag(c)", "f32[4,6]"),
    ("is-finite(x)", "pred[4,6]"),
    ("add(x, y)", "f32[4,6]"),
    ("compare(x, y), direction=GT", "pred[4,6]"),
    ("complex(x, y)", "c64[4,6]"),
    ("clamp(zero, x, zero)", "f32[4,6]"),
    ("not(n)", "s32[4,6]"),
    ("popcnt(n)", "s32[4,6]"),
    ("transpose(x), dimensions={1,0}", "f32[6,4]"),
    ("reverse(x), dimensions={0}", "f32[4,6]"),
    ("pad(x, zero), padding=1_2_1x-1_0", "f32[10,5]"),
    ("concatenate(x, y), dimensions={1}", "f32[4,12]"),
    (
        "dot(v, w), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}",
        "f32[8,3,7]",
    ),
    (
        "dot(b, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        "f32[4,4]",
    ),
    (
        "convolution(img, ker), window={size=3x3 stride=2x2 pad=1_1x0_1}, dim_labels=b01f_01io->b01f",
        "f32[2,5,4,16]",
    ),
    (
        "convolution(img, ker), window={size=3x3 lhs_dilate=2x1 rhs_dilate=1x2}, dim_labels=b01f_01io->f01b",
        "f32[16,15,5,2]",
    ),
    (
        "convolution(img2, ker), window={size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=4",
        "f32[2,7,7,16]",
    ),
    ("reduce(x, zero), dimensions={0}, to_apply=sum", "f32[6]"),
    (
        "reduce(x, y, zero, zero), dimensions={1}, to_apply=two",
        "(f32[4], f32[4])",
    ),
    ("map(x, y), dimensions={0,1}, to_apply=sum", "f32[4,6]"),
    ("sort(x), dimensions={1}, to_apply=less", "f32[4,6]"),
    (
        "sort(x, y), dimensions={0}, to_apply=less2",
        "(f32[4,6], f32[4,6])",
    ),
    (
        "gather(x, idx), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,6}",
        "f32[10,6]",
    ),
    (
        "gather(x, idx), offset_dims={0,1}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={2,3}",
        "f32[2,3,10]",
    ),
    (
        "scatter(x, idx, upd), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum",
        "f32[4,6]",
    ),
    ("fft(c), fft_type=FFT, fft_length={6}", "c64[4,6]"),
    ("fft(x), fft_type=RFFT, fft_length={4,6}", "c64[4,4]"),
    ("fft(c), fft_type=IRFFT, fft_length={10}", "f32[4,10]"),
    ("cholesky(sq)", "f32[5,8,8]"),
    (
        "triangular-solve(sq, rhs), left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
        "f32[5,8,2]",
    ),
    ("tuple(x, i)", "(f32[4,6], s32[])"),
    ("get-tuple-element(t), index=1", "s32[]"),
    ("call(x), to_apply=callee", "f32[6,4]"),
    ("while(t), condition=go, body=keep", "(f32[4,6], s32[])"),
    (
        "conditional(i, x, y), branch_computations={callee,callee2}",
        "f32[6,4]",
    ),
    ("topk(x), k=2, largest=true", "(f32[4,2], s32[4,2])"),
    (
        "reduce-window(x, zero), window={size=2x3 stride=2x1 pad=0_1x1_0}, to_apply=sum",
        "f32[2,5]",
    ),
    (
        "select-and-scatter(x, sub, zero), window={size=2x2 stride=2x2}, select=less, scatter=sum",
        "f32[4,6]",
    ),
    (
        "batch-norm-training(x, six, six), epsilon=0.1, feature_index=1",
        "(f32[4,6], f32[6], f32[6])",
    ),
    (
        "batch-norm-grad(x, six, six, six, y), epsilon=0.1, feature_index=1",
        "(f32[4,6], f32[6], f32[6])",
    ),
    (
        "batch-norm-inference(x, six, six, six, six), epsilon=0.1, feature_index=1",
        "f32[4,6]",
    ),
    (
        "ragged-dot(rl, rr, gs), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}",
        "f32[11,7]",
    ),
    (
        "ragged-dot(rl, rl, gs), lhs_contracting_dims={0}, rhs_contracting_dims={0}, lhs_ragged_dims={0}",
        "f32[3,5,5]",
    ),
    ("get-dimension-size(x), dimensions={0}", "s32[]"),
    ("set-dimension-size(x, i), dimensions={1}", "f32[4,<=6]"),
    ("after-all()", "token[]"),
    ("partition-id()", "u32[]"),
    ("copy(x)", "f32[4,6]"),
    (
        r#"domain(x), domain={kind="sharding", entry={replicated}, exit={replicated}}"#,
        "f32[4,6]",
    ),
];

fn module(instruction: &str, shape: &str) -> Module {
    let text = format!("{BEFORE}ROOT r = {shape} {instruction}\n}}\n");
    parse(&text)
        .into_result()
        .unwrap_or_else(|e| panic!("{instruction}: {}", e[0]))
}

fn infer_root(m: &Module) -> Result<Option<Inferred>, String> {
    let root = &m.instrs[m.entry().root];
    infer(Context::of(m), root).map_err(|e| e.to_string())
}

#[test]
fn as_xla_infers() {
    for &(instruction, expected) in CASES {
        let m = module(instruction, expected);
        let found = infer_root(&m)
            .unwrap_or_else(|e| panic!("{instruction}: {e}"))
            .unwrap_or_else(|| panic!("{instruction}: nothing inferred"));
        assert_eq!(found.describe(&m.shapes), expected, "{instruction}");
        // Stored, it is the declared shape but for the layout.
        let mut shapes = m.shapes.clone();
        let id = found.intern(&mut shapes);
        let declared = m.instrs[m.entry().root].shape;
        assert!(shapes.compatible(id, declared), "{instruction}");
    }
}

#[test]
fn results_that_the_text_must_declare() {
    for (instruction, shape) in [
        ("reshape(x)", "f32[24]"),
        ("convert(x)", "s8[4,6]"),
        ("broadcast(zero), dimensions={}", "f32[3]"),
        ("iota(), iota_dimension=0", "s32[3]"),
        ("custom-call(x), custom_call_target=\"t\"", "f32[1]"),
    ] {
        assert_eq!(
            infer_root(&module(instruction, shape)),
            Ok(None),
            "{instruction}"
        );
    }
}

/// Sizes at the edge of what fits are computed without overflow; beyond, they are errors.
#[test]
fn absurd_sizes() {
    let huge = i64::MAX;
    let m = module(&format!("pad(x, zero), padding=0_{huge}x0_0"), "f32[1]");
    assert!(infer_root(&m).unwrap_err().contains("2^63 - 1"));
    let m = module(&format!("pad(x, zero), padding=-{huge}_0x0_0"), "f32[1]");
    assert!(infer_root(&m).unwrap_err().contains("a dimension of -"));
    let m = module(&format!("pad(x, zero), padding=0_0_{huge}x0_0"), "f32[1]");
    assert!(infer_root(&m).is_err());
    let window =
        format!("window={{size={huge}x1 stride=1x1 pad={huge}_{huge}x0_0 rhs_dilate={huge}x1}}");
    let m = module(
        &format!("reduce-window(x, zero), {window}, to_apply=sum"),
        "f32[1]",
    );
    // The dilated window is wider than the padded array: none fits.
    assert_eq!(
        infer_root(&m).unwrap().unwrap().describe(&m.shapes),
        "f32[0,6]"
    );
    let m = module(
        "slice(x), slice={[4:4], [0:6:9223372036854775807]}",
        "f32[0,1]",
    );
    assert_eq!(
        infer_root(&m).unwrap().unwrap().describe(&m.shapes),
        "f32[0,1]"
    );
}
