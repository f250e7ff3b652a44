//! Every operation of HLO is carried out and compared with somebody else's results, or refused with words that
//! say what to do; `docs/operations.md` says which.
//!
//! `BLESS=1 cargo test -p slabplan-tests --test operations` writes the document anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use slabplan::exec::{ExecConfig, Executable, reference_plan};
use slabplan::frontend;
use slabplan_ir::{Module, Opcode};
use slabplan_tests::paths;

/// Operations that the executor refuses, with a module and words of the refusal.
const REFUSED: &[(&[&str], &str, &str)] = &[
    (
        &["infeed"],
        "HloModule m\nENTRY e { t = token[] after-all()\n  ROOT i = (f32[2], token[]) infeed(t) }",
        "make an argument or a result of that",
    ),
    (
        &["outfeed"],
        "HloModule m\nENTRY e { t = token[] after-all()\n  x = f32[2] parameter(0)\n  ROOT o = token[] outfeed(x, t), outfeed_shape=f32[2] }",
        "make an argument or a result of that",
    ),
    (
        &["scan"],
        "HloModule m\nadd { x = f32[] parameter(0)\n  c = f32[] parameter(1)\n  s = f32[] add(x, c)\n  ROOT t = (f32[], f32[]) tuple(s, s) }\nENTRY e { x = f32[4] parameter(0)\n  z = f32[] constant(0)\n  ROOT s = (f32[4], f32[]) scan(x, z), dimensions={0}, num_carries=1, to_apply=add }",
        "expands it to a while",
    ),
    (
        &["dynamic-reshape"],
        "HloModule m\nENTRY e { x = f32[<=8] parameter(0)\n  n = s32[] parameter(1)\n  ROOT r = f32[<=8] dynamic-reshape(x, n) }",
        "dynamic",
    ),
];

/// The same for operations that are carried out otherwise.
const REFUSED_ALONE: &[(&[&str], &str, &str)] = &[
    (
        &["send", "send-done"],
        "HloModule m\nENTRY e { t = token[] after-all()\n  x = f32[2] parameter(0)\n  s = (f32[2], u32[], token[]) send(x, t), channel_id=1\n  ROOT d = token[] send-done(s), channel_id=1 }",
        "use collective-permute between devices",
    ),
    (
        &["recv", "recv-done"],
        "HloModule m\nENTRY e { t = token[] after-all()\n  r = (f32[2], u32[], token[]) recv(t), channel_id=1\n  ROOT d = (f32[2], token[]) recv-done(r), channel_id=1 }",
        "use collective-permute between devices",
    ),
];

/// Operations that no exported program has, with the test of ours that compares them with results worked out
/// by hand (`compiler/tests/executor`, `fixtures/rules`).
const BY_HAND: &str = "compiler/tests/executor, fixtures/rules";

/// Why no exported program has an operation, in JAX 0.10: neither the modules that JAX makes nor those that XLA
/// makes of them for the two targets.
const NOT_FROM_JAX: &[(&[&str], &str)] = &[
    (
        &[
            "acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh", "logistic",
        ],
        "JAX writes it out in other operations (`ops_unary` has them)",
    ),
    (
        &[
            "all-gather-start",
            "all-gather-done",
            "all-reduce-start",
            "all-reduce-done",
        ],
        "only XLA's optimisers make it, of large collectives; the exported ones stay synchronous",
    ),
    (&["async-update"], "XLA's optimisers have no use of it"),
    (
        &[
            "batch-norm-grad",
            "batch-norm-inference",
            "batch-norm-training",
            "map",
        ],
        "JAX writes it out",
    ),
    (
        &["domain"],
        "only XLA's partitioner makes it, and removes it again",
    ),
    (
        &[
            "get-dimension-size",
            "set-dimension-size",
            "dynamic-reshape",
        ],
        "shapes are fixed when JAX compiles: `jax.export` puts numbers for symbols first; `set_dimension_size` is not in JAX",
    ),
    (
        &["infeed", "outfeed"],
        "not in JAX any more: its callbacks are custom-calls",
    ),
    (
        &["scaled-dot"],
        "JAX writes `lax.scaled_dot` out on these targets (`ops_scaled_dot`)",
    ),
    (
        &["scan"],
        "`lax.scan` is a while in HLO, cumulative sums are reduce-windows",
    ),
    (&["stochastic-convert"], "JAX has no such conversion"),
];

/// What stands behind an operation's support, the strongest first.
#[derive(Clone, Debug)]
enum Proof {
    /// An exported program with JAX's results.
    Jax(String),
    /// A module with the results of XLA:CPU.
    Xla(String),
    /// Results worked out by hand.
    Hand(String),
    /// It is refused with these words.
    Refused(&'static str),
}

#[test]
fn every_operation_is_proved_or_refused() {
    let proofs = proofs();
    let missing: Vec<&str> = Opcode::ALL
        .iter()
        .map(|o| o.name())
        .filter(|name| !proofs.contains_key(name))
        .collect();
    assert!(
        missing.is_empty(),
        "no case covers {}; add one to fixtures/operations.py, to the kernels' cases, or to {BY_HAND}",
        missing.join(", ")
    );
}

/// Every operation has a case with JAX's results, or a reason why it can't, and none has both.
#[test]
fn what_jax_does_not_emit_has_a_reason() {
    let proofs = proofs();
    let mut wrong = Vec::new();
    for opcode in Opcode::ALL {
        let name = opcode.name();
        match (&proofs[name], reason(name)) {
            (Proof::Jax(_), None)
            | (Proof::Xla(_) | Proof::Hand(_) | Proof::Refused(_), Some(_)) => {}
            (Proof::Jax(case), Some(why)) => {
                wrong.push(format!("{name}: {case} has it, against `{why}`"));
            }
            (_, None) => {
                wrong.push(format!(
                    "{name}: add it to fixtures/operations.py, or say why not"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Why no exported program has an operation.
fn reason(name: &str) -> Option<&'static str> {
    let found = NOT_FROM_JAX.iter().find(|(names, _)| names.contains(&name));
    found.map(|(_, why)| *why)
}

#[test]
fn refusals_say_what_to_do() {
    for (names, text, words) in REFUSED.iter().chain(REFUSED_ALONE) {
        let module = slabplan_ir::text::parse(text).into_result().unwrap();
        let refusal = reference_plan(&module)
            .and_then(|plan| Executable::new(&module, &plan, ExecConfig::default()))
            .map(|_| ())
            .expect_err(names[0])
            .to_string();
        assert!(refusal.contains(words), "{names:?}: {refusal}");
    }
}

#[test]
fn the_list_of_the_reference_is_complete() {
    let reference = paths::root().join("../shared/reference/xla-memory.md");
    let Ok(text) = std::fs::read_to_string(&reference) else {
        eprintln!("{} is absent: not compared", reference.display());
        return;
    };
    let list = text
        .split("## A.11 Opcode list (text names)\n")
        .nth(1)
        .unwrap();
    let list = list.lines().next().unwrap().trim_end_matches('.');
    for name in list.split_whitespace() {
        assert!(Opcode::from_name(name).is_some(), "{name} is not an opcode");
    }
}

#[test]
fn the_document_is_up_to_date() {
    let path = paths::root().join("docs/operations.md");
    let expected = document(&proofs());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "{} is out of date: BLESS=1 cargo test -p slabplan-tests --test operations",
        path.display()
    );
}

/// Makes a proof of the name of a file.
type MakeProof = fn(String) -> Proof;

/// For every operation, the best proof there is.
fn proofs() -> BTreeMap<&'static str, Proof> {
    let root = paths::root();
    let mut proofs: BTreeMap<&'static str, Proof> = BTreeMap::new();
    for &(names, _, words) in REFUSED {
        for name in names {
            proofs.insert(name, Proof::Refused(words));
        }
    }
    let mut sources: Vec<(PathBuf, MakeProof)> = Vec::new();
    // The strongest first: what is there already stays.
    for path in paths::files(&paths::fixtures("models"), &["hlo", "hlo.gz"]) {
        sources.push((path, Proof::Jax));
    }
    for path in paths::files(&root.join("compiler/src/exec/kernels/cases"), &["hlo"]) {
        sources.push((path, Proof::Xla));
    }
    for path in paths::files(&paths::fixtures("rules"), &["hlo"]) {
        sources.push((path, Proof::Hand));
    }
    for path in paths::files(&root.join("compiler/tests/executor"), &["rs"]) {
        sources.push((path, Proof::Hand));
    }
    for (path, proof) in sources {
        let name = path
            .strip_prefix(&root)
            .unwrap_or(&path)
            .display()
            .to_string();
        for opcode in opcodes_of(&path) {
            proofs
                .entry(opcode.name())
                .or_insert_with(|| proof(name.clone()));
        }
    }
    proofs
}

/// The operations in a file: a module, or text that has modules in it.
fn opcodes_of(path: &Path) -> Vec<Opcode> {
    let is_module = path.components().any(|c| c.as_os_str() == "models");
    if is_module {
        let module: Module = frontend::load_module(&path.to_string_lossy()).unwrap();
        return module.instrs.values().map(|i| i.opcode).collect();
    }
    let text = std::fs::read_to_string(path).unwrap();
    Opcode::ALL
        .iter()
        .copied()
        .filter(|o| text.contains(&format!(" {}(", o.name())))
        .collect()
}

fn document(proofs: &BTreeMap<&str, Proof>) -> String {
    let mut out = String::from(
        "# Operations\n\n\
         What the executor carries out, and what that was compared with. Written by a test; see\n\
         `tests/tests/operations.rs`.\n\n\
         - **JAX**: an exported program that has the operation gives JAX's results, on its slab and in memory of\n  \
         its own, poisoned, with asynchronous operations at their start, at their done and at either. What XLA:CPU\n  \
         can't run (`ops_ragged_exchange`; `ops_send_receive`, which JAX emits for GPUs alone), JAX computes in\n  \
         other operations as its documentation says.\n\
         - **XLA:CPU**: JAX does not emit it (or XLA has rewritten it); a module gives the results of XLA:CPU.\n\
         - **by hand**: neither runs it alone; results were worked out by hand.\n\
         - **refused**: an error that says what to do.\n\n\
         | operation | compared with | case | why JAX has none |\n|---|---|---|---|\n",
    );
    for opcode in Opcode::ALL {
        let (with, case) = match &proofs[opcode.name()] {
            Proof::Jax(case) => ("JAX", format!("`{case}`")),
            Proof::Xla(case) => ("XLA:CPU", format!("`{case}`")),
            Proof::Hand(case) => ("by hand", format!("`{case}`")),
            Proof::Refused(words) => ("refused", format!("\"... {words} ...\"")),
        };
        let why = reason(opcode.name()).unwrap_or_default();
        let _ = writeln!(out, "| `{}` | {with} | {case} | {why} |", opcode.name());
    }
    out.push_str("\n# Custom-calls\n\n");
    out.push_str(CUSTOM_CALLS);
    for target in slabplan::exec::custom_call_targets() {
        let _ = writeln!(out, "| `{}` | {} |", target.0, target.1);
    }
    out.push_str(NOTES);
    out
}

const CUSTOM_CALLS: &str = "Another target is an error that names it and says what to do.\n\n\
| target | what |\n|---|---|\n";

const NOTES: &str = "\n# Where results are not determined\n\n\
- `rng` and `rng-get-and-update-state`: XLA draws from a state that lives as long as its process. Here each such\n  \
instruction has a key of its own, from its name, and draws the same numbers each time it runs, so that a run can be\n  \
repeated. `rng-bit-generator` (ThreeFry, Philox) is bit-exact.\n\
- Signs of eigenvectors and singular vectors, the order of the eigenvalues of general matrices, the order of blocks\n  \
in a Schur form: as our algorithms (Jacobi, shifted QR) find them.\n\
- Subnormal numbers are kept; XLA:CPU flushes them to zero in comparisons and arithmetic.\n\
- Dynamic dimensions (`<=N`) are planned at their bound and not executed. JAX does not emit them.\n";
