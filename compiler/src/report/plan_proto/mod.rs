//! A plan as XLA writes one: an `HloProto` with the module and a `BufferAssignmentProto`.
//!
//! Read by XProf's memory viewer, by XLA's tools, and by slabplan itself (`--xla-assignment`). Every
//! value of the plan is a logical buffer with the bytes of its buffer; forwarding positions are buffer
//! aliases. What the allocations are depends on the accounting: under [`Accounting::Xla`] one for each
//! argument, output and constant and a heap for each memory space, as XLA has them; under
//! [`Accounting::Slab`] one for each memory space, the slab.

mod trace;

use std::collections::BTreeMap;

use prost::Message;
use slabplan_ir::entity::SecondaryMap;
use slabplan_ir::plan::{Accounting, BufferKind, Plan, PlanBuffer, PlanSpace};
use slabplan_ir::{BufferId, InstrId, Module};
use slabplan_planner::Planned;

use crate::frontend::proto::messages::{
    AssignedBuffer, BufferAlias, BufferAllocation, BufferAssignment, HloProto, Location,
    LogicalBuffer,
};
use crate::frontend::proto::write::{WrittenModule, write};

/// The proto of a plan.
#[derive(Clone, Debug)]
pub struct PlanProto {
    /// The encoded `HloProto`.
    pub bytes: Vec<u8>,
    /// Attributes of the module that have no place in the proto, with how many are left out.
    pub left_out: BTreeMap<&'static str, usize>,
}

/// Writes the plan of `module` (after passes). Near-linear in the module and the plan.
///
/// # Errors
/// An attribute of the module that is not of the form that XLA's parser takes.
pub fn plan_proto(module: &Module, planned: &Planned) -> Result<PlanProto, String> {
    let WrittenModule {
        proto,
        ids,
        left_out,
    } = write(module)?;
    let writer = Writer {
        module,
        planned,
        ids,
        logical: first_logical(&planned.plan),
        outputs: outputs(planned),
    };
    let assignment = writer.assignment();
    let hlo = HloProto {
        hlo_module: Some(proto),
        buffer_assignment: Some(assignment),
    };
    Ok(PlanProto {
        bytes: hlo.encode_to_vec(),
        left_out,
    })
}

/// The logical buffer of every buffer's first value; those of its other values follow.
fn first_logical(plan: &Plan) -> SecondaryMap<BufferId, i64> {
    let mut next = 0;
    let mut first = SecondaryMap::filled(plan.buffers.len(), 0);
    for (id, buffer) in plan.buffers.iter() {
        first[id] = next;
        next += buffer.values.len() as i64;
    }
    first
}

fn outputs(planned: &Planned) -> SecondaryMap<BufferId, bool> {
    let analysis = &planned.analysis;
    let mut outputs = SecondaryMap::filled(planned.plan.buffers.len(), false);
    for (class, buffer) in analysis.buffers.iter() {
        outputs[planned.buffer_of[class]] |=
            buffer.values.iter().any(|&v| analysis.ports.is_output(v));
    }
    outputs
}

struct Writer<'a> {
    module: &'a Module,
    planned: &'a Planned,
    /// Ids of the written instructions.
    ids: SecondaryMap<InstrId, i64>,
    logical: SecondaryMap<BufferId, i64>,
    /// Which buffers hold a part of the program's result.
    outputs: SecondaryMap<BufferId, bool>,
}

/// An allocation under construction: its first byte in the slab, and its buffers.
struct Allotment {
    start: u64,
    end: u64,
    buffers: Vec<BufferId>,
    heap: bool,
}

impl Writer<'_> {
    fn plan(&self) -> &Plan {
        &self.planned.plan
    }

    fn assignment(&self) -> BufferAssignment {
        let mut assignment = BufferAssignment {
            logical_buffers: self.logical_buffers(),
            buffer_aliases: self.aliases(),
            ..BufferAssignment::default()
        };
        for space in &self.plan().spaces {
            for allotment in self.allotments(space) {
                let index = assignment.buffer_allocations.len() as i64;
                assignment
                    .buffer_allocations
                    .push(self.allocation(index, space, &allotment));
                if allotment.heap {
                    let mut trace = trace::heap_trace(
                        self.module,
                        self.planned,
                        &self.logical,
                        &allotment.buffers,
                    );
                    trace.buffer_allocation_index = index;
                    if !trace.events.is_empty() {
                        assignment.heap_simulator_traces.push(trace);
                    }
                }
            }
        }
        assignment
    }

    fn location(&self, instr: InstrId, index: &[u32]) -> Location {
        Location {
            shape_index: index.iter().map(|&n| i64::from(n)).collect(),
            instruction_id: self.ids[instr],
            ..Location::default()
        }
    }

    fn logical_buffers(&self) -> Vec<LogicalBuffer> {
        let mut list = Vec::new();
        for buffer in self.plan().buffers.values() {
            for value in &buffer.values {
                list.push(LogicalBuffer {
                    id: list.len() as i64,
                    size: buffer.size.get() as i64,
                    defined_at: Some(self.location(value.instr, &value.index)),
                    color: i64::from(buffer.space),
                });
            }
        }
        list
    }

    /// Positions that only forward, with the logical buffer of the value that stands there.
    fn aliases(&self) -> Vec<BufferAlias> {
        let analysis = &self.planned.analysis;
        let flow = &analysis.flow;
        let mut named = flow.positions.filled(None);
        for (id, buffer) in self.plan().buffers.iter() {
            for (n, value) in buffer.values.iter().enumerate() {
                if let Some(pos) = flow.positions.at(self.module, value.instr, &value.index) {
                    named[pos] = Some(self.logical[id] + n as i64);
                }
            }
        }
        let mut aliases = Vec::new();
        for &instr in analysis.order.sequence() {
            for (pos, value) in flow.leaves(instr) {
                if named[pos].is_some() {
                    continue;
                }
                // A value that no instruction defines (a loop's, say) stands for its whole class.
                let class = analysis.classes.of(value);
                let source = named[flow.values[value].def];
                let source = source.unwrap_or(self.logical[self.planned.buffer_of[class]]);
                let index = flow.positions.index(self.module, pos);
                aliases.push(BufferAlias {
                    source_buffer_id: source,
                    location: Some(self.location(instr, &index)),
                });
            }
        }
        aliases
    }

    /// The allocations of a space, by address.
    fn allotments(&self, space: &PlanSpace) -> Vec<Allotment> {
        let of_space = |(_, b): &(BufferId, &PlanBuffer)| b.space == space.space;
        let buffers = || self.plan().buffers.iter().filter(of_space);
        if self.plan().accounting == Accounting::Slab {
            return vec![Allotment {
                start: 0,
                end: space.slab.get(),
                buffers: buffers().map(|(id, _)| id).collect(),
                heap: true,
            }];
        }
        let mut list: Vec<Allotment> = Vec::new();
        let mut temporaries = Vec::new();
        for (id, b) in buffers() {
            let (start, end) = (b.offset.get(), b.offset.get() + b.size.get());
            if b.kind.is_temporary() {
                temporaries.push((id, start, end));
                continue;
            }
            match list.last_mut() {
                // Two outputs may share a place one after the other.
                Some(last) if start < last.end || start == last.start => {
                    last.end = last.end.max(end);
                    last.buffers.push(id);
                }
                _ => list.push(Allotment {
                    start,
                    end,
                    buffers: vec![id],
                    heap: false,
                }),
            }
        }
        let mut heap = Allotment {
            start: u64::MAX,
            end: 0,
            buffers: Vec::new(),
            heap: true,
        };
        for (id, start, end) in temporaries {
            let n = list.partition_point(|a| a.start <= start);
            let host = n.checked_sub(1).map(|n| &mut list[n]);
            if let Some(host) = host.filter(|a| end <= a.end) {
                host.buffers.push(id);
            } else {
                heap.start = heap.start.min(start);
                heap.end = heap.end.max(end);
                heap.buffers.push(id);
            }
        }
        if !heap.buffers.is_empty() {
            list.push(heap);
        }
        list.sort_by_key(|a| a.start);
        list
    }

    fn allocation(&self, index: i64, space: &PlanSpace, allotment: &Allotment) -> BufferAllocation {
        let plan = self.plan();
        let mut allocation = BufferAllocation {
            index,
            size: (allotment.end - allotment.start) as i64,
            color: i64::from(space.space),
            ..BufferAllocation::default()
        };
        for &id in &allotment.buffers {
            let buffer = &plan.buffers[id];
            for n in 0..buffer.values.len() as i64 {
                allocation.assigned.push(AssignedBuffer {
                    logical_buffer_id: self.logical[id] + n,
                    offset: (buffer.offset.get() - allotment.start) as i64,
                    size: buffer.size.get() as i64,
                    element_type: 0,
                });
            }
            if !allotment.heap {
                self.set_kind(id, &mut allocation);
            }
        }
        allocation
    }

    fn set_kind(&self, id: BufferId, allocation: &mut BufferAllocation) {
        let buffer = &self.plan().buffers[id];
        let is_output = self.outputs[id];
        allocation.maybe_live_out |= is_output;
        match &buffer.kind {
            BufferKind::Parameter { number, index, .. } => {
                allocation.is_entry_computation_parameter = true;
                allocation.parameter_number = i64::from(*number);
                allocation.parameter_shape_index = index.iter().map(|&n| i64::from(n)).collect();
                allocation.is_parameter_aliased_with_output = is_output;
            }
            BufferKind::Constant => allocation.is_constant = true,
            BufferKind::Output | BufferKind::Scratch { .. } | BufferKind::Temp => {}
        }
    }
}
