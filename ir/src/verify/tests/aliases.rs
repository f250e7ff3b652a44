//! Aliases of arguments, results and operands, and asynchronous pairs.

use super::{ErrorKind, check, check_body, errors, module, verify};

#[test]
fn input_output_alias() {
    check(
        "HloModule bytes, input_output_alias={ {0}: (0, {}, must-alias), {1}: (1, {}, must-alias) } // error: Alias: 32 bytes, but f32[4]{0} has 16

ENTRY main {
  p = f32[4]{0} parameter(0)
  q = f32[8]{0} parameter(1)
  ROOT t = (f32[4]{0}, f32[4]{0}) tuple(p, p)
}
",
    );
    check(
        "HloModule spaces, input_output_alias={ {}: (0, {}, must-alias) } // error: Alias: memory space 0, but

ENTRY main {
  p = f32[4]{0} parameter(0)
  ROOT r = f32[4]{0:S(5)} copy(p)
}
",
    );
    check(
        "HloModule twice, input_output_alias={ {0}: (0, {}), {1}: (0, {}) } // error: Alias: already has an output

ENTRY main {
  p = f32[4] parameter(0)
  ROOT t = (f32[4], f32[4]) tuple(p, p)
}
",
    );
    check(
        "HloModule donor, input_output_alias={ {}: (0, {}) }, buffer_donor={ (0, {}) } // error: Alias: given away twice

ENTRY main {
  ROOT p = f32[4] parameter(0)
}
",
    );
}

/// What the text parser refuses itself, but other sources of modules may hold.
#[test]
fn aliases_of_what_does_not_exist() {
    let base = module(
        "HloModule m, input_output_alias={ {}: (0, {}) }\n\nENTRY e {\n  ROOT p = f32[4] parameter(0)\n}\n",
    );
    let mut m = base.clone();
    m.input_output_alias[0].output_index.push(2);
    assert!(errors(&m)[0].message.contains("no output {2}"));
    let mut m = base.clone();
    m.input_output_alias[0].parameter = 7;
    assert!(errors(&m)[0].message.contains("no parameter (7, {})"));
    let mut m = base.clone();
    m.input_output_alias
        .push(base.input_output_alias[0].clone());
    assert!(
        errors(&m)[0]
            .message
            .contains("output {} already has an alias")
    );
    let mut m = base;
    m.buffer_donors.push(crate::module::BufferDonor {
        parameter: 1,
        parameter_index: crate::ShapeIndex::default(),
        text: crate::strings::Str::EMPTY,
    });
    assert_eq!(errors(&m)[0].kind, ErrorKind::Alias);
}

#[test]
fn an_alias_that_cannot_hold_but_need_not_is_a_warning() {
    let m = module(
        "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }

ENTRY e {
  p = f32[16,8]{1,0:T(8,128)} parameter(0)
  ROOT y = f32[8,16]{1,0:T(8,128)} reshape(p)
}
",
    );
    let verified = verify(&m).unwrap();
    // 16 rows of 128 lanes against 8.
    assert!(verified.warnings()[0].message.contains("8192 bytes"));
    assert!(verified.warnings()[0].message.contains("4096"));
}

#[test]
fn output_to_operand_aliasing() {
    check_body(
        "x = f32[4] parameter(0)
y = f32[8] parameter(1)
a = f32[4] custom-call(x), custom_call_target=\"t\", output_to_operand_aliasing={{}: (0, {})}
b = f32[4] custom-call(x, y), custom_call_target=\"t\", output_to_operand_aliasing={{}: (1, {})} // error: OperandAlias: 32 bytes
c = f32[4] custom-call(x), custom_call_target=\"t\", output_to_operand_aliasing={{}: (1, {})} // error: OperandAlias: no such operand
d = f32[4] custom-call(x), custom_call_target=\"t\", output_to_operand_aliasing={{0}: (0, {})} // error: OperandAlias: no output {0}
ROOT e = f32[4] custom-call(x, x), custom_call_target=\"t\", output_to_operand_aliasing={{}: (0, {}), {}: (1, {})} // error: OperandAlias: already has",
    );
}

#[test]
fn asynchronous_pairs() {
    check_body(
        "x = f32[4] parameter(0)
lonely = (f32[4], f32[4], u32[]) copy-start(x) // error: Async: has no copy-done
a = (f32[4], f32[4], u32[]) copy-start(x) // error: Async: used by %b, %c
b = f32[4] copy-done(a)
c = f32[4] copy-done(a)
d = (f32[4], f32[4], u32[]) tuple(x, x, x) // error: Shape: tuple gives
e = f32[4] copy-done(d) // error: Async: operand %d is tuple
f = (f32[4], f32[4], u32[]) copy-start(x) // error: Async: must have one user
ROOT g = f32[4] get-tuple-element(f), index=0",
    );
}

#[test]
fn async_computations() {
    check(
        "HloModule m

wrapped {
  p = f32[4] parameter(0)
  ROOT r = f32[4] negate(p)
}

other {
  p = f32[5] parameter(0)
  ROOT r = f32[5] negate(p)
}

ENTRY main {
  x = f32[4] parameter(0)
  s = ((f32[4]), f32[4]) async-start(x), calls=wrapped
  u = ((f32[4]), f32[4]) async-update(s)
  d = f32[4] async-done(u)
  t2 = ((f32[4]), f32[4]) async-start(x), calls=other // error: Shape: does not fit its computation
  d2 = f32[4] async-done(t2)
  ROOT t = (f32[4], f32[4]) tuple(d, d2)
}
",
    );
}
