//! Prints the tables of `docs/layouts.md`: what layouts, fusion and rewrites do to every program
//! before layouts, of `../shared` and of the fixtures.
//!
//! `cargo run --release -p slabplan-tests --example layout_table [PART OF A NAME]`

use std::path::{Path, PathBuf};
use std::time::Instant;

use slabplan::{CompileConfig, FuseMode, LayoutMode, Transforms, compile, frontend, target};
use slabplan_ir::Bytes;
use slabplan_planner::layouts::EntryOrder;
use slabplan_planner::pack::Effort;
use slabplan_tests::paths;

fn main() -> anyhow::Result<()> {
    let only = std::env::args().nth(1).unwrap_or_default();
    let mut target = target::load(target::DEFAULT)?;
    for space in &mut target.spaces {
        // Not what is measured here.
        space.capacity = Bytes::new(1 << 50).unwrap_or(space.capacity);
    }
    for entry in [EntryOrder::Given, EntryOrder::Free] {
        println!("\nArguments and results {entry:?}.\n");
        println!(
            "| program | values MiB | layouts | + careful fusion | + fusion | rewrite (values) | rewrite (fused) | kept: values | kept: peak | s |"
        );
        println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
        let mut logs = Vec::new();
        for (name, path) in programs() {
            if !name.contains(&only) {
                continue;
            }
            let (ratio, row) = row(&name, &path, entry, &target)?;
            println!("{row}");
            logs.push(ratio.ln());
        }
        let mean = (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp();
        println!(
            "\ngeometric mean of values kept, {} programs: {mean:.3}",
            logs.len()
        );
    }
    Ok(())
}

/// Every program without layouts: `(name, file)`.
fn programs() -> Vec<(String, PathBuf)> {
    let mut all = Vec::new();
    let folders = [
        paths::shared("corpus"),
        paths::shared("run"),
        Some(paths::fixtures("models")),
    ];
    for folder in folders.into_iter().flatten() {
        for path in paths::files(
            &folder,
            &[
                "before_optimizations.txt.gz",
                "tpu.before.hlo",
                "tpu.before.hlo.gz",
            ],
        ) {
            let name = path.parent().and_then(Path::file_name);
            let name = name.unwrap_or_default().to_string_lossy().into_owned();
            all.push((name, path));
        }
    }
    all
}

fn row(
    name: &str,
    path: &Path,
    entry: EntryOrder,
    target: &slabplan_ir::Target,
) -> anyhow::Result<(f64, String)> {
    let module = frontend::parse_module(frontend::read(&path.to_string_lossy())?)?;
    let config = CompileConfig {
        transforms: Transforms {
            layouts: LayoutMode::Memory,
            entry,
            rewrite: true,
            fuse: FuseMode::Eager,
        },
        effort: Effort::Fast,
        ..CompileConfig::default()
    };
    let start = Instant::now();
    let compiled = compile(module, target, &config)?;
    let seconds = start.elapsed().as_secs_f64();
    let trials = &compiled.trials;
    let base = &trials[0];
    let ratio = |a: u64, b: u64| a as f64 / b.max(1) as f64;
    let cell = |wanted: &str| {
        let trial = trials.iter().find(|t| t.name.starts_with(wanted));
        trial.map_or_else(String::new, |t| {
            format!("{:.3}", ratio(t.value_bytes, base.value_bytes))
        })
    };
    let exact = |wanted: &str| {
        let trial = trials.iter().find(|t| t.name == wanted);
        trial.map_or_else(String::new, |t| {
            format!("{:.3}", ratio(t.value_bytes, base.value_bytes))
        })
    };
    let kept = trials.iter().find(|t| t.kept).unwrap_or(base);
    let values = ratio(kept.value_bytes, base.value_bytes);
    let row = format!(
        "| {name} | {:.2} | {} | {} | {} | {} | {} | {values:.3} | {:.3} | {seconds:.1} |",
        base.value_bytes as f64 / f64::from(1 << 20),
        exact("layouts"),
        exact("layouts, careful fusion"),
        exact("layouts, fusion"),
        cell("rewrite (values)"),
        cell("rewrite (fused)"),
        ratio(kept.hbm_peak(), base.hbm_peak()),
    );
    Ok((values, row))
}
