//! Every order of small random modules is planned: the certificate is never above a slab, and the scheduler's slab is the
//! smallest.

mod random;

use std::fmt::Write;

use random::Random;
use slabplan_ir::target::MemorySpace;
use slabplan_ir::text::parse;
use slabplan_ir::verify::verify;
use slabplan_ir::{Alignment, Bytes, InstrId, Module, Target};
use slabplan_planner::copies::insert_copies;
use slabplan_planner::schedule::{Schedule, ScheduleConfig, nested, schedules};
use slabplan_planner::{PlanConfig, plan};

/// Modules of which every order is tried.
const MODULES: u64 = 60;

/// Orders that a module may have, so that trying them all stays quick.
const MAX_ORDERS: usize = 300;

#[test]
fn no_order_beats_the_certificate() {
    let target = target();
    let (mut modules, mut best, mut seed) = (0, 0, 0);
    while modules < MODULES {
        seed += 1;
        let m = random_module(seed);
        let Some(orders) = all_orders(&m) else {
            continue;
        };
        modules += 1;
        let found = schedules(&m, &target, &ScheduleConfig::default()).unwrap();
        let bound = found[0].bound().get();
        // What ends highest may fill more or less of its last step.
        let steps = |bytes: u64| bytes.div_ceil(16);
        let slabs = orders.iter().map(|order| {
            let mut module = m.clone();
            let entry = module.entry;
            module.computations[entry].instrs.clone_from(order);
            slab(module, &target)
        });
        let least = slabs.min().expect("a module has an order");
        assert!(bound <= least, "seed {seed}: bound {bound}, slab {least}");
        let ours = found.iter().map(|schedule| {
            let mut module = m.clone();
            schedule.apply(&mut module);
            slab(module, &target)
        });
        let ours = steps(ours.min().expect("there is a schedule"));
        let least = steps(least);
        assert!(
            ours >= least,
            "seed {seed}: {ours} is below all orders' {least}"
        );
        assert!(
            20 * ours <= 21 * least,
            "seed {seed}: {ours} against {least}"
        );
        best += u64::from(ours == least);
    }
    assert!(
        100 * best >= 95 * modules,
        "{best} of {modules} are the best"
    );
}

/// `a` is free while `u` lives, `b` while `v` does, and one of them comes back first: both must lie beside `u` and `v` if the
/// one that left last does not come back first.
#[test]
fn arguments_that_come_back_are_nested() {
    let m = parse(
        "HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}), {1}: (1, {}) }

ENTRY e {
a = f32[16] parameter(0)
b = f32[16] parameter(1)
u = f32[64] custom-call(a), custom_call_target=\"t\"
v = f32[64] custom-call(b), custom_call_target=\"t\"
x = f32[16] custom-call(u), custom_call_target=\"t\"
y = f32[16] custom-call(v), custom_call_target=\"t\"
ROOT r = (f32[16], f32[16]) tuple(x, y)
}
",
    );
    let m = m.into_result().expect("the module is right");
    let slab_in = |schedule: &Schedule| {
        let mut module = m.clone();
        schedule.apply(&mut module);
        slab(module, &target())
    };
    let config = ScheduleConfig::keep();
    let text = &schedules(&m, &target(), &config).expect("a schedule")[0];
    // Two vectors of 256 bytes, and beside them `b` and `a` of 64.
    assert_eq!(slab_in(text), 2 * 256 + 2 * 64);
    let found = nested(&m, &target(), &config, text).expect("schedules");
    assert!(!found.is_empty());
    for schedule in &found {
        assert_eq!(schedule.peak(), text.peak());
        // The argument that leaves last comes back first: one place beside the vectors will do.
        assert_eq!(slab_in(schedule), 2 * 256 + 64);
        assert!(
            nested(&m, &target(), &config, schedule)
                .expect("schedules")
                .is_empty()
        );
    }
}

fn slab(mut module: Module, target: &Target) -> u64 {
    module.is_scheduled = true;
    verify(&module).expect("the order keeps all dependences");
    insert_copies(&mut module, true).expect("copies settle");
    let planned = plan(&module, target, &PlanConfig::default()).expect("a plan");
    planned.plan.spaces[0].slab.get()
}

/// Space 0 in steps of 16 bytes.
fn target() -> Target {
    Target {
        name: "test".to_owned(),
        spaces: vec![MemorySpace {
            id: 0,
            name: "memory".to_owned(),
            capacity: Bytes::new(1 << 30).unwrap(),
            alignment: Alignment::new(16).unwrap(),
            bandwidth: 1.0,
        }],
        tilings: Vec::new(),
    }
}

/// Operations with and without results that may lie on operands, in-place updates, donated and kept arguments,
/// several results, control predecessors.
fn random_module(seed: u64) -> Module {
    let mut numbers = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut random = |n| numbers.below(n);
    // Arrays of a few sizes, so that some may share.
    let mut text = String::from("HloModule m, buffer_donor={ (0, {}) }\n\nENTRY e {\n");
    let mut arrays: Vec<(String, u64)> = Vec::new();
    for k in 0..2 {
        let size = [4, 12, 32][random(3) as usize];
        writeln!(text, "p{k} = f32[{size}] parameter({k})").unwrap();
        arrays.push((format!("p{k}"), size));
    }
    writeln!(text, "zero = s32[] parameter(2)").unwrap();
    for k in 0..6 {
        let (a, n) = arrays[random(arrays.len() as u64) as usize].clone();
        let same: Vec<&String> = arrays.iter().filter(|x| x.1 == n).map(|x| &x.0).collect();
        let b = same[random(same.len() as u64) as usize].clone();
        let control = match random(6) {
            0 => format!(", control-predecessors={{{}}}", arrays[arrays.len() - 1].0),
            _ => String::new(),
        };
        match random(5) {
            0 => {
                writeln!(text, "v{k} = f32[{n}] add({a}, {b}){control}").unwrap();
                arrays.push((format!("v{k}"), n));
            }
            1 => {
                writeln!(text, "v{k} = f32[{n}] negate({a}){control}").unwrap();
                arrays.push((format!("v{k}"), n));
            }
            2 => {
                let other = arrays.iter().filter(|x| x.1 <= n).cloned();
                let other: Vec<(String, u64)> = other.collect();
                let (update, _) = other[random(other.len() as u64) as usize].clone();
                writeln!(
                    text,
                    "v{k} = f32[{n}] dynamic-update-slice({a}, {update}, zero){control}"
                )
                .unwrap();
                arrays.push((format!("v{k}"), n));
            }
            3 => {
                let size = [4, 12, 32][random(3) as usize];
                writeln!(
                    text,
                    "t{k} = (f32[{size}], f32[{n}]) custom-call({a}, {b}), custom_call_target=\"t\"{control}
v{k} = f32[{size}] get-tuple-element(t{k}), index=0"
                )
                .unwrap();
                arrays.push((format!("v{k}"), size));
            }
            _ => {
                let size = [4, 12, 32, 64][random(4) as usize];
                writeln!(
                    text,
                    "v{k} = f32[{size}] custom-call({a}), custom_call_target=\"t\"{control}"
                )
                .unwrap();
                arrays.push((format!("v{k}"), size));
            }
        }
    }
    let (last, before) = (&arrays[arrays.len() - 1], &arrays[arrays.len() - 2]);
    writeln!(
        text,
        "ROOT r = (f32[{}], f32[{}]) tuple({}, {})\n}}",
        last.1, before.1, last.0, before.0
    )
    .unwrap();
    let module = parse(&text)
        .into_result()
        .unwrap_or_else(|e| panic!("{}\n{text}", e[0]));
    verify(&module).unwrap_or_else(|e| panic!("{e}\n{text}"));
    module
}

/// All orders of the entry with the parameters first, unless there are too many. An order in which parameters stand
/// later needs the same: their bytes are taken from the start.
fn all_orders(module: &Module) -> Option<Vec<Vec<InstrId>>> {
    let instrs = &module.entry().instrs;
    let place = |i: InstrId| instrs.iter().position(|&j| j == i).unwrap();
    let before: Vec<u32> = instrs
        .iter()
        .map(|&i| {
            let i = &module.instrs[i];
            let needed = i.operands.iter().chain(i.control_predecessors());
            needed.fold(0, |set, &n| set | 1 << place(n))
        })
        .collect();
    let params =
        (0..instrs.len()).filter(|&k| module.instrs[instrs[k]].parameter_number().is_some());
    let mut start: Vec<usize> = params.collect();
    let done = start.iter().fold(0u32, |set, &k| set | 1 << k);
    let mut orders = Vec::new();
    extend(&before, done, &mut start, &mut orders);
    (orders.len() <= MAX_ORDERS).then(|| {
        let named = |order: &Vec<usize>| order.iter().map(|&k| instrs[k]).collect();
        orders.iter().map(named).collect()
    })
}

fn extend(before: &[u32], done: u32, order: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
    if found.len() > MAX_ORDERS {
        return;
    }
    if order.len() == before.len() {
        found.push(order.clone());
        return;
    }
    for k in 0..before.len() {
        if done >> k & 1 == 0 && before[k] & !done == 0 {
            order.push(k);
            extend(before, done | 1 << k, order, found);
            order.pop();
        }
    }
}
