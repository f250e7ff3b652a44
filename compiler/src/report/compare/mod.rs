//! Our plan of a module beside XLA's, memory space by memory space.

mod json;
mod side;
mod text;

use std::collections::BTreeSet;

use slabplan_ir::{Module, Plan};

use crate::Compiled;
use crate::frontend::assignment::JudgedPlan;

pub use json::comparison_json;
pub use side::{Held, Share, Side};
pub use text::comparison_text;

/// Two plans of one module.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Name of the module.
    pub module: String,
    /// Name of the target.
    pub target: String,
    /// Memory spaces that either plan uses, by number.
    pub spaces: Vec<SpaceComparison>,
    /// Copies that our plan needed: instruction and cause.
    pub copies: Vec<(String, String)>,
}

/// One memory space in both plans.
#[derive(Clone, Debug)]
pub struct SpaceComparison {
    /// The `n` of `S(n)`.
    pub space: u32,
    /// Name for people.
    pub name: String,
    /// Ours.
    pub ours: Side,
    /// XLA's.
    pub xla: Side,
    /// Bytes of our slab where everything of the space shares one.
    pub one_slab: u64,
    /// No plan of that kind whose buffers start at multiples of the space's alignment is smaller.
    pub one_slab_bound: u64,
}

/// What makes our heap smaller than XLA's, in bytes; negative what makes it larger. Each byte is in one of them: together they
/// are the difference of the heaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// Temporaries that XLA has in its heap at its peak and we inside an idle argument or output.
    pub lodged: i64,
    /// Bytes that several values in use hold at once, at our peak beyond those at XLA's: results on operands.
    pub shared: i64,
    /// Temporaries in use at XLA's peak alone, less those in use at ours alone, or of other sizes. What is lodged counts
    /// above even where other temporaries take its room at our peak: then this is negative.
    pub at_one_peak: i64,
    /// Index tables of tuples, which our plan has not.
    pub tables: i64,
    /// What is neither in use at the peak nor tables, in XLA's heap beyond ours: packing.
    pub packing: i64,
}

impl Causes {
    /// The difference of the heaps.
    pub fn total(&self) -> i64 {
        self.lodged + self.shared + self.at_one_peak + self.tables + self.packing
    }
}

impl std::fmt::Display for Causes {
    /// The causes that apply, what saves most first, what costs most last.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut causes = [
            (self.lodged, "inside idle arguments and outputs"),
            (self.shared, "results on operands"),
            (self.at_one_peak, "live at one peak alone"),
            (self.tables, "no tuple tables"),
            (self.packing, "tighter packing"),
        ];
        causes.sort_by_key(|c| std::cmp::Reverse(c.0));
        let causes = causes.iter().filter(|c| c.0 != 0);
        for (n, (bytes, cause)) in causes.enumerate() {
            let separator = if n == 0 { "" } else { ", " };
            let sign = if *bytes < 0 { "-" } else { "" };
            let bytes = slabplan_ir::Bytes::new(bytes.unsigned_abs());
            let bytes = bytes.unwrap_or(slabplan_ir::Bytes::ZERO);
            write!(f, "{separator}{cause} {sign}{bytes}")?;
        }
        Ok(())
    }
}

impl SpaceComparison {
    /// Buffers in use at our peak of the heap and not at XLA's, and the other way round; largest first.
    pub fn live_at_one_peak(&self) -> (Vec<&Held>, Vec<&Held>) {
        (
            only(&self.ours.at_peak, &self.xla.at_peak, |h| &h.name),
            only(&self.xla.at_peak, &self.ours.at_peak, |h| &h.name),
        )
    }

    /// Results that take an operand's bytes in one plan alone: ours, XLA's; largest first.
    pub fn shared_in_one(&self) -> (Vec<&Share>, Vec<&Share>) {
        (
            only(&self.ours.shares, &self.xla.shares, Share::pair),
            only(&self.xla.shares, &self.ours.shares, Share::pair),
        )
    }

    /// What makes our heap smaller than XLA's, and what larger.
    pub fn causes(&self) -> Causes {
        let less = |of: fn(&Side) -> u64| of(&self.xla) as i64 - of(&self.ours) as i64;
        let held_less = less(|side| side.at_peak.iter().map(|h| h.size).sum());
        let in_use_less = less(|side| side.in_use_at_peak);
        let tables = less(|side| side.tables);
        let lodged = self.lodged_at_xla_peak();
        Causes {
            lodged,
            // Bytes in use count once however many values they hold.
            shared: in_use_less - held_less,
            at_one_peak: held_less - lodged,
            tables,
            packing: less(|side| side.temp) - in_use_less - tables,
        }
    }

    /// Bytes of the temporaries in XLA's heap at its peak that we have inside an argument or output.
    fn lodged_at_xla_peak(&self) -> i64 {
        let ours: BTreeSet<&str> = self.ours.lodged.iter().map(|h| h.name.as_str()).collect();
        let held = self.xla.at_peak.iter();
        let both = held.filter(|h| ours.contains(h.name.as_str()));
        both.map(|h| h.size as i64).sum()
    }

    /// Whether no plan in one slab is as small as the sum of XLA's allocations: their sizes are summed without what the
    /// alignment of the next one costs.
    pub fn is_sum_out_of_reach(&self) -> bool {
        self.one_slab_bound > self.xla.total
    }

    /// Temporaries inside an argument or output in one plan alone: ours, XLA's; largest first.
    pub fn lodged_in_one(&self) -> (Vec<&Held>, Vec<&Held>) {
        (
            only(&self.ours.lodged, &self.xla.lodged, |h| &h.name),
            only(&self.xla.lodged, &self.ours.lodged, |h| &h.name),
        )
    }
}

/// What `a` has and `b` has not, in the order of `a`. O(n log n).
fn only<'a, T, K: Ord>(a: &'a [T], b: &'a [T], key: impl Fn(&'a T) -> K) -> Vec<&'a T> {
    let known: BTreeSet<K> = b.iter().map(&key).collect();
    a.iter().filter(|x| !known.contains(&key(x))).collect()
}

/// Compares our plan, made with XLA's accounting, with XLA's. `module` is the one that XLA's is of;
/// `one_slab` is our plan with everything of a space in one slab. Near-linear.
pub fn compare(
    module: &Module,
    compiled: &Compiled,
    one_slab: &Plan,
    xla: &JudgedPlan,
) -> Comparison {
    let plan = compiled.plan();
    let mut numbers: Vec<(u32, &str)> = plan
        .spaces
        .iter()
        .chain(&xla.plan.spaces)
        .map(|s| (s.space, s.name.as_str()))
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    let spaces = numbers.into_iter().map(|(space, name)| {
        let totals = xla.totals.iter().find(|t| t.space == space);
        SpaceComparison {
            space,
            name: name.to_owned(),
            ours: side::ours(compiled, space),
            xla: side::xla(module, xla, space, totals.copied().unwrap_or_default()),
            one_slab: one_slab.space(space).map_or(0, |s| s.slab.get()),
            one_slab_bound: one_slab.space(space).map_or(0, |s| s.lower_bound.get()),
        }
    });
    Comparison {
        module: plan.module.clone(),
        target: plan.target.clone(),
        spaces: spaces.collect(),
        copies: plan
            .copies
            .iter()
            .map(|c| (compiled.module.name_of(c.instr).to_owned(), c.cause.clone()))
            .collect(),
    }
}
