//! Plans corrupted one way at a time: the checker must reject those that brute force shows to be
//! wrong, and accept those that it shows to be right.

mod check_support;

use check_support::{describe, parse, plan_apart, simulate, target};
use slabplan_ir::check::check;
use slabplan_ir::plan::{Plan, PlanBuffer, to_text};
use slabplan_ir::{BufferId, Bytes, Module, Offset, Target};

const ALIGNMENT: u64 = 8;

/// Straight line: elementwise, reversed, fused, a view.
const LINE: &str = "HloModule line, is_scheduled=true

%both (p: f32[4], q: f32[4]) -> (f32[4], f32[4]) {
  %p = f32[4]{0} parameter(0)
  %q = f32[4]{0} parameter(1)
  %m = f32[4]{0} multiply(%p, %q)
  %back = f32[4]{0} reverse(%q), dimensions={0}
  %s = f32[4]{0} subtract(%m, %back)
  ROOT %t = (f32[4]{0}, f32[4]{0}) tuple(%m, %s)
}

ENTRY %main (x: f32[4]) -> (f32[4], f32[4]) {
  %x = f32[4]{0} parameter(0)
  %a = f32[4]{0} negate(%x)
  %b = f32[4]{0} reverse(%a), dimensions={0}
  %c = f32[2,2]{1,0} bitcast(%b)
  %d = f32[2,2]{1,0} exponential(%c)
  %e = f32[4]{0} bitcast(%d)
  %f = (f32[4]{0}, f32[4]{0}) fusion(%e, %a), kind=kLoop, calls=%both
  %g = f32[4]{0} get-tuple-element(%f), index=0
  %h = f32[4]{0} get-tuple-element(%f), index=1
  %k = f32[4]{0} add(%g, %h)
  %l = f32[4]{0} cosine(%k)
  ROOT %out = (f32[4]{0}, f32[4]{0}) tuple(%l, %k)
}
";

/// A loop with a changed and an unchanged carry, and a value that outlives it.
const LOOP: &str = "HloModule loop, is_scheduled=true

%condition (cp: (f32[4], f32[4])) -> pred[] {
  %cp = (f32[4]{0}, f32[4]{0}) parameter(0)
  %cx = f32[4]{0} get-tuple-element(%cp), index=0
  %ct = f32[4]{0} negate(%cx)
  %cu = f32[4]{0} cosine(%ct)
  %limit = pred[] constant(true)
  %found = pred[] custom-call(%cu), custom_call_target=\"any\"
  ROOT %more = pred[] and(%limit, %found)
}

%body (bp: (f32[4], f32[4])) -> (f32[4], f32[4]) {
  %bp = (f32[4]{0}, f32[4]{0}) parameter(0)
  %bx = f32[4]{0} get-tuple-element(%bp), index=0
  %same = f32[4]{0} get-tuple-element(%bp), index=1
  %s = f32[4]{0} add(%bx, %same)
  %t = f32[4]{0} exponential(%s)
  %bx.1 = f32[4]{0} reverse(%t), dimensions={0}
  ROOT %bt = (f32[4]{0}, f32[4]{0}) tuple(%bx.1, %same)
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %start = f32[4]{0} negate(%x)
  %kept = f32[4]{0} cosine(%x)
  %outside = f32[4]{0} sine(%x)
  %init = (f32[4]{0}, f32[4]{0}) tuple(%start, %kept)
  %w = (f32[4]{0}, f32[4]{0}) while(%init), condition=%condition, body=%body
  %wx = f32[4]{0} get-tuple-element(%w), index=0
  %sum = f32[4]{0} add(%wx, %outside)
  ROOT %out = f32[4]{0} subtract(%sum, %kept)
}
";

/// A loop in a loop; the inner one runs anew in each round of the outer.
const NESTED: &str = "HloModule nested, is_scheduled=true

%inner_condition (icp: f32[4]) -> pred[] {
  %icp = f32[4]{0} parameter(0)
  ROOT %imore = pred[] constant(true)
}

%inner_body (ibp: f32[4]) -> f32[4] {
  %ibp = f32[4]{0} parameter(0)
  %it = f32[4]{0} negate(%ibp)
  ROOT %ibx = f32[4]{0} cosine(%it)
}

%condition (cp: (f32[4], f32[4])) -> pred[] {
  %cp = (f32[4]{0}, f32[4]{0}) parameter(0)
  ROOT %more = pred[] constant(true)
}

%body (bp: (f32[4], f32[4])) -> (f32[4], f32[4]) {
  %bp = (f32[4]{0}, f32[4]{0}) parameter(0)
  %bx = f32[4]{0} get-tuple-element(%bp), index=0
  %same = f32[4]{0} get-tuple-element(%bp), index=1
  %s = f32[4]{0} add(%bx, %same)
  %iw = f32[4]{0} while(%s), condition=%inner_condition, body=%inner_body
  %bx.1 = f32[4]{0} multiply(%iw, %bx)
  ROOT %bt = (f32[4]{0}, f32[4]{0}) tuple(%bx.1, %same)
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %start = f32[4]{0} negate(%x)
  %kept = f32[4]{0} cosine(%x)
  %init = (f32[4]{0}, f32[4]{0}) tuple(%start, %kept)
  %w = (f32[4]{0}, f32[4]{0}) while(%init), condition=%condition, body=%body
  %wx = f32[4]{0} get-tuple-element(%w), index=0
  %wk = f32[4]{0} get-tuple-element(%w), index=1
  ROOT %out = f32[4]{0} subtract(%wx, %wk)
}
";

/// Branches with working bytes, one of which also passes through a call.
const BRANCHES: &str = "HloModule branches, is_scheduled=true

%callee (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %cn = f32[4]{0} negate(%p)
  ROOT %cr = f32[4]{0} reverse(%cn), dimensions={0}
}

%one (q: f32[4]) -> f32[4] {
  %q = f32[4]{0} parameter(0)
  %t = f32[4]{0} call(%q), to_apply=%callee
  ROOT %n = f32[4]{0} add(%t, %q)
}

%other (r: f32[4]) -> f32[4] {
  %r = f32[4]{0} parameter(0)
  ROOT %e = f32[4]{0} cosine(%r)
}

ENTRY %main (which: s32[], x: f32[4]) -> f32[4] {
  %which = s32[] parameter(0)
  %x = f32[4]{0} parameter(1)
  %a = f32[4]{0} negate(%x)
  %b = f32[4]{0} exponential(%x)
  %outside = f32[4]{0} sine(%x)
  %c = f32[4]{0} conditional(%which, %a, %b), branch_computations={%one, %other}
  ROOT %sum = f32[4]{0} add(%c, %outside)
}
";

/// Donation, an update in place, a constant.
const DONATED: &str =
    "HloModule donated, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }

ENTRY %main (x: f32[4], u: f32[2]) -> (f32[4], f32[4]) {
  %x = f32[4]{0} parameter(0)
  %u = f32[2]{0} parameter(1)
  %i = s32[] constant(1)
  %v = f32[2]{0} negate(%u)
  %y = f32[4]{0} exponential(%x)
  %updated = f32[4]{0} dynamic-update-slice(%y, %v, %i)
  %z = f32[4]{0} reverse(%updated), dimensions={0}
  %w = f32[4]{0} add(%z, %updated)
  %new = f32[4]{0} negate(%w)
  ROOT %out = (f32[4]{0}, f32[4]{0}) tuple(%new, %z)
}
";

/// A copy to another space and back, with work beside it.
const COPIES: &str = "HloModule copies, is_scheduled=true

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %a = f32[4]{0} negate(%x)
  %go = (f32[4]{0:S(1)}, f32[4]{0}, u32[]{:S(2)}) copy-start(%a)
  %b = f32[4]{0} cosine(%x)
  %c = f32[4]{0:S(1)} sine(%b)
  %there = f32[4]{0:S(1)} copy-done(%go)
  %d = f32[4]{0:S(1)} add(%there, %c)
  %come = (f32[4]{0}, f32[4]{0:S(1)}, u32[]{:S(2)}) copy-start(%d)
  %e = f32[4]{0:S(1)} exponential(%c)
  %f = f32[4]{0} negate(%b)
  %g = f32[4]{0} sine(%f)
  %back = f32[4]{0} copy-done(%come)
  %h = f32[4]{0} add(%back, %g)
  ROOT %out = f32[4]{0} add(%h, %e)
}
";

/// Counts of mutants by verdict.
#[derive(Default, Debug, PartialEq)]
struct Tally {
    wrong: u32,
    right: u32,
}

/// One mutant: the verdicts must agree.
fn judge(module: &Module, plan: &mut Plan, target: &Target, what: &str, tally: &mut Tally) -> bool {
    describe(module, plan);
    let wrong = simulate::is_wrong(module, plan, target);
    match (wrong, check(module, plan, target)) {
        (true, Ok(_)) => {
            panic!(
                "{what} is wrong and was accepted:\n{}",
                to_text(module, plan)
            );
        }
        (false, Err(v)) => {
            panic!(
                "{what} is right and was rejected: {v}\n{}",
                to_text(module, plan)
            );
        }
        _ => {}
    }
    *(if wrong {
        &mut tally.wrong
    } else {
        &mut tally.right
    }) += 1;
    !wrong
}

/// All mutants of the places in `plan`; those that are right are returned.
fn mutants(plan: &Plan) -> Vec<(String, Plan)> {
    let mut found: Vec<(String, Plan)> = Vec::new();
    let mut add = |what: String, change: &dyn Fn(&mut Plan)| {
        let mut mutant = plan.clone();
        change(&mut mutant);
        found.push((what, mutant));
    };
    let at = |n: u64| Offset::new(n).unwrap();
    for (id, buffer) in plan.buffers.iter() {
        let (offset, size) = (buffer.offset.get(), buffer.size.get());
        for moved in [
            offset + ALIGNMENT,
            offset.saturating_sub(ALIGNMENT),
            offset + 1,
        ] {
            add(format!("{id} moved to {moved}"), &|p| {
                p.buffers[id].offset = at(moved);
            });
        }
        for cut in [size - 1, size / 2] {
            add(format!("{id} cut to {cut}"), &|p| {
                p.buffers[id].size = Bytes::new(cut).unwrap();
            });
        }
        for space in 0..3 {
            add(format!("{id} to space {space}"), &|p| {
                p.buffers[id].space = space;
            });
        }
        for (other, place) in plan
            .buffers
            .iter()
            .filter(|(o, b)| *o != id && b.space == buffer.space)
        {
            let target = place.offset;
            add(format!("{id} on {other}"), &|p| {
                p.buffers[id].offset = target;
            });
            if id < other {
                add(format!("{id} and {other} swapped"), &|p| {
                    p.buffers[id].offset = target;
                    p.buffers[other].offset = at(offset);
                });
            }
        }
        for n in 1..buffer.values.len() {
            add(format!("value {n} of {id} apart"), &|p| split(p, id, n));
        }
    }
    found
}

/// Moves value `n` of a buffer to bytes of its own behind everything.
fn split(plan: &mut Plan, id: BufferId, n: usize) {
    let value = plan.buffers[id].values.remove(n);
    let space = plan.buffers[id].space;
    let end = plan
        .buffers
        .values()
        .filter(|b| b.space == space)
        .map(|b| b.offset.get() + b.size.get())
        .max()
        .unwrap();
    plan.buffers.push(PlanBuffer {
        offset: Offset::new(end.next_multiple_of(ALIGNMENT)).unwrap(),
        values: vec![value],
        ..plan.buffers[id].clone()
    });
}

/// Swaps each two neighbours that do not depend on each other.
fn reordered(module: &Module) -> Vec<(String, Module)> {
    let mut found = Vec::new();
    for comp in module.planned_computations() {
        let instrs = &module.computations[comp].instrs;
        for n in 1..instrs.len() {
            let (a, b) = (instrs[n - 1], instrs[n]);
            if module.instrs[b].operands.contains(&a) {
                continue;
            }
            let mut mutant = module.clone();
            mutant.computations[comp].instrs.swap(n - 1, n);
            let what = format!("%{} before %{}", module.name_of(b), module.name_of(a));
            found.push((what, mutant));
        }
    }
    found
}

/// Mutates the plan of `text`, goes on from a mutant that is right, and so on: plans become denser.
fn run(text: &str, rounds: usize) -> Tally {
    let module = parse(text);
    let target = target(ALIGNMENT);
    let mut plan = plan_apart(&module, &target);
    let mut tally = Tally::default();
    assert!(judge(&module, &mut plan, &target, "the plan", &mut tally));
    for round in 0..rounds {
        let mut right = Vec::new();
        for (what, mut mutant) in mutants(&plan) {
            let alike = mutant == plan;
            if !alike && judge(&module, &mut mutant, &target, &what, &mut tally) {
                right.push(mutant);
            }
        }
        for (what, reordered) in reordered(&module) {
            judge(&reordered, &mut plan, &target, &what, &mut tally);
        }
        // The smaller ones first; another of them in each round.
        right.sort_by_key(|p| p.spaces.iter().map(|s| s.slab).max());
        let n = round * 7 % right.len().clamp(1, 5);
        match right.into_iter().nth(n) {
            Some(next) => plan = next,
            None => break,
        }
    }
    println!("{tally:?}: every wrong one rejected, every right one accepted");
    assert!(tally.wrong > 100 && tally.right > 20);
    tally
}

#[test]
fn straight_line() {
    run(LINE, 3);
}

#[test]
fn a_loop() {
    run(LOOP, 3);
}

#[test]
fn nested_loops() {
    run(NESTED, 3);
}

#[test]
fn branches_and_calls() {
    run(BRANCHES, 3);
}

#[test]
fn donation_and_updates() {
    run(DONATED, 3);
}

#[test]
fn asynchronous_copies() {
    run(COPIES, 3);
}
