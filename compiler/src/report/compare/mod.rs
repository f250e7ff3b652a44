//! Our plan of a module beside XLA's, memory space by memory space.

mod json;
mod side;
mod text;

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
    let known: std::collections::BTreeSet<K> = b.iter().map(&key).collect();
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
