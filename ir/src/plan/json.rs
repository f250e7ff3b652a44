//! The JSON form of a plan: one object, one line for each buffer.
//!
//! ```json
//! {"format": "slabplan-plan", "version": 1, "module": "jit_step", "fingerprint": "91ab0c...",
//!  "target": "tpu-v5e", "accounting": "slab", "schedule": "keep",
//!  "spaces": [{"space": 0, "name": "hbm", "capacity_bytes": 1024, "alignment": 64,
//!              "slab_bytes": 512, "lower_bound_bytes": 512, "optimal": true, "temp_bytes": 0}],
//!  "buffers": [
//!   {"space": 0, "offset": 0, "size": 64, "kind": "temp", "live": [[3, 7]], "values": ["%add.1{0}"]}],
//!  "copies": [{"instruction": "%copy.7", "cause": "..."}]}
//! ```
//!
//! A value may also be written `{"instruction": "add.1", "computation": "main", "index": [0]}`.
//! Unknown fields are passed over.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::error::{PlanPlace, PlanReadError};
use super::names::Names;
use super::{
    Accounting, BufferKind, InsertedCopy, LiveInterval, PLAN_VERSION, Plan, PlanBuffer, PlanHeader,
    PlanSpace, PlanStats, PlanValue, fingerprint,
};
use crate::entity::PrimaryMap;
use crate::module::Module;
use crate::shape::ShapeIndex;
use crate::units::{Alignment, Bytes, Offset};

/// Value of the field `format`.
const FORMAT: &str = "slabplan-plan";

#[derive(Serialize)]
struct Head {
    format: String,
    version: u64,
    module: String,
    /// 16 hexadecimal digits: JSON numbers are doubles to many readers.
    fingerprint: String,
    target: String,
    accounting: Accounting,
    schedule: String,
}

#[derive(Deserialize)]
struct File {
    format: String,
    version: u64,
    module: String,
    fingerprint: String,
    target: String,
    accounting: Accounting,
    schedule: String,
    spaces: Vec<Space>,
    buffers: Vec<Buffer>,
    #[serde(default)]
    copies: Vec<Copy>,
}

#[derive(Deserialize)]
struct Version {
    version: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct Space {
    #[serde(rename = "space")]
    number: u32,
    name: String,
    capacity_bytes: Bytes,
    alignment: Alignment,
    slab_bytes: Bytes,
    lower_bound_bytes: Bytes,
    optimal: bool,
    #[serde(flatten)]
    stats: PlanStats,
}

#[derive(Serialize, Deserialize)]
struct Buffer {
    space: u32,
    offset: Offset,
    size: Bytes,
    #[serde(flatten)]
    kind: Kind,
    #[serde(default)]
    live: Vec<(u32, u32)>,
    values: Vec<Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Kind {
    Parameter {
        parameter: u32,
        #[serde(default)]
        index: Vec<u32>,
        donated: bool,
    },
    Constant,
    Output,
    Scratch {
        instruction: String,
    },
    Temp,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Value {
    Name(String),
    Parts {
        instruction: String,
        #[serde(default)]
        computation: Option<String>,
        #[serde(default)]
        index: Vec<u32>,
    },
}

#[derive(Serialize, Deserialize)]
struct Copy {
    instruction: String,
    cause: String,
}

/// Writes a plan as JSON. O(plan + module).
pub fn to_json(module: &Module, plan: &Plan) -> String {
    let names = Names::new(module);
    let head = json(&Head {
        format: FORMAT.to_owned(),
        version: PLAN_VERSION.into(),
        module: plan.module.clone(),
        fingerprint: format!("{:016x}", plan.fingerprint),
        target: plan.target.clone(),
        accounting: plan.accounting,
        schedule: plan.schedule.clone(),
    });
    let spaces = plan.spaces.iter().map(|s| {
        json(&Space {
            number: s.space,
            name: s.name.clone(),
            capacity_bytes: s.capacity,
            alignment: s.alignment,
            slab_bytes: s.slab,
            lower_bound_bytes: s.lower_bound,
            optimal: s.optimal,
            stats: s.stats.clone(),
        })
    });
    let buffers = plan.buffers.values().map(|b| {
        json(&Buffer {
            space: b.space,
            offset: b.offset,
            size: b.size,
            kind: kind_to_json(&names, &b.kind),
            live: b.live.iter().map(|l| (l.start, l.end)).collect(),
            values: b
                .values
                .iter()
                .map(|v| Value::Name(names.value(v)))
                .collect(),
        })
    });
    let copies = plan.copies.iter().map(|c| {
        json(&Copy {
            instruction: names.instr(c.instr),
            cause: c.cause.clone(),
        })
    });
    let mut out = head;
    out.pop();
    write_list(&mut out, "spaces", spaces);
    write_list(&mut out, "buffers", buffers);
    write_list(&mut out, "copies", copies);
    out.push_str("}\n");
    out
}

/// Reads a plan for `module` from JSON.
///
/// Errors name the line and column, or the path, of what is wrong. O(text + module).
pub fn from_json(module: &Module, text: &str) -> Result<Plan, PlanReadError> {
    let file: File = serde_json::from_str(text).map_err(|e| read_error(text, &e))?;
    if file.format != FORMAT {
        let message = format!("`{}` is not `{FORMAT}`", file.format);
        return Err(at("format", message));
    }
    if file.version != u64::from(PLAN_VERSION) {
        let given = file.version;
        return Err(PlanReadError::Version { given });
    }
    let digest = u64::from_str_radix(&file.fingerprint, 16)
        .map_err(|_| at("fingerprint", "expected 16 hexadecimal digits"))?;
    check_module(module, &file.module, digest)?;
    let names = Names::new(module);
    let mut plan = Plan {
        module: file.module,
        fingerprint: digest,
        target: file.target,
        accounting: file.accounting,
        schedule: file.schedule,
        spaces: file.spaces.into_iter().map(space_from_json).collect(),
        buffers: PrimaryMap::with_capacity(file.buffers.len()),
        copies: Vec::with_capacity(file.copies.len()),
    };
    for (n, buffer) in file.buffers.into_iter().enumerate() {
        let mut values = Vec::with_capacity(buffer.values.len());
        for (i, value) in buffer.values.into_iter().enumerate() {
            let value = value_from_json(&names, value)
                .map_err(|m| at(format!("buffers[{n}].values[{i}]"), m))?;
            values.push(value);
        }
        plan.buffers.push(PlanBuffer {
            space: buffer.space,
            offset: buffer.offset,
            size: buffer.size,
            kind: kind_from_json(&names, buffer.kind)
                .map_err(|m| at(format!("buffers[{n}].instruction"), m))?,
            values,
            live: buffer
                .live
                .into_iter()
                .map(|(start, end)| LiveInterval { start, end })
                .collect(),
        });
    }
    for (n, copy) in file.copies.into_iter().enumerate() {
        let instr = names
            .find_instr(&copy.instruction)
            .map_err(|m| at(format!("copies[{n}].instruction"), m))?;
        let cause = copy.cause;
        plan.copies.push(InsertedCopy { instr, cause });
    }
    Ok(plan)
}

/// Reads how the plan in `text` was made, whatever module it is for. O(text).
pub fn json_header(text: &str) -> Result<PlanHeader, PlanReadError> {
    serde_json::from_str(text).map_err(|e| read_error(text, &e))
}

/// Refuses a plan whose fingerprint is not that of `module`.
pub(super) fn check_module(
    module: &Module,
    planned: &str,
    planned_fingerprint: u64,
) -> Result<(), PlanReadError> {
    let fingerprint = fingerprint(module);
    if planned_fingerprint == fingerprint {
        return Ok(());
    }
    Err(PlanReadError::OtherModule {
        planned: planned.to_owned(),
        planned_fingerprint,
        module: module.str(module.name).to_owned(),
        fingerprint,
    })
}

/// A JSON error by line and column; a plan of another version is told as such.
fn read_error(text: &str, error: &serde_json::Error) -> PlanReadError {
    if let Ok(Version {
        version: Some(given),
    }) = serde_json::from_str(text)
        && given != u64::from(PLAN_VERSION)
    {
        return PlanReadError::Version { given };
    }
    // serde_json ends its message with the place that is told apart here.
    let message = error.to_string();
    let message = message
        .rsplit_once(" at line ")
        .map_or(message.as_str(), |(m, _)| m)
        .to_owned();
    PlanReadError::malformed(PlanPlace::Line(error.line(), error.column()), message)
}

fn at(path: impl Into<String>, message: impl Into<String>) -> PlanReadError {
    PlanReadError::malformed(PlanPlace::Path(path.into()), message)
}

fn space_from_json(s: Space) -> PlanSpace {
    PlanSpace {
        space: s.number,
        name: s.name,
        capacity: s.capacity_bytes,
        alignment: s.alignment,
        slab: s.slab_bytes,
        lower_bound: s.lower_bound_bytes,
        optimal: s.optimal,
        stats: s.stats,
    }
}

fn kind_to_json(names: &Names<'_>, kind: &BufferKind) -> Kind {
    match kind {
        BufferKind::Parameter {
            number,
            index,
            donated,
        } => Kind::Parameter {
            parameter: *number,
            index: index.to_vec(),
            donated: *donated,
        },
        BufferKind::Constant => Kind::Constant,
        BufferKind::Output => Kind::Output,
        BufferKind::Scratch { instr } => Kind::Scratch {
            instruction: names.instr(*instr),
        },
        BufferKind::Temp => Kind::Temp,
    }
}

fn kind_from_json(names: &Names<'_>, kind: Kind) -> Result<BufferKind, String> {
    Ok(match kind {
        Kind::Parameter {
            parameter,
            index,
            donated,
        } => BufferKind::Parameter {
            number: parameter,
            index: index.into(),
            donated,
        },
        Kind::Constant => BufferKind::Constant,
        Kind::Output => BufferKind::Output,
        Kind::Scratch { instruction } => BufferKind::Scratch {
            instr: names.find_instr(&instruction)?,
        },
        Kind::Temp => BufferKind::Temp,
    })
}

fn value_from_json(names: &Names<'_>, value: Value) -> Result<PlanValue, String> {
    match value {
        Value::Name(text) => names.find_value(&text),
        Value::Parts {
            instruction,
            computation,
            index,
        } => Ok(PlanValue {
            instr: match computation {
                Some(comp) => names.find_in(&comp, &instruction)?,
                None => names.find_instr(&instruction)?,
            },
            index: ShapeIndex::from_vec(index),
        }),
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings, numbers and lists always serialize")
}

/// `,"name":[` and the items, one a line.
fn write_list(out: &mut String, name: &str, items: impl Iterator<Item = String>) {
    let _ = write!(out, ",\n\"{name}\":[");
    for (n, item) in items.enumerate() {
        out.push_str(if n > 0 { ",\n" } else { "\n" });
        out.push_str(&item);
    }
    out.push(']');
}
