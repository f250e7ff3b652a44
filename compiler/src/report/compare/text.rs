//! What `slabplan compare` prints for people.

use std::fmt::Write;

use slabplan_ir::Bytes;

use super::{Comparison, Held, Share, Side, SpaceComparison};
use crate::report::Table;
use crate::report::summary::{shortened, thousands};

/// Buffers listed of one kind.
const LISTED: usize = 6;

/// Two plans side by side.
pub fn comparison_text(comparison: &Comparison) -> String {
    let mut out = format!(
        "module {}, target {}: slabplan (accounting xla) beside XLA\n",
        comparison.module, comparison.target
    );
    for space in &comparison.spaces {
        let _ = write!(out, "\n{} (memory space {})\n", space.name, space.space);
        let _ = write!(out, "{}", sizes(space));
        write_reasons(&mut out, space);
    }
    if !comparison.copies.is_empty() {
        let _ = writeln!(
            out,
            "\ncopies that slabplan inserted: {}",
            comparison.copies.len()
        );
        for (name, cause) in comparison.copies.iter().take(LISTED) {
            let _ = writeln!(out, "  %{name}: {cause}");
        }
    }
    out
}

fn sizes(space: &SpaceComparison) -> Table {
    let mut table = Table::new(&["", "slabplan", "XLA", "difference"]);
    let mut row = |name: &str, of: &dyn Fn(&Side) -> u64| {
        let (a, b) = (of(&space.ours), of(&space.xla));
        if a > 0 || b > 0 {
            table.row([name.to_owned(), human(a), human(b), difference(a, b)]);
        }
    };
    row("all", &|s| s.total);
    row("arguments", &|s| s.argument);
    row("outputs", &|s| s.output);
    row("aliased", &|s| s.alias);
    row("constants", &|s| s.constant);
    row("temporaries", &|s| s.temp);
    row("  in use at the peak", &|s| s.in_use_at_peak);
    row("    of it padding", &Side::padding_at_peak);
    row("  tuple tables", &|s| s.tables);
    row("  fragmentation", &Side::fragmentation);
    table.row([
        "all in one slab".to_owned(),
        human(space.one_slab),
        human(space.xla.total),
        difference(space.one_slab, space.xla.total),
    ]);
    table
}

fn write_reasons(out: &mut String, space: &SpaceComparison) {
    let sides = [("slabplan", &space.ours), ("XLA", &space.xla)];
    for (name, side) in sides {
        if !side.peak_instruction.is_empty() {
            let _ = writeln!(
                out,
                "  {name}'s temporaries are most at %{}: {} buffers",
                side.peak_instruction,
                thousands(side.at_peak.len())
            );
        }
    }
    let causes = space.causes();
    let said = match causes.total() {
        0 => None,
        1.. => Some("less"),
        _ => Some("more"),
    };
    if let Some(said) = said {
        let _ = writeln!(out, "  why slabplan's are {said}: {causes}");
    }
    if space.is_sum_out_of_reach() {
        let _ = writeln!(
            out,
            "  no one slab is as small as the sum of XLA's sizes: aligned, everything needs {}",
            human(space.one_slab_bound)
        );
    }
    let (ours, xla) = space.live_at_one_peak();
    write_held(out, "in use at slabplan's peak alone", &ours);
    write_held(out, "in use at XLA's peak alone", &xla);
    let (ours, xla) = space.lodged_in_one();
    write_held(
        out,
        "in an argument or output in slabplan's plan alone",
        &ours,
    );
    write_held(out, "in an argument or output in XLA's plan alone", &xla);
    let (ours, xla) = space.shared_in_one();
    write_shares(
        out,
        "results on an operand's bytes in slabplan's plan alone",
        &ours,
    );
    write_shares(
        out,
        "results on an operand's bytes in XLA's plan alone",
        &xla,
    );
}

fn write_held(out: &mut String, title: &str, list: &[&Held]) {
    let bytes = list.iter().map(|h| h.size).sum();
    if !write_title(out, title, list.len(), bytes) {
        return;
    }
    let mut table = Table::new(&["  value", "size", "shape", "from"]);
    for h in list.iter().take(LISTED) {
        table.row([
            format!("  {}", h.name),
            human(h.size),
            shortened(&h.shape),
            shortened(&h.op_name),
        ]);
    }
    let _ = write!(out, "{table}");
}

fn write_shares(out: &mut String, title: &str, list: &[&Share]) {
    let bytes = list.iter().map(|s| s.size).sum();
    if !write_title(out, title, list.len(), bytes) {
        return;
    }
    let mut table = Table::new(&["  result", "size", "operand", "at"]);
    for s in list.iter().take(LISTED) {
        table.row([
            format!("  {}", s.result),
            human(s.size),
            s.operand.clone(),
            format!("%{}", s.at),
        ]);
    }
    let _ = write!(out, "{table}");
}

/// Whether there is anything to list.
fn write_title(out: &mut String, title: &str, n: usize, bytes: u64) -> bool {
    if n == 0 {
        return false;
    }
    let shown = if n > LISTED {
        format!(", the largest {LISTED}")
    } else {
        String::new()
    };
    let _ = writeln!(out, "  {title}: {}, {}{shown}", thousands(n), human(bytes));
    true
}

fn human(bytes: u64) -> String {
    Bytes::new(bytes).unwrap_or(Bytes::ZERO).to_string()
}

/// `-1.50MiB (-3.2%)`, of `b`.
fn difference(a: u64, b: u64) -> String {
    if a == b {
        return "same".to_owned();
    }
    let sign = if a < b { '-' } else { '+' };
    let by = human(a.abs_diff(b));
    if b == 0 {
        return format!("{sign}{by}");
    }
    format!(
        "{sign}{by} ({sign}{:.1}%)",
        100.0 * a.abs_diff(b) as f64 / b as f64
    )
}
