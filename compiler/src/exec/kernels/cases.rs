//! Kernels against what XLA computes: the modules in `cases/*.hlo`.
//!
//! Each module is followed by `// => LITERAL` for every array of its result, as `cases/expect.py` had
//! XLA:CPU compute it, or, under `// by hand`, as worked out by hand. `// within R` allows a relative
//! difference R (of the largest element of the array), else results must be equal bit by bit, NaNs aside.

use std::path::Path;

use slabplan_ir::{ElementType, InstrId, Module, Opcode, Payload, literal, number, text};

use super::{ArrayMut, ArrayRef, Kernel};

#[test]
fn bits_and_integers() {
    check("integers.hlo");
}

#[test]
fn floats() {
    check("floats.hlo");
}

#[test]
fn complex_numbers() {
    check("complex.hlo");
}

#[test]
fn conversions() {
    check("convert.hlo");
}

#[test]
fn movement() {
    check("movement.hlo");
}

#[test]
fn gather_and_scatter() {
    check("gather_scatter.hlo");
}

#[test]
fn products() {
    check("products.hlo");
}

#[test]
fn reductions() {
    check("reductions.hlo");
}

#[test]
fn sorting_and_random_bits() {
    check("sort_random.hlo");
}

#[test]
fn linear_algebra() {
    check("linear_algebra.hlo");
}

#[test]
fn narrow_floats() {
    check("narrow_floats.hlo");
}

#[test]
fn mixed_types() {
    check("mixed_types.hlo");
}

#[track_caller]
fn check(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/exec/kernels/cases")
        .join(file);
    let content = std::fs::read_to_string(path).unwrap();
    let mut failures = Vec::new();
    let mut cases = 0;
    for case in content.split("\nHloModule ").skip(1) {
        let case = format!("HloModule {case}");
        cases += 1;
        if let Err(message) = run(&case) {
            failures.push(format!("{}: {message}", case.lines().next().unwrap()));
        }
    }
    assert!(cases > 0, "{file} holds no case");
    assert!(failures.is_empty(), "{file}:\n{}", failures.join("\n"));
}

fn run(case: &str) -> Result<(), String> {
    let module = text::parse(case)
        .into_result()
        .map_err(|e| format!("{:?}", e.first()))?;
    let root = module.entry().root;
    let notes = |prefix: &str| -> Vec<String> {
        case.lines()
            .filter_map(|l| l.strip_prefix(prefix))
            .map(|l| l.trim().to_owned())
            .collect()
    };
    let expected = notes("// =>");
    let within: f64 = notes("// within")
        .first()
        .map_or(0.0, |r| r.parse().unwrap());
    let found = evaluate(&module, root)?;
    if expected.len() != found.len() {
        return Err(format!(
            "{} results, {} expected",
            found.len(),
            expected.len()
        ));
    }
    let shapes = module.shapes.preorder(module.instrs[root].shape);
    let arrays = shapes.iter().filter(|&&s| module.shapes.array(s).is_some());
    for ((&shape, found), expected) in arrays.zip(found).zip(expected) {
        let ty = module.shapes.array(shape).unwrap().element_type;
        let wanted =
            literal::decode(&module.shapes, shape, &expected).map_err(|e| e.to_string())?;
        let wanted = wanted.arrays.into_iter().next().flatten().ok_or("elided")?;
        if !agree(ty, &found, &wanted, within) {
            let found = literal::Literal {
                arrays: vec![Some(found)],
            };
            let found = literal::encode(&module.shapes, shape, &found);
            return Err(format!("\n   found {found}\nexpected {expected}"));
        }
    }
    Ok(())
}

/// The arrays of an instruction whose operands are constants or such instructions themselves.
fn evaluate(module: &Module, id: InstrId) -> Result<Vec<Vec<u8>>, String> {
    let instr = &module.instrs[id];
    if instr.opcode == Opcode::Constant {
        let Payload::Literal(text) = instr.payload else {
            return Err("constant without literal".into());
        };
        let literal = literal::decode(&module.shapes, instr.shape, module.str(text));
        let arrays = literal.map_err(|e| e.to_string())?.arrays;
        return Ok(arrays.into_iter().flatten().collect());
    }
    let inputs: Vec<Vec<u8>> = instr
        .operands
        .iter()
        .map(|&o| evaluate(module, o).map(|mut arrays| arrays.remove(0)))
        .collect::<Result<_, _>>()?;
    let array = |id: InstrId| module.shapes.array(module.instrs[id].shape).unwrap();
    let operands: Vec<ArrayRef<'_>> = instr
        .operands
        .iter()
        .zip(&inputs)
        .map(|(&o, data)| ArrayRef {
            element_type: array(o).element_type,
            dims: &array(o).dims,
            data,
        })
        .collect();
    let kernel = Kernel::prepare(module, id).map_err(|e| e.to_string())?;
    let shapes = module.shapes.preorder(instr.shape);
    let shapes: Vec<_> = shapes
        .into_iter()
        .filter_map(|s| module.shapes.array(s))
        .collect();
    // What is not written would show.
    let mut outputs: Vec<Vec<u8>> = shapes
        .iter()
        .map(|s| vec![0xa5; (s.element_count().unwrap() * s.element_type.byte_width()) as usize])
        .collect();
    let mut results: Vec<ArrayMut<'_>> = shapes
        .iter()
        .zip(&mut outputs)
        .map(|(s, data)| ArrayMut {
            element_type: s.element_type,
            dims: &s.dims,
            data,
        })
        .collect();
    let mut scratch = vec![0xa5; kernel.scratch_bytes()];
    kernel
        .run(&operands, &mut results, &mut scratch)
        .map_err(|e| e.to_string())?;
    Ok(outputs)
}

/// Whether two arrays agree bit by bit (any NaN for any NaN), or within a part of the largest element.
fn agree(ty: ElementType, found: &[u8], wanted: &[u8], within: f64) -> bool {
    let part = match ty {
        ElementType::C64 => ElementType::F32,
        ElementType::C128 => ElementType::F64,
        other => other,
    };
    if !part.is_float() {
        return found == wanted;
    }
    let w = part.byte_width() as usize;
    let values = |bytes: &[u8]| -> Vec<f64> {
        bytes
            .chunks_exact(w)
            .map(|b| number::decode_float(part, number::read_bits(b)))
            .collect()
    };
    let (found, wanted) = (values(found), values(wanted));
    let largest = wanted
        .iter()
        .filter(|x| x.is_finite())
        .fold(0.0, |m: f64, x| m.max(x.abs()));
    found.len() == wanted.len()
        && found.iter().zip(&wanted).all(|(x, y)| {
            (x.is_nan() && y.is_nan())
                || x.to_bits() == y.to_bits()
                || (within > 0.0 && (x - y).abs() <= within * largest)
        })
}
