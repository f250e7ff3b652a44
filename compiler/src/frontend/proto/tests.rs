//! Protos that no compiler writes: refused with words that say what is wrong.

use prost::Message;
use slabplan_ir::text;

use super::messages::{Computation, HloModule, HloProto, Instruction, Shape};
use super::{parse, write};

/// A loop around an addition, and what reads it.
const TEXT: &str = "HloModule m, is_scheduled=true

condition {
  cp = (f32[4], s32[]) parameter(0)
  ci = s32[] get-tuple-element(cp), index=1
  limit = s32[] constant(3)
  ROOT more = pred[] compare(ci, limit), direction=LT
}

body {
  bp = (f32[4], s32[]) parameter(0)
  bx = f32[4] get-tuple-element(bp), index=0
  bi = s32[] get-tuple-element(bp), index=1
  one = s32[] constant(1)
  next = s32[] add(bi, one)
  double = f32[4] add(bx, bx)
  ROOT bt = (f32[4], s32[]) tuple(double, next)
}

ENTRY main {
  x = f32[4] parameter(0)
  zero = s32[] constant(0)
  init = (f32[4], s32[]) tuple(x, zero)
  loop = (f32[4], s32[]) while(init), condition=condition, body=body
  y = f32[4] get-tuple-element(loop), index=0
  ROOT z = f32[4] negate(y)
}
";

fn module() -> HloModule {
    let module = text::parse(TEXT).into_result().unwrap();
    write::write(&module).unwrap().proto
}

fn computation<'m>(module: &'m mut HloModule, name: &str) -> &'m mut Computation {
    let found = module.computations.iter_mut().find(|c| c.name == name);
    found.unwrap()
}

fn instruction<'m>(module: &'m mut HloModule, name: &str) -> &'m mut Instruction {
    let all = module.computations.iter_mut();
    let mut all = all.flat_map(|c| &mut c.instructions);
    all.find(|i| i.name == name).unwrap()
}

fn id(module: &HloModule, name: &str) -> i64 {
    let mut all = module.computations.iter().flat_map(|c| &c.instructions);
    all.find(|i| i.name == name).unwrap().id
}

/// The changed module is refused with these words, alone and in an `HloProto`.
#[track_caller]
fn refused(change: impl Fn(&mut HloModule), words: &[&str]) {
    let mut module = module();
    change(&mut module);
    let hlo = HloProto {
        hlo_module: Some(module.clone()),
        buffer_assignment: None,
    };
    for bytes in [module.encode_to_vec(), hlo.encode_to_vec()] {
        let message = parse(&bytes).expect_err("it is wrong");
        for word in words {
            assert!(message.contains(word), "no `{word}` in: {message}");
        }
    }
}

#[test]
fn the_right_one_is_read() {
    let again = parse(&module().encode_to_vec()).unwrap();
    assert_eq!(again.instrs.len(), 17);
}

#[test]
fn ids_that_dangle() {
    refused(
        |m| instruction(m, "z").operand_ids[0] = 77,
        &[
            "computation main",
            "instruction z",
            "no instruction has id 77",
        ],
    );
    refused(
        |m| instruction(m, "loop").called_computation_ids[0] = 99,
        &["instruction loop", "no computation has id 99"],
    );
    refused(
        |m| instruction(m, "z").control_predecessor_ids = vec![-5],
        &["instruction z", "no instruction has id -5"],
    );
    refused(
        |m| {
            let other = id(m, "double");
            instruction(m, "z").operand_ids[0] = other;
        },
        &["double"],
    );
    refused(|m| computation(m, "main").root_id = 12_345, &["main"]);
    refused(|m| m.entry_computation_id = 12_345, &["12345"]);
}

#[test]
fn ids_that_two_have() {
    refused(
        |m| {
            let other = id(m, "x");
            instruction(m, "y").id = other;
        },
        &["two instructions have id"],
    );
    refused(
        |m| {
            let other = computation(m, "body").id;
            computation(m, "condition").id = other;
        },
        &["two computations have id"],
    );
}

#[test]
fn ids_that_cycle() {
    refused(
        |m| {
            let later = id(m, "z");
            instruction(m, "x").opcode = "negate".to_owned();
            instruction(m, "x").operand_ids = vec![later];
        },
        &["z"],
    );
    refused(
        |m| {
            let own = id(m, "z");
            instruction(m, "z").operand_ids = vec![own];
        },
        &["z"],
    );
    // A body that runs the loop that it is the body of.
    refused(
        |m| {
            let main = computation(m, "main").id;
            let double = instruction(m, "double");
            double.opcode = "call".to_owned();
            double.operand_ids.truncate(1);
            double.called_computation_ids = vec![main];
        },
        &["main"],
    );
}

#[test]
fn numbers_and_words_that_mean_nothing() {
    refused(
        |m| instruction(m, "z").shape.as_mut().unwrap().element_type = 77,
        &["computation main", "unknown element type 77"],
    );
    refused(
        |m| instruction(m, "z").opcode = "frobnicate".to_owned(),
        &["frobnicate"],
    );
    refused(
        |m| {
            let z = instruction(m, "z");
            z.opcode = "fft".to_owned();
            z.fft_type = 9;
        },
        &["instruction z", "unknown enum value 9", "0 to 3"],
    );
    refused(
        |m| {
            let z = instruction(m, "z");
            z.opcode = "rng-bit-generator".to_owned();
            z.rng_algorithm = -1;
        },
        &["unknown enum value -1"],
    );
    refused(
        |m| {
            instruction(m, "z").sharding = Some(super::messages::Sharding {
                kind: 42,
                ..Default::default()
            });
        },
        &["unknown sharding type 42"],
    );
    refused(
        |m| instruction(m, "more").comparison_direction = "SIDEWAYS".to_owned(),
        &["SIDEWAYS"],
    );
}

#[test]
fn parts_that_are_missing() {
    refused(|m| instruction(m, "z").shape = None, &["no shape"]);
    refused(|m| instruction(m, "z").operand_ids.clear(), &["negate"]);
    refused(|m| m.computations.clear(), &["without computations"]);
    refused(
        |m| {
            let sequences = &mut m.schedule.as_mut().unwrap().sequences;
            for sequence in sequences.values_mut() {
                sequence.instruction_ids.pop();
            }
        },
        &["its schedule and its instructions differ in number"],
    );
    refused(
        |m| {
            let sequences = &mut m.schedule.as_mut().unwrap().sequences;
            for sequence in sequences.values_mut() {
                sequence.instruction_ids[0] = sequence.instruction_ids[1];
            }
        },
        &["twice or wrongly"],
    );
}

/// Far deeper than any compiler writes; neither reader may run out of stack.
#[test]
fn shapes_nested_without_end() {
    let mut shape = Shape {
        element_type: 13,
        ..Shape::default()
    };
    for _ in 0..5_000 {
        shape = Shape {
            element_type: 13,
            tuple_shapes: vec![shape],
            ..Shape::default()
        };
    }
    let mut module = module();
    instruction(&mut module, "x").shape = Some(shape);
    assert!(parse(&module.encode_to_vec()).is_err());
}

/// One that ends where a field does may be a module with less in it; none may panic.
#[test]
fn prefixes_are_refused_or_read() {
    let bytes = module().encode_to_vec();
    let read = (0..bytes.len()).filter(|&end| parse(&bytes[..end]).is_ok());
    assert!(read.count() < 8);
}
