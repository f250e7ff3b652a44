//! What would cut the padding at the peak: another order of dimensions, merged dimensions, a
//! narrower type, each with the bytes saved and the line of the user's program.

use std::fmt::Write;

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use serde_json::{Value, json};

use slabplan_ir::padding::padded_bytes;
use slabplan_ir::{ArrayShape, Bytes, ElementType, InstrId, Module, Opcode, Target};
use slabplan_planner::demand::LiveBuffer;
use slabplan_planner::layouts::{best_order, least_bytes};

use super::source_line;
use crate::Compiled;

/// Groups of arrays that advice is given for.
const MOST: usize = 10;

/// A group is left out if its padding is no more than one part in so many of the peak.
const NOTICED: u64 = 10_000;

/// A remedy is left out if it saves no more than one part in so many of the array.
const WORTH: u64 = 100;

/// How far the origin of what the compiler inserted is followed.
const MAX_HOPS: usize = 8;

/// A way to make an array smaller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// What to do, for people.
    pub what: String,
    /// Bytes saved of each array.
    pub saves: u64,
}

/// Advice on arrays of one shape from one line that are in use at the peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// Their values, as a plan prints them.
    pub values: Vec<String>,
    /// Shape with layout.
    pub shape: String,
    /// Bytes of each with padding.
    pub padded: u64,
    /// Bytes of the elements of each alone.
    pub logical: u64,
    /// What would make them smaller: first what keeps the results, best first. Empty where the padding can't be avoided.
    pub remedies: Vec<Remedy>,
    /// Where they come from.
    pub origin: Option<Origin>,
}

/// Where in the user's program an array comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// How it is related to the line: `from`, `a copy of what comes from`, `read by`.
    pub relation: &'static str,
    /// `op_name`: the path in the user's program.
    pub op_name: Option<String>,
    /// `file.py:12`.
    pub line: Option<String>,
}

/// The padded arrays in use at the peak of HBM, by shape and line, most padding first; little padding is left out.
pub fn advice(compiled: &Compiled, target: &Target) -> Vec<Advice> {
    let Some((_, demand)) = compiled.planned.demands.iter().find(|(s, _)| *s == 0) else {
        return Vec::new();
    };
    let (module, flow) = (&compiled.module, &compiled.planned.analysis.flow);
    let mut groups: IndexMap<(String, Option<Origin>), Advice, FxBuildHasher> = IndexMap::default();
    let mut one = |live: &LiveBuffer| {
        let def = flow.values[live.value].def;
        let shape = flow.positions.shape(def);
        let array = module.shapes.array(shape)?;
        let padded = padded_bytes(array).ok()?.get();
        let text = module.shapes.display(shape).to_string();
        let origin = origin(module, flow.positions.instr(def));
        let group = groups
            .entry((text.clone(), origin.clone()))
            .or_insert_with(|| Advice {
                values: Vec::new(),
                shape: text,
                padded,
                logical: live.logical,
                remedies: remedies(array, padded, target),
                origin,
            });
        group.values.push(flow.positions.display(module, def));
        Some(())
    };
    for live in demand.at_peak.iter().filter(|l| l.padded > l.logical) {
        one(live);
    }
    let least = demand.padded_at_peak / NOTICED;
    let mut all: Vec<Advice> = groups.into_values().collect();
    all.retain(|a| a.padding() > least);
    all.sort_by_key(|a| std::cmp::Reverse(a.padding()));
    all.truncate(MOST);
    all
}

/// Where `instr` comes from: its own metadata; of what the compiler inserted, that of what it moves; or that of who
/// reads it. O(instructions).
fn origin(module: &Module, instr: InstrId) -> Option<Origin> {
    let found = |relation, i: InstrId| {
        let op_name = module.op_name(i).map(str::to_owned);
        let line = source_line(module, i);
        // A name without a line and a path is one of the compiler's own.
        let known = line.is_some()
            || op_name.as_ref().is_some_and(|n| n.contains('/'))
            || (op_name.is_some() && module.instrs[i].opcode == Opcode::Parameter);
        known.then_some(Origin {
            relation,
            op_name,
            line,
        })
    };
    if let Some(own) = found("from", instr) {
        return Some(own);
    }
    let mut at = instr;
    for _ in 0..MAX_HOPS {
        let i = &module.instrs[at];
        let (true, Some(&from)) = (only_moves(i.opcode), i.operands.first()) else {
            break;
        };
        if let Some(moved) = found("a copy of what comes from", from) {
            return Some(moved);
        }
        at = from;
    }
    let mut readers = module.instrs.iter();
    readers.find_map(|(user, i)| {
        if i.operands.contains(&instr) {
            found("read by", user)
        } else {
            None
        }
    })
}

fn only_moves(opcode: Opcode) -> bool {
    use Opcode as O;
    matches!(
        opcode,
        O::Copy
            | O::CopyStart
            | O::CopyDone
            | O::Bitcast
            | O::GetTupleElement
            | O::AsyncStart
            | O::AsyncDone
            | O::Reshape
            | O::Transpose
    )
}

/// The advice as text.
pub fn advice_text(compiled: &Compiled, target: &Target) -> String {
    let all = advice(compiled, target);
    let demand = compiled.planned.demands.iter().find(|(s, _)| *s == 0);
    let (padded, logical) = demand.map_or((0, 0), |(_, d)| (d.padded_at_peak, d.logical_at_peak));
    let padding = padded.saturating_sub(logical);
    let mut out = format!(
        "\npadding at the peak: {} of {}",
        human(padding),
        human(padded)
    );
    if all.is_empty() {
        out.push_str("; no array has enough of it to be worth a change\n");
        return out;
    }
    out.push_str("; bytes saved are those of each array\n");
    for a in &all {
        let _ = write!(
            out,
            "  {} {}: {} for {} of data",
            a.values[0],
            a.shape,
            human(a.padded),
            human(a.logical)
        );
        match a.values.len() {
            1 => out.push('\n'),
            n => {
                let _ = writeln!(out, ", and {} more like it", n - 1);
            }
        }
        if let Some(origin) = &a.origin {
            let _ = writeln!(out, "    {}", origin.text());
        }
        for r in &a.remedies {
            let _ = writeln!(out, "    {}: saves {}", r.what, human(r.saves));
        }
        if a.remedies.is_empty() {
            out.push_str("    no order or merging of dimensions is much smaller\n");
        }
    }
    if !compiled
        .trials
        .iter()
        .any(|t| t.kept && t.name != "as given")
    {
        out.push_str(
            "  of a program before XLA's layouts, `--layouts memory` chooses such orders by itself\n",
        );
    }
    if let Some(line) = next_best_order(compiled) {
        out.push_str(&line);
    }
    out
}

/// What the best order but the one that was chosen would need.
fn next_best_order(compiled: &Compiled) -> Option<String> {
    let trials = &compiled.schedule_trials;
    let chosen = trials.iter().find(|t| t.chosen)?;
    let others = trials.iter().filter(|t| !t.chosen);
    let next = others.min_by_key(|t| t.slab(0))?;
    let more = next.slab(0).saturating_sub(chosen.slab(0));
    Some(format!(
        "  the next best order of instructions (from {}) would need {} more\n",
        next.from,
        human(more)
    ))
}

impl Origin {
    fn text(&self) -> String {
        let place: Vec<&str> = [&self.op_name, &self.line]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        format!("{} {}", self.relation, place.join(", "))
    }
}

impl Advice {
    /// Bytes of padding of all of them.
    pub fn padding(&self) -> u64 {
        self.padded.saturating_sub(self.logical) * self.values.len() as u64
    }

    /// One JSON object.
    pub fn to_json(&self) -> Value {
        let origin = self.origin.as_ref();
        json!({
            "values": self.values,
            "shape": self.shape,
            "padded_bytes": self.padded,
            "logical_bytes": self.logical,
            "remedies": self.remedies.iter().map(|r| json!({
                "what": r.what, "saves_bytes": r.saves,
            })).collect::<Vec<_>>(),
            "relation": origin.map(|o| o.relation),
            "op_name": origin.and_then(|o| o.op_name.as_ref()),
            "line": origin.and_then(|o| o.line.as_ref()),
        })
    }
}

fn human(bytes: u64) -> String {
    Bytes::new(bytes).unwrap_or(Bytes::ZERO).to_string()
}

/// What makes an array of `bytes` smaller: first what keeps the results, best first, then a narrower type.
fn remedies(array: &ArrayShape, bytes: u64, target: &Target) -> Vec<Remedy> {
    let mut all = Vec::new();
    let plain = ArrayShape::new(array.element_type, &array.dims);
    let (order, least) = best_order(&plain, target);
    let mut best = bytes;
    let worth = |saves: u64| saves > bytes / WORTH;
    if least < best && worth(bytes - least) {
        all.push(Remedy {
            what: format!("as {}", transposed(&plain, &order)),
            saves: bytes - least,
        });
        best = least;
    }
    // Merging is worth the change of the program only beyond what an order gives.
    if let Some((array, merged)) = merged(&plain, target)
        && merged < best
        && worth(best - merged)
    {
        let (order, _) = best_order(&array, target);
        let mut what = format!("reshaped to {}", named(&array));
        if !is_row_major(&order) {
            let _ = write!(what, ", then as {}", transposed(&array, &order));
        }
        all.push(Remedy {
            what,
            saves: bytes - merged,
        });
        best = merged;
    }
    all.sort_by_key(|r| std::cmp::Reverse(r.saves));
    if let Some(narrow) = narrower(array.element_type) {
        let array = ArrayShape::new(narrow, &array.dims);
        let (order, least) = best_order(&array, target);
        if least < best && worth(best - least) {
            let what = if is_row_major(&order) {
                format!("in {narrow}, if the results bear it")
            } else {
                format!(
                    "in {narrow}, if the results bear it, as {}",
                    transposed(&array, &order)
                )
            };
            all.push(Remedy {
                what,
                saves: bytes.saturating_sub(least),
            });
        }
    }
    all
}

/// `f32[3,1000], axes (1,0)`: the array whose dimensions in this order, the most minor first, are row-major.
fn transposed(array: &ArrayShape, order: &[u32]) -> String {
    let axes: Vec<u32> = order.iter().rev().copied().collect();
    let dims: Vec<u64> = axes.iter().map(|&a| array.dims[a as usize]).collect();
    let axes: Vec<String> = axes.iter().map(u32::to_string).collect();
    format!(
        "{}, axes ({})",
        named(&ArrayShape::new(array.element_type, &dims)),
        axes.join(",")
    )
}

fn is_row_major(order: &[u32]) -> bool {
    order.is_sorted_by(|a, b| a > b)
}

fn named(array: &ArrayShape) -> String {
    let dims: Vec<String> = array.dims.iter().map(u64::to_string).collect();
    format!("{}[{}]", array.element_type, dims.join(","))
}

/// The best array with one run of neighbouring dimensions made one, and its bytes.
fn merged(array: &ArrayShape, target: &Target) -> Option<(ArrayShape, u64)> {
    let rank = array.rank();
    let runs = (0..rank).flat_map(|from| (from + 2..=rank).map(move |to| (from, to)));
    runs.filter_map(|(from, to)| {
        let product = array.dims[from..to]
            .iter()
            .try_fold(1u64, |p, &d| p.checked_mul(d))?;
        let mut dims = array.dims[..from].to_vec();
        dims.push(product);
        dims.extend_from_slice(&array.dims[to..]);
        let merged = ArrayShape::new(array.element_type, &dims);
        let bytes = least_bytes(&merged, target);
        Some((merged, bytes))
    })
    .min_by_key(|(_, bytes)| *bytes)
}

/// The next narrower type of the same kind.
fn narrower(element: ElementType) -> Option<ElementType> {
    match element {
        ElementType::F64 => Some(ElementType::F32),
        ElementType::F32 => Some(ElementType::Bf16),
        ElementType::S64 => Some(ElementType::S32),
        ElementType::U64 => Some(ElementType::U32),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompileConfig, compile};

    fn target() -> Target {
        crate::target::load("tpu-v5e").unwrap()
    }

    #[test]
    fn remedies_have_the_bytes_they_save() {
        let list = |dims: &[u64], bytes| -> Vec<(String, u64)> {
            let array = ArrayShape::new(ElementType::F32, dims);
            let found = remedies(&array, bytes, &target());
            found.into_iter().map(|r| (r.what, r.saves)).collect()
        };
        let expected = |what: &str, saves| (what.to_owned(), saves);
        // {1,0:T(8,128)}: 1000 * 128 * 4. In the order {0,1:T(4,128)}: 1024 * 4 * 4. In bf16 {0,1:T(4,128)(2,1)}: half.
        // Merged, 3 * 1024 * 4, it would save less than a hundredth beyond.
        assert_eq!(
            list(&[1000, 3], 512_000),
            [
                expected("as f32[3,1000], axes (1,0)", 512_000 - 16_384),
                expected(
                    "in bf16, if the results bear it, as bf16[3,1000], axes (1,0)",
                    512_000 - 8192
                ),
            ]
        );
        // {1,0}: 80 * 128 * 4; the other order 104 * 128 * 4; a vector 8 * 1024 * 4; bf16: 80 * 128 * 2.
        assert_eq!(
            list(&[80, 100], 40_960),
            [
                expected("reshaped to f32[8000]", 8192),
                expected("in bf16, if the results bear it", 20_480),
            ]
        );
        let full = ArrayShape::new(ElementType::Bf16, &[16, 128]);
        assert!(remedies(&full, 4096, &target()).is_empty());
    }

    #[test]
    fn arrays_of_one_line_are_told_together_with_where_they_come_from() {
        // Each of the two takes 1000 * 128 * 4 bytes for 12,000; the copy of one has no line of its own.
        let text = "HloModule m, is_scheduled=true

ENTRY e {
  p = f32[1000,3]{1,0:T(8,128)} parameter(0), metadata={op_name=\"p\"}
  a = f32[1000,3]{1,0:T(8,128)} sine(p), metadata={op_name=\"jit(f)/sin\" source_file=\"m.py\" source_line=7}
  b = f32[1000,3]{1,0:T(8,128)} sine(p), metadata={op_name=\"jit(f)/sin\" source_file=\"m.py\" source_line=7}
  c = f32[1000,3]{1,0:T(8,128)} copy(a)
  d = f32[1000,3]{1,0:T(8,128)} custom-call(a, b, c), custom_call_target=\"t\", metadata={op_name=\"jit(f)/t\" source_file=\"m.py\" source_line=8}
  ROOT s = f32[] constant(1)
}
";
        let module = slabplan_ir::text::parse(text).into_result().unwrap();
        let compiled = compile(module, &target(), &CompileConfig::default()).unwrap();
        let found = advice(&compiled, &target());
        let told = |values: &[&str], origin: &str| {
            let group = found.iter().find(|a| a.values == values);
            let group = group.unwrap_or_else(|| panic!("no {values:?} in {found:#?}"));
            assert_eq!((group.padded, group.logical), (512_000, 12_000));
            assert_eq!(group.origin.as_ref().unwrap().text(), origin);
        };
        told(&["%a", "%b"], "from jit(f)/sin, m.py:7");
        told(&["%c"], "a copy of what comes from jit(f)/sin, m.py:7");
        told(&["%d"], "from jit(f)/t, m.py:8");
        told(&["%p"], "from p");
        // The constant's 508 bytes of padding are not worth a word.
        assert_eq!(found.len(), 4);
        let text = advice_text(&compiled, &target());
        assert!(text.starts_with("\npadding at the peak: "), "{text}");
        assert!(
            text.contains(", and 1 more like it\n    from jit(f)/sin, m.py:7\n"),
            "{text}"
        );
    }
}
