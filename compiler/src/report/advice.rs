//! What would cut the padding at the peak: another order of dimensions, merged dimensions, a
//! narrower type, each with the bytes saved and the line of the user's program.

use std::fmt::Write;

use serde_json::{Value, json};

use slabplan_ir::padding::padded_bytes;
use slabplan_ir::{ArrayShape, Bytes, ElementType, InstrId, Target};
use slabplan_planner::layouts::{best_order, least_bytes};

use super::source_line;
use crate::Compiled;

/// Arrays that advice is given for.
const MOST: usize = 10;

/// A way to make an array smaller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// What to do, for people.
    pub what: String,
    /// Bytes saved.
    pub saves: u64,
}

/// Advice on one array that is in use at the peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The value, as a plan prints it.
    pub value: String,
    /// Shape with layout.
    pub shape: String,
    /// Bytes with padding.
    pub padded: u64,
    /// Bytes of the elements alone.
    pub logical: u64,
    /// What would make it smaller, best first; empty where the padding can't be avoided.
    pub remedies: Vec<Remedy>,
    /// `op_name`: the path in the user's program.
    pub op_name: Option<String>,
    /// `file.py:12`.
    pub line: Option<String>,
}

/// The padded arrays in use at the peak of HBM, most padding first.
pub fn advice(compiled: &Compiled, target: &Target) -> Vec<Advice> {
    let Some((_, demand)) = compiled.planned.demands.iter().find(|(s, _)| *s == 0) else {
        return Vec::new();
    };
    let (module, flow) = (&compiled.module, &compiled.planned.analysis.flow);
    let mut padded: Vec<_> = demand
        .at_peak
        .iter()
        .filter(|l| l.padded > l.logical)
        .collect();
    padded.sort_by_key(|l| std::cmp::Reverse(l.padded - l.logical));
    let of = |live: &&slabplan_planner::demand::LiveBuffer| {
        let def = flow.values[live.value].def;
        let instr: InstrId = flow.positions.instr(def);
        let shape = flow.positions.shape(def);
        let array = module.shapes.array(shape)?;
        let bytes = padded_bytes(array).ok()?.get();
        Some(Advice {
            value: flow.positions.display(module, def),
            shape: module.shapes.display(shape).to_string(),
            padded: bytes,
            logical: live.logical,
            remedies: remedies(array, bytes, target),
            op_name: module.op_name(instr).map(str::to_owned),
            line: source_line(module, instr),
        })
    };
    padded.iter().filter_map(of).take(MOST).collect()
}

/// The advice as text.
pub fn advice_text(compiled: &Compiled, target: &Target) -> String {
    let all = advice(compiled, target);
    let mut out = String::from("\npadding at the peak\n");
    if all.is_empty() {
        out.push_str("  no array in use at the peak is padded\n");
    }
    for a in &all {
        let _ = writeln!(
            out,
            "  {} {}: {} for {} of data",
            a.value,
            a.shape,
            human(a.padded),
            human(a.logical)
        );
        let place: Vec<&str> = [&a.op_name, &a.line]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        if !place.is_empty() {
            let _ = writeln!(out, "    from {}", place.join(", "));
        }
        for r in &a.remedies {
            let _ = writeln!(out, "    {} saves {}", r.what, human(r.saves));
        }
        if a.remedies.is_empty() {
            out.push_str("    no order or merging of dimensions is smaller\n");
        }
    }
    out
}

impl Advice {
    /// One JSON object.
    pub fn to_json(&self) -> Value {
        json!({
            "value": self.value,
            "shape": self.shape,
            "padded_bytes": self.padded,
            "logical_bytes": self.logical,
            "remedies": self.remedies.iter().map(|r| json!({
                "what": r.what, "saves_bytes": r.saves,
            })).collect::<Vec<_>>(),
            "op_name": self.op_name,
            "line": self.line,
        })
    }
}

fn human(bytes: u64) -> String {
    Bytes::new(bytes).unwrap_or(Bytes::ZERO).to_string()
}

/// What makes an array of `bytes` smaller, best first.
fn remedies(array: &ArrayShape, bytes: u64, target: &Target) -> Vec<Remedy> {
    let mut all = Vec::new();
    let plain = ArrayShape::new(array.element_type, &array.dims);
    let (order, least) = best_order(&plain, target);
    let mut best = bytes;
    if least < best {
        let numbers: Vec<String> = order.iter().map(u32::to_string).collect();
        all.push(Remedy {
            what: format!("dimensions in the order {{{}}}", numbers.join(",")),
            saves: bytes - least,
        });
        best = least;
    }
    // Merging is worth the change of the program only beyond what an order gives.
    if let Some((dims, merged)) = merged(&plain, target).filter(|(_, merged)| *merged < best) {
        all.push(Remedy {
            what: format!(
                "neighbouring dimensions merged, {}[{dims}],",
                array.element_type
            ),
            saves: bytes - merged,
        });
    }
    if let Some(narrow) = narrower(array.element_type) {
        let least = least_bytes(&ArrayShape::new(narrow, &array.dims), target);
        if least < best {
            all.push(Remedy {
                what: format!("element type {narrow}, if the program bears it, in its best order"),
                saves: bytes - least,
            });
        }
    }
    all.sort_by_key(|r| std::cmp::Reverse(r.saves));
    all
}

/// The best array with one run of neighbouring dimensions made one, and its bytes.
fn merged(array: &ArrayShape, target: &Target) -> Option<(String, u64)> {
    let rank = array.rank();
    let runs = (0..rank).flat_map(|from| (from + 2..=rank).map(move |to| (from, to)));
    runs.filter_map(|(from, to)| {
        let product = array.dims[from..to]
            .iter()
            .try_fold(1u64, |p, &d| p.checked_mul(d))?;
        let mut dims = array.dims[..from].to_vec();
        dims.push(product);
        dims.extend_from_slice(&array.dims[to..]);
        let bytes = least_bytes(&ArrayShape::new(array.element_type, &dims), target);
        let text: Vec<String> = dims.iter().map(u64::to_string).collect();
        Some((text.join(","), bytes))
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

    #[test]
    fn remedies_have_the_bytes_they_save() {
        let target = crate::target::load("tpu-v5e").unwrap();
        // {1,0:T(8,128)}: 1000 * 128 * 4. In the order {0,1:T(4,128)}: 1024 * 4 * 4.
        // Merged: 3000 elements of a vector with tiles of 1024. In bf16 {0,1:T(4,128)(2,1)}: half.
        let array = ArrayShape::new(ElementType::F32, &[1000, 3]);
        let found = remedies(&array, 512_000, &target);
        let list: Vec<(&str, u64)> = found.iter().map(|r| (r.what.as_str(), r.saves)).collect();
        assert_eq!(
            list,
            [
                (
                    "element type bf16, if the program bears it, in its best order",
                    512_000 - 8192
                ),
                (
                    "neighbouring dimensions merged, f32[3000],",
                    512_000 - 12_288
                ),
                ("dimensions in the order {0,1}", 512_000 - 16_384),
            ]
        );
        assert!(
            remedies(
                &ArrayShape::new(ElementType::Bf16, &[16, 128]),
                4096,
                &target
            )
            .is_empty()
        );
    }
}
