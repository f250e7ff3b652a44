//! What rewriting did to a program.

use std::collections::BTreeMap;
use std::fmt::Write;

use slabplan_ir::Bytes;

use super::Table;
use crate::Compiled;
use crate::rewrite::RegionReport;

/// Regions that are listed one by one.
const LARGEST: usize = 20;

/// The regions that changed, by what each saved, the rules behind them, and why each region stopped.
pub fn rewrites(compiled: &Compiled) -> String {
    let regions = &compiled.rewritten;
    let mut out = String::new();
    if regions.is_empty() {
        out.push_str("\nrewrites: nothing to rewrite\n");
        return out;
    }
    let mut changed: Vec<&RegionReport> = regions.iter().filter(|r| r.after < r.before).collect();
    changed.sort_by_key(|r| std::cmp::Reverse(r.before - r.after));
    if changed.is_empty() {
        let _ = writeln!(
            out,
            "\nrewrites: none of {} regions changed; no candidate had a smaller slab",
            regions.len()
        );
        write_stops(&mut out, regions);
        return out;
    }
    let _ = writeln!(
        out,
        "\nrewrites: {} of {} regions changed",
        changed.len(),
        regions.len()
    );
    let mut table =
        Table::new(&["at", "saves", "instructions", "stopped", "from", "rules"]).ending_in_prose();
    for r in changed.iter().take(LARGEST) {
        table.row([
            format!("%{}", r.root),
            bytes(r.before - r.after),
            r.instructions.to_string(),
            r.stop.to_string(),
            r.op_name.clone().unwrap_or_default(),
            r.rules.join(" "),
        ]);
    }
    let _ = write!(out, "{table}");
    if changed.len() > LARGEST {
        let _ = writeln!(out, "  ... and {} more", changed.len() - LARGEST);
    }
    out.push_str(
        "  saves: bytes of the region's values, each in its best order of dimensions; rules: those that made or joined \
         forms of what is kept\n",
    );
    write_stops(&mut out, regions);
    out
}

/// Why all regions stopped, changed or not.
fn write_stops(out: &mut String, regions: &[RegionReport]) {
    let mut stops: BTreeMap<String, usize> = BTreeMap::new();
    for r in regions {
        *stops.entry(r.stop.to_string()).or_insert(0) += 1;
    }
    for (stop, n) in stops {
        let _ = writeln!(out, "regions stopped by {stop}: {n}");
    }
}

fn bytes(n: u64) -> String {
    Bytes::new(n).unwrap_or(Bytes::ZERO).to_string()
}
