//! `BufferAssignmentProto`, alone or in an `HloProto`.

use std::collections::BTreeMap;

use prost::Message;
use slabplan_ir::shape::ShapeIndex;

use super::{Allocation, Assigned, Assignment, AssignmentError, InstrName, Place};
use crate::frontend::Source;
use crate::frontend::proto::InstructionNames;
use crate::frontend::proto::messages::{
    AssignedBuffer, BufferAllocation, BufferAssignment, HloProto, LogicalBuffer,
};

/// Reads the proto. `ids` names instructions where no module lies beside the assignment.
///
/// O(bytes · log n).
pub(super) fn parse(
    source: &Source,
    ids: Option<&InstructionNames>,
) -> Result<Assignment, AssignmentError> {
    let (proto, own_ids) = decode(&source.bytes).map_err(|message| AssignmentError {
        name: source.name.clone(),
        place: Place::Whole,
        message,
    })?;
    let reader = Reader {
        values: proto.logical_buffers.iter().map(|b| (b.id, b)).collect(),
        ids: own_ids.as_ref().or(ids),
    };
    let error = |place, message| AssignmentError {
        name: source.name.clone(),
        place,
        message,
    };
    if reader.values.len() < proto.logical_buffers.len() {
        let message = "two logical buffers have one id".to_owned();
        return Err(error(Place::Whole, message));
    }
    let mut allocations = Vec::with_capacity(proto.buffer_allocations.len());
    for (n, allocation) in proto.buffer_allocations.iter().enumerate() {
        let place = Place::Allocation(n as u64);
        if allocation.index != n as i64 {
            let message = format!("its index is {}", allocation.index);
            return Err(error(place, message));
        }
        let read = reader.allocation(allocation, place);
        allocations.push(read.map_err(|message| error(place, message))?);
    }
    Ok(Assignment {
        name: source.name.clone(),
        allocations,
    })
}

/// The assignment, and the names of the instructions where a module is beside it.
///
/// The two messages can't be taken for each other: field 1 begins with a name in an `HloProto` and
/// with a number in a `BufferAssignmentProto`.
fn decode(bytes: &[u8]) -> Result<(BufferAssignment, Option<InstructionNames>), String> {
    let as_hlo = HloProto::decode(bytes);
    if let Ok(HloProto {
        hlo_module: Some(module),
        buffer_assignment,
    }) = as_hlo
    {
        let assignment = buffer_assignment
            .filter(|a| !a.buffer_allocations.is_empty())
            .ok_or(
                "an HloProto without a buffer assignment; expected one that XLA dumped after \
                 buffer assignment",
            )?;
        return Ok((assignment, Some(InstructionNames::new(&module)?)));
    }
    match BufferAssignment::decode(bytes) {
        Ok(assignment) if !assignment.buffer_allocations.is_empty() => Ok((assignment, None)),
        Ok(_) => Err("a proto without buffer allocations".to_owned()),
        Err(e) => Err(format!(
            "neither the text of a buffer assignment, HloProto nor BufferAssignmentProto ({e}); \
             is the file truncated or of another kind?"
        )),
    }
}

struct Reader<'a> {
    values: BTreeMap<i64, &'a LogicalBuffer>,
    ids: Option<&'a InstructionNames>,
}

impl Reader<'_> {
    fn allocation(&self, proto: &BufferAllocation, place: Place) -> Result<Allocation, String> {
        let mut allocation = Allocation {
            index: unsigned(proto.index, "index")?,
            size: unsigned(proto.size, "size")?,
            space: small(proto.color, "colour")?,
            parameter: None,
            constant: proto.is_constant,
            thread_local: proto.is_thread_local,
            live_out: proto.maybe_live_out,
            tuple: proto.is_tuple,
            values: Vec::with_capacity(proto.assigned.len()),
            place,
        };
        if proto.is_entry_computation_parameter {
            let number = small(proto.parameter_number, "parameter number")?;
            allocation.parameter = Some((number, shape_index(&proto.parameter_shape_index)?));
        }
        for assigned in &proto.assigned {
            let value = self.assigned(assigned, place)?;
            if value
                .offset
                .checked_add(value.size)
                .is_none_or(|end| end > allocation.size)
            {
                return Err(format!(
                    "%{} takes bytes {} to {} of {}",
                    value.instr.name,
                    value.offset,
                    value.offset.saturating_add(value.size),
                    allocation.size
                ));
            }
            allocation.values.push(value);
        }
        Ok(allocation)
    }

    fn assigned(&self, assigned: &AssignedBuffer, place: Place) -> Result<Assigned, String> {
        let id = assigned.logical_buffer_id;
        let value = self
            .values
            .get(&id)
            .ok_or_else(|| format!("no logical buffer has id {id}"))?;
        let location = value
            .defined_at
            .as_ref()
            .ok_or_else(|| format!("logical buffer {id} is defined nowhere"))?;
        let instr = if location.instruction_name.is_empty() {
            let ids = self.ids.ok_or(
                "instructions are named by ids alone; give the module as the proto that the \
                 assignment was dumped with",
            )?;
            ids.get(location.instruction_id)
                .map_err(|e| format!("logical buffer {id}: {e}"))?
        } else {
            InstrName {
                computation: Some(location.computation_name.clone()).filter(|c| !c.is_empty()),
                name: location.instruction_name.clone(),
            }
        };
        Ok(Assigned {
            instr,
            index: shape_index(&location.shape_index)?,
            offset: unsigned(assigned.offset, "offset")?,
            size: unsigned(assigned.size, "size")?,
            shape: None,
            place,
        })
    }
}

fn unsigned(n: i64, what: &str) -> Result<u64, String> {
    u64::try_from(n).map_err(|_| format!("its {what} is {n}"))
}

fn small(n: i64, what: &str) -> Result<u32, String> {
    u32::try_from(n).map_err(|_| format!("its {what} is {n}"))
}

fn shape_index(index: &[i64]) -> Result<ShapeIndex, String> {
    index.iter().map(|&n| small(n, "shape index")).collect()
}
