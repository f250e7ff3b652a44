//! One module for each kind of error, with the error expected beside its instruction.

use std::fmt::Write;

use super::{ErrorKind, VerifyError, verify};
use crate::entity::EntityId;
use crate::instr::Payload;
use crate::module::Module;
use crate::text::parse;

fn module(text: &str) -> Module {
    parse(text)
        .into_result()
        .unwrap_or_else(|e| panic!("{}\n{text}", e[0]))
}

fn errors(module: &Module) -> Vec<VerifyError> {
    verify(module).err().map(|e| e.errors).unwrap_or_default()
}

/// Checks that exactly the lines that end in `// error: KIND: WORDS` have errors, each of that
/// kind and with these words.
fn check(text: &str) {
    let module = module(text);
    let found: Vec<(usize, VerifyError)> = errors(&module)
        .into_iter()
        .map(|e| (e.line_column(text).expect("the entity is in the text").0, e))
        .collect();
    let mut expected = 0;
    for (n, line) in text.lines().enumerate() {
        let here: Vec<&VerifyError> = found
            .iter()
            .filter(|(l, _)| *l == n + 1)
            .map(|(_, e)| e)
            .collect();
        let Some((_, wanted)) = line.split_once("// error: ") else {
            assert!(here.is_empty(), "line {} has {:?}", n + 1, here);
            continue;
        };
        expected += 1;
        let (kind, words) = wanted.split_once(": ").unwrap();
        assert!(
            here.iter()
                .any(|e| format!("{:?}", e.kind) == kind && e.message.contains(words)),
            "line {} wants {wanted}, has {here:?}",
            n + 1
        );
    }
    assert!(expected > 0, "nothing is expected");
    assert_eq!(found.len(), expected, "{found:?}");
}

/// Wraps instructions in an entry computation, with reducers at hand.
fn check_body(body: &str) {
    check(&format!(
        "HloModule m\n\nsum {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  \
         ROOT c = f32[] add(a, b)\n}}\n\nENTRY main {{\n{body}\n}}\n"
    ));
}

fn accept_body(body: &str) {
    let text = format!(
        "HloModule m\n\nsum {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  \
         ROOT c = f32[] add(a, b)\n}}\n\nENTRY main {{\n{body}\n}}\n"
    );
    let m = module(&text);
    assert_eq!(errors(&m), [], "{body}");
}

#[test]
fn operands_that_do_not_fit() {
    check_body(
        "x = f32[4] parameter(0)
y = f32[5] parameter(1)
i = s32[4] parameter(2)
a = f32[4] add(x, y) // error: Operands: f32[4] and f32[5]
b = f32[4] add(x, i) // error: Operands: equal element types
c = s32[4] exponential(i) // error: Operands: floating-point
d = f32[4] not(x) // error: Operands: integer or pred
e = f32[4] select(x, x, x) // error: Operands: pred
f = f32[] reduce(x, y), dimensions={0}, to_apply=sum // error: Operands: initial value
g = f32[2] slice(x), slice={[3:5]} // error: Operands: [3:5:1]
h = f32[4] get-tuple-element(x), index=0 // error: Operands: tuple
j = f32[9] concatenate(x, i), dimensions={0} // error: Operands: operand 1
k = f32[5] pad(x, y), padding=0_1 // error: Operands: padding value
l = f32[4,4] cholesky(x) // error: Operands: square
o = s32[] constant(0)
ROOT r = f32[4] dynamic-update-slice(x, y, o) // error: Operands: cannot put",
    );
}

#[test]
fn declared_shape_differs_from_inferred() {
    check_body(
        "x = f32[4,6] parameter(0)
zero = f32[] constant(0)
a = f32[4,5] negate(x) // error: Shape: negate gives f32[4,6]
b = s32[4,6] negate(x) // error: Shape: negate gives f32[4,6]
c = bf16[4,6] negate(x)
d = f32[4,6] transpose(x), dimensions={1,0} // error: Shape: gives f32[6,4]
e = f32[6] reduce(x, zero), dimensions={1}, to_apply=sum // error: Shape: gives f32[4]
f = f32[4,6] compare(x, x), direction=LT // error: Shape: gives pred[4,6]
g = (f32[4,6], f32[]) tuple(zero, x) // error: Shape: gives (f32[], f32[4,6])
h = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
i = s32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
ROOT j = f32[6,6] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1} // error: Shape: gives f32[4,4]",
    );
}

#[test]
fn declared_shape_that_the_operation_cannot_give() {
    check_body(
        "x = f32[4,6] parameter(0)
a = f32[5,5] reshape(x) // error: Shape: cannot give f32[5,5]
b = f32[24] reshape(x)
c = s32[4,7] convert(x) // error: Shape: convert
d = s8[4,6,4] bitcast-convert(x)
e = s8[4,6] bitcast-convert(x) // error: Shape: bitcast-convert
f = f64[4] bitcast-convert(x) // error: Shape: bitcast-convert
g = f32[4,6,2] broadcast(x), dimensions={0,1}
h = f32[4,6,2] broadcast(x), dimensions={0,2} // error: Shape: dimensions [0, 2]
i = s32[] iota(), iota_dimension=0 // error: Shape: no dimension 0
j = f32[100] bitcast(x) // error: Shape: bitcast
k = s32[24]{0:T(128)} bitcast(x)
l = f32[8,6] all-gather(x), dimensions={0}, replica_groups={}
n = f32[8,7] all-gather(x), dimensions={0}, replica_groups={} // error: Shape: all-gather
o = f32[2,6] reduce-scatter(x), dimensions={0}, replica_groups={}, to_apply=sum
ROOT p = f32[3,6] reduce-scatter(x), dimensions={0}, replica_groups={}, to_apply=sum // error: Shape: reduce-scatter",
    );
}

#[test]
fn signatures_of_called_computations() {
    check(
        "HloModule m

two {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}

state {
  p = (s32[], f32[4]) parameter(0)
  ROOT q = s32[] get-tuple-element(p), index=0
}

step {
  p = (s32[], f32[4]) parameter(0)
  x = f32[4] get-tuple-element(p), index=1
  i = s32[] get-tuple-element(p), index=0
  ROOT q = (f32[4], s32[]) tuple(x, i)
}

go {
  p = (s32[], f32[4]) parameter(0)
  ROOT q = pred[] constant(true)
}

ENTRY main {
  x = f32[4] parameter(0)
  i = s32[] constant(0)
  zero = f32[] constant(0)
  init = (s32[], f32[4]) tuple(i, x)
  a = f32[] call(x, zero), to_apply=two // error: Operands: operand 0
  b = f32[] call(zero), to_apply=two // error: Operands: passes 1 argument(s)
  c = f32[4] sort(x), dimensions={0}, to_apply=two // error: Operands: pred[]
  d = f32[4] sort(x), dimensions={0}, to_apply=less
  e = (s32[], f32[4]) while(init), condition=state, body=step // error: Operands: condition
  f = (f32[4], s32[]) while(init), condition=go, body=step // error: Operands: body gives
  g = s32[] conditional(i, init, init), branch_computations={state, step} // error: Operands: branch 1
  h = s32[] conditional(x, init, init), branch_computations={state, state} // error: Operands: pred[] or s32[]
  j = f32[] fusion(zero), kind=kLoop, calls=two // error: Operands: 2 parameter(s)
  k = f32[4] map(x), dimensions={0}, to_apply=two // error: Operands: 1 parameter(s)
  ROOT l = f32[] reduce(x, zero), dimensions={0}, to_apply=less // error: Operands: type f32
}
",
    );
}

#[test]
fn sizes_and_layouts() {
    check_body(
        "a = f32[4611686018427387904,16] parameter(0) // error: Size: overflows
b = f32[2305843009213693952] parameter(1) // error: Size: overflows
c = f32[2305843009213693951] parameter(2)
ROOT t = () tuple()",
    );
    let mut m =
        module("HloModule m\n\nENTRY e {\n  ROOT x = f32[4,4]{1,0:T(8,128)} parameter(0)\n}\n");
    for (order, tile, words) in [
        ([0, 0], 8, "no permutation"),
        ([1, 2], 8, "no permutation"),
        ([1, 0], 0, "zero entry"),
    ] {
        let mut array = m
            .shapes
            .array(m.instrs[m.entry().root].shape)
            .unwrap()
            .clone();
        let layout = array.layout.as_mut().unwrap();
        layout.minor_to_major = order.into_iter().collect();
        layout.tiles[0].0[0] = crate::layout::TileDim::Size(tile);
        let shape = m.shapes.intern_array(array);
        let mut broken = m.clone();
        let root = broken.entry().root;
        broken.instrs[root].shape = shape;
        let found = errors(&broken);
        assert_eq!(found[0].kind, ErrorKind::Layout);
        assert!(found[0].message.contains(words), "{}", found[0]);
    }
}

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

#[test]
fn entry_computation_layout() {
    check(
        "HloModule m, entry_computation_layout={(f32[4])->f32[5]} // error: EntryLayout: result f32[5]

ENTRY main {
  ROOT p = f32[4] parameter(0)
}
",
    );
    check(
        "HloModule m, entry_computation_layout={(f32[5])->f32[4]} // error: EntryLayout: parameter 0

ENTRY main {
  ROOT p = f32[4] parameter(0)
}
",
    );
    check(
        "HloModule m, entry_computation_layout={()->f32[4]} // error: EntryLayout: 0 parameter(s)

ENTRY main {
  ROOT p = f32[4] parameter(0)
}
",
    );
}

const CHAIN: &str = "HloModule m

callee {
  q = f32[4] parameter(0)
  ROOT s = f32[4] negate(q)
}

ENTRY main {
  x = f32[4] parameter(0)
  a = f32[4] negate(x)
  b = f32[4] negate(a)
  ROOT c = f32[4] call(b), to_apply=callee
}
";

/// Changes a good module into one that the parser would refuse, and looks for the first error.
fn broken(change: impl FnOnce(&mut Module)) -> VerifyError {
    let mut m = module(CHAIN);
    assert_eq!(errors(&m), []);
    change(&mut m);
    let found = errors(&m);
    assert!(!found.is_empty(), "the change is not noticed");
    found[0].clone()
}

fn named(m: &Module, name: &str) -> crate::InstrId {
    m.instrs.keys().find(|&i| m.name_of(i) == name).unwrap()
}

#[test]
fn ids_and_ownership() {
    let far = crate::InstrId::from_index(1000);
    let e = broken(|m| {
        let a = named(m, "a");
        m.instrs[a].operands[0] = far;
    });
    assert_eq!(
        (e.kind, e.message.as_str()),
        (ErrorKind::Ids, "%a: an operand is out of range")
    );
    let e = broken(|m| m.entry = crate::CompId::from_index(9));
    assert_eq!(e.kind, ErrorKind::Ids);
    let e = broken(|m| {
        let a = named(m, "a");
        m.instrs[a].shape = crate::ShapeId::from_index(1000);
    });
    assert_eq!(e.message, "%a: the shape is out of range");
    let e = broken(|m| {
        let (entry, a) = (m.entry, named(m, "a"));
        m.computations[entry].instrs.push(a);
    });
    assert_eq!(
        (e.kind, e.line_column(CHAIN)),
        (ErrorKind::Ids, Some((10, 3)))
    );
    let e = broken(|m| {
        let entry = m.entry;
        m.computations[entry].root = named(m, "s");
    });
    assert!(e.message.contains("root"));
    let e = broken(|m| {
        let c = named(m, "c");
        m.instrs[c].attrs[0].value = crate::attr::AttrValue::Comp(crate::CompId::from_index(77));
    });
    assert_eq!(e.message, "%c: to_apply is out of range");
}

#[test]
fn names_and_parameters() {
    let e = broken(|m| {
        let (a, b) = (named(m, "a"), named(m, "b"));
        m.instrs[b].name = m.instrs[a].name;
    });
    assert_eq!(e.kind, ErrorKind::Name);
    let e = broken(|m| {
        let x = named(m, "x");
        m.instrs[x].payload = Payload::Parameter(1);
    });
    assert_eq!(
        (e.kind, e.line_column(CHAIN)),
        (ErrorKind::Parameter, Some((9, 3)))
    );
    let e = broken(|m| {
        let a = named(m, "a");
        m.instrs[a].payload = Payload::Parameter(1);
    });
    assert_eq!(e.kind, ErrorKind::Parameter);
    let e = broken(|m| {
        let entry = m.entry;
        m.computations[entry].params.clear();
    });
    assert_eq!(e.kind, ErrorKind::Parameter);
}

#[test]
fn order_and_cycles() {
    let e = broken(|m| {
        let entry = m.entry;
        m.computations[entry].instrs.swap(1, 2);
    });
    assert_eq!(e.message, "%b: operand %a comes later");
    let e = broken(|m| {
        let (b, q) = (named(m, "b"), named(m, "q"));
        m.instrs[b].operands[0] = q;
    });
    assert_eq!(
        e.message,
        "%b: operand %q is in another computation, %callee"
    );

    // x -> a -> b -> c, and b before a.
    let wait = |m: &mut Module, later: &str, earlier: &str| {
        let before = named(m, earlier);
        let after = named(m, later);
        m.instrs[after].attrs.push(crate::attr::Attr {
            name: crate::attr::AttrName::ControlPredecessors,
            value: crate::attr::AttrValue::Instrs(Box::new([before])),
        });
    };
    let e = broken(|m| wait(m, "a", "c"));
    assert_eq!(e.kind, ErrorKind::Cycle);
    assert!(
        [
            "%a -> %b -> %c -> %a",
            "%b -> %c -> %a -> %b",
            "%c -> %a -> %b -> %c"
        ]
        .iter()
        .any(|c| e.message.contains(c)),
        "{e}"
    );
    let e = broken(|m| wait(m, "a", "a"));
    assert!(e.message.ends_with("%a -> %a"), "{e}");

    // A control predecessor later in the text is a cycle only if it depends on its successor.
    let text = "HloModule m\n\nENTRY e {\n  x = f32[4] parameter(0)\n  a = f32[4] negate(x)\n  \
                b = f32[4] negate(x)\n  ROOT c = f32[4] add(a, b)\n}\n";
    let mut m = module(text);
    wait(&mut m, "a", "b");
    assert_eq!(errors(&m), []);
    m.is_scheduled = true;
    assert_eq!(
        errors(&m)[0].message,
        "%a: control predecessor %b comes later"
    );
}

#[test]
fn calls() {
    let e = broken(|m| {
        let (c, main) = (named(m, "c"), m.entry);
        m.instrs[c].attrs[0].value = crate::attr::AttrValue::Comp(main);
    });
    assert_eq!(e.kind, ErrorKind::Call);
    assert!(e.message.contains("%main -> %main"), "{e}");
    let e = broken(|m| m.entry = m.instrs[named(m, "s")].computation);
    assert_eq!(
        e.message,
        "computation %callee: the entry is called by %main"
    );
    check(
        "HloModule m

wrapped {
  p = f32[4] parameter(0)
  ROOT r = f32[4] negate(p)
}

ENTRY main {
  x = f32[4] parameter(0)
  s = ((f32[4]), f32[4]) async-start(x), calls=wrapped
  d = f32[4] async-done(s)
  t2 = ((f32[4]), f32[4]) async-start(x), calls=wrapped // error: Call: starts %wrapped, which %s starts too
  d2 = f32[4] async-done(t2)
  ROOT t = (f32[4], f32[4]) tuple(d, d2)
}
",
    );
}

#[test]
fn missing_attributes_and_operands() {
    let e = broken(|m| {
        let c = named(m, "c");
        m.instrs[c].attrs.clear();
    });
    assert_eq!(
        (e.kind, e.message.as_str()),
        (ErrorKind::Attribute, "%c: call needs attribute to_apply")
    );
    assert_eq!(e.remedy, "add to_apply=...");
    let e = broken(|m| {
        let a = named(m, "a");
        m.instrs[a].operands.clear();
    });
    assert_eq!(e.message, "%a: negate takes 1 operand(s), given 0");
}

#[test]
fn every_error_is_reported_up_to_a_bound() {
    let mut body = String::from("x = f32[4] parameter(0)\n");
    for i in 0..150 {
        writeln!(body, "y{i} = f32[5] negate(x)").unwrap();
    }
    let text = format!("HloModule m\n\nENTRY main {{\n{body}ROOT r = f32[4] negate(x)\n}}\n");
    let found = verify(&module(&text)).unwrap_err();
    assert_eq!((found.errors.len(), found.suppressed), (100, 50));
    assert!(found.errors.windows(2).all(|w| w[0].offset < w[1].offset));
}

/// What XLA accepts, here in forms that are easily refused by mistake.
#[test]
fn lenient_where_xla_is() {
    accept_body(
        "x = f32[4,6]{1,0:T(8,128)} parameter(0)
i = s32[] parameter(1)
a = f32[4,6]{0,1} copy(x)
b = bf16[4,6] add(x, a)
c = s8[3,7] custom-call(x), custom_call_target=\"AllocateBuffer\"
d = f32[4,6]{1,0:T(8,128)S(1)} copy(x)
e = (f32[4,6], f32[4,6], u32[]{:S(2)}) copy-start(x)
f = f32[4,6] copy-done(e)
tok = token[] after-all()
g = (f32[4,6], u32[], token[]) send(x, tok), channel_id=1
h = token[] send-done(g), channel_id=1
j = (f32[4,6], u32[], token[]) recv(h), channel_id=2
k = (f32[4,6], token[]) recv-done(j), channel_id=2
l = f32[1,1] dynamic-slice(x, i, i), dynamic_slice_sizes={1,1}
ROOT n = f32[24] reshape(k0)"
            .replace(
                "ROOT n = f32[24] reshape(k0)",
                "k0 = f32[4,6] get-tuple-element(k), index=0\nROOT n = f32[24] reshape(k0)",
            )
            .as_str(),
    );
}
