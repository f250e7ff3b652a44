//! The readable form of a plan: one line for each buffer.
//!
//! ```text
//! slabplan-plan 1
//! module "jit_step" fingerprint=91ab0c55d3e0f1a2 target="tpu-v5e" accounting=slab schedule="keep"
//! space 0 name="hbm" capacity=1024 alignment=64 slab=512 lower_bound=512 optimal=true temp=128 ...
//! buffer space=0 offset=0 size=64 kind=parameter(0,{},donated) live=[0,9) : %p.1 %fusion.2{1}
//! buffer space=0 offset=64 size=64 kind=temp live=[2,5)[7,8) : %add.1
//! buffer space=0 offset=128 size=64 kind=scratch(%dot.2) live=[3,4) :
//! copy %copy.7 "the carried value would ..."
//! ```
//!
//! Strings are quoted as in JSON; `#` begins a comment line; unknown `key=value` pairs are passed over.

use std::fmt::Write;

use super::error::{PlanPlace, PlanReadError};
use super::json::check_module;
use super::line::Line;
use super::names::{Names, parse_index};
use super::{
    Accounting, BufferKind, InsertedCopy, LiveInterval, PLAN_VERSION, Plan, PlanBuffer, PlanHeader,
    PlanSpace, PlanStats,
};
use crate::entity::PrimaryMap;
use crate::module::Module;
use crate::shape::DisplayIndex;
use crate::units::{Alignment, Bytes, Offset};

/// First word of the text form.
const MAGIC: &str = "slabplan-plan";

/// Writes a plan as text. O(plan + module).
pub fn to_text(module: &Module, plan: &Plan) -> String {
    let names = Names::new(module);
    let mut out = format!("{MAGIC} {PLAN_VERSION}\n");
    // Writing to a string can't fail.
    let _ = writeln!(
        out,
        "module {} fingerprint={:016x} target={} accounting={} schedule={}",
        quote(&plan.module),
        plan.fingerprint,
        quote(&plan.target),
        match plan.accounting {
            Accounting::Slab => "slab",
            Accounting::Xla => "xla",
        },
        quote(&plan.schedule)
    );
    for space in &plan.spaces {
        write_space(&mut out, space);
    }
    for buffer in plan.buffers.values() {
        write_buffer(&mut out, &names, buffer);
    }
    for copy in &plan.copies {
        let _ = writeln!(
            out,
            "copy {} {}",
            names.instr(copy.instr),
            quote(&copy.cause)
        );
    }
    out
}

fn write_space(out: &mut String, space: &PlanSpace) {
    let _ = write!(
        out,
        "space {} name={} capacity={} alignment={} slab={} lower_bound={} optimal={}",
        space.space,
        quote(&space.name),
        space.capacity.get(),
        space.alignment.get(),
        space.slab.get(),
        space.lower_bound.get(),
        space.optimal
    );
    let stats = &space.stats;
    if !stats.scratch.is_zero() {
        let _ = write!(out, " scratch={}", stats.scratch.get());
    }
    let _ = writeln!(
        out,
        " temp={} argument={} output={} alias={} constant={} logical_at_peak={} padded_at_peak={} \
         peak_instruction={}",
        stats.temp.get(),
        stats.argument.get(),
        stats.output.get(),
        stats.alias.get(),
        stats.constant.get(),
        stats.logical_at_peak.get(),
        stats.padded_at_peak.get(),
        quote(&stats.peak_instruction)
    );
}

fn write_buffer(out: &mut String, names: &Names<'_>, buffer: &PlanBuffer) {
    let _ = write!(
        out,
        "buffer space={} offset={} size={} kind=",
        buffer.space,
        buffer.offset.get(),
        buffer.size.get()
    );
    match &buffer.kind {
        BufferKind::Parameter {
            number,
            index,
            donated,
        } => {
            let donated = if *donated { ",donated" } else { "" };
            let _ = write!(out, "parameter({number},{}{donated})", DisplayIndex(index));
        }
        BufferKind::Constant => out.push_str("constant"),
        BufferKind::Output => out.push_str("output"),
        BufferKind::Scratch { instr } => {
            let _ = write!(out, "scratch({})", names.instr(*instr));
        }
        BufferKind::Temp => out.push_str("temp"),
    }
    if !buffer.live.is_empty() {
        out.push_str(" live=");
        for l in &buffer.live {
            let _ = write!(out, "[{},{})", l.start, l.end);
        }
    }
    out.push_str(" :");
    for value in &buffer.values {
        let _ = write!(out, " {}", names.value(value));
    }
    out.push('\n');
}

/// A string in quotes, escaped as in JSON.
fn quote(s: &str) -> String {
    serde_json::to_string(s).expect("a string always serializes")
}

/// Reads a plan for `module` from text; errors name line and column. O(text + module).
pub fn from_text(module: &Module, text: &str) -> Result<Plan, PlanReadError> {
    let mut lines = lines(text);
    let mut plan = read_head(text, &mut lines)?;
    check_module(module, &plan.module, plan.fingerprint)?;
    let names = Names::new(module);
    for mut line in lines {
        match line.word()? {
            "space" => plan.spaces.push(read_space(&mut line)?),
            "buffer" => {
                plan.buffers.push(read_buffer(&mut line, &names)?);
            }
            "copy" => {
                let name = line.word()?;
                let instr = names.find_instr(name).map_err(|m| line.error(m))?;
                let cause = line.string()?;
                plan.copies.push(InsertedCopy { instr, cause });
            }
            other => {
                let message = format!("`{other}` is not `space`, `buffer` or `copy`");
                return Err(line.error(message));
            }
        }
    }
    Ok(plan)
}

/// Reads how the plan in `text` was made, whatever module it is for. O(1).
pub fn text_header(text: &str) -> Result<PlanHeader, PlanReadError> {
    let plan = read_head(text, &mut lines(text))?;
    Ok(PlanHeader {
        target: plan.target,
        accounting: plan.accounting,
        schedule: plan.schedule,
    })
}

fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines()
        .enumerate()
        .map(|(n, l)| Line::new(n + 1, l))
        .filter(|l| !l.is_blank())
}

/// The first two lines: a plan without spaces and buffers.
fn read_head<'t>(
    text: &str,
    lines: &mut impl Iterator<Item = Line<'t>>,
) -> Result<Plan, PlanReadError> {
    let end = || {
        let at = PlanPlace::Line(text.lines().count().max(1), 1);
        PlanReadError::malformed(at, "the plan ends before its `module` line")
    };
    let mut head = lines.next().ok_or_else(end)?;
    head.keyword(MAGIC)?;
    let given = head.number()?;
    if given != u64::from(PLAN_VERSION) {
        return Err(PlanReadError::Version { given });
    }
    read_module(&mut lines.next().ok_or_else(end)?)
}

fn read_module(line: &mut Line<'_>) -> Result<Plan, PlanReadError> {
    line.keyword("module")?;
    let mut plan = Plan {
        module: line.string()?,
        fingerprint: 0,
        target: String::new(),
        accounting: Accounting::Slab,
        schedule: String::new(),
        spaces: Vec::new(),
        buffers: PrimaryMap::new(),
        copies: Vec::new(),
    };
    let mut has_fingerprint = false;
    while let Some(key) = line.key()? {
        match key {
            "fingerprint" => {
                let digits = line.word()?;
                plan.fingerprint = u64::from_str_radix(digits, 16)
                    .map_err(|_| line.error("expected 16 hexadecimal digits"))?;
                has_fingerprint = true;
            }
            "target" => plan.target = line.string()?,
            "accounting" => {
                plan.accounting = match line.word()? {
                    "slab" => Accounting::Slab,
                    "xla" => Accounting::Xla,
                    other => {
                        let message = format!("accounting `{other}` is not `slab` or `xla`");
                        return Err(line.error(message));
                    }
                }
            }
            "schedule" => plan.schedule = line.string()?,
            _ => line.skip_value()?,
        }
    }
    if !has_fingerprint {
        return Err(line.error("expected `fingerprint=`"));
    }
    Ok(plan)
}

fn read_space(line: &mut Line<'_>) -> Result<PlanSpace, PlanReadError> {
    let mut space = PlanSpace {
        space: line.u32()?,
        name: String::new(),
        capacity: Bytes::ZERO,
        alignment: Alignment::ONE,
        slab: Bytes::ZERO,
        lower_bound: Bytes::ZERO,
        optimal: false,
        stats: PlanStats::default(),
    };
    while let Some(key) = line.key()? {
        let stats = &mut space.stats;
        match key {
            "name" => space.name = line.string()?,
            "capacity" => space.capacity = line.bytes()?,
            "alignment" => {
                let n = line.number()?;
                space.alignment = Alignment::new(n).map_err(|e| line.error(e.to_string()))?;
            }
            "slab" => space.slab = line.bytes()?,
            "lower_bound" => space.lower_bound = line.bytes()?,
            "optimal" => space.optimal = line.word()? == "true",
            "temp" => stats.temp = line.bytes()?,
            "argument" => stats.argument = line.bytes()?,
            "output" => stats.output = line.bytes()?,
            "alias" => stats.alias = line.bytes()?,
            "constant" => stats.constant = line.bytes()?,
            "scratch" => stats.scratch = line.bytes()?,
            "logical_at_peak" => stats.logical_at_peak = line.bytes()?,
            "padded_at_peak" => stats.padded_at_peak = line.bytes()?,
            "peak_instruction" => stats.peak_instruction = line.string()?,
            _ => line.skip_value()?,
        }
    }
    Ok(space)
}

fn read_buffer(line: &mut Line<'_>, names: &Names<'_>) -> Result<PlanBuffer, PlanReadError> {
    let mut buffer = PlanBuffer {
        space: 0,
        offset: Offset::ZERO,
        size: Bytes::ZERO,
        kind: BufferKind::Temp,
        values: Vec::new(),
        live: Vec::new(),
    };
    let (mut has_offset, mut has_size) = (false, false);
    while let Some(key) = line.key()? {
        match key {
            "space" => buffer.space = line.u32()?,
            "offset" => {
                let n = line.number()?;
                buffer.offset = Offset::new(n).map_err(|e| line.error(e.to_string()))?;
                has_offset = true;
            }
            "size" => {
                buffer.size = line.bytes()?;
                has_size = true;
            }
            "kind" => {
                let word = line.word()?;
                buffer.kind = read_kind(word, names).map_err(|m| line.error(m))?;
            }
            "live" => {
                let word = line.word()?;
                buffer.live = read_live(word).map_err(|m| line.error(m))?;
            }
            _ => line.skip_value()?,
        }
    }
    if !(has_offset && has_size) {
        return Err(line.error("a buffer needs `offset=` and `size=`"));
    }
    line.keyword(":")?;
    while !line.is_done() {
        let word = line.word()?;
        let value = names.find_value(word).map_err(|m| line.error(m))?;
        buffer.values.push(value);
    }
    Ok(buffer)
}

/// `temp`, `output`, `constant`, `scratch(%name)` or `parameter(0,{1},donated)`.
fn read_kind(word: &str, names: &Names<'_>) -> Result<BufferKind, String> {
    let scratch = word.strip_prefix("scratch(");
    if let Some(name) = scratch.and_then(|s| s.strip_suffix(')')) {
        let instr = names.find_instr(name)?;
        return Ok(BufferKind::Scratch { instr });
    }
    match word {
        "temp" => return Ok(BufferKind::Temp),
        "output" => return Ok(BufferKind::Output),
        "constant" => return Ok(BufferKind::Constant),
        _ => {}
    }
    let parse = || {
        let inner = word.strip_prefix("parameter(")?.strip_suffix(')')?;
        let (number, rest) = inner.split_once(",{")?;
        let (index, rest) = rest.split_once('}')?;
        let donated = match rest {
            "" => false,
            ",donated" => true,
            _ => return None,
        };
        Some(BufferKind::Parameter {
            number: number.parse().ok()?,
            index: parse_index(index).ok()?,
            donated,
        })
    };
    parse().ok_or_else(|| {
        format!(
            "kind `{word}` is not `temp`, `output`, `constant`, `scratch(%name)` or \
             `parameter(number,{{index}}[,donated])`"
        )
    })
}

/// `[0,4)[6,9)`.
fn read_live(word: &str) -> Result<Vec<LiveInterval>, String> {
    let parts = word.strip_suffix(')').unwrap_or("").split(')');
    parts
        .map(|part| {
            let (start, end) = part.strip_prefix('[')?.split_once(',')?;
            Some(LiveInterval {
                start: start.parse().ok()?,
                end: end.parse().ok()?,
            })
        })
        .collect::<Option<_>>()
        .ok_or_else(|| format!("`{word}` is not a list of intervals `[start,end)`"))
}
