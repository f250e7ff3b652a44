//! The pipeline: analyse, place every memory space, write the plan down.

use slabplan_ir::entity::{PrimaryMap, SecondaryMap};
use slabplan_ir::plan::{
    Accounting, BufferKind, Plan, PlanBuffer, PlanSpace, PlanStats, PlanValue,
};
use slabplan_ir::target::MemorySpace;
use slabplan_ir::{BufferId, Bytes, EntityId, Module, Offset, PosId, Target};

use crate::analysis::{Analysis, analyse};
use crate::buffers::Buffer;
use crate::config::PlanConfig;
use crate::dataflow::{Dataflow, ValueKind};
use crate::demand::{Demand, demand};
use crate::error::PlanError;
use crate::interference::ClassId;
use crate::problem::{Bonds, SpaceLayout, place};

/// A plan and what was found out on the way.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// The analyses that it rests on.
    pub analysis: Analysis,
    /// The plan's buffer of every class.
    pub buffer_of: SecondaryMap<ClassId, BufferId>,
    /// Bytes in use over time, by memory space.
    pub demands: Vec<(u32, Demand)>,
}

/// Plans a scheduled, verified module: gives every value its place in the slab of its memory space.
///
/// The module must be executable with its must-aliases in the same bytes: see
/// `copies::insert_copies` for modules that are not. Near-linear but for the packer, whose
/// effort the configuration bounds.
pub fn plan(module: &Module, target: &Target, config: &PlanConfig) -> Result<Planned, PlanError> {
    let analysis = analyse(module, target, config)?;
    let mut offsets = SecondaryMap::filled(analysis.buffers.len(), 0);
    let mut spaces = Vec::new();
    let mut demands = Vec::new();
    for space in used_spaces(&analysis, target) {
        let layout = place(&analysis.buffers, bonds(&analysis, config), space, config)?;
        for &(class, offset) in &layout.offsets {
            offsets[class] = offset;
        }
        let demand = demand(module, &analysis, &layout);
        spaces.push(plan_space(
            module, &analysis, space, &layout, &demand, config,
        )?);
        demands.push((space.id, demand));
    }
    let (buffers, buffer_of) = plan_buffers(module, &analysis, &offsets)?;
    let plan = Plan {
        module: module.str(module.name).to_owned(),
        fingerprint: 0,
        target: target.name.clone(),
        accounting: config.accounting,
        schedule: "keep".to_owned(),
        spaces,
        buffers,
        copies: Vec::new(),
    };
    Ok(Planned {
        plan,
        analysis,
        buffer_of,
        demands,
    })
}

fn bonds<'a>(analysis: &'a Analysis, config: &PlanConfig) -> Bonds<'a> {
    Bonds {
        may_share: if config.may_share {
            &analysis.may_share
        } else {
            &[]
        },
        pieces: &analysis.pieces,
    }
}

/// Memory spaces that hold any buffer, by number.
fn used_spaces<'a>(analysis: &Analysis, target: &'a Target) -> Vec<&'a MemorySpace> {
    let mut used: Vec<u32> = analysis.buffers.values().map(|b| b.space).collect();
    used.sort_unstable();
    used.dedup();
    used.into_iter().filter_map(|s| target.space(s)).collect()
}

fn plan_space(
    module: &Module,
    analysis: &Analysis,
    space: &MemorySpace,
    layout: &SpaceLayout,
    demand: &Demand,
    config: &PlanConfig,
) -> Result<PlanSpace, PlanError> {
    let bytes = |n: u64| {
        Bytes::new(n).map_err(|error| PlanError::SpaceSize {
            space: space.id,
            error,
        })
    };
    let slab = bytes(layout.slab)?;
    let of_space = || analysis.buffers.values().filter(|b| b.space == space.id);
    let sum = |wanted: &dyn Fn(&Buffer) -> bool| -> Result<Bytes, PlanError> {
        let total = of_space()
            .filter(|b| wanted(b))
            .try_fold(Bytes::ZERO, |n, b| n.checked_add(b.size));
        total.map_err(|error| PlanError::SpaceSize {
            space: space.id,
            error,
        })
    };
    let is_output = |b: &Buffer| b.values.iter().any(|&v| analysis.ports.is_output(v));
    let is_argument = |b: &Buffer| matches!(b.kind, BufferKind::Parameter { .. });
    let argument = sum(&is_argument)?;
    let output = sum(&is_output)?;
    let alias = sum(&|b| is_argument(b) && is_output(b))?;
    let constant = sum(&|b| b.kind == BufferKind::Constant)?;
    let scratch = of_space()
        .filter(|b| matches!(b.kind, BufferKind::Scratch { .. }))
        .map(|b| b.size)
        .max()
        .unwrap_or(Bytes::ZERO);
    let apart = argument.get() + output.get() - alias.get() + constant.get();
    let temp = match config.accounting {
        Accounting::Xla => bytes(layout.heap.unwrap_or(0))?,
        Accounting::Slab => slab.saturating_sub(bytes(apart)?),
    };
    Ok(PlanSpace {
        space: space.id,
        name: space.name.clone(),
        capacity: space.capacity,
        alignment: space.alignment,
        slab,
        lower_bound: bytes(layout.lower_bound)?,
        optimal: layout.optimal,
        stats: PlanStats {
            temp,
            argument,
            output,
            alias,
            constant,
            scratch,
            logical_at_peak: bytes(demand.logical_at_peak)?,
            padded_at_peak: bytes(demand.padded_at_peak)?,
            peak_instruction: demand.peak.map_or_else(String::new, |t| {
                module.name_of(analysis.order.instr(t)).to_owned()
            }),
        },
    })
}

/// A plan's buffers, and which is that of each class.
type PlacedBuffers = (
    PrimaryMap<BufferId, PlanBuffer>,
    SecondaryMap<ClassId, BufferId>,
);

/// Buffers by space and offset; positions that only forward are left out, as a plan allows.
fn plan_buffers(
    module: &Module,
    analysis: &Analysis,
    offsets: &SecondaryMap<ClassId, u64>,
) -> Result<PlacedBuffers, PlanError> {
    let mut buffer_of = SecondaryMap::filled(offsets.len(), BufferId::from_index(0));
    let mut order: Vec<ClassId> = analysis.buffers.keys().collect();
    order.sort_by_key(|&c| (analysis.buffers[c].space, offsets[c], c));
    let mut out = PrimaryMap::with_capacity(order.len());
    for class in order {
        let buffer = &analysis.buffers[class];
        let values = buffer
            .values
            .iter()
            .map(|&v| analysis.flow.values[v])
            .filter(|v| v.kind == ValueKind::Defined)
            .flat_map(|v| written_at(module, &analysis.flow, v.def))
            .collect();
        let offset = Offset::new(offsets[class]).map_err(|error| PlanError::SpaceSize {
            space: buffer.space,
            error,
        })?;
        buffer_of[class] = out.push(PlanBuffer {
            space: buffer.space,
            offset,
            size: buffer.size,
            kind: buffer.kind.clone(),
            values,
            live: buffer.live.to_vec(),
        });
    }
    Ok((out, buffer_of))
}

/// The positions of a defining instruction at which the value that it defines at `def` stands.
fn written_at(module: &Module, flow: &Dataflow, def: PosId) -> Vec<PlanValue> {
    let instr = flow.positions.instr(def);
    let value = flow.at(def);
    let index = |pos| flow.positions.index(module, pos);
    if module.instrs[instr].operand_aliases().is_empty() {
        return vec![PlanValue {
            instr,
            index: index(def),
        }];
    }
    flow.positions
        .of(instr)
        .filter(|&p| value.is_some() && flow.at(p) == value)
        .map(|p| PlanValue {
            instr,
            index: index(p),
        })
        .collect()
}
