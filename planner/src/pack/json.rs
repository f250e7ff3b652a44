//! Problems as JSON, with everything that CSV has no columns for.
//!
//! ```json
//! {"capacity": 16,
//!  "buffers": [{"id": "a", "live": [[0, 3], [5, 9]], "size": 4},
//!              {"id": "b", "live": [[2, 6]], "size": 4, "alignment": 2, "offset": 0, "hint": 8}],
//!  "may_share": [["a", "b"]],
//!  "ties": [{"base": "a", "member": "b", "distance": 0}]}
//! ```

use super::csv::{Named, number_by_name};
use super::problem::{Buffer, Interval, Problem, Tie};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What is wrong with a file.
#[derive(Debug, Error)]
pub enum JsonError {
    /// Not JSON, or not of the form above; the message has line and column.
    #[error(transparent)]
    Form(#[from] serde_json::Error),
    /// A pair or tie names a buffer that is not there.
    #[error("`{0}` in may_share or ties is not the id of a buffer")]
    Unknown(String),
    /// Two buffers of one name.
    #[error("duplicate id `{0}`")]
    Duplicate(String),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capacity: Option<u64>,
    buffers: Vec<Row>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    may_share: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ties: Vec<TieRow>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    live: Vec<(u64, u64)>,
    size: u64,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    alignment: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TieRow {
    base: String,
    member: String,
    #[serde(default)]
    distance: i64,
}

fn one() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_one(it: &u64) -> bool {
    *it == 1
}

/// Reads a problem.
pub fn parse(text: &str) -> Result<Named, JsonError> {
    let file: File = serde_json::from_str(text)?;
    let mut index: FxHashMap<&str, u32> = FxHashMap::default();
    for (at, row) in (0..).zip(&file.buffers) {
        if index.insert(&row.id, at).is_some() {
            return Err(JsonError::Duplicate(row.id.clone()));
        }
    }
    let find = |name: &String| {
        index
            .get(name.as_str())
            .copied()
            .ok_or_else(|| JsonError::Unknown(name.clone()))
    };
    let may_share = file
        .may_share
        .iter()
        .map(|(a, b)| Ok((find(a)?, find(b)?)))
        .collect::<Result<_, JsonError>>()?;
    let tie = |it: &TieRow| {
        Ok(Tie {
            base: find(&it.base)?,
            member: find(&it.member)?,
            distance: it.distance,
        })
    };
    let ties = file
        .ties
        .iter()
        .map(tie)
        .collect::<Result<_, JsonError>>()?;
    let buffers = file.buffers.iter().map(|row| Buffer {
        id: 0,
        live: row
            .live
            .iter()
            .map(|&(start, end)| Interval::new(start, end))
            .collect(),
        size: row.size,
        alignment: row.alignment,
        fixed: row.offset,
        hint: row.hint,
    });
    let problem = Problem {
        buffers: buffers.collect(),
        may_share,
        ties,
        capacity: file.capacity,
    };
    let mut named = Named {
        problem,
        names: file.buffers.into_iter().map(|row| row.id).collect(),
    };
    // No two are equal: see above.
    let _ = number_by_name(&mut named);
    Ok(named)
}

/// Writes a problem, with the offsets of a packing if there is one.
pub fn print(named: &Named, offsets: Option<&[u64]>) -> String {
    let name = |index: u32| named.names[index as usize].clone();
    let problem = &named.problem;
    let row = |(at, buffer): (usize, &Buffer)| Row {
        id: named.names[at].clone(),
        live: buffer
            .live
            .iter()
            .map(|span| (span.start, span.end))
            .collect(),
        size: buffer.size,
        alignment: buffer.alignment,
        offset: offsets.map(|it| it[at]).or(buffer.fixed),
        hint: buffer.hint,
    };
    let tie = |it: &Tie| TieRow {
        base: name(it.base),
        member: name(it.member),
        distance: it.distance,
    };
    let file = File {
        capacity: problem.capacity,
        buffers: problem.buffers.iter().enumerate().map(row).collect(),
        may_share: problem
            .may_share
            .iter()
            .map(|&(a, b)| (name(a), name(b)))
            .collect(),
        ties: problem.ties.iter().map(tie).collect(),
    };
    serde_json::to_string(&file).unwrap_or_default()
}
