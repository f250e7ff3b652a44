//! The plan without planning: every value has memory of its own, nothing is ever reused.
//!
//! Runs any module, scheduled or not, with one computation called from several places or not:
//! the yardstick for the runs that share bytes.

use slabplan_ir::entity::{InstrId, PrimaryMap};
use slabplan_ir::module::Module;
use slabplan_ir::padding::shape_bytes;
use slabplan_ir::plan::{
    Accounting, BufferKind, Plan, PlanBuffer, PlanSpace, PlanStats, PlanValue,
};
use slabplan_ir::shape::{Shape, ShapeIndex};
use slabplan_ir::units::{Alignment, Bytes, Offset};
use slabplan_ir::{Opcode, PosId, Positions, SecondaryMap};

use crate::exec::ExecError;
use crate::exec::forward::{bindings, forwards};
use crate::exec::order::{ProgramOrder, Visit};

/// Alignment of every value.
const ALIGNMENT: u64 = 64;

/// A plan that gives every defining position bytes of its own, and also the results of while,
/// conditional and call and the parameters of what they call, which a real plan leaves to
/// forward. O(positions).
pub fn reference_plan(module: &Module) -> Result<Plan, ExecError> {
    let positions = Positions::new(module);
    let order = ProgramOrder::new(module);
    let mut builder = Builder {
        module,
        positions: &positions,
        placed: positions.filled(false),
        shown: shown_sizes(module, &positions, &order)?,
        spaces: Vec::new(),
        buffers: PrimaryMap::new(),
    };
    for &visit in &order.visits {
        match visit {
            Visit::Enter(i) if module.instrs[i].opcode == Opcode::While => {
                builder.place_state(i)?;
            }
            Visit::Enter(_) => {}
            Visit::Leave(i) => builder.place_result(i)?,
        }
    }
    Ok(Plan {
        module: module.str(module.name).to_owned(),
        fingerprint: 0,
        target: "reference".to_owned(),
        accounting: Accounting::Slab,
        schedule: "keep".to_owned(),
        spaces: builder.spaces,
        buffers: builder.buffers,
        copies: Vec::new(),
    })
}

struct Builder<'a> {
    module: &'a Module,
    positions: &'a Positions,
    placed: SecondaryMap<PosId, bool>,
    /// Most bytes of the positions that show a value under another name.
    shown: SecondaryMap<PosId, Bytes>,
    spaces: Vec<PlanSpace>,
    buffers: PrimaryMap<slabplan_ir::BufferId, PlanBuffer>,
}

/// Most bytes of what forwards each position: a bitcast may pad more than its operand.
fn shown_sizes(
    module: &Module,
    positions: &Positions,
    order: &ProgramOrder,
) -> Result<SecondaryMap<PosId, Bytes>, ExecError> {
    let mut shown = positions.filled(Bytes::ZERO);
    // Users before what they use, so that chains of views add up.
    for &visit in order.visits.iter().rev() {
        let Visit::Leave(instr) = visit else {
            continue;
        };
        let sources = forwards(module, positions, instr);
        for (pos, source) in positions.of(instr).zip(sources) {
            let Some(source) = source.filter(|_| positions.has_bytes(module, pos)) else {
                continue;
            };
            let bytes = shape_bytes(&module.shapes, positions.shape(pos));
            let bytes = bytes.map_err(|source| ExecError::Size {
                instr: module.name_of(instr).to_owned(),
                source,
            })?;
            shown[source] = shown[source].max(bytes).max(shown[pos]);
        }
    }
    Ok(shown)
}

impl Builder<'_> {
    /// One buffer for each part of a while's state: its result and the parameters of its
    /// condition and body, where those are not another while's already.
    fn place_state(&mut self, instr: InstrId) -> Result<(), ExecError> {
        let mut holders = vec![instr];
        for (comp, _) in bindings(self.module, instr) {
            holders.extend(self.module.computations[comp].params.first());
        }
        for (node, pos) in self.positions.of(instr).enumerate() {
            let free: Vec<InstrId> = holders
                .iter()
                .copied()
                .filter(|&h| {
                    self.positions.of(h).len() > node
                        && !self.placed[self.positions.node(h, node as u32)]
                })
                .collect();
            if self.positions.has_bytes(self.module, pos) {
                self.place(&free, node as u32)?;
            }
        }
        Ok(())
    }

    fn place_result(&mut self, instr: InstrId) -> Result<(), ExecError> {
        let borders = matches!(
            self.module.instrs[instr].opcode,
            Opcode::While | Opcode::Conditional | Opcode::Call | Opcode::Parameter
        );
        let sources = forwards(self.module, self.positions, instr);
        for (node, (pos, source)) in self.positions.of(instr).zip(sources).enumerate() {
            if self.positions.has_bytes(self.module, pos)
                && !self.placed[pos]
                && (borders || source.is_none())
            {
                self.place(&[instr], node as u32)?;
            }
        }
        Ok(())
    }

    /// One new buffer for part `node` of all `holders`, which agree in shape.
    fn place(&mut self, holders: &[InstrId], node: u32) -> Result<(), ExecError> {
        let Some(&first) = holders.first() else {
            return Ok(());
        };
        let error = |source| ExecError::Size {
            instr: self.module.name_of(first).to_owned(),
            source,
        };
        let mut size = Bytes::ZERO;
        let mut values = Vec::with_capacity(holders.len());
        for &instr in holders {
            let pos = self.positions.node(instr, node);
            self.placed[pos] = true;
            let bytes = shape_bytes(&self.module.shapes, self.positions.shape(pos));
            size = size.max(bytes.map_err(error)?).max(self.shown[pos]);
            values.push(PlanValue {
                instr,
                index: self.positions.index(self.module, pos),
            });
        }
        let shape = self.positions.shape(self.positions.node(first, node));
        let number = match self.module.shapes.get(shape) {
            Shape::Array(a) => a.memory_space(),
            _ => 0,
        };
        let kind = self.kind(first, &values[0].index);
        let space = self.space(number);
        let offset = space.slab.get();
        let end = Bytes::new(offset)
            .and_then(|o| o.checked_add(size))
            .and_then(|e| space.alignment.round_up(e));
        space.slab = end.map_err(|e| error(e.into()))?;
        self.buffers.push(PlanBuffer {
            space: number,
            offset: Offset::new(offset).map_err(|e| error(e.into()))?,
            size,
            kind,
            values,
            live: Vec::new(),
        });
        Ok(())
    }

    fn kind(&self, instr: InstrId, index: &ShapeIndex) -> BufferKind {
        let i = &self.module.instrs[instr];
        match i.opcode {
            Opcode::Constant => BufferKind::Constant,
            Opcode::Parameter if i.computation == self.module.entry => BufferKind::Parameter {
                number: i.parameter_number().unwrap_or(0),
                index: index.clone(),
                donated: false,
            },
            _ => BufferKind::Temp,
        }
    }

    fn space(&mut self, number: u32) -> &mut PlanSpace {
        let found = self.spaces.iter().position(|s| s.space == number);
        let at = found.unwrap_or(self.spaces.len());
        if found.is_none() {
            self.spaces.push(PlanSpace {
                space: number,
                name: format!("S({number})"),
                capacity: Bytes::ZERO,
                alignment: Alignment::new(ALIGNMENT).unwrap_or(Alignment::ONE),
                slab: Bytes::ZERO,
                lower_bound: Bytes::ZERO,
                optimal: false,
                stats: PlanStats::default(),
            });
        }
        &mut self.spaces[at]
    }
}
