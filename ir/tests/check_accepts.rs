//! Sharing that is right, which the checker must not take for wrong; each beside its wrong twin.

mod check_support;

use check_support::{describe, parse, plan_apart, target};
use slabplan_ir::check::{InPlace, check, check_with};
use slabplan_ir::plan::{Plan, PlanValue};
use slabplan_ir::{BufferId, Module, Offset};

/// The buffer that holds `%name`.
fn buffer_of(module: &Module, plan: &Plan, name: &str) -> BufferId {
    let holds = |id: &BufferId| {
        let values = &plan.buffers[*id].values;
        values.iter().any(|v| module.name_of(v.instr) == name)
    };
    plan.buffers.keys().find(holds).unwrap()
}

/// Plans all values apart, then puts `%moved` on the place of `%onto`.
fn plan_with(module: &Module, moved: &str, onto: &str) -> Plan {
    let mut plan = plan_apart(module, &target(64));
    let place = plan.buffers[buffer_of(module, &plan, onto)].offset;
    let id = buffer_of(module, &plan, moved);
    plan.buffers[id].offset = place;
    describe(module, &mut plan);
    plan
}

/// Takes `%name` out of its must-alias class, to bytes of its own.
fn set_apart(module: &Module, plan: &mut Plan, name: &str) {
    let is_it = |v: &PlanValue| module.name_of(v.instr) == name;
    let shared = buffer_of(module, plan, name);
    let mut own = plan.buffers[shared].clone();
    plan.buffers[shared].values.retain(|v| !is_it(v));
    own.values.retain(is_it);
    own.offset = Offset::new(1 << 16).unwrap();
    plan.buffers.push(own);
    describe(module, plan);
}

/// Kinds of violation with `%moved` on the place of `%onto`.
#[track_caller]
fn violations(text: &str, moved: &str, onto: &str) -> Vec<&'static str> {
    let module = parse(text);
    let plan = plan_with(&module, moved, onto);
    match check(&module, &plan, &target(64)) {
        Ok(_) => Vec::new(),
        Err(v) => v.list.iter().map(|v| v.kind.name()).collect(),
    }
}

/// An entry computation of `x` and `y` (8 by 16) with `lines`, whose fusion runs `fused`.
fn fusion(fused: &str, lines: &str) -> String {
    format!(
        "HloModule m, is_scheduled=true

%sum (l: f32[], r: f32[]) -> f32[] {{
  %l = f32[] parameter(0)
  %r = f32[] parameter(1)
  ROOT %lr = f32[] add(%l, %r)
}}

%fused {fused}

ENTRY %main (x: f32[8,16], y: f32[1,16], i: s32[], j: s32[]) -> f32[8,16] {{
  %x = f32[8,16]{{1,0}} parameter(0)
  %y = f32[1,16]{{1,0}} parameter(1)
  %i = s32[] parameter(2)
  %j = s32[] parameter(3)
  %a = f32[8,16]{{1,0}} negate(%x)
{lines}
}}
"
    )
}

#[test]
fn elementwise_fusion_replaces_its_operand() {
    let text = fusion(
        "(p: f32[8,16]) -> f32[8,16] {
  %p = f32[8,16]{1,0} parameter(0)
  %b = f32[128]{0} bitcast(%p)
  %e = f32[128]{0} exponential(%b)
  %c = f32[8,16]{1,0} bitcast(%e)
  ROOT %s = f32[8,16]{1,0} add(%c, %p)
}",
        "  %f = f32[8,16]{1,0} fusion(%a), kind=kLoop, calls=%fused
  ROOT %r = f32[8,16]{1,0} cosine(%f)",
    );
    assert!(violations(&text, "f", "a").is_empty());
    // Back to front in the flat view.
    let text = text.replace(
        "f32[128]{0} exponential(%b)",
        "f32[128]{0} reverse(%b), dimensions={0}",
    );
    assert_eq!(violations(&text, "f", "a"), ["unsafe-in-place"]);
}

#[test]
fn bitcast_after_a_relayout_is_out_of_step() {
    let text = fusion(
        "(p: f32[8,16]) -> f32[8,16] {
  %p = f32[8,16]{1,0} parameter(0)
  %turned = f32[8,16]{0,1} copy(%p)
  %b = f32[128]{0} bitcast(%turned)
  %e = f32[128]{0} exponential(%b)
  ROOT %c = f32[8,16]{1,0} bitcast(%e)
}",
        "  %f = f32[8,16]{1,0} fusion(%a), kind=kLoop, calls=%fused
  ROOT %r = f32[8,16]{1,0} cosine(%f)",
    );
    assert_eq!(violations(&text, "f", "a"), ["unsafe-in-place"]);
}

#[test]
fn update_of_a_slice_that_was_read_at_the_same_place() {
    let text = fusion(
        "(p: f32[8,16], q: s32[], s: s32[]) -> f32[8,16] {
  %p = f32[8,16]{1,0} parameter(0)
  %q = s32[] parameter(1)
  %s = s32[] parameter(2)
  %zero = s32[] constant(0)
  %row = f32[1,16]{1,0} dynamic-slice(%p, %q, %zero), dynamic_slice_sizes={1,16}
  %new = f32[1,16]{1,0} exponential(%row)
  ROOT %u = f32[8,16]{1,0} dynamic-update-slice(%p, %new, %q, %zero)
}",
        "  %f = f32[8,16]{1,0} fusion(%a, %i, %j), kind=kLoop, calls=%fused
  ROOT %r = f32[8,16]{1,0} cosine(%f)",
    );
    assert!(violations(&text, "f", "a").is_empty());
}

/// Two updates of one parameter are two values: one of them needs a copy first.
#[test]
fn two_updates_of_one_parameter() {
    let text = fusion(
        "(p: f32[8,16], q: f32[1,16], s: s32[]) -> (f32[8,16], f32[8,16]) {
  %p = f32[8,16]{1,0} parameter(0)
  %q = f32[1,16]{1,0} parameter(1)
  %s = s32[] parameter(2)
  %zero = s32[] constant(0)
  %u = f32[8,16]{1,0} dynamic-update-slice(%p, %q, %s, %zero)
  %v = f32[8,16]{1,0} dynamic-update-slice(%p, %q, %zero, %zero)
  ROOT %o = (f32[8,16]{1,0}, f32[8,16]{1,0}) tuple(%u, %v)
}",
        "  %f = (f32[8,16]{1,0}, f32[8,16]{1,0}) fusion(%a, %y, %i), kind=kLoop, calls=%fused
  %g = f32[8,16]{1,0} get-tuple-element(%f), index=0
  %h = f32[8,16]{1,0} get-tuple-element(%f), index=1
  ROOT %r = f32[8,16]{1,0} add(%g, %h)",
    );
    let found = violations(&text, "f", "a");
    assert_eq!(found.first(), Some(&"results-overlap"), "{found:?}");
}

#[test]
fn reduction_beside_the_result() {
    let text = fusion(
        "(p: f32[8,16]) -> (f32[8,16], f32[8]) {
  %p = f32[8,16]{1,0} parameter(0)
  %e = f32[8,16]{1,0} exponential(%p)
  %zero = f32[] constant(0)
  %t = f32[8]{0} reduce(%e, %zero), dimensions={1}, to_apply=%sum
  ROOT %o = (f32[8,16]{1,0}, f32[8]{0}) tuple(%e, %t)
}",
        "  %f = (f32[8,16]{1,0}, f32[8]{0}) fusion(%a), kind=kLoop, calls=%fused
  %g = f32[8,16]{1,0} get-tuple-element(%f), index=0
  ROOT %r = f32[8,16]{1,0} cosine(%g)",
    );
    assert!(violations(&text, "f", "a").is_empty());
    // A value that needs the whole reduction first is out of step with its own operand.
    let mean = text.replace(
        "  ROOT %o = (f32[8,16]{1,0}, f32[8]{0}) tuple(%e, %t)",
        "  %w = f32[8,16]{1,0} broadcast(%t), dimensions={0}
  %d = f32[8,16]{1,0} subtract(%e, %w)
  ROOT %o = (f32[8,16]{1,0}, f32[8]{0}) tuple(%d, %t)",
    );
    assert_eq!(violations(&mean, "f", "a"), ["unsafe-in-place"]);
}

#[test]
fn element_width_and_layout_decide() {
    let body = |op: &str| {
        fusion(
            "(p: f32[8,16]) -> f32[8,16] {
  %p = f32[8,16]{1,0} parameter(0)
  ROOT %e = f32[8,16]{1,0} exponential(%p)
}",
            &format!("  {op}\n  ROOT %r = f32[8,16]{{1,0}} convert(%c)"),
        )
    };
    let same = body("%c = s32[8,16]{1,0} convert(%a)");
    assert!(violations(&same, "c", "a").is_empty());
    let narrow = body("%c = bf16[8,16]{1,0} convert(%a)");
    assert_eq!(violations(&narrow, "c", "a"), ["partial-overlap"]);
    let turned = body("%c = f32[8,16]{0,1} copy(%a)");
    assert_eq!(violations(&turned, "c", "a"), ["unsafe-in-place"]);
}

#[test]
fn the_back_end_is_believed_and_named() {
    let text = "HloModule m, is_scheduled=true

ENTRY %main (x: f32[32]) -> f32[32] {
  %x = f32[32]{0} parameter(0)
  %a = f32[32]{0} negate(%x)
  %flipped = f32[32]{0} reverse(%a), dimensions={0}
  ROOT %r = f32[32]{0} exponential(%flipped)
}
";
    let module = parse(text);
    let plan = plan_with(&module, "flipped", "a");
    assert!(check(&module, &plan, &target(64)).is_err());
    let report = check_with(&module, &plan, &target(64), InPlace::Promise).unwrap();
    let named = |v: &slabplan_ir::plan::PlanValue| module.name_of(v.instr).to_owned();
    let pairs: Vec<_> = report
        .promised
        .iter()
        .map(|p| (named(&p.result), named(&p.operand)))
        .collect();
    assert_eq!(pairs, [("flipped".to_owned(), "a".to_owned())]);
    let promise =
        r#"dimensions={0}, backend_config={"aliasing_operands":{"lists":[{"indices":["0","1"]}]}}"#;
    let module = parse(&text.replace("dimensions={0}", promise));
    let plan = plan_with(&module, "flipped", "a");
    let report = check(&module, &plan, &target(64)).unwrap();
    assert_eq!(report.promised.len(), 1);
}

#[test]
fn whether_it_fits_is_not_a_violation() {
    let module = parse(
        "HloModule m, is_scheduled=true

ENTRY %main (x: f32[32]) -> f32[32] {
  %x = f32[32]{0} parameter(0)
  ROOT %r = f32[32]{0} negate(%x)
}
",
    );
    let mut small = target(64);
    small.spaces[0].capacity = slabplan_ir::Bytes::new(255).unwrap();
    let plan = plan_apart(&module, &small);
    let report = check(&module, &plan, &small).unwrap();
    assert!(!report.fits && !report.spaces[0].fits && report.spaces[1].fits);
    assert_eq!(report.spaces[0].used.get(), 256);
    assert_eq!(
        (report.instructions, report.writes, report.reads),
        (2, 1, 2)
    );
}

/// Depth costs linear time and no stack.
#[test]
fn deep_nesting_is_linear() {
    const DEPTH: usize = 2000;
    let mut text = "HloModule deep, is_scheduled=true\n".to_owned();
    for n in 0..DEPTH {
        let inner = match n {
            0 => "%b0.v = f32[4]{0} negate(%b0.p)".to_owned(),
            _ => format!(
                "%b{n}.v = f32[4]{{0}} while(%b{n}.p), condition=%c{m}, body=%b{m}",
                m = n - 1
            ),
        };
        let pair = format!(
            "
%c{n} (c{n}.p: f32[4]) -> pred[] {{
  %c{n}.p = f32[4]{{0}} parameter(0)
  ROOT %c{n}.t = pred[] constant(true)
}}

%b{n} (b{n}.p: f32[4]) -> f32[4] {{
  %b{n}.p = f32[4]{{0}} parameter(0)
  ROOT {inner}
}}
"
        );
        text.push_str(&pair);
    }
    let last = DEPTH - 1;
    let entry = format!(
        "
ENTRY %main (x: f32[4]) -> f32[4] {{
  %x = f32[4]{{0}} parameter(0)
  %start = f32[4]{{0}} cosine(%x)
  ROOT %w = f32[4]{{0}} while(%start), condition=%c{last}, body=%b{last}
}}
"
    );
    text.push_str(&entry);
    let module = parse(&text);
    let plan = plan_apart(&module, &target(64));
    let report = check(&module, &plan, &target(64)).unwrap();
    assert!(report.reads < 20 * DEPTH as u64);
}

/// A kernel may overwrite what it has yet to read: the update is no reason to be in place.
#[test]
fn update_of_a_parameter_that_is_read_at_other_places() {
    let text = fusion(
        "(p: f32[8,16], q: s32[], s: s32[]) -> f32[8,16] {
  %p = f32[8,16]{1,0} parameter(0)
  %q = s32[] parameter(1)
  %s = s32[] parameter(2)
  %zero = s32[] constant(0)
  %row = f32[1,16]{1,0} dynamic-slice(%p, %s, %zero), dynamic_slice_sizes={1,16}
  %new = f32[1,16]{1,0} exponential(%row)
  ROOT %u = f32[8,16]{1,0} dynamic-update-slice(%p, %new, %q, %zero)
}",
        "  %f = f32[8,16]{1,0} fusion(%a, %i, %j), kind=kLoop, calls=%fused
  ROOT %r = f32[8,16]{1,0} cosine(%f)",
    );
    assert_eq!(violations(&text, "f", "a"), ["unsafe-in-place"]);
    // With bytes of its own the result is right.
    let module = parse(&text);
    let mut plan = plan_apart(&module, &target(64));
    set_apart(&module, &mut plan, "f");
    assert!(check(&module, &plan, &target(64)).is_ok());
}

/// A may-alias is a wish: where sizes differ with padding, the output lies elsewhere.
#[test]
fn a_may_alias_that_cannot_hold() {
    let text = "HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }

ENTRY %main (p: f32[16,8]) -> f32[8,16] {
  %p = f32[16,8]{1,0:T(8,128)} parameter(0)
  ROOT %y = f32[8,16]{1,0:T(8,128)} reshape(%p)
}
";
    let apart = |text: &str| {
        let module = parse(text);
        let mut plan = plan_apart(&module, &target(64));
        if plan.buffers.len() == 1 {
            set_apart(&module, &mut plan, "y");
        }
        match check(&module, &plan, &target(64)) {
            Ok(_) => Vec::new(),
            Err(v) => v.list.iter().map(|v| v.kind.name()).collect(),
        }
    };
    assert!(apart(text).is_empty());
    // It can hold, and must then; or it must hold whatever the sizes are.
    let same_size = text.replace("f32[16,8]", "f32[8,16]");
    assert!(apart(&same_size).contains(&"output-not-on-parameter"));
    let must = text.replace("may-alias", "must-alias");
    assert!(apart(&must).contains(&"output-not-on-parameter"));
}
