//! Modules before partitioning that are one `shard_map`: makes of them the program of one device.
//!
//! JAX hands such a module over with the shapes of all devices together and a border around what each
//! device does by itself:
//!
//! ```text
//! p = f32[32,10] parameter(0), sharding={devices=[4,1]<=[4]}        p = f32[8,10] parameter(0)
//! l = f32[8,10] custom-call(p), "xla.sdy.GlobalToLocalShape"   =>   l is p
//! r = f32[8,10] call(l), ...                                        r = f32[8,10] call(p), ...
//! ROOT g = f32[32,10] custom-call(r), "...LocalToGlobalShape"       the result is r
//! ```
//!
//! Each device then takes its slice of the argument, as it does when the partitioner has run. What
//! stands outside the border may only pass arrays through: computing on arrays that several devices
//! hold in parts takes a partitioner.

use std::collections::BTreeMap;

use slabplan_ir::attr::AttrName;
use slabplan_ir::{ArrayShape, InstrId, Module, Opcode, Shape, ShapeId};

use crate::pass::{Changed, Pass, PassError, Unit};

/// Replaces the border of a `shard_map` by shapes of one device.
pub struct ImportShardMap;

impl Pass for ImportShardMap {
    fn name(&self) -> &'static str {
        "import-shard-map"
    }

    fn description(&self) -> &'static str {
        "give a module that is one shard_map the shapes of one device"
    }

    fn run(&self, unit: &mut Unit<'_>) -> Result<Changed, PassError> {
        import_shard_map(&mut unit.module).map(Changed)
    }
}

/// What a custom-call says about the border.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Border {
    /// From the arrays of all devices to those of one.
    Enter,
    /// And back.
    Leave,
    /// A statement about an array of all devices.
    Annotate,
}

fn border(module: &Module, instr: InstrId) -> Option<Border> {
    match module.custom_call_target(instr)? {
        "xla.sdy.GlobalToLocalShape" | "SPMDFullToShardShape" => Some(Border::Enter),
        "xla.sdy.LocalToGlobalShape" | "SPMDShardToFullShape" => Some(Border::Leave),
        "Sharding" | "xla.sdy.FuncResultSharding" => Some(Border::Annotate),
        _ => None,
    }
}

/// Gives `module` the shapes of one device where it is one `shard_map`; returns whether it was.
///
/// # Errors
/// Where it is not that alone: [`PassError::NeedsPartitioner`].
pub fn import_shard_map(module: &mut Module) -> Result<bool, PassError> {
    let instrs = module.entry().instrs.clone();
    let entering: Vec<InstrId> = instrs
        .iter()
        .copied()
        .filter(|&i| border(module, i) == Some(Border::Enter))
        .collect();
    if entering.is_empty() {
        return Ok(false);
    }
    let mut local = Locals::default();
    for &instr in &entering {
        local.demand(module, instr)?;
    }
    for &instr in &instrs {
        local.settle(module, instr)?;
    }
    let settled: Vec<(InstrId, ShapeId)> = local.shape.into_iter().collect();
    for &instr in &instrs {
        if border(module, instr).is_some() {
            forward(module, instr);
        }
    }
    for (instr, shape) in settled {
        module.instrs[instr].shape = shape;
    }
    correct_entry_layout(module);
    Ok(true)
}

/// Shapes of one device for the instructions of the entry that have others.
#[derive(Default)]
struct Locals {
    shape: BTreeMap<InstrId, ShapeId>,
}

impl Locals {
    fn of(&self, module: &Module, instr: InstrId) -> ShapeId {
        let own = module.instrs[instr].shape;
        self.shape.get(&instr).copied().unwrap_or(own)
    }

    /// Works back from what enters the border to the parameters that it comes from.
    fn demand(&mut self, module: &Module, instr: InstrId) -> Result<(), PassError> {
        let i = &module.instrs[instr];
        let wanted: Vec<ShapeId> = match module.shapes.get(i.shape) {
            Shape::Tuple(elements) => elements.to_vec(),
            _ => vec![i.shape],
        };
        if wanted.len() != i.operands.len() {
            return Err(needs_partitioner(
                module,
                instr,
                "it has another number of results than operands",
            ));
        }
        for (&operand, shape) in i.operands.iter().zip(wanted) {
            let mut at = operand;
            while border(module, at) == Some(Border::Annotate) {
                at = module.instrs[at].operands[0];
            }
            if module.instrs[at].shape == shape {
                continue;
            }
            if module.instrs[at].opcode != Opcode::Parameter {
                return Err(needs_partitioner(
                    module,
                    at,
                    "it computes on an array that the devices hold in parts, outside of shard_map",
                ));
            }
            check_sharding(module, at, shape)?;
            if self.shape.insert(at, shape).is_some_and(|s| s != shape) {
                return Err(needs_partitioner(
                    module,
                    at,
                    "it enters shard_map with two shardings",
                ));
            }
        }
        Ok(())
    }

    /// Gives `instr` the shape that follows from its operands'.
    fn settle(&mut self, module: &mut Module, instr: InstrId) -> Result<(), PassError> {
        let i = &module.instrs[instr];
        let changed = i.operands.iter().any(|o| self.shape.contains_key(o));
        let leaves = border(module, instr) == Some(Border::Leave);
        if i.opcode == Opcode::Parameter || !(changed || leaves) {
            return Ok(());
        }
        let operands: Vec<ShapeId> = i.operands.iter().map(|&o| self.of(module, o)).collect();
        let shape = match i.opcode {
            Opcode::Tuple => module.shapes.intern_tuple(&operands),
            Opcode::GetTupleElement => {
                let n = i.int(AttrName::Index).unwrap_or(0) as usize;
                match module.shapes.get(operands[0]) {
                    Shape::Tuple(elements) => elements[n],
                    _ => operands[0],
                }
            }
            Opcode::OptimizationBarrier | Opcode::Copy => operands[0],
            _ if border(module, instr) == Some(Border::Enter) => i.shape,
            _ if border(module, instr).is_some() => match module.shapes.get(i.shape) {
                Shape::Tuple(_) => module.shapes.intern_tuple(&operands),
                _ => operands[0],
            },
            _ => {
                return Err(needs_partitioner(
                    module,
                    instr,
                    "it computes on an array that the devices hold in parts, outside of shard_map",
                ));
            }
        };
        if shape != module.instrs[instr].shape {
            self.shape.insert(instr, shape);
        }
        Ok(())
    }
}

/// Turns a border into what only forwards its operands.
fn forward(module: &mut Module, instr: InstrId) {
    let is_tuple = module.shapes.tuple(module.instrs[instr].shape).is_some();
    let i = &mut module.instrs[instr];
    i.opcode = if is_tuple {
        Opcode::Tuple
    } else {
        Opcode::OptimizationBarrier
    };
    i.attrs.retain(|a| a.name == AttrName::Metadata);
}

/// Whether the argument's own sharding cuts it into pieces of `shape`: only then does each device hold
/// what `shard_map` wants.
fn check_sharding(module: &Module, param: InstrId, shape: ShapeId) -> Result<(), PassError> {
    let i = &module.instrs[param];
    let Some(sharding) = i.raw(AttrName::Sharding).map(|s| module.str(s)) else {
        return Ok(());
    };
    let (Some(whole), Some(part)) = (module.shapes.array(i.shape), module.shapes.array(shape))
    else {
        return Ok(());
    };
    let tiles: Vec<u64> = sharding
        .split_once("devices=[")
        .and_then(|(_, rest)| rest.split_once(']'))
        .map(|(list, _)| {
            list.split(',')
                .filter_map(|n| n.trim().parse().ok())
                .collect()
        })
        .unwrap_or_default();
    let agrees = whole
        .dims
        .iter()
        .zip(&part.dims)
        .enumerate()
        .all(|(d, (&w, &p))| {
            let tiles = tiles.get(d).copied().unwrap_or(1);
            p.checked_mul(tiles) == Some(w)
        });
    if agrees {
        return Ok(());
    }
    Err(needs_partitioner(
        module,
        param,
        &format!(
            "its sharding {sharding} gives devices other pieces than the {} that shard_map takes",
            module.shapes.display(shape)
        ),
    ))
}

/// The layouts that the caller was promised, with the sizes of one device.
fn correct_entry_layout(module: &mut Module) {
    let Some(mut layout) = module.entry_layout.take() else {
        return;
    };
    let params = module.entry().params.clone();
    let root = module.entry().root;
    for (promised, param) in layout.parameters.iter_mut().zip(params) {
        *promised = resized(module, *promised, module.instrs[param].shape);
    }
    layout.result = resized(module, layout.result, module.instrs[root].shape);
    module.entry_layout = Some(layout);
}

/// `shape` with the layouts of `promised`.
fn resized(module: &mut Module, promised: ShapeId, shape: ShapeId) -> ShapeId {
    match (module.shapes.get(promised), module.shapes.get(shape)) {
        (Shape::Array(p), Shape::Array(s)) if p.rank() == s.rank() => {
            let array = ArrayShape {
                layout: p.layout.clone(),
                ..s.clone()
            };
            module.shapes.intern_array(array)
        }
        (Shape::Tuple(p), Shape::Tuple(s)) if p.len() == s.len() => {
            let pairs: Vec<_> = p.iter().copied().zip(s.iter().copied()).collect();
            let parts: Vec<ShapeId> = pairs
                .into_iter()
                .map(|(p, s)| resized(module, p, s))
                .collect();
            module.shapes.intern_tuple(&parts)
        }
        _ => shape,
    }
}

fn needs_partitioner(module: &Module, instr: InstrId, why: &str) -> PassError {
    PassError::NeedsPartitioner {
        instr: module.name_of(instr).to_owned(),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slabplan_ir::text;

    fn imported(entry: &str) -> Result<String, String> {
        let source = format!(
            "HloModule m, num_partitions=4\n\
             body {{\n  x = f32[8,10] parameter(0)\n  ROOT y = f32[8,10] negate(x)\n}}\n\
             ENTRY main {{\n{entry}\n}}\n"
        );
        let mut module = text::parse(&source).into_result().unwrap();
        import_shard_map(&mut module).map_err(|e| e.to_string())?;
        slabplan_ir::verify::verify(&module).map_err(|e| format!("{e:?}"))?;
        Ok(text::print(&module))
    }

    #[test]
    fn parameters_get_the_shape_behind_the_border() {
        let text = imported(
            r#"p = f32[32,10] parameter(0), sharding={devices=[4,1]<=[4]}
            l = f32[8,10] custom-call(p), custom_call_target="SPMDFullToShardShape"
            c = f32[8,10] call(l), to_apply=body
            ROOT g = f32[32,10] custom-call(c), custom_call_target="SPMDShardToFullShape""#,
        )
        .unwrap();
        assert!(text.contains("%p = f32[8,10] parameter(0)"), "{text}");
        assert!(
            text.contains("ROOT %g = f32[8,10] opt-barrier(%c)"),
            "{text}"
        );
    }

    #[test]
    fn computing_outside_is_refused() {
        let error = imported(
            r#"p = f32[32,10] parameter(0), sharding={devices=[4,1]<=[4]}
            n = f32[32,10] negate(p)
            l = f32[8,10] custom-call(n), custom_call_target="SPMDFullToShardShape"
            ROOT c = f32[8,10] call(l), to_apply=body"#,
        )
        .unwrap_err();
        assert!(error.contains("%n needs a partitioner"), "{error}");
        let error = imported(
            r#"p = f32[32,10] parameter(0), sharding={devices=[1,2,2]<=[4] last_tile_dim_replicate}
            l = f32[8,10] custom-call(p), custom_call_target="SPMDFullToShardShape"
            ROOT c = f32[8,10] call(l), to_apply=body"#,
        )
        .unwrap_err();
        assert!(error.contains("other pieces"), "{error}");
    }
}
