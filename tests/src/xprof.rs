//! What XProf's memory viewer does with an `HloProto`: `hlo_proto_to_memory_visualization_utils.cc`.
//!
//! The messages are declared here once more, from XLA's own `.proto` files: a wrong field number in
//! the product can't hide.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;

#[derive(Clone, PartialEq, Message)]
struct HloProto {
    #[prost(message, optional, tag = "1")]
    hlo_module: Option<HloModuleProto>,
    #[prost(message, optional, tag = "3")]
    buffer_assignment: Option<BufferAssignmentProto>,
}

#[derive(Clone, PartialEq, Message)]
struct HloModuleProto {
    #[prost(message, repeated, tag = "3")]
    computations: Vec<HloComputationProto>,
}

#[derive(Clone, PartialEq, Message)]
struct HloComputationProto {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    instructions: Vec<HloInstructionProto>,
}

#[derive(Clone, PartialEq, Message)]
struct HloInstructionProto {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int64, tag = "35")]
    id: i64,
}

#[derive(Clone, PartialEq, Message)]
struct BufferAssignmentProto {
    #[prost(message, repeated, tag = "1")]
    logical_buffers: Vec<LogicalBufferProto>,
    #[prost(message, repeated, tag = "2")]
    buffer_aliases: Vec<BufferAlias>,
    #[prost(message, repeated, tag = "3")]
    buffer_allocations: Vec<BufferAllocationProto>,
    #[prost(message, repeated, tag = "4")]
    heap_simulator_traces: Vec<HeapSimulatorTrace>,
}

#[derive(Clone, PartialEq, Message)]
struct LogicalBufferProto {
    #[prost(int64, tag = "1")]
    id: i64,
    #[prost(int64, tag = "2")]
    size: i64,
    #[prost(message, optional, tag = "3")]
    defined_at: Option<Location>,
    #[prost(int64, tag = "4")]
    color: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(int64, tag = "4")]
    instruction_id: i64,
}

#[derive(Clone, PartialEq, Message)]
struct BufferAlias {
    #[prost(int64, tag = "1")]
    source_buffer_id: i64,
    #[prost(message, optional, tag = "2")]
    location: Option<Location>,
}

#[derive(Clone, PartialEq, Message)]
struct BufferAllocationProto {
    #[prost(int64, tag = "1")]
    index: i64,
    #[prost(int64, tag = "2")]
    size: i64,
    #[prost(bool, tag = "3")]
    is_thread_local: bool,
    #[prost(bool, tag = "5")]
    is_entry_computation_parameter: bool,
    #[prost(bool, tag = "7")]
    maybe_live_out: bool,
    #[prost(int64, tag = "8")]
    color: i64,
    #[prost(message, repeated, tag = "9")]
    assigned: Vec<Assigned>,
    #[prost(bool, tag = "12")]
    is_constant: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Assigned {
    #[prost(int64, tag = "1")]
    logical_buffer_id: i64,
    #[prost(int64, tag = "2")]
    offset: i64,
    #[prost(int64, tag = "3")]
    size: i64,
}

#[derive(Clone, PartialEq, Message)]
struct HeapSimulatorTrace {
    #[prost(message, repeated, tag = "1")]
    events: Vec<Event>,
    #[prost(bool, tag = "2")]
    whole_module_simulation: bool,
    #[prost(int64, tag = "3")]
    buffer_allocation_index: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(int64, tag = "2")]
    buffer_id: i64,
    #[prost(string, tag = "3")]
    computation_name: String,
    #[prost(string, tag = "4")]
    instruction_name: String,
    #[prost(int64, tag = "5")]
    share_with_canonical_id: i64,
}

/// What the viewer shows of one memory space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Bytes of the allocations that hold arguments, results and constants.
    pub indefinite: u64,
    /// Bytes of the others.
    pub heap: u64,
    /// Most bytes of the heap in use at once.
    pub peak: u64,
    /// Bytes of the heap still in use at the end.
    pub left: u64,
}

/// Shows every memory space as the viewer does, or says what it would stumble over.
pub fn view(bytes: &[u8]) -> Result<BTreeMap<i64, View>, String> {
    let proto = HloProto::decode(bytes).map_err(|e| e.to_string())?;
    let module = proto.hlo_module.ok_or("no module")?;
    let assignment = proto.buffer_assignment.ok_or("no buffer assignment")?;
    let viewer = Viewer::new(&module, &assignment)?;
    let colors: BTreeSet<i64> = assignment
        .buffer_allocations
        .iter()
        .map(|a| a.color)
        .collect();
    colors
        .into_iter()
        .map(|c| Ok((c, viewer.view(c)?)))
        .collect()
}

struct Viewer<'a> {
    assignment: &'a BufferAssignmentProto,
    size: BTreeMap<i64, i64>,
    /// The allocation that each logical buffer is assigned to.
    home: BTreeMap<i64, i64>,
    /// Computation and name of every instruction.
    instructions: BTreeSet<(&'a str, &'a str)>,
}

fn is_indefinite(a: &BufferAllocationProto) -> bool {
    a.is_thread_local || a.is_entry_computation_parameter || a.is_constant || a.maybe_live_out
}

impl<'a> Viewer<'a> {
    fn new(
        module: &'a HloModuleProto,
        assignment: &'a BufferAssignmentProto,
    ) -> Result<Self, String> {
        let mut ids = BTreeSet::new();
        let mut instructions = BTreeSet::new();
        for c in &module.computations {
            for i in &c.instructions {
                if !ids.insert(i.id) {
                    return Err(format!("two instructions have id {}", i.id));
                }
                instructions.insert((c.name.as_str(), i.name.as_str()));
            }
        }
        let mut size = BTreeMap::new();
        for b in &assignment.logical_buffers {
            let at = b.defined_at.as_ref().ok_or("a buffer defined nowhere")?;
            if !ids.contains(&at.instruction_id) {
                return Err(format!("instruction_id {} not found", at.instruction_id));
            }
            if size.insert(b.id, b.size).is_some() {
                return Err(format!("two logical buffers have id {}", b.id));
            }
        }
        for alias in &assignment.buffer_aliases {
            let known = alias
                .location
                .as_ref()
                .is_some_and(|l| ids.contains(&l.instruction_id));
            if !known || !size.contains_key(&alias.source_buffer_id) {
                return Err("an alias of nothing".to_owned());
            }
        }
        let mut home = BTreeMap::new();
        for a in &assignment.buffer_allocations {
            for assigned in &a.assigned {
                let id = assigned.logical_buffer_id;
                if !size.contains_key(&id) {
                    return Err(format!("logical_buffer_id {id} not found"));
                }
                if assigned.offset < 0 || assigned.offset + assigned.size > a.size {
                    return Err(format!("logical buffer {id} reaches beyond its allocation"));
                }
                if home.insert(id, a.index).is_some() {
                    return Err(format!("logical buffer {id} is assigned twice"));
                }
            }
        }
        if home.len() != size.len() {
            return Err("a logical buffer without an allocation".to_owned());
        }
        Ok(Self {
            assignment,
            size,
            home,
            instructions,
        })
    }

    fn view(&self, color: i64) -> Result<View, String> {
        let mut view = View::default();
        let mut heap = None;
        for a in self
            .assignment
            .buffer_allocations
            .iter()
            .filter(|a| a.color == color)
        {
            if is_indefinite(a) {
                view.indefinite += a.size as u64;
                continue;
            }
            view.heap += a.size as u64;
            let mut traces = self.assignment.heap_simulator_traces.iter();
            heap = traces.find(|t| {
                let first = t.events.first();
                first.and_then(|e| self.home.get(&e.buffer_id)) == Some(&a.index)
            });
        }
        if let Some(trace) = heap {
            let (peak, left) = self.replay(trace)?;
            view.peak = peak;
            view.left = left;
        }
        Ok(view)
    }

    /// Reference counts as the viewer keeps them; gives the peak and what is left.
    fn replay(&self, trace: &HeapSimulatorTrace) -> Result<(u64, u64), String> {
        let mut canonical: BTreeMap<i64, i64> = BTreeMap::new();
        let mut references: BTreeMap<i64, i64> = BTreeMap::new();
        let (mut now, mut peak) = (0i64, 0i64);
        let mut homes = BTreeSet::new();
        let root = |canonical: &BTreeMap<i64, i64>, mut id: i64| {
            while let Some(&next) = canonical.get(&id) {
                id = next;
            }
            id
        };
        for e in &trace.events {
            let name = (e.computation_name.as_str(), e.instruction_name.as_str());
            if !self.instructions.contains(&name) {
                return Err(format!("no instruction {name:?}"));
            }
            let home = self.home.get(&e.buffer_id);
            homes.insert(*home.ok_or_else(|| format!("buffer_id {} not found", e.buffer_id))?);
            match e.kind {
                0 => {
                    *references.entry(root(&canonical, e.buffer_id)).or_default() += 1;
                    now += self.size[&e.buffer_id];
                }
                1 => {
                    let owner = root(&canonical, e.buffer_id);
                    let count = references.entry(owner).or_default();
                    *count -= 1;
                    if *count < 0 {
                        return Err(format!("buffer {} is freed multiple times", e.buffer_id));
                    }
                    if *count == 0 {
                        now -= self.size[&owner];
                    }
                }
                2 => {
                    let other = e.share_with_canonical_id;
                    if other == e.buffer_id || !self.size.contains_key(&other) {
                        return Err(format!("buffer {} shares with {other}", e.buffer_id));
                    }
                    canonical.insert(e.buffer_id, other);
                    let owner = root(&canonical, e.buffer_id);
                    let count = references.entry(owner).or_default();
                    *count += 1;
                    if *count == 1 {
                        now += self.size[&owner];
                    }
                }
                kind => return Err(format!("unhandled event kind {kind}")),
            }
            if now < 0 {
                return Err("heap size should be non-negative".to_owned());
            }
            peak = peak.max(now);
        }
        if homes.len() != 1 {
            return Err(format!("a trace of {} allocations", homes.len()));
        }
        let index = trace.buffer_allocation_index;
        if !homes.contains(&index) || !trace.whole_module_simulation {
            return Err("a trace that does not say whose it is".to_owned());
        }
        Ok((peak as u64, now as u64))
    }
}
