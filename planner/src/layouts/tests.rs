//! Whole assignments, with expectations worked out by hand.

use slabplan_ir::target::{MemorySpace, Target, Tiling};
use slabplan_ir::units::{Alignment, Bytes};
use slabplan_ir::{InstrId, Module};

use super::{EntryOrder, LayoutConfig, LayoutError, LayoutPlan, assign};
use crate::dataflow::Dataflow;
use crate::order::ProgramOrder;

/// A TPU with the tiles of 32- and 16-bit elements.
pub(crate) fn target() -> Target {
    let tiling = |bits, packing, compact: &[u64]| Tiling {
        bits,
        lanes: 128,
        sublanes: 8,
        compact_sublanes: compact.to_vec(),
        packing,
        rank1_min: 128 * packing,
        rank1_max: 1024,
    };
    Target {
        name: "test".to_owned(),
        spaces: vec![MemorySpace {
            id: 0,
            name: "hbm".to_owned(),
            capacity: Bytes::new(1 << 34).unwrap(),
            alignment: Alignment::new(512).unwrap(),
            bandwidth: 1e12,
        }],
        tilings: vec![tiling(32, 1, &[1, 2, 4]), tiling(16, 2, &[2, 4])],
    }
}

fn parse(text: &str) -> Module {
    slabplan_ir::text::parse(text).into_result().unwrap()
}

fn free() -> LayoutConfig {
    LayoutConfig {
        entry: EntryOrder::Free,
        ..LayoutConfig::default()
    }
}

fn plan(module: &Module, config: &LayoutConfig) -> LayoutPlan {
    assign(module, &target(), config).unwrap()
}

fn find(module: &Module, name: &str) -> InstrId {
    let found = module.instrs.keys().find(|&i| module.name_of(i) == name);
    found.unwrap()
}

/// The layout of the whole result of `name`.
fn layout(module: &Module, plan: &LayoutPlan, name: &str) -> String {
    let order = ProgramOrder::new(module).unwrap();
    let pos = Dataflow::new(module, &order)
        .positions
        .root(find(module, name));
    let (_, array) = plan.arrays.iter().find(|(p, _)| *p == pos).unwrap();
    array.layout.as_ref().unwrap().to_string()
}

fn copies(module: &Module, plan: &LayoutPlan) -> Vec<String> {
    let of = |c: &super::LayoutCopy| {
        let operand = module.instrs[c.user].operands[c.operand];
        let layout = c.array.layout.as_ref().unwrap();
        format!(
            "{} for {} {layout}",
            module.name_of(operand),
            module.name_of(c.user)
        )
    };
    plan.copies.iter().map(of).collect()
}

#[test]
fn a_narrow_array_turns_its_long_dimension_to_the_lanes() {
    // Row-major, 3 of 128 lanes hold data. The iota and its successor lie as the program likes; the
    // sum over all needs no order.
    let m = parse(
        "HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  i = f32[100000,3] iota(), iota_dimension=0
  n = f32[100000,3] negate(i)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(n, z), dimensions={0,1}, to_apply=add
}",
    );
    let plan = plan(&m, &LayoutConfig::default());
    assert_eq!(layout(&m, &plan, "i"), "{0,1:T(4,128)}");
    assert_eq!(layout(&m, &plan, "n"), "{0,1:T(4,128)}");
    assert!(plan.copies.is_empty() && plan.exact);
}

#[test]
fn given_arguments_are_copied_only_where_that_is_cheaper() {
    // As given, p takes 100000 * 128 floats. A copy in the order {0,1} takes 100096 * 4 and lets
    // the two results of 100000 * 128 take as little.
    let text = "HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  p = f32[100000,3] parameter(0)
  n = f32[100000,3] negate(p)
  c = f32[100000,3] cosine(n)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(c, z), dimensions={0,1}, to_apply=add
}";
    let m = parse(text);
    let given = plan(&m, &LayoutConfig::default());
    assert_eq!(layout(&m, &given, "p"), "{1,0:T(8,128)}");
    assert_eq!(layout(&m, &given, "c"), "{0,1:T(4,128)}");
    assert_eq!(copies(&m, &given), ["p for n {0,1:T(4,128)}"]);
    let unbound = plan(&m, &free());
    assert_eq!(layout(&m, &unbound, "p"), "{0,1:T(4,128)}");
    assert!(unbound.copies.is_empty());
    // If the result is given, too, nothing is gained by two copies around one operation.
    let m = parse("ENTRY e { p = f32[1000,256] parameter(0) ROOT n = f32[1000,256] negate(p) }");
    assert!(plan(&m, &LayoutConfig::default()).copies.is_empty());
}

#[test]
fn transposes_and_reshapes_become_bitcasts() {
    // The product writes any order: {0,1} makes the transpose a name for the same bytes.
    let m = parse(
        "ENTRY e {
  a = f32[64,256] parameter(0)
  b = f32[256,512] parameter(1)
  d = f32[64,512] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[512,64] transpose(d), dimensions={1,0}
  s = f32[64,8,64] reshape(t)
  ROOT n = f32[64,8,64] negate(s)
}",
    );
    let plan = plan(&m, &LayoutConfig::default());
    let names: Vec<&str> = plan.bitcasts.iter().map(|&i| m.name_of(i)).collect();
    assert_eq!(names, ["t", "s"]);
    assert_eq!(layout(&m, &plan, "t"), "{1,0:T(8,128)}");
    assert_eq!(layout(&m, &plan, "d"), "{0,1:T(8,128)}");
    assert!(plan.copies.is_empty());
}

#[test]
fn a_loop_carries_one_layout() {
    let m = parse(
        "HloModule m
cond { c = (s32[], f32[5000,2]) parameter(0) i = s32[] get-tuple-element(c), index=0
  k = s32[] constant(9) ROOT l = pred[] compare(i, k), direction=LT }
body { b = (s32[], f32[5000,2]) parameter(0) j = s32[] get-tuple-element(b), index=0
  one = s32[] constant(1) j1 = s32[] add(j, one) x = f32[5000,2] get-tuple-element(b), index=1
  y = f32[5000,2] negate(x) ROOT r = (s32[], f32[5000,2]) tuple(j1, y) }
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  z = s32[] constant(0)
  init = f32[5000,2] iota(), iota_dimension=0
  t = (s32[], f32[5000,2]) tuple(z, init)
  w = (s32[], f32[5000,2]) while(t), condition=cond, body=body
  o = f32[5000,2] get-tuple-element(w), index=1
  f = f32[] constant(0)
  ROOT r = f32[] reduce(o, f), dimensions={0,1}, to_apply=add
}",
    );
    let plan = plan(&m, &LayoutConfig::default());
    for name in ["init", "x", "y", "o"] {
        assert_eq!(layout(&m, &plan, name), "{0,1:T(2,128)}", "{name}");
    }
    assert!(plan.copies.is_empty());
}

#[test]
fn custom_calls_keep_their_order() {
    let m = parse(
        "ENTRY e {
  i = f32[5000,2] iota(), iota_dimension=0
  n = f32[5000,2] negate(i)
  ROOT c = f32[] custom-call(n), custom_call_target=\"k\", operand_layout_constraints={f32[5000,2]{1,0}}
}",
    );
    let plan = plan(&m, &LayoutConfig::default());
    // Both values in the wide order and one copy cost less than two padded values: 2 * 40 KB and
    // 2.56 MB against 2 * 2.56 MB.
    assert_eq!(layout(&m, &plan, "n"), "{0,1:T(2,128)}");
    assert_eq!(copies(&m, &plan), ["n for c {1,0:T(8,128)}"]);
}

#[test]
fn contradictions_are_reported() {
    let m = parse(
        "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }, entry_computation_layout={(f32[16,16]{1,0})->f32[16,16]{0,1}}
ENTRY e { p = f32[16,16] parameter(0) ROOT n = f32[16,16] negate(p) }",
    );
    let error = assign(&m, &target(), &LayoutConfig::default()).unwrap_err();
    assert!(matches!(error, LayoutError::Contradiction { .. }));
    assert_eq!(
        error.to_string(),
        "the layout given for parameter 0 wants %p in order {1,0}, but the layout given for the result wants %n, \
         which must lie in the same bytes, in order {0,1}"
    );
}
