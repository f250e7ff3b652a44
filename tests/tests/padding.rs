//! Public reports of arrays that padding blows up, as modules in `fixtures/padding`: each says how
//! much its program needs, worked out by hand, and how much default layouts take.

use libtest_mimic::{Arguments, Failed, Trial};
use slabplan::{CompileConfig, Compiled, FuseMode, LayoutMode, Transforms, compile, target};
use slabplan_ir::Bytes;
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
    let best = slab(&planned(text, layouts)?);
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
