//! Speed of the executor on single operations: `cargo bench -p slabplan --bench run [-- NAME...]`.
//!
//! Best of several runs on the slab of a plan for the host. `GB/s` counts every operand and result
//! once. `fixtures/against_xla.py` puts whole programs beside XLA:CPU.

use slabplan::exec::{ExecConfig, Executable, HostArray};
use slabplan::report::Table;
use slabplan::{CompileConfig, compile, target};
use slabplan_ir::ElementType;
use std::fmt::Write as _;

/// A program, the floating-point operations it asks for, and its text.
struct Program {
    name: &'static str,
    flops: f64,
    text: String,
}

const RUNS: usize = 7;

fn main() {
    let names: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let mut table = Table::new(&["program", "time", "per instruction", "GFlop/s", "GB/s"]);
    for program in programs() {
        if names.is_empty() || names.iter().any(|n| program.name.contains(n.as_str())) {
            table.row(measure(&program));
        }
    }
    print!("{table}");
}

fn measure(program: &Program) -> Vec<String> {
    let module = slabplan_ir::text::parse(&program.text)
        .into_result()
        .expect("a module");
    let target = target::load("cpu").expect("a built-in target");
    let compiled = compile(module, &target, &CompileConfig::default()).expect("a plan");
    let mut executable =
        Executable::new(&compiled.module, compiled.plan(), ExecConfig::default()).expect("loads");
    let inputs: Vec<HostArray> = executable
        .inputs()
        .iter()
        .map(|s| fill(s.element_type, &s.dims))
        .collect();
    let mut best = f64::INFINITY;
    let mut bytes: usize = inputs.iter().map(|a| a.data.len()).sum();
    for run in 0..RUNS {
        let outputs = executable.execute(&inputs).expect("runs");
        best = best.min(executable.run_seconds());
        if run == 0 {
            bytes += outputs.iter().map(|a| a.data.len()).sum::<usize>();
        }
    }
    let instructions = compiled.module.entry().instrs.len();
    vec![
        program.name.to_owned(),
        format!("{:.3} ms", 1e3 * best),
        format!("{:.2} us", 1e6 * best / instructions as f64),
        format!("{:.1}", program.flops / best / 1e9),
        format!("{:.1}", bytes as f64 / best / 1e9),
    ]
}

/// Small numbers of either sign.
fn fill(element_type: ElementType, dims: &[u64]) -> HostArray {
    let count: u64 = dims.iter().product();
    let data = (0..count).flat_map(|i| {
        let value = (i * 7919 % 1000) as f32 / 500.0 - 1.0;
        match element_type {
            ElementType::F32 => value.to_le_bytes().to_vec(),
            ElementType::Bf16 => half::bf16::from_f32(value).to_le_bytes().to_vec(),
            other => vec![0; other.byte_width() as usize],
        }
    });
    HostArray::new(element_type, dims, data.collect()).expect("as many bytes as asked for")
}

fn programs() -> Vec<Program> {
    let mut programs = vec![
        product("matmul_256", 256, "f32"),
        product("matmul_1024", 1024, "f32"),
        product("matmul_2048", 2048, "f32"),
        product("matmul_1024_bf16", 1024, "bf16"),
        Program {
            name: "convolution_64x56",
            flops: 2.0 * 4.0 * 56.0 * 56.0 * 9.0 * 64.0 * 64.0,
            text: entry(
                "x = f32[4,56,56,64] parameter(0)
  k = f32[3,3,64,64] parameter(1)
  ROOT r = f32[4,56,56,64] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
            ),
        },
    ];
    let big = "f32[4096,4096]";
    let two = format!("x = {big} parameter(0)\n  y = {big} parameter(1)");
    let one = format!("x = {big} parameter(0)");
    let n = 4096.0 * 4096.0;
    let mut simple = |name, flops, lines: String| {
        programs.push(Program {
            name,
            flops,
            text: entry(&lines),
        });
    };
    simple(
        "copy_64mib",
        0.0,
        format!("{one}\n  ROOT r = {big} copy(x)"),
    );
    simple("add_64mib", n, format!("{two}\n  ROOT r = {big} add(x, y)"));
    simple(
        "exp_64mib",
        n,
        format!("{one}\n  ROOT r = {big} exponential(x)"),
    );
    simple("tanh_64mib", n, format!("{one}\n  ROOT r = {big} tanh(x)"));
    simple(
        "transpose_64mib",
        0.0,
        format!("{one}\n  ROOT r = {big} transpose(x), dimensions={{1,0}}"),
    );
    for (name, along) in [("row_sums", 1), ("column_sums", 0)] {
        programs.push(Program {
            name,
            flops: n,
            text: format!(
                "HloModule m\nadd {{ x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT r = f32[] add(x, y) }}\n\
                 ENTRY e {{\n  {one}\n  zero = f32[] constant(0)\n  \
                 ROOT r = f32[4096] reduce(x, zero), dimensions={{{along}}}, to_apply=add\n}}"
            ),
        });
    }
    programs.push(chain());
    programs
}

fn product(name: &'static str, n: usize, ty: &str) -> Program {
    let matrix = format!("{ty}[{n},{n}]");
    Program {
        name,
        flops: 2.0 * (n as f64).powi(3),
        text: entry(&format!(
            "a = {matrix} parameter(0)\n  b = {matrix} parameter(1)\n  \
             ROOT r = {matrix} dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
        )),
    }
}

/// A thousand instructions on arrays of eight elements: what an instruction costs by itself.
fn chain() -> Program {
    let mut lines = "x0 = f32[8] parameter(0)".to_owned();
    let length = 1000;
    for i in 1..=length {
        let root = if i == length { "ROOT " } else { "" };
        let op = if i % 2 == 0 { "add" } else { "multiply" };
        let _ = write!(lines, "\n  {root}x{i} = f32[8] {op}(x{}, x0)", i - 1);
    }
    Program {
        name: "tiny_chain",
        flops: 0.0,
        text: entry(&lines),
    }
}

fn entry(lines: &str) -> String {
    format!("HloModule m\nENTRY e {{\n  {lines}\n}}")
}
