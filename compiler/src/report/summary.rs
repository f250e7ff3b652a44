//! The summary that `slabplan plan` and `slabplan run` print for people.

use std::fmt::Write;

use slabplan_ir::Bytes;
use slabplan_ir::plan::{Accounting, BufferKind, PlanSpace};

use super::Table;
use crate::Compiled;

/// Buffers of the peak that are listed.
const LARGEST_AT_PEAK: usize = 8;

/// Longest cell of the table of the peak.
const MAX_CELL: usize = 48;

/// A summary of a plan: spaces, the peak and what fills it, the order and what others need, copies, the proof.
pub fn plan_summary(compiled: &Compiled) -> String {
    let plan = compiled.plan();
    let mut out = String::new();
    let accounting = match plan.accounting {
        Accounting::Slab => "one slab per memory space",
        Accounting::Xla => "arguments, outputs and constants apart (xla)",
    };
    let _ = writeln!(
        out,
        "module {}: {} instructions, target {}, schedule {}, {accounting}\n",
        plan.module,
        thousands(compiled.module.instrs.len()),
        plan.target,
        plan.schedule,
    );
    let _ = write!(out, "{}", spaces_table(compiled));
    out.push('\n');
    write_peak(&mut out, compiled);
    write_scratch(&mut out, compiled);
    write_schedule(&mut out, compiled);
    write_trials(&mut out, compiled);
    write_copies(&mut out, compiled);
    write_donations(&mut out, compiled);
    write_verdict(&mut out, compiled);
    out
}

fn spaces_table(compiled: &Compiled) -> Table {
    let mut table = Table::new(&[
        "memory",
        "slab",
        "lower bound",
        "gap",
        "arguments",
        "outputs",
        "aliased",
        "constants",
        "temporaries",
        "buffers",
        "capacity",
        "used",
    ]);
    for s in &compiled.plan().spaces {
        let buffers = compiled
            .plan()
            .buffers
            .values()
            .filter(|b| b.space == s.space);
        table.row([
            s.name.clone(),
            s.slab.to_string(),
            s.lower_bound.to_string(),
            gap(s),
            s.stats.argument.to_string(),
            s.stats.output.to_string(),
            s.stats.alias.to_string(),
            s.stats.constant.to_string(),
            s.stats.temp.to_string(),
            thousands(buffers.count()),
            s.capacity.to_string(),
            percent(s.slab.get(), s.capacity.get()),
        ]);
    }
    table
}

/// How far the slab is above what no packing can beat.
fn gap(space: &PlanSpace) -> String {
    if space.optimal {
        return "none".to_owned();
    }
    let over = space.slab.saturating_sub(space.lower_bound);
    percent(over.get(), space.lower_bound.get())
}

fn write_peak(out: &mut String, compiled: &Compiled) {
    let analysis = &compiled.planned.analysis;
    for (space, (_, demand)) in compiled.plan().spaces.iter().zip(&compiled.planned.demands) {
        if space.space != 0 || demand.at_peak.is_empty() {
            continue;
        }
        let stats = &space.stats;
        let padding = stats.padded_at_peak.saturating_sub(stats.logical_at_peak);
        let _ = writeln!(
            out,
            "{} is fullest at %{}: {} in use, {} of it padding",
            space.name, stats.peak_instruction, stats.padded_at_peak, padding,
        );
        let mut table = Table::new(&["value", "size", "padding", "kind", "shape", "from"]);
        for live in demand.at_peak.iter().take(LARGEST_AT_PEAK) {
            let module = &compiled.module;
            let pos = analysis.flow.values[live.value].def;
            let instr = analysis.flow.positions.instr(pos);
            table.row([
                analysis.flow.positions.display(module, pos),
                human(live.padded),
                percent(live.padded - live.logical.min(live.padded), live.padded),
                kind_name(&analysis.buffers[live.class].kind).to_owned(),
                shortened(
                    &module
                        .shapes
                        .display(analysis.flow.positions.shape(pos))
                        .to_string(),
                ),
                shortened(module.op_name(instr).unwrap_or_default()),
            ]);
        }
        let _ = write!(out, "{table}");
        let rest = demand.at_peak.len().saturating_sub(LARGEST_AT_PEAK);
        if rest > 0 {
            let _ = writeln!(out, "  ... and {} smaller ones", thousands(rest));
        }
        out.push('\n');
    }
}

/// What instructions work in, where that is planned.
fn write_scratch(out: &mut String, compiled: &Compiled) {
    let buffers = compiled.plan().buffers.values();
    let scratch = buffers.filter_map(|b| match b.kind {
        BufferKind::Scratch { instr } => Some((b.size, instr)),
        _ => None,
    });
    let scratch: Vec<_> = scratch.collect();
    let Some((bytes, instr)) = scratch.iter().max_by_key(|(size, _)| *size) else {
        return;
    };
    let _ = writeln!(
        out,
        "scratch: {} instructions work in some while they run, %{} in most: {bytes}\n",
        thousands(scratch.len()),
        compiled.module.name_of(*instr),
    );
}

fn kind_name(kind: &BufferKind) -> &'static str {
    match kind {
        BufferKind::Parameter { donated: true, .. } => "donated argument",
        kind => kind.name(),
    }
}

fn human(bytes: u64) -> String {
    Bytes::new(bytes).unwrap_or(Bytes::ZERO).to_string()
}

/// At most `MAX_CELL` characters: the end of a path says most.
pub(super) fn shortened(text: &str) -> String {
    let n = text.chars().count();
    if n <= MAX_CELL {
        return text.to_owned();
    }
    let tail: String = text.chars().skip(n - MAX_CELL + 1).collect();
    format!("\u{2026}{tail}")
}

/// What any order needs, and what the others that were planned do.
fn write_schedule(out: &mut String, compiled: &Compiled) {
    let Some(space) = compiled.plan().spaces.iter().find(|s| s.space == 0) else {
        return;
    };
    let bound = compiled.schedule_bound;
    if compiled.is_best_schedule() {
        let _ = writeln!(
            out,
            "no order of these instructions needs less {}",
            space.name
        );
    } else {
        let over = space.slab.saturating_sub(bound);
        let _ = writeln!(
            out,
            "no order of these instructions needs less than {bound} of {}; this one{} needs {over} ({}) more",
            space.name,
            if space.stats.scratch.is_zero() {
                ""
            } else {
                ", with its scratch,"
            },
            percent(over.get(), bound.get()),
        );
    }
    let mut others: Vec<_> = compiled
        .schedule_trials
        .iter()
        .filter(|t| !t.chosen)
        .collect();
    others.sort_by_key(|t| t.slab(0));
    let chosen = compiled.schedule_trials.iter().find(|t| t.chosen);
    for (other, chosen) in others.into_iter().zip(chosen.into_iter().cycle()) {
        let name = match other.from {
            "text" => "the order of the text".to_owned(),
            from => format!("an order found from {from}"),
        };
        let difference = match other.slab(0).checked_sub(chosen.slab(0)) {
            Some(more) => format!("{} more", human(more)),
            // It lost for what it needs elsewhere.
            None => format!(
                "{} less, but more of another memory",
                human(chosen.slab(0) - other.slab(0))
            ),
        };
        let copies = match other.copies {
            0 => String::new(),
            n => format!(", with {n} copies"),
        };
        let _ = writeln!(out, "  {name} needs {difference}{copies}");
    }
    out.push('\n');
}

fn write_trials(out: &mut String, compiled: &Compiled) {
    if compiled.trials.is_empty() {
        return;
    }
    let mut table = Table::new(&["program", "HBM peak", "all values, padded", ""]);
    for t in &compiled.trials {
        let mark = if t.kept { "kept" } else { "" };
        table.row([
            t.name.clone(),
            human(t.hbm_peak()),
            human(t.value_bytes),
            mark.to_owned(),
        ]);
    }
    let _ = writeln!(out, "{table}");
    for note in &compiled.notes {
        let _ = writeln!(out, "note: {note}");
    }
}

fn write_copies(out: &mut String, compiled: &Compiled) {
    let copies = &compiled.plan().copies;
    if copies.is_empty() {
        return;
    }
    let _ = writeln!(out, "copies inserted: {}", copies.len());
    for c in copies.iter().take(LARGEST_AT_PEAK) {
        let _ = writeln!(out, "  %{}: {}", compiled.module.name_of(c.instr), c.cause);
    }
    if copies.len() > LARGEST_AT_PEAK {
        let _ = writeln!(
            out,
            "  ... and {} more (--json lists all)",
            copies.len() - LARGEST_AT_PEAK
        );
    }
    out.push('\n');
}

/// Donated arguments that no output takes over, each with the reason.
fn write_donations(out: &mut String, compiled: &Compiled) {
    let unused: Vec<_> = compiled.donations.iter().filter(|d| !d.is_used()).collect();
    if unused.is_empty() {
        return;
    }
    let _ = writeln!(out, "donated, but taken by no output: {}", unused.len());
    for donation in unused.iter().take(LARGEST_AT_PEAK) {
        let _ = writeln!(out, "  {donation}");
    }
    if unused.len() > LARGEST_AT_PEAK {
        let _ = writeln!(
            out,
            "  ... and {} more (--json lists all)",
            unused.len() - LARGEST_AT_PEAK
        );
    }
    out.push('\n');
}

fn write_verdict(out: &mut String, compiled: &Compiled) {
    match &compiled.check {
        Some(report) => {
            let _ = writeln!(
                out,
                "checked: {} values keep their bytes over {} reads and {} writes",
                thousands(report.values),
                thousands(report.reads as usize),
                thousands(report.writes as usize),
            );
        }
        None => out.push_str("not checked\n"),
    }
    for s in compiled
        .plan()
        .spaces
        .iter()
        .filter(|s| s.slab > s.capacity)
    {
        let _ = writeln!(
            out,
            "does not fit: {} needs {} and has {}, {} too little",
            s.name,
            s.slab,
            s.capacity,
            s.slab.saturating_sub(s.capacity),
        );
    }
    if compiled.fits() {
        out.push_str("fits: every slab is within its memory\n");
    }
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    format!("{:.1}%", 100.0 * part as f64 / whole as f64)
}

/// `107785` as `107,785`.
pub(crate) fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}
