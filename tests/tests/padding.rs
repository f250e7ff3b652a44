//! Public reports of arrays that padding blows up, as modules in `fixtures/padding`: each says how
//! much its program needs, worked out by hand, and how much default layouts take.

use libtest_mimic::{Arguments, Failed, Trial};
use slabplan::{CompileConfig, Compiled, FuseMode, LayoutMode, Transforms, compile, target};
use slabplan_ir::padding::padded_bytes;
use slabplan_ir::{Bytes, Opcode};
use slabplan_planner::dataflow::ValueKind;
use slabplan_planner::layouts::least_bytes;
use slabplan_tests::paths;

fn main() {
    let trials = paths::files(&paths::fixtures("padding"), &[".hlo"])
        .into_iter()
        .map(|path| {
            Trial::test(paths::short(&path), move || {
                let text = std::fs::read_to_string(&path)?;
                check(&text).map_err(Failed::from)
            })
        })
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn check(text: &str) -> Result<(), String> {
    let logical = stated(text, "logical-peak")?;
    let default = slab(&planned(text, Transforms::NONE)?);
    if default < stated(text, "default-slab-at-least")? {
        return Err(format!("with default layouts the slab has {default} bytes"));
    }
    let layouts = Transforms {
        layouts: LayoutMode::Memory,
        ..Transforms::NONE
    };
    let compiled = planned(text, layouts)?;
    each_is_as_small_as_alone(&compiled)?;
    let best = slab(&compiled);
    if best > stated(text, "slab-at-most")? {
        return Err(format!("the slab has {best} bytes"));
    }
    if best as f64 > 1.1 * logical as f64 {
        return Err(format!("{best} bytes are over 1.1 times {logical}"));
    }
    let all = Transforms {
        rewrite: true,
        fuse: FuseMode::Eager,
        ..layouts
    };
    let with_all = slab(&planned(text, all)?);
    if with_all > best {
        return Err(format!(
            "with all transforms {with_all} bytes, with layouts alone {best}"
        ));
    }
    Ok(())
}

/// Whether all values but arguments, whose layouts are given, take no more than the best layout of
/// each alone, with the copies on top.
fn each_is_as_small_as_alone(compiled: &Compiled) -> Result<(), String> {
    let target = target::load("tpu-v5e").map_err(|e| e.to_string())?;
    let (module, flow) = (&compiled.module, &compiled.planned.analysis.flow);
    let (mut taken, mut allowed) = (0, 0);
    for value in flow
        .values
        .values()
        .filter(|v| v.kind == ValueKind::Defined)
    {
        let opcode = module.instrs[flow.positions.instr(value.def)].opcode;
        let Some(array) = module.shapes.array(flow.positions.shape(value.def)) else {
            continue;
        };
        let bytes = padded_bytes(array).map_err(|e| e.to_string())?.get();
        match opcode {
            Opcode::Parameter => {}
            Opcode::Copy => allowed += bytes,
            _ => {
                taken += bytes;
                allowed += least_bytes(array, &target);
            }
        }
    }
    if taken > allowed {
        return Err(format!(
            "values take {taken} bytes; each alone and the copies would take {allowed}"
        ));
    }
    Ok(())
}

/// The number after `// key:`.
fn stated(text: &str, key: &str) -> Result<u64, String> {
    let prefix = format!("// {key}: ");
    let number = text.lines().find_map(|l| l.strip_prefix(&prefix));
    let number = number.ok_or_else(|| format!("no `{prefix}`"))?;
    number.trim().parse().map_err(|e| format!("{key}: {e}"))
}

fn planned(text: &str, transforms: Transforms) -> Result<Compiled, String> {
    let module = slabplan_ir::text::parse(text)
        .into_result()
        .map_err(|d| d[0].to_string())?;
    let target = target::load("tpu-v5e").map_err(|e| e.to_string())?;
    let config = CompileConfig {
        transforms,
        ..CompileConfig::default()
    };
    compile(module, &target, &config).map_err(|e| e.to_string())
}

fn slab(compiled: &Compiled) -> u64 {
    let hbm = compiled.plan().spaces.iter().find(|s| s.space == 0);
    hbm.map_or(Bytes::ZERO, |s| s.slab).get()
}
