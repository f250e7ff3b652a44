//! A module proto as HLO text.

use std::collections::BTreeMap;
use std::fmt::Write;

use slabplan_ir::text::{parse, print};

use super::attributes::{Writer, write_attributes, write_frontend_attributes};
use super::literal::write_literal;
use super::messages::{Computation, HloModule, Instruction, Shape, StackFrameIndex};
use super::shape::{join, write_shape};
use super::tracking::recovery_table;

/// What attributes refer to by number.
pub(super) struct Names<'a> {
    instructions: BTreeMap<i64, &'a Instruction>,
    computations: BTreeMap<i64, &'a str>,
    payloads: &'a [Vec<u8>],
}

impl<'a> Names<'a> {
    /// The name of an instruction.
    pub(super) fn instruction(&self, id: i64) -> Result<&'a str, String> {
        Ok(&self.get(id)?.name)
    }

    /// The shape of an instruction.
    pub(super) fn shape(&self, id: i64) -> Result<&'a Shape, String> {
        let shape = self.get(id)?.shape.as_ref();
        shape.ok_or_else(|| format!("instruction {id} has no shape"))
    }

    fn get(&self, id: i64) -> Result<&'a Instruction, String> {
        let found = self.instructions.get(&id).copied();
        found.ok_or_else(|| format!("no instruction has id {id}"))
    }

    /// One of the module's payloads.
    pub(super) fn payload(&self, id: i64) -> Result<&'a [u8], String> {
        let found = usize::try_from(id).ok().and_then(|n| self.payloads.get(n));
        found
            .map(Vec::as_slice)
            .ok_or_else(|| format!("the module has no payload {id}"))
    }

    /// The name of a computation.
    pub(super) fn computation(&self, id: i64) -> Result<&'a str, String> {
        let name = self.computations.get(&id);
        name.copied()
            .ok_or_else(|| format!("no computation has id {id}"))
    }
}

/// Writes the whole module.
pub(super) fn write(module: &HloModule) -> Result<String, String> {
    let names = names(module)?;
    names
        .computation(module.entry_computation_id)
        .map_err(|e| format!("the entry: {e}"))?;
    let mut out = String::new();
    write_header(&mut out, module)?;
    if let Some(index) = &module.stack_frame_index {
        write_tables(&mut out, index);
    }
    for computation in &module.computations {
        write_computation(&mut out, module, computation, &names)
            .map_err(|e| format!("computation {}: {e}", computation.name))?;
    }
    Ok(out)
}

fn names(module: &HloModule) -> Result<Names<'_>, String> {
    let mut names = Names {
        instructions: BTreeMap::new(),
        computations: BTreeMap::new(),
        payloads: &module.payloads,
    };
    for c in &module.computations {
        if names.computations.insert(c.id, &c.name).is_some() {
            return Err(format!("two computations have id {}", c.id));
        }
        for i in &c.instructions {
            if names.instructions.insert(i.id, i).is_some() {
                return Err(format!("two instructions have id {}", i.id));
            }
        }
    }
    Ok(names)
}

fn write_header(out: &mut String, module: &HloModule) -> Result<(), String> {
    let _ = write!(out, "HloModule {}", module.name);
    if module
        .schedule
        .as_ref()
        .is_some_and(|s| !s.sequences.is_empty())
    {
        out.push_str(", is_scheduled=true");
    }
    if let Some(alias) = module
        .input_output_alias
        .as_ref()
        .filter(|a| !a.entries.is_empty())
    {
        let entries = alias.entries.iter().map(|e| {
            format!(
                "{{{}}}: ({}, {{{}}}, {})",
                join(&e.output_shape_index),
                e.parameter_number,
                join(&e.parameter_shape_index),
                if e.kind == 2 {
                    "must-alias"
                } else {
                    "may-alias"
                },
            )
        });
        let _ = write!(
            out,
            ", input_output_alias={{ {} }}",
            entries.collect::<Vec<_>>().join(", ")
        );
    }
    if let Some(donor) = module
        .buffer_donor
        .as_ref()
        .filter(|d| !d.entries.is_empty())
    {
        let entries = donor.entries.iter().map(|e| {
            format!(
                "({}, {{{}}})",
                e.parameter_number,
                join(&e.parameter_shape_index)
            )
        });
        let _ = write!(
            out,
            ", buffer_donor={{ {} }}",
            entries.collect::<Vec<_>>().join(", ")
        );
    }
    if let Some(shape) = &module.host_program_shape {
        out.push_str(", entry_computation_layout={(");
        write_shapes(out, &shape.parameters)?;
        out.push_str(")->");
        write_shape(
            out,
            shape
                .result
                .as_ref()
                .ok_or("an entry layout without a result")?,
        )?;
        out.push('}');
    }
    if let Some(devices) = &module.device_assignment {
        let counts = [
            ("replica_count", devices.replica_count),
            ("num_partitions", devices.computation_count),
        ];
        for (name, n) in counts.into_iter().filter(|&(_, n)| n > 1) {
            let _ = write!(out, ", {name}={n}");
        }
    }
    write_frontend_attributes(&mut Writer { out }, module.frontend_attributes.as_ref());
    if let Some(table) = &module.original_value_recovery_table {
        let text = recovery_table(table, |m| {
            let module = parse(&write(m)?).into_result();
            let module = module.map_err(|d| format!("its recovery module: {}", d[0]))?;
            Ok(print(&module))
        })?;
        let _ = write!(out, ", origin_recovery_table={text}");
    }
    out.push_str("\n\n");
    Ok(())
}

/// Appends shapes with commas between.
pub(super) fn write_shapes(out: &mut String, shapes: &[Shape]) -> Result<(), String> {
    for (i, s) in shapes.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        write_shape(out, s)?;
    }
    Ok(())
}

/// The four source tables; the text counts the parents of frames from one more than the proto.
fn write_tables(out: &mut String, index: &StackFrameIndex) {
    let mut strings = |title: &str, list: &[String]| {
        let _ = writeln!(out, "{title}");
        for (i, s) in list.iter().enumerate() {
            let _ = writeln!(out, "{} \"{}\"", i + 1, escape(s.as_bytes()));
        }
        out.push('\n');
    };
    strings("FileNames", &index.file_names);
    strings("FunctionNames", &index.function_names);
    out.push_str("FileLocations\n");
    for (i, l) in index.file_locations.iter().enumerate() {
        let _ = writeln!(
            out,
            "{} {{file_name_id={} function_name_id={} line={} end_line={} column={} end_column={}}}",
            i + 1,
            l.file_name_id,
            l.function_name_id,
            l.line,
            l.end_line,
            l.column,
            l.end_column
        );
    }
    out.push_str("\nStackFrames\n");
    for (i, f) in index.stack_frames.iter().enumerate() {
        let _ = writeln!(
            out,
            "{} {{file_location_id={} parent_frame_id={}}}",
            i + 1,
            f.file_location_id,
            i64::from(f.parent_frame_id) + 1
        );
    }
    out.push_str("\n\n");
}

fn write_computation(
    out: &mut String,
    module: &HloModule,
    computation: &Computation,
    names: &Names<'_>,
) -> Result<(), String> {
    if computation.id == module.entry_computation_id {
        out.push_str("ENTRY ");
    }
    let root = computation.root_id;
    if !computation.instructions.iter().any(|i| i.id == root) {
        return Err(format!("its root: no instruction has id {root}"));
    }
    let _ = write!(out, "%{} ", computation.name);
    write_signature(out, computation)?;
    out.push_str("{\n");
    for instruction in in_order(module, computation)? {
        out.push_str("  ");
        if instruction.id == computation.root_id {
            out.push_str("ROOT ");
        }
        write_instruction(out, instruction, names)
            .map_err(|e| format!("instruction {}: {e}", instruction.name))?;
        out.push('\n');
    }
    out.push('}');
    if !matches!(computation.execution_thread.as_str(), "" | "main") {
        let _ = write!(
            out,
            ", execution_thread=\"{}\"",
            escape(computation.execution_thread.as_bytes())
        );
    }
    out.push_str("\n\n");
    Ok(())
}

/// `(x: f32[2]) -> f32[2] `, from the instructions; nothing where the root is not there, which is said
/// elsewhere.
fn write_signature(out: &mut String, computation: &Computation) -> Result<(), String> {
    let mut instructions = computation.instructions.iter();
    let root = instructions.find(|i| i.id == computation.root_id);
    let Some(result) = root.and_then(|r| r.shape.as_ref()) else {
        return Ok(());
    };
    let mut parameters: Vec<&Instruction> = computation
        .instructions
        .iter()
        .filter(|i| i.opcode == "parameter")
        .collect();
    parameters.sort_by_key(|p| p.parameter_number);
    out.push('(');
    for (n, p) in parameters.into_iter().enumerate() {
        let comma = if n > 0 { ", " } else { "" };
        let _ = write!(out, "{comma}{}: ", p.name);
        write_shape(out, p.shape.as_ref().ok_or("a parameter without a shape")?)?;
    }
    out.push_str(") -> ");
    write_shape(out, result)?;
    out.push(' ');
    Ok(())
}

/// The instructions as scheduled, or as listed where the computation has no schedule.
fn in_order<'a>(
    module: &HloModule,
    computation: &'a Computation,
) -> Result<Vec<&'a Instruction>, String> {
    let sequence = module
        .schedule
        .as_ref()
        .and_then(|s| s.sequences.get(&computation.id));
    let Some(sequence) = sequence else {
        return Ok(computation.instructions.iter().collect());
    };
    let by_id: BTreeMap<i64, &Instruction> =
        computation.instructions.iter().map(|i| (i.id, i)).collect();
    let mut seen = std::collections::BTreeSet::new();
    if sequence.instruction_ids.len() != by_id.len() {
        return Err("its schedule and its instructions differ in number".to_owned());
    }
    sequence
        .instruction_ids
        .iter()
        .map(|id| match by_id.get(id) {
            Some(&i) if seen.insert(*id) => Ok(i),
            _ => Err(format!(
                "its schedule names instruction {id} twice or wrongly"
            )),
        })
        .collect()
}

fn write_instruction(
    out: &mut String,
    instruction: &Instruction,
    names: &Names<'_>,
) -> Result<(), String> {
    let _ = write!(out, "%{} = ", instruction.name);
    write_shape(out, instruction.shape.as_ref().ok_or("no shape")?)?;
    let _ = write!(out, " {}(", instruction.opcode);
    match instruction.opcode.as_str() {
        "parameter" => {
            let _ = write!(out, "{}", instruction.parameter_number);
        }
        "constant" => write_literal(out, instruction.literal.as_deref())?,
        _ => {
            for (i, &id) in instruction.operand_ids.iter().enumerate() {
                let comma = if i > 0 { ", " } else { "" };
                let _ = write!(out, "{comma}%{}", names.instruction(id)?);
            }
        }
    }
    out.push(')');
    write_attributes(out, instruction, names)
}

/// Text of a quoted string: backslash escapes as C has them.
pub(super) fn escape(bytes: &[u8]) -> String {
    let mut out = String::new();
    for &b in bytes {
        match b {
            b'"' => out.push_str("\\\""),
            b'\'' => out.push_str("\\'"),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x20..=0x7e => out.push(b as char),
            _ => {
                let _ = write!(out, "\\{b:03o}");
            }
        }
    }
    out
}
