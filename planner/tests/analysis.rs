//! Values, live ranges, must-alias classes and may-share pairs of small programs, worked out by hand.

use slabplan_ir::plan::{Accounting, LiveInterval};
use slabplan_ir::target::MemorySpace;
use slabplan_ir::{Alignment, Bytes, Module, Target, text};
use slabplan_planner::dataflow::ValueId;
use slabplan_planner::donation::{Outcome, Unpaired};
use slabplan_planner::{Analysis, PlanConfig, PlanError, Planned, analyse, plan};

fn target() -> Target {
    let space = |id, name: &str| MemorySpace {
        id,
        name: name.to_owned(),
        capacity: Bytes::new(1 << 20).unwrap(),
        alignment: Alignment::ONE,
        bandwidth: 1.0,
    };
    Target {
        name: "test".to_owned(),
        spaces: vec![space(0, "hbm"), space(1, "vmem")],
        tilings: Vec::new(),
    }
}

fn parse(source: &str) -> Module {
    text::parse(source)
        .into_result()
        .expect("the test's module is right")
}

/// An analysed program, asked by the names that plans print: `x`, `body.param{1}`.
struct Program {
    module: Module,
    analysis: Analysis,
}

impl Program {
    fn new(source: &str) -> Self {
        let module = parse(source);
        let analysis = analyse(&module, &target(), &PlanConfig::default()).unwrap();
        Self { module, analysis }
    }

    fn value(&self, name: &str) -> ValueId {
        let (name, index) = name.split_once('{').unwrap_or((name, "}"));
        let index: Vec<u32> = index
            .trim_end_matches('}')
            .split(',')
            .filter_map(|n| n.parse().ok())
            .collect();
        let instr = self
            .module
            .instrs
            .keys()
            .find(|&i| self.module.name_of(i) == name)
            .unwrap_or_else(|| panic!("no instruction {name}"));
        let pos = self.analysis.flow.positions.at(&self.module, instr, &index);
        self.analysis.flow.at(pos.unwrap()).expect("an array")
    }

    fn live(&self, name: &str) -> Vec<(u32, u32)> {
        pairs(self.analysis.live.of(self.value(name)))
    }

    fn buffer_live(&self, name: &str) -> Vec<(u32, u32)> {
        let class = self.analysis.classes.of(self.value(name));
        pairs(&self.analysis.buffers[class].live)
    }

    fn same_buffer(&self, a: &str, b: &str) -> bool {
        let class = |n| self.analysis.classes.of(self.value(n));
        class(a) == class(b)
    }

    fn may_share(&self, a: &str, b: &str) -> bool {
        let class = |n| self.analysis.classes.of(self.value(n));
        let (a, b) = (class(a).min(class(b)), class(a).max(class(b)));
        self.analysis.may_share.contains(&(a, b))
    }
}

fn pairs(live: &[LiveInterval]) -> Vec<(u32, u32)> {
    live.iter().map(|r| (r.start, r.end)).collect()
}

/// Numbers of program order in comments.
const LOOP: &str = "
HloModule m, is_scheduled=true

cond {
  cp = (s32[], f32[4], f32[4]) parameter(0)        // 5
  ci = s32[] get-tuple-element(cp), index=0        // 6
  limit = s32[] constant(3)                        // 7
  ROOT more = pred[] compare(ci, limit), direction=LT  // 8
}

body {
  bp = (s32[], f32[4], f32[4]) parameter(0)        // 9
  bi = s32[] get-tuple-element(bp), index=0        // 10
  bx = f32[4] get-tuple-element(bp), index=1       // 11
  bw = f32[4] get-tuple-element(bp), index=2       // 12
  one = s32[] constant(1)                          // 13
  next = s32[] add(bi, one)                        // 14
  turned = f32[4] reverse(bx), dimensions={0}      // 15
  sum = f32[4] add(turned, bw)                     // 16
  again = f32[4] reverse(sum), dimensions={0}      // 17
  ROOT bt = (s32[], f32[4], f32[4]) tuple(next, again, bw)  // 18
}

ENTRY main {
  x = f32[4] parameter(0)                          // 0
  k = s32[] parameter(1)                           // 1
  count = s32[] negate(k)                          // 2
  start = f32[4] negate(x)                         // 3
  init = (s32[], f32[4], f32[4]) tuple(count, start, x)  // 4
  loop = (s32[], f32[4], f32[4]) while(init), condition=cond, body=body  // 19
  result = f32[4] get-tuple-element(loop), index=1  // 20
  ROOT out = f32[4] add(result, result)            // 21
}
";

#[test]
fn a_carry_is_one_value_in_condition_body_and_result() {
    let p = Program::new(LOOP);
    assert_eq!(p.value("cp{1}"), p.value("bp{1}"));
    assert_eq!(p.value("loop{1}"), p.value("bp{1}"));
    assert_eq!(p.value("result"), p.value("bx"));
    assert_ne!(p.value("start"), p.value("bx"));
    assert!(p.same_buffer("start", "bx") && p.same_buffer("bx", "again"));
    assert!(p.same_buffer("count", "next"));
}

#[test]
fn what_a_loop_passes_through_stays_the_value_it_was() {
    let p = Program::new(LOOP);
    for name in ["cp{2}", "bp{2}", "bw", "loop{2}"] {
        assert_eq!(p.value(name), p.value("x"), "{name}");
    }
}

#[test]
fn a_carry_is_free_between_its_last_read_and_the_next_one() {
    let p = Program::new(LOOP);
    assert_eq!(p.live("start"), [(3, 5)]);
    // Condition and body to the last read; then from the while to the last use of the result.
    assert_eq!(p.live("bp{1}"), [(5, 16), (19, 22)]);
    assert_eq!(p.live("again"), [(17, 19)]);
    assert_eq!(p.buffer_live("start"), [(3, 16), (17, 22)]);
    // The count is not used after the loop.
    assert_eq!(p.buffer_live("count"), [(2, 19)]);
    assert_eq!(p.live("turned"), [(15, 17)]);
    assert_eq!(p.live("x"), [(0, 22)]);
}

#[test]
fn branches_exclude_each_other() {
    let p = Program::new(
        "
HloModule m, is_scheduled=true
zero {
  p0 = f32[4] parameter(0)                         // 3
  ROOT r0 = f32[4] reverse(p0), dimensions={0}     // 4
}
one {
  p1 = f32[4] parameter(0)                         // 5
  t1 = f32[4] reverse(p1), dimensions={0}          // 6
  ROOT r1 = f32[4] reverse(t1), dimensions={0}     // 7
}
ENTRY main {
  which = pred[] parameter(0)                      // 0
  x = f32[4] parameter(1)                          // 1
  s = f32[4] negate(x)                             // 2
  c = f32[4] conditional(which, s, s), true_computation=zero, false_computation=one  // 8
  ROOT out = f32[4] add(c, c)                      // 9
}
",
    );
    assert_eq!(p.value("p0"), p.value("s"));
    // Dead at the end of branch 0, live again in branch 1: two intervals that touch.
    assert_eq!(p.live("s"), [(2, 5), (5, 7)]);
    assert_eq!(p.live("r0"), [(4, 5)]);
    assert_eq!(p.live("r1"), [(7, 8)]);
    assert_eq!(p.live("c"), [(8, 10)]);
    assert!(p.same_buffer("r0", "c") && p.same_buffer("r1", "c"));
    // In branch 1 the result's bytes are free until it is written.
    assert_eq!(p.buffer_live("c"), [(4, 5), (7, 10)]);
}

#[test]
fn asynchronous_operands_are_locked_until_the_done() {
    let p = Program::new(
        "
HloModule m, is_scheduled=true
ENTRY main {
  x = f32[4] parameter(0)                                  // 0
  s = f32[4] negate(x)                                     // 1
  begin = (f32[4], f32[4], u32[]) copy-start(s)            // 2
  other = f32[4] add(x, x)                                 // 3
  done = f32[4] copy-done(begin)                           // 4
  ROOT out = f32[4] add(done, other)                       // 5
}
",
    );
    assert_eq!(p.value("begin{1}"), p.value("s"));
    assert_eq!(p.value("done"), p.value("begin{0}"));
    assert_eq!(p.live("s"), [(1, 5)]);
    assert_eq!(p.live("begin{0}"), [(2, 6)]);
    assert_eq!(p.live("begin{2}"), [(2, 5)]);
}

#[test]
fn wrapped_computations_are_in_flight_until_the_done() {
    let p = Program::new(
        "
HloModule m, is_scheduled=true
wrapped {
  wp = f32[4] parameter(0)                                 // 2
  inner = f32[4] negate(wp)                                // 3
  ROOT wr = f32[4] reverse(inner), dimensions={0}          // 4
}
ENTRY main {
  x = f32[4] parameter(0)                                  // 0
  s = f32[4] negate(x)                                     // 1
  begin = ((f32[4]), f32[4], u32[]) async-start(s), calls=wrapped  // 5
  other = f32[4] add(x, x)                                 // 6
  done = f32[4] async-done(begin)                          // 7
  ROOT out = f32[4] add(done, other)                       // 8
}
",
    );
    assert_eq!(p.value("wp"), p.value("s"));
    assert_eq!(p.value("done"), p.value("wr"));
    assert_eq!(p.live("s"), [(1, 8)]);
    // Kept apart at 5, where the operation ends: inside, values follow one another; afterwards all are in flight.
    assert_eq!(p.live("inner"), [(3, 5), (5, 8)]);
    assert_eq!(p.live("wr"), [(4, 9)]);
    assert!(
        !p.may_share("s", "inner"),
        "the operand is read until the done"
    );
}

#[test]
fn a_donated_argument_is_free_until_its_output_is_written() {
    let p = Program::new(
        "
HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, must-alias) }
ENTRY main {
  x = f32[4] parameter(0)                          // 0
  s = f32[4] reverse(x), dimensions={0}            // 1
  t = f32[4] negate(s)                             // 2
  u = f32[4] reverse(t), dimensions={0}            // 3
  ROOT out = f32[4] reverse(u), dimensions={0}     // 4
}
",
    );
    assert!(p.same_buffer("x", "out"));
    assert_eq!(p.buffer_live("x"), [(0, 2), (4, 5)]);
    assert!(p.may_share("s", "t"));
    assert!(!p.may_share("t", "u"), "a reverse reads other elements");
}

#[test]
fn sharing_needs_a_dead_operand_of_the_same_bytes() {
    let p = Program::new(
        "
HloModule m, is_scheduled=true
ENTRY main {
  x = f32[4] parameter(0)
  a = f32[4] reverse(x), dimensions={0}
  b = f32[4] negate(a)
  c = f32[4] add(a, b)
  d = bf16[4] convert(c)
  e = f32[4] convert(d)
  ROOT out = f32[4] reverse(e), dimensions={0}
}
",
    );
    assert!(!p.may_share("a", "b"), "a is read again");
    assert!(p.may_share("a", "c") && p.may_share("b", "c"));
    assert!(
        !p.may_share("c", "d") && !p.may_share("d", "e"),
        "sizes differ"
    );
    assert!(
        !p.may_share("x", "a"),
        "an argument that is not donated is never written"
    );
}

#[test]
fn updates_in_place_are_one_buffer() {
    let p = Program::new(
        "
HloModule m, is_scheduled=true
fused {
  fp = f32[8] parameter(0)
  fu = f32[2] parameter(1)
  fi = s32[] parameter(2)
  ROOT fr = f32[8] dynamic-update-slice(fp, fu, fi)
}
ENTRY main {
  x = f32[8] parameter(0)
  u = f32[2] parameter(1)
  i = s32[] parameter(2)
  s = f32[8] negate(x)
  t = f32[8] fusion(s, u, i), kind=kLoop, calls=fused
  ROOT out = f32[8] dynamic-update-slice(t, u, i)
}
",
    );
    assert!(p.same_buffer("s", "t") && p.same_buffer("t", "out"));
}

#[test]
fn results_of_calls_live_on_in_the_caller() {
    let p = Program::new(
        "
HloModule m, is_scheduled=true
callee {
  q = f32[4] parameter(0)                          // 2
  ROOT r = f32[4] reverse(q), dimensions={0}       // 3
}
ENTRY main {
  x = f32[4] parameter(0)                          // 0
  s = f32[4] negate(x)                             // 1
  c = f32[4] call(s), to_apply=callee              // 4
  ROOT out = f32[4] add(c, c)                      // 5
}
",
    );
    assert_eq!(p.value("c"), p.value("r"));
    assert_eq!(p.live("s"), [(1, 4)]);
    assert_eq!(p.live("r"), [(3, 6)]);
}

#[test]
fn interference_is_an_error_that_names_both_values() {
    let module = parse(
        "
HloModule m, is_scheduled=true
ENTRY main {
  x = f32[8] parameter(0)
  u = f32[2] parameter(1)
  i = s32[] parameter(2)
  s = f32[8] negate(x)
  t = f32[8] dynamic-update-slice(s, u, i)
  ROOT out = f32[8] add(s, t)
}
",
    );
    let error = analyse(&module, &target(), &PlanConfig::default()).unwrap_err();
    assert!(matches!(error, PlanError::Interference { .. }));
    assert_eq!(
        error.to_string(),
        "%s and %t would need the same bytes (dynamic-update-slice %t writes over its operand 0) \
         while both are needed at %t; insert copies first"
    );
}

#[test]
fn one_computation_with_two_callers_is_refused() {
    let module = parse(
        "
HloModule m, is_scheduled=true
callee {
  ROOT q = f32[4] parameter(0)
}
ENTRY main {
  x = f32[4] parameter(0)
  c = f32[4] call(x), to_apply=callee
  ROOT d = f32[4] call(c), to_apply=callee
}
",
    );
    let error = analyse(&module, &target(), &PlanConfig::default()).unwrap_err();
    assert_eq!(
        error,
        PlanError::SharedComputation {
            computation: "callee".to_owned(),
            caller: "d".to_owned()
        }
    );
}

fn planned_in(module: &Module, accounting: Accounting) -> Planned {
    let config = PlanConfig {
        accounting,
        ..PlanConfig::default()
    };
    plan(module, &target(), &config).unwrap()
}

/// Under XLA's accounting, too, a temporary may lie in an argument after its last read and in an
/// output before it is written.
#[test]
fn temporaries_lodge_in_idle_arguments() {
    let source = "
HloModule m, is_scheduled=true, buffer_donor={ (0, {}) }
ENTRY main {
  x = f32[4] parameter(0)                          // 0
  a = f32[4] reverse(x), dimensions={0}            // 1
  b = f32[4] reverse(a), dimensions={0}            // 2
  ROOT out = f32[4] reverse(b), dimensions={0}     // 3
}
";
    let module = parse(source);
    let temp = |accounting| {
        let planned = planned_in(&module, accounting);
        assert!(
            planned
                .analysis
                .donations
                .iter()
                .any(|d| d.outcome == Outcome::Scratch)
        );
        let space = planned.plan.space(0).unwrap();
        (space.stats.temp.get(), space.slab.get())
    };
    // x [0, 2), a [1, 3), b [2, 4), out [3, 4): a lies in out, b in x.
    assert_eq!(temp(Accounting::Xla), (0, 32));
    // Two at a time, whoever they are.
    assert_eq!(temp(Accounting::Slab), (0, 32));
}

/// Beyond XLA, several temporaries lie side by side in one idle argument.
#[test]
fn temporaries_lodge_side_by_side() {
    let source = "
HloModule m, is_scheduled=true, buffer_donor={ (0, {}) }
ENTRY main {
  x = f32[8] parameter(0)                          // 0
  s = f32[4] slice(x), slice={[0:4]}               // 1
  a = f32[4] reverse(s), dimensions={0}            // 2
  b = f32[4] reverse(s), dimensions={0}            // 3
  ROOT out = f32[12] concatenate(a, b, s), dimensions={0} // 4
}
";
    let planned = planned_in(&parse(source), Accounting::Xla);
    let space = planned.plan.space(0).unwrap();
    // x [0, 2), s [1, 5), a [2, 5), b [3, 5), out [4, 5) and so idle until 4. s meets x, and out at its end;
    // a and b fill x, one behind the other.
    assert_eq!(space.stats.temp.get(), 16);
    assert_eq!(space.slab.get(), 32 + 48 + 16);
    assert!(space.optimal);
}

/// Two thirds and two thirds do not fit into one: the heap is proved to need the other.
#[test]
fn an_idle_argument_holds_whole_temporaries() {
    let source = "
HloModule m, is_scheduled=true, buffer_donor={ (0, {}) }
ENTRY main {
  x = f32[36] parameter(0)                         // 0
  s = f32[24] slice(x), slice={[0:24]}             // 1
  a = f32[24] reverse(s), dimensions={0}           // 2
  b = f32[24] reverse(s), dimensions={0}           // 3
  ROOT out = f32[48] concatenate(a, b), dimensions={0} // 4
}
";
    let planned = planned_in(&parse(source), Accounting::Xla);
    let space = planned.plan.space(0).unwrap();
    // s [1, 4) lies in out, which is idle until 4; then a and b are live, and x has room for one of them.
    assert_eq!(space.stats.temp.get(), 96);
    assert_eq!(space.slab.get(), 144 + 192 + 96);
    assert!(space.optimal);
}

/// Of donors without an output, the plan says why: none of its size, or all of them taken.
#[test]
fn donors_without_output_have_reasons() {
    let source = "
HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }, buffer_donor={ (1, {}), (2, {}), (3, {}) }
ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  z = f32[8] parameter(2)
  w = s32[6] parameter(3)
  a = f32[4] add(x, y)
  b = f32[8] negate(z)
  ROOT out = (f32[4], f32[8]) tuple(a, b)
}
";
    let found = slabplan_planner::donation::donations(&parse(source));
    let reasons: Vec<_> = found.into_iter().map(|d| d.unpaired).collect();
    let bytes = |n| Bytes::new(n).unwrap();
    assert_eq!(
        reasons,
        [
            None,
            Some(Unpaired::Taken(bytes(16))),
            Some(Unpaired::NotNamed([1].as_slice().into())),
            Some(Unpaired::Size(bytes(24))),
        ]
    );
}
