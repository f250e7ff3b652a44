//! Modules as protos: text written as a proto and read again is the same text, and what XLA wrote as a proto
//! is what it wrote as text.

use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};
use slabplan::frontend::{self, Source};
use slabplan_ir::attr::AttrName;
use slabplan_ir::instr::Payload;
use slabplan_ir::text::print;
use slabplan_ir::{Module, Opcode, literal};
use slabplan_tests::paths;

/// Written as XLA prints them, and nothing of them is left out.
const AS_XLA_PRINTS: [&str; 2] = ["named_shardings.hlo", "proto_fields.hlo"];

/// Written in other words than XLA's: only what is read back must read back as it is.
const IN_OTHER_WORDS: [&str; 5] = [
    "custom_calls.hlo",
    "linear_algebra_and_random.hlo",
    "pipelined_receive.hlo",
    "scan_and_modes.hlo",
    "windows_and_labels.hlo",
];

/// What XLA's protos have no place for: XLA loses it too.
const NOT_IN_PROTOS: [&str; 4] = [
    "alias_passthrough_params",
    "allow_spmd_sharding_propagation_to_output",
    "allow_spmd_sharding_propagation_to_parameters",
    "mode",
];

fn main() {
    let mut trials = Vec::new();
    for folder in ["grammar", "rules", "models"] {
        for path in paths::files(&paths::fixtures(folder), &[".hlo"]) {
            trials.push(Trial::test(paths::short(&path), move || {
                through_a_proto(&path).map_err(Failed::from)
            }));
        }
    }
    for path in paths::files(&paths::fixtures("protos"), &[".pb"]) {
        trials.push(Trial::test(paths::short(&path), move || {
            let text =
                paths::fixtures("grammar").join(path.with_extension("hlo").file_name().unwrap());
            written_by_xla(&path, &text).map_err(Failed::from)
        }));
    }
    for folder in ["corpus", "corpus_cpu"] {
        let Some(folder) = paths::shared(folder) else {
            continue;
        };
        for path in paths::files(&folder, &["after_optimizations.hlo.pb.gz"]) {
            trials.push(Trial::test(paths::short(&path), move || {
                written_by_xla(&path, &path.with_file_name("after_optimizations.txt.gz"))
                    .map_err(Failed::from)
            }));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn through_a_proto(path: &Path) -> Result<(), String> {
    let module = load(path)?;
    let is_of = |names: &[&str]| names.iter().any(|name| path.ends_with(name));
    let proto = frontend::module_proto(&module)?;
    let again = read(proto.bytes)?;
    let third = read(frontend::module_proto(&again)?.bytes)?;
    same(&print(&again), &print(&third))?;
    let strict = is_of(&AS_XLA_PRINTS);
    if strict && !proto.left_out.is_empty() {
        return Err(format!("left out: {:?}", proto.left_out));
    }
    if let Some(name) = proto.left_out.keys().find(|n| !NOT_IN_PROTOS.contains(n)) {
        return Err(format!("`{name}` is left out"));
    }
    if strict {
        return same(&print(&module), &print(&again));
    }
    if is_of(&IN_OTHER_WORDS) {
        return Ok(());
    }
    same(&in_one_order(module)?, &in_one_order(again)?)
}

fn read(bytes: Vec<u8>) -> Result<Module, String> {
    let name = "module.pb".to_owned();
    frontend::parse_module(Source { name, bytes }).map_err(|e| format!("read back: {e}"))
}

/// The module's text with attributes in one order and XLA's form of literals; without what no proto has, and
/// without the header, where XLA says more than it was told.
fn in_one_order(mut module: Module) -> Result<String, String> {
    for id in module.instrs.keys().collect::<Vec<_>>() {
        let instr = &mut module.instrs[id];
        let continues = matches!(instr.opcode, Opcode::AsyncUpdate | Opcode::AsyncDone);
        instr.attrs.retain(|a| {
            // Said by the start already.
            let again = matches!(a.name, AttrName::Calls | AttrName::AsyncExecutionThread);
            !(NOT_IN_PROTOS.contains(&a.name.name()) || continues && again)
        });
        instr.attrs.sort_by_key(|a| a.name);
        if let Payload::Literal(text) = instr.payload
            && !literal::is_elided(module.strings.get(text))
        {
            let text = module.strings.get(text);
            let decoded = literal::decode(&module.shapes, instr.shape, text);
            let decoded = decoded.map_err(|e| e.to_string())?;
            let text = literal::encode(&module.shapes, instr.shape, &decoded);
            instr.payload = Payload::Literal(module.strings.push(&text));
        }
    }
    Ok(without_defaults(&without_header(module)))
}

/// The computations in one order, without the header and signatures.
fn without_header(mut module: Module) -> String {
    module.header.clear();
    module.entry_layout = None;
    for comp in module.computations.keys().collect::<Vec<_>>() {
        module.computations[comp].has_signature = false;
    }
    let text = print(&module);
    let mut computations: Vec<&str> = text.split("\n\n").map(str::trim_start).collect();
    computations.sort_unstable();
    computations.join("\n\n")
}

/// Without what says nothing: layouts of plain arrays, groups of all devices, quotes around axes.
fn without_defaults(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut parts = text.split("]{");
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',');
        match rest.strip_prefix('}') {
            Some(rest) => out.extend(["]", rest]),
            None => out.extend(["]{", part]),
        }
    }
    out.replace(", replica_groups={}", "").replace('\'', "")
}

/// XLA's proto and XLA's text of one module.
fn written_by_xla(proto: &Path, text: &Path) -> Result<(), String> {
    same(&without_header(load(text)?), &without_header(load(proto)?))
}

fn load(path: &Path) -> Result<Module, String> {
    frontend::load_module(&path.to_string_lossy()).map_err(|e| e.to_string())
}

/// Whether two texts are the same, but for constants whose values the first leaves out.
fn same(a: &str, b: &str) -> Result<(), String> {
    let known = |line: &str| line.find("constant({...})").map(|n| n + "constant(".len());
    for (n, (x, y)) in a.lines().zip(b.lines()).enumerate() {
        let is_same = match known(x) {
            Some(n) => y.get(..n) == x.get(..n),
            None => x == y,
        };
        if !is_same {
            return Err(format!("line {} differs:\n- {x}\n+ {y}", n + 1));
        }
    }
    if a.lines().count() == b.lines().count() {
        Ok(())
    } else {
        Err("one text is longer".to_owned())
    }
}
