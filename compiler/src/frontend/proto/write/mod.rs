//! Modules as `HloModuleProto`: what [`super::parse`] reads, and XLA with it.
//!
//! A computation's id is its number in definition order, from 1; an instruction's has its
//! computation's id in the upper half, as XLA numbers them.

mod attributes;
mod devices;
mod literal;
mod mesh;
mod scan;
mod shape;
mod sharding;
mod tables;
mod tracking;

use std::collections::BTreeMap;

use slabplan_ir::attr::AttrName;
use slabplan_ir::entity::SecondaryMap;
use slabplan_ir::instr::Payload;
use slabplan_ir::module::AliasKind;
use slabplan_ir::text::definition_order;
use slabplan_ir::{CompId, InstrId, Module, Opcode};

use super::messages::{
    AliasEntry, BufferDonor, Computation, ComputationDevice, DeviceAssignment, DonorEntry, DotDims,
    HloModule, InputOutputAlias, Instruction, ProgramShape, Schedule, Sequence, Shape, Window,
};

pub(crate) use devices::mesh_groups;
pub(crate) use scan::frontend_attributes;

/// A module as a proto.
#[derive(Clone, Debug)]
pub(crate) struct WrittenModule {
    /// The proto.
    pub(crate) proto: HloModule,
    /// The id of every instruction.
    pub(crate) ids: SecondaryMap<InstrId, i64>,
    /// Attributes that XLA's protos have no place for, each with how often it is left out: of the header
    /// what XLA keeps in its module's configuration, of instructions the `mode` that XLA ignores.
    pub(crate) left_out: BTreeMap<&'static str, usize>,
}

/// Writes `module`. Linear in its text.
///
/// # Errors
/// An attribute whose text is not of the form that XLA's parser takes.
pub(crate) fn write(module: &Module) -> Result<WrittenModule, String> {
    let order = definition_order(module);
    let mut writer = Writer {
        module,
        comp_ids: SecondaryMap::filled(module.computations.len(), 0),
        ids: SecondaryMap::filled(module.instrs.len(), 0),
        left_out: BTreeMap::new(),
    };
    writer.number(&order);
    let mut fused = SecondaryMap::filled(module.computations.len(), false);
    for (_, instr) in module.instrs.iter() {
        if instr.opcode == Opcode::Fusion {
            instr.called_computations().for_each(|c| fused[c] = true);
        }
    }
    let mut proto = writer.header()?;
    for &comp in &order {
        let written = writer
            .computation(comp, fused[comp])
            .map_err(|e| format!("computation %{}: {e}", module.comp_name(comp)))?;
        proto.computations.push(written);
    }
    if module.is_scheduled {
        let sequence = |&c: &CompId| {
            let ids = module.computations[c].instrs.iter();
            let instruction_ids = ids.map(|&i| writer.ids[i]).collect();
            (writer.comp_ids[c], Sequence { instruction_ids })
        };
        let scheduled = order.iter().filter(|&&c| !fused[c]);
        proto.schedule = Some(Schedule {
            sequences: scheduled.map(sequence).collect(),
        });
    }
    Ok(WrittenModule {
        proto,
        ids: writer.ids,
        left_out: writer.left_out,
    })
}

struct Writer<'m> {
    module: &'m Module,
    comp_ids: SecondaryMap<CompId, i64>,
    ids: SecondaryMap<InstrId, i64>,
    left_out: BTreeMap<&'static str, usize>,
}

impl Writer<'_> {
    fn number(&mut self, order: &[CompId]) {
        for (n, &comp) in order.iter().enumerate() {
            let id = n as i64 + 1;
            self.comp_ids[comp] = id;
            for (k, &instr) in self.module.computations[comp].instrs.iter().enumerate() {
                self.ids[instr] = (id << 32) | k as i64;
            }
        }
    }

    /// Everything but computations and schedule.
    fn header(&mut self) -> Result<HloModule, String> {
        let module = self.module;
        let aliases = module.input_output_alias.iter().map(|a| AliasEntry {
            output_shape_index: shape::index(&a.output_index),
            parameter_number: i64::from(a.parameter),
            parameter_shape_index: shape::index(&a.parameter_index),
            kind: match a.kind {
                AliasKind::May => 1,
                AliasKind::Must => 2,
            },
        });
        let donors = module.buffer_donors.iter().map(|d| DonorEntry {
            parameter_number: i64::from(d.parameter),
            parameter_shape_index: shape::index(&d.parameter_index),
        });
        let mut proto = HloModule {
            name: module.str(module.name).to_owned(),
            entry_computation_name: module.comp_name(module.entry).to_owned(),
            host_program_shape: Some(self.entry_shape()),
            entry_computation_id: self.comp_ids[module.entry],
            input_output_alias: Some(InputOutputAlias {
                entries: aliases.collect(),
            }),
            buffer_donor: Some(BufferDonor {
                entries: donors.collect(),
            }),
            device_assignment: device_assignment(module),
            ..HloModule::default()
        };
        let preamble = module.str(module.preamble);
        if !preamble.is_empty() {
            let tables = tables::stack_frame_index(preamble);
            proto.stack_frame_index = Some(tables.map_err(|e| format!("source tables: {e}"))?);
        }
        for &(name, value) in &module.header {
            let (name, value) = (module.str(name), module.str(value));
            match name {
                "frontend_attributes" => {
                    proto.frontend_attributes = Some(scan::frontend_attributes(value)?);
                }
                "alias_passthrough_params" => self.leave_out("alias_passthrough_params"),
                "origin_recovery_table" => {
                    proto.original_value_recovery_table = Some(tracking::recovery_table(value)?);
                }
                "allow_spmd_sharding_propagation_to_parameters" => {
                    self.leave_out("allow_spmd_sharding_propagation_to_parameters");
                }
                "allow_spmd_sharding_propagation_to_output" => {
                    self.leave_out("allow_spmd_sharding_propagation_to_output");
                }
                _ => {}
            }
        }
        Ok(proto)
    }

    fn leave_out(&mut self, name: &'static str) {
        *self.left_out.entry(name).or_default() += 1;
    }

    /// The entry's shapes, with the layouts that the caller uses.
    fn entry_shape(&self) -> ProgramShape {
        let module = self.module;
        let own = self.program_shape(module.entry);
        match &module.entry_layout {
            Some(layout) => ProgramShape {
                parameters: layout
                    .parameters
                    .iter()
                    .map(|&s| shape::shape(&module.shapes, s))
                    .collect(),
                result: Some(shape::shape(&module.shapes, layout.result)),
                parameter_names: own.parameter_names,
            },
            None => own,
        }
    }

    fn program_shape(&self, comp: CompId) -> ProgramShape {
        let module = self.module;
        let params = &module.computations[comp].params;
        let shape_of =
            |i: InstrId| -> Shape { shape::shape(&module.shapes, module.instrs[i].shape) };
        ProgramShape {
            parameters: params.iter().map(|&p| shape_of(p)).collect(),
            result: Some(shape_of(module.computations[comp].root)),
            parameter_names: params
                .iter()
                .map(|&p| module.name_of(p).to_owned())
                .collect(),
        }
    }

    fn computation(&mut self, comp: CompId, fused: bool) -> Result<Computation, String> {
        let module = self.module;
        let computation = &module.computations[comp];
        let instructions = computation.instrs.iter().map(|&i| {
            self.instruction(i)
                .map_err(|e| format!("instruction %{}: {e}", module.name_of(i)))
        });
        let instructions = instructions.collect::<Result<Vec<_>, String>>()?;
        let thread = computation
            .execution_thread
            .map(|t| scan::unquoted(module.str(t)));
        Ok(Computation {
            name: module.comp_name(comp).to_owned(),
            instructions,
            program_shape: Some(self.program_shape(comp)),
            id: self.comp_ids[comp],
            root_id: self.ids[computation.root],
            is_fusion: fused,
            execution_thread: match thread.transpose()? {
                Some(name) => String::from_utf8_lossy(&name).into_owned(),
                None => "main".to_owned(),
            },
        })
    }

    fn instruction(&mut self, id: InstrId) -> Result<Instruction, String> {
        let module = self.module;
        let instr = &module.instrs[id];
        let mut proto = Instruction {
            name: module.name_of(id).to_owned(),
            opcode: instr.opcode.name().to_owned(),
            shape: Some(shape::shape(&module.shapes, instr.shape)),
            id: self.ids[id],
            operand_ids: instr.operands.iter().map(|&o| self.ids[o]).collect(),
            ..Instruction::default()
        };
        match instr.payload {
            Payload::Parameter(n) => proto.parameter_number = i64::from(n),
            Payload::Literal(text) => {
                let text = module.str(text);
                proto.literal = literal::literal(&module.shapes, instr.shape, text)?.map(Box::new);
            }
            Payload::None => {}
        }
        self.defaults(id, &mut proto);
        for attr in &instr.attrs {
            self.attribute(instr.opcode, attr, &mut proto)
                .map_err(|e| format!("{}: {e}", attr.name.name()))?;
        }
        Ok(proto)
    }

    /// What XLA's reader wants where the text says nothing.
    fn defaults(&self, id: InstrId, proto: &mut Instruction) {
        let module = self.module;
        match module.instrs[id].opcode {
            Opcode::Convolution => {
                proto.window = Some(Window::default());
                proto.feature_group_count = 1;
                proto.batch_group_count = 1;
            }
            Opcode::CustomCall => {
                proto.feature_group_count = 1;
                proto.batch_group_count = 1;
                // API_VERSION_ORIGINAL.
                proto.custom_call_api_version = 1;
            }
            Opcode::Dot => proto.dot_dimension_numbers = Some(DotDims::default()),
            Opcode::AsyncUpdate | Opcode::AsyncDone => self.async_link(id, proto),
            _ => {}
        }
    }

    /// The later links of an asynchronous chain name the computation again.
    fn async_link(&self, id: InstrId, proto: &mut Instruction) {
        let module = self.module;
        let mut link = module.instrs[id].operands.first().copied();
        while let Some(i) = link.filter(|&i| module.instrs[i].opcode == Opcode::AsyncUpdate) {
            link = module.instrs[i].operands.first().copied();
        }
        let Some(start) = link else { return };
        let called = module.instrs[start].called_computations();
        proto.called_computation_ids = called.map(|c| self.comp_ids[c]).collect();
        let thread = module.attr_text(start, AttrName::AsyncExecutionThread);
        if let Some(name) = thread.filter(|&t| t != "main") {
            name.clone_into(&mut proto.async_execution_thread);
        }
    }
}

/// Replicas and partitions, on devices in order; nothing where there is one of each.
fn device_assignment(module: &Module) -> Option<DeviceAssignment> {
    /// More than any machine has; protects from counts that are nonsense.
    const MOST: u64 = 1 << 20;
    let (replicas, partitions) = (module.replica_count, module.num_partitions);
    let devices = replicas
        .checked_mul(partitions)
        .filter(|&n| 1 < n && n <= MOST)?;
    debug_assert!(devices >= partitions);
    let computation_devices = (0..partitions).map(|p| ComputationDevice {
        replica_device_ids: (0..replicas).map(|r| (r * partitions + p) as i64).collect(),
    });
    Some(DeviceAssignment {
        replica_count: replicas as i32,
        computation_count: partitions as i32,
        computation_devices: computation_devices.collect(),
    })
}
