//! What each stage makes of a module, as text small enough to read.

use std::fmt::Write;

use slabplan::Compiled;
use slabplan_ir::EntityId;
use slabplan_ir::plan::to_text;
use slabplan_planner::interference::ClassId;

/// Lines of a stage that are shown; the rest is counted and digested.
const MAX_LINES: usize = 60;

/// The stages in pipeline order, with their text.
pub fn stages(compiled: &Compiled) -> [(&'static str, String); 6] {
    [
        ("1-ir", capped(&slabplan_ir::text::print(&compiled.module))),
        ("2-buffers", capped(&buffers(compiled))),
        ("3-live-ranges", capped(&live_ranges(compiled))),
        ("4-packing-problem", capped(&problem(compiled))),
        (
            "5-plan",
            capped(&to_text(&compiled.module, compiled.plan())),
        ),
        ("6-report", slabplan::report::plan_summary(compiled)),
    ]
}

/// The first lines, and how many more there are with a digest of them, so that every change shows.
fn capped(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= MAX_LINES {
        return text.to_owned();
    }
    let rest = &lines[MAX_LINES..];
    let digest = rest
        .iter()
        .flat_map(|l| l.bytes().chain([b'\n']))
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, b| {
            (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
        });
    format!(
        "{}\n... {} more lines, digest {digest:016x}\n",
        lines[..MAX_LINES].join("\n"),
        rest.len()
    )
}

/// Must-alias classes with their values, sizes and roles.
fn buffers(compiled: &Compiled) -> String {
    let analysis = &compiled.planned.analysis;
    let mut out = String::new();
    for (class, buffer) in analysis.buffers.iter() {
        let values: Vec<String> = buffer
            .values
            .iter()
            .map(|&v| analysis.flow.display(&compiled.module, v))
            .collect();
        let _ = writeln!(
            out,
            "{} space={} bytes={} {:?}: {}",
            label(class),
            buffer.space,
            buffer.size.get(),
            buffer.kind,
            values.join(" "),
        );
    }
    out
}

/// When the bytes of each buffer are in use, and the program order that the numbers mean.
fn live_ranges(compiled: &Compiled) -> String {
    let analysis = &compiled.planned.analysis;
    let mut out = String::new();
    for (at, &instr) in analysis.order.sequence().iter().enumerate() {
        let _ = writeln!(out, "{at:>4} %{}", compiled.module.name_of(instr));
    }
    for (class, buffer) in analysis.buffers.iter() {
        let ranges: Vec<String> = buffer
            .live
            .iter()
            .map(|r| format!("[{},{})", r.start, r.end))
            .collect();
        let _ = writeln!(out, "{} {}", label(class), ranges.join(" "));
    }
    out
}

/// The packing problem of every space: sizes, lifetimes, and who may share bytes.
fn problem(compiled: &Compiled) -> String {
    let analysis = &compiled.planned.analysis;
    let mut out = String::new();
    for space in &compiled.plan().spaces {
        let _ = writeln!(
            out,
            "space {} {} alignment={}",
            space.space,
            space.name,
            space.alignment.get()
        );
        for (class, buffer) in analysis
            .buffers
            .iter()
            .filter(|(_, b)| b.space == space.space)
        {
            let (Some(first), Some(last)) = (buffer.live.first(), buffer.live.last()) else {
                continue;
            };
            let _ = writeln!(
                out,
                "{},{},{},{}",
                label(class),
                first.start,
                last.end,
                buffer.size.get()
            );
        }
    }
    for &(a, b) in &analysis.may_share {
        let _ = writeln!(out, "may share: {} {}", label(a), label(b));
    }
    out
}

fn label(class: ClassId) -> String {
    format!("b{}", class.index())
}
