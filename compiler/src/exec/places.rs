//! The bytes of every position, from a plan that names the defining ones.

use slabplan_ir::entity::{InstrId, PosId, SecondaryMap};
use slabplan_ir::module::Module;
use slabplan_ir::padding::shape_bytes;
use slabplan_ir::plan::Plan;
use slabplan_ir::{Opcode, Positions};

use crate::exec::ExecError;
use crate::exec::forward::{bindings, forwards};
use crate::exec::order::{ProgramOrder, Visit};

/// Where a buffer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of the slab, in the order of the plan's spaces.
    pub(crate) slab: u32,
    /// First byte in the slab.
    pub(crate) offset: usize,
    /// Bytes of the buffer.
    pub(crate) room: usize,
}

/// The place of every position that has bytes.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    place: SecondaryMap<PosId, Option<Place>>,
}

impl Places {
    /// Takes the places that `plan` names and follows the forwarding positions from there.
    /// O(positions).
    pub(crate) fn new(
        module: &Module,
        positions: &Positions,
        order: &ProgramOrder,
        plan: &Plan,
    ) -> Result<Self, ExecError> {
        let mut resolver = Resolver {
            module,
            positions,
            place: named(module, positions, plan)?,
        };
        for &visit in &order.visits {
            match visit {
                Visit::Enter(i) => resolver.bind(i),
                Visit::Leave(i) => resolver.resolve(i)?,
            }
        }
        Ok(Self {
            place: resolver.place,
        })
    }

    /// The place of a position; every position with bytes in a planned computation has one.
    pub(crate) fn of(&self, pos: PosId) -> Option<Place> {
        self.place[pos]
    }
}

/// The places that the plan gives, checked against the slabs.
fn named(
    module: &Module,
    positions: &Positions,
    plan: &Plan,
) -> Result<SecondaryMap<PosId, Option<Place>>, ExecError> {
    let mut place = positions.filled(None);
    for buffer in plan.buffers.values() {
        let slab = plan.spaces.iter().position(|s| s.space == buffer.space);
        let end = buffer.offset.checked_add(buffer.size).ok();
        for value in &buffer.values {
            let bad = |problem: String| ExecError::BadPlace {
                value: match module.instrs.get(value.instr) {
                    Some(_) => format!("%{}", module.name_of(value.instr)),
                    None => value.instr.to_string(),
                },
                bytes: buffer.size.get(),
                problem,
            };
            let slab = slab.ok_or_else(|| bad(format!("into unknown space {}", buffer.space)))?;
            let space = &plan.spaces[slab];
            if end.is_none_or(|e| e.get() > space.slab.get()) {
                return Err(bad(format!(
                    "at {} of space {}, past the slab's {} bytes",
                    buffer.offset,
                    buffer.space,
                    space.slab.get()
                )));
            }
            let pos = module
                .instrs
                .get(value.instr)
                .and_then(|_| positions.at(module, value.instr, &value.index))
                .ok_or_else(|| bad("at a position that the module does not have".to_owned()))?;
            let new = Place {
                slab: slab as u32,
                offset: buffer.offset.get() as usize,
                room: buffer.size.get() as usize,
            };
            match place[pos] {
                Some(old) if old != new => return Err(bad("in two places".to_owned())),
                _ => place[pos] = Some(new),
            }
        }
    }
    Ok(place)
}

struct Resolver<'a> {
    module: &'a Module,
    positions: &'a Positions,
    place: SecondaryMap<PosId, Option<Place>>,
}

impl Resolver<'_> {
    /// Gives the parameters of called computations the places of their operands, unless they
    /// have some.
    fn bind(&mut self, instr: InstrId) {
        for (comp, operands) in bindings(self.module, instr) {
            let params = &self.module.computations[comp].params;
            for (&param, operand) in params.iter().zip(operands) {
                let pairs = self.positions.of(param).zip(self.positions.of(operand));
                for (n, (to, from)) in pairs.enumerate() {
                    // A while's state lies where its result does, if the plan names that.
                    let result = match self.module.instrs[instr].opcode {
                        Opcode::While => self.place[self.positions.node(instr, n as u32)],
                        _ => None,
                    };
                    self.place[to] = self.place[to].or(result).or(self.place[from]);
                }
            }
        }
    }

    fn resolve(&mut self, instr: InstrId) -> Result<(), ExecError> {
        let sources = forwards(self.module, self.positions, instr);
        for (pos, source) in self.positions.of(instr).zip(sources) {
            if !self.positions.has_bytes(self.module, pos) {
                continue;
            }
            let bytes = shape_bytes(&self.module.shapes, self.positions.shape(pos))
                .map_err(|source| ExecError::Size {
                    instr: self.module.name_of(instr).to_owned(),
                    source,
                })?
                .get();
            let found = self.place[pos].or(source.and_then(|s| self.place[s]));
            let nowhere = Place {
                slab: 0,
                offset: 0,
                room: 0,
            };
            let place = match found {
                Some(place) => place,
                None if bytes == 0 => nowhere,
                None => {
                    return Err(ExecError::NoPlace {
                        value: self.positions.display(self.module, pos),
                    });
                }
            };
            if place.room as u64 >= bytes {
                self.place[pos] = Some(place);
            } else {
                return Err(ExecError::BadPlace {
                    value: self.positions.display(self.module, pos),
                    bytes,
                    problem: format!("in a buffer of {} bytes", place.room),
                });
            }
        }
        Ok(())
    }
}
