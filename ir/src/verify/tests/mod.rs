//! One module for each kind of error, with the error expected beside its instruction.

mod aliases;
mod broken;

use super::{ErrorKind, VerifyError, verify};
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
