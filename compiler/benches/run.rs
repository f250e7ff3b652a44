//! Speed of the executor on single operations: `cargo bench -p slabplan --bench run [-- NAME...]`.
//!
//! Best of several runs on the slab of a plan for the host. `GB/s` counts every operand and result
//! once. Below the table: the elementwise programs beside the memory's bandwidth (a plain loop that reads and
//! writes as many bytes, on as many threads, in turns with them) and what a tiny instruction costs, with what
//! is asked for. `fixtures/against_xla.py` puts whole programs beside XLA:CPU.

use slabplan::exec::{ExecConfig, Executable, HostArray, machine_threads};
use slabplan::report::Table;
use slabplan::{CompileConfig, compile, target};
use slabplan_ir::ElementType;
use std::fmt::Write as _;

/// A program, the floating-point operations it asks for, and its text.
struct Program {
    name: &'static str,
    flops: f64,
    text: String,
    /// What it does to memory, if it is an elementwise program.
    pass: Option<Pass>,
}

/// A loop over arrays of 64 MiB that does nothing but read and write them.
#[derive(Clone, Copy)]
enum Pass {
    /// Writes one.
    Fill,
    /// Reads one and writes one.
    Copy,
    /// Reads one and writes one of half the size.
    Halve,
    /// Reads two and writes one.
    Add,
}

const RUNS: usize = 7;
/// Turns of a program and of its plain loop.
const TURNS: usize = 5;

fn main() {
    let names: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let mut table = Table::new(&["program", "time", "per instruction", "GFlop/s", "GB/s"]);
    let mut asked = Table::new(&["what", "found", "asked, at most"]);
    for program in programs() {
        if !names.is_empty() && !names.iter().any(|n| program.name.contains(n.as_str())) {
            continue;
        }
        let mut measured = measure(&program);
        if let Some(pass) = program.pass {
            let mut plain = seconds_of(pass);
            for _ in 1..TURNS {
                measured.seconds = measured.seconds.min(measure(&program).seconds);
                plain = plain.min(seconds_of(pass));
            }
            asked.row([
                format!("{} to a plain pass over memory", program.name),
                format!("{:.2}", measured.seconds / plain),
                "1.5".to_owned(),
            ]);
        }
        if program.name == "tiny_chain" {
            asked.row([
                "microseconds for an instruction".to_owned(),
                format!(
                    "{:.2}",
                    1e6 * measured.seconds / measured.instructions as f64
                ),
                "2.0".to_owned(),
            ]);
        }
        table.row(measured.row(&program));
    }
    println!("{table}\n{asked}");
}

/// Best seconds of a plain pass, in equal parts on all threads. As with a run of a program, its arguments
/// were just written and its last result was just read, so that both find the same in the caches.
fn seconds_of(pass: Pass) -> f64 {
    const LEN: usize = 4096 * 4096;
    let part = LEN.div_ceil(machine_threads().get());
    let arguments = [vec![1f32; LEN], vec![2f32; LEN]];
    let [mut x, mut y] = arguments.clone();
    let (mut z, mut half) = (vec![0f32; LEN], vec![0u16; LEN]);
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        x.copy_from_slice(&arguments[0]);
        if matches!(pass, Pass::Add) {
            y.copy_from_slice(&arguments[1]);
        }
        let (x, y) = (&x, &y);
        let start = std::time::Instant::now();
        std::thread::scope(|scope| {
            let inputs = x.chunks(part).zip(y.chunks(part));
            let outputs = z.chunks_mut(part).zip(half.chunks_mut(part));
            for ((x, y), (z, half)) in inputs.zip(outputs) {
                scope.spawn(move || match pass {
                    Pass::Fill => z.fill(3.0),
                    Pass::Copy => z.copy_from_slice(x),
                    Pass::Halve => {
                        let pairs = half.iter_mut().zip(x);
                        pairs.for_each(|(half, x)| *half = (x.to_bits() >> 16) as u16);
                    }
                    Pass::Add => {
                        let pairs = x.iter().zip(y);
                        z.iter_mut().zip(pairs).for_each(|(z, (x, y))| *z = x + y);
                    }
                });
            }
        });
        best = best.min(start.elapsed().as_secs_f64());
        match pass {
            Pass::Halve => drop(std::hint::black_box(half.clone())),
            _ => drop(std::hint::black_box(z.clone())),
        }
    }
    best
}

/// What running a program gave.
struct Measured {
    seconds: f64,
    bytes: usize,
    instructions: usize,
}

impl Measured {
    fn row(&self, program: &Program) -> Vec<String> {
        vec![
            program.name.to_owned(),
            format!("{:.3} ms", 1e3 * self.seconds),
            format!("{:.2} us", 1e6 * self.seconds / self.instructions as f64),
            format!("{:.1}", program.flops / self.seconds / 1e9),
            format!("{:.1}", self.bytes as f64 / self.seconds / 1e9),
        ]
    }
}

fn measure(program: &Program) -> Measured {
    let module = slabplan_ir::text::parse(&program.text)
        .into_result()
        .expect("a module");
    let target = target::load("cpu").expect("a built-in target");
    let config = CompileConfig {
        scratch: Some(machine_threads()),
        ..CompileConfig::default()
    };
    let compiled = compile(module, &target, &config).expect("a plan");
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
    Measured {
        seconds: best,
        bytes,
        instructions: compiled.module.entry().instrs.len(),
    }
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
            pass: None,
        },
    ];
    programs.extend(elementwise());
    let big = "f32[4096,4096]";
    let n = 4096.0 * 4096.0;
    programs.push(Program {
        name: "transpose_64mib",
        flops: 0.0,
        text: entry(&format!(
            "x = {big} parameter(0)\n  ROOT r = {big} transpose(x), dimensions={{1,0}}"
        )),
        pass: None,
    });
    for (name, along) in [("row_sums", 1), ("column_sums", 0)] {
        programs.push(Program {
            name,
            flops: n,
            text: format!(
                "HloModule m\nadd {{ x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT r = f32[] add(x, y) }}\n\
                 ENTRY e {{\n  x = {big} parameter(0)\n  zero = f32[] constant(0)\n  \
                 ROOT r = f32[4096] reduce(x, zero), dimensions={{{along}}}, to_apply=add\n}}"
            ),
            pass: None,
        });
    }
    programs.push(chain());
    programs
}

/// Elementwise operations on arrays of 64 MiB.
fn elementwise() -> impl Iterator<Item = Program> {
    let big = "[4096,4096]";
    let x = format!("x = f32{big} parameter(0)");
    let y = format!("y = f32{big} parameter(1)");
    let scalar = "x = f32[] parameter(0)";
    let programs = [
        (
            "copy_64mib",
            Pass::Copy,
            format!("{x}\n  ROOT r = f32{big} copy(x)"),
        ),
        (
            "negate_64mib",
            Pass::Copy,
            format!("{x}\n  ROOT r = f32{big} negate(x)"),
        ),
        (
            "add_64mib",
            Pass::Add,
            format!("{x}\n  {y}\n  ROOT r = f32{big} add(x, y)"),
        ),
        (
            "multiply_64mib",
            Pass::Add,
            format!("{x}\n  {y}\n  ROOT r = f32{big} multiply(x, y)"),
        ),
        (
            "to_s32_64mib",
            Pass::Copy,
            format!("{x}\n  ROOT r = s32{big} convert(x)"),
        ),
        (
            "to_bf16_64mib",
            Pass::Halve,
            format!("{x}\n  ROOT r = bf16{big} convert(x)"),
        ),
        (
            "broadcast_64mib",
            Pass::Fill,
            format!("{scalar}\n  ROOT r = f32{big} broadcast(x), dimensions={{}}"),
        ),
        (
            "exp_64mib",
            Pass::Copy,
            format!("{x}\n  ROOT r = f32{big} exponential(x)"),
        ),
        (
            "tanh_64mib",
            Pass::Copy,
            format!("{x}\n  ROOT r = f32{big} tanh(x)"),
        ),
    ];
    programs.into_iter().map(|(name, pass, lines)| Program {
        name,
        flops: 4096.0 * 4096.0,
        text: entry(&lines),
        pass: Some(pass),
    })
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
        pass: None,
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
        pass: None,
    }
}

fn entry(lines: &str) -> String {
    format!("HloModule m\nENTRY e {{\n  {lines}\n}}")
}
