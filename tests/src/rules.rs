//! Holds a hand-written module to what its comments state.

use slabplan::config::CompileConfig;
use slabplan::exec::{ExecConfig, Executable, HostArray, reference_plan};
use slabplan::{Compiled, compile, target};
use slabplan_ir::instr::Payload;
use slabplan_ir::literal;
use slabplan_ir::{Extent, InstrId, Module, Shape};

use crate::directives::{ArrayText, Directives, Expectation, ValueName};

/// Plans, checks and runs the module; the error says which expectation failed and how.
pub fn check(text: &str, directives: &Directives) -> Result<(), String> {
    let module = slabplan_ir::text::parse(text).into_result().map_err(|d| {
        d.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    })?;
    let target =
        target::load(directives.target.as_deref().unwrap_or("cpu")).map_err(|e| e.to_string())?;
    let refusable = directives.expectations.iter().find_map(|e| match e {
        Expectation::RefusedOrCopied(words) => Some(words),
        _ => None,
    });
    let compiled = match compile(module.clone(), &target, &CompileConfig::default()) {
        Ok(compiled) => compiled,
        Err(e) => {
            let message = e.to_string();
            return match refusable {
                Some(words) if message.contains(words.as_str()) => Ok(()),
                _ => Err(message),
            };
        }
    };
    for expectation in &directives.expectations {
        holds(expectation, &module, &compiled).map_err(|e| format!("{expectation:?}: {e}"))?;
    }
    if let Some(words) = &directives.run_error {
        return match Executable::new(&compiled.module, compiled.plan(), ExecConfig::default()) {
            Err(e) if e.to_string().contains(words.as_str()) => Ok(()),
            Err(e) => Err(format!("expected `{words}`, the executor says: {e}")),
            Ok(_) => Err(format!("the executor takes the module; expected `{words}`")),
        };
    }
    if directives.run {
        run(&compiled, directives)?;
    }
    Ok(())
}

/// Runs on the slab with poison and in reference mode; both must give the stated outputs.
fn run(compiled: &Compiled, directives: &Directives) -> Result<(), String> {
    let module = &compiled.module;
    let inputs = arrays(&directives.inputs)?;
    let expected = arrays(&directives.outputs)?;
    let reference = reference_plan(module).map_err(|e| e.to_string())?;
    for (mode, plan) in [("slab", compiled.plan()), ("reference", &reference)] {
        let config = ExecConfig {
            poison: true,
            ..ExecConfig::default()
        };
        let mut executable =
            Executable::new(module, plan, config).map_err(|e| format!("{mode}: {e}"))?;
        let outputs = executable
            .execute(&inputs)
            .map_err(|e| format!("{mode}: {e}"))?;
        if outputs != expected {
            return Err(format!("{mode}: expected {expected:?}, got {outputs:?}"));
        }
    }
    Ok(())
}

fn arrays(texts: &[ArrayText]) -> Result<Vec<HostArray>, String> {
    texts.iter().map(array).collect()
}

/// Reads `f32[4] {1,2,3,4}`: by way of a module with one constant.
fn array(text: &ArrayText) -> Result<HostArray, String> {
    // `all 3` is an array of threes.
    let body = match text.literal.strip_prefix("all ") {
        Some(value) => {
            let element_type = text.shape.split('[').next().unwrap_or_default();
            format!(
                "v = {element_type}[] constant({value})\nROOT c = {} broadcast(v), dimensions={{}}",
                text.shape
            )
        }
        None => format!("ROOT c = {} constant({})", text.shape, text.literal),
    };
    let source = format!("HloModule array\nENTRY e {{ {body} }}");
    let module = slabplan_ir::text::parse(&source)
        .into_result()
        .map_err(|d| format!("{text:?}: {}", d[0]))?;
    let entry = module.entry();
    let shape = module.instrs[entry.root].shape;
    let Shape::Array(a) = module.shapes.get(shape) else {
        return Err(format!("{text:?} is not an array"));
    };
    let value = &module.instrs[entry.instrs[0]];
    let Payload::Literal(values) = value.payload else {
        return Err(format!("{text:?} has no values"));
    };
    let decoded = literal::decode(&module.shapes, value.shape, module.str(values));
    let decoded = decoded.map_err(|e| e.to_string())?.arrays;
    let element = decoded.into_iter().next().flatten().unwrap_or_default();
    let copies = if value.shape == shape {
        1
    } else {
        a.dims.iter().product::<u64>() as usize
    };
    let data = element.repeat(copies);
    HostArray::new(a.element_type, &a.dims, data).ok_or_else(|| format!("{text:?}: wrong size"))
}

/// Whether one expectation holds of the plan.
fn holds(e: &Expectation, source: &Module, compiled: &Compiled) -> Result<(), String> {
    let place = |v: &ValueName| place(compiled, v);
    let refuse = |holds: bool, found: String| if holds { Ok(()) } else { Err(found) };
    match e {
        Expectation::SameBytes(values) => {
            let places = values.iter().map(place).collect::<Result<Vec<_>, _>>()?;
            refuse(
                places.windows(2).all(|p| p[0] == p[1]),
                format!("{places:?}"),
            )
        }
        Expectation::Disjoint(a, b) => {
            let (a, b) = (place(a)?, place(b)?);
            refuse(!overlap(a, b), format!("{a:?} and {b:?}"))
        }
        Expectation::SameOrDisjoint(a, b) => {
            let (a, b) = (place(a)?, place(b)?);
            refuse(a == b || !overlap(a, b), format!("{a:?} and {b:?}"))
        }
        Expectation::Bytes(v, bytes) => {
            let (_, extent) = place(v)?;
            refuse(extent.len() == *bytes, format!("{} bytes", extent.len()))
        }
        Expectation::Space(v, space) => {
            let (found, _) = place(v)?;
            refuse(found == *space, format!("space {found}"))
        }
        Expectation::PeakBytes(bytes) => {
            let slab = slab(compiled);
            refuse(slab == *bytes, format!("slab of {slab} bytes"))
        }
        Expectation::PeakBytesAtMost(bytes) => {
            let slab = slab(compiled);
            refuse(slab <= *bytes, format!("slab of {slab} bytes"))
        }
        Expectation::Copies(n) => {
            let copies = &compiled.plan().copies;
            let causes: Vec<&str> = copies.iter().map(|c| c.cause.as_str()).collect();
            refuse(
                copies.len() == *n,
                format!("{} copies: {causes:#?}", copies.len()),
            )
        }
        Expectation::Order(a, b) => {
            let at = |v: &ValueName| order_of(&compiled.module, v);
            let (a, b) = (at(a)?, at(b)?);
            refuse(a < b, format!("{a} and {b}"))
        }
        Expectation::Warn(words) => {
            let verified = slabplan_ir::verify::verify(source).map_err(|e| e.to_string())?;
            let mut warnings: Vec<String> = verified
                .warnings()
                .iter()
                .map(ToString::to_string)
                .collect();
            warnings.extend(compiled.donations.iter().map(ToString::to_string));
            refuse(
                warnings.iter().any(|w| w.contains(words.as_str())),
                format!("warnings: {warnings:#?}"),
            )
        }
        Expectation::RefusedOrCopied(_) => refuse(
            !compiled.plan().copies.is_empty(),
            "planned without a copy".to_owned(),
        ),
    }
}

fn slab(compiled: &Compiled) -> u64 {
    compiled.plan().space(0).map_or(0, |s| s.slab.get())
}

fn find(module: &Module, name: &str) -> Result<InstrId, String> {
    module
        .instrs
        .keys()
        .find(|&i| module.name_of(i) == name)
        .ok_or_else(|| format!("no instruction is called {name}"))
}

/// Memory space and bytes of a value.
fn place(compiled: &Compiled, value: &ValueName) -> Result<(u32, Extent), String> {
    let module = &compiled.module;
    let instr = find(module, &value.instruction)?;
    let analysis = &compiled.planned.analysis;
    let pos = analysis
        .flow
        .positions
        .at(module, instr, &value.index)
        .ok_or_else(|| format!("{value:?}: no such part"))?;
    let at = analysis
        .flow
        .at(pos)
        .ok_or_else(|| format!("{value:?} has no bytes"))?;
    let buffer = &compiled.plan().buffers[compiled.planned.buffer_of[analysis.classes.of(at)]];
    let extent = Extent::new(buffer.offset, buffer.size).map_err(|e| e.to_string())?;
    Ok((buffer.space, extent))
}

fn overlap(a: (u32, Extent), b: (u32, Extent)) -> bool {
    a.0 == b.0 && a.1.overlaps(b.1)
}

/// Place of an instruction in its computation.
fn order_of(module: &Module, value: &ValueName) -> Result<usize, String> {
    let instr = find(module, &value.instruction)?;
    let computation = &module.computations[module.instrs[instr].computation];
    computation
        .instrs
        .iter()
        .position(|&i| i == instr)
        .ok_or_else(|| format!("{value:?} is not scheduled"))
}
