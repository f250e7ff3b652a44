//! The checker answers, and never panics, whatever the plan.

mod check_support;
mod numbers;

use check_support::{parse, plan_apart, target};
use numbers::Numbers;
use slabplan_ir::check::{MAX_VIOLATIONS, check};
use slabplan_ir::plan::{BufferKind, LiveInterval, Plan, PlanBuffer, PlanValue};
use slabplan_ir::{Alignment, Bytes, EntityId, InstrId, Offset};

/// Small, page-like, or near the largest number of bytes there is.
fn any_bytes(numbers: &mut Numbers) -> u64 {
    match numbers.below(6) {
        0 => i64::MAX as u64 - numbers.below(3) as u64,
        1 => numbers.next() >> 1,
        2 => 0,
        _ => numbers.below(64) as u64 * 8,
    }
}

fn spoil(plan: &mut Plan, numbers: &mut Numbers) {
    let n_buffers = plan.buffers.len();
    for _ in 0..=numbers.below(4) {
        let id = slabplan_ir::BufferId::from_index(numbers.below(n_buffers));
        let buffer = &mut plan.buffers[id];
        match numbers.below(8) {
            0 => buffer.offset = Offset::new(any_bytes(numbers)).unwrap(),
            1 => buffer.size = Bytes::new(any_bytes(numbers)).unwrap(),
            2 => buffer.space = numbers.below(11) as u32,
            3 => buffer.values.clear(),
            4 => buffer.values.push(PlanValue {
                instr: InstrId::from_index(numbers.below(60)),
                index: (0..numbers.below(3))
                    .map(|_| numbers.below(4) as u32)
                    .collect(),
            }),
            5 => buffer.live.push(LiveInterval {
                start: numbers.below(9) as u32,
                end: numbers.below(9) as u32,
            }),
            6 => {
                let space = numbers.below(plan.spaces.len());
                let space = &mut plan.spaces[space];
                space.space = numbers.below(9) as u32;
                space.alignment = Alignment::new(1 << numbers.below(62)).unwrap();
                space.slab = Bytes::new(any_bytes(numbers)).unwrap();
            }
            _ => {
                let copy = PlanBuffer {
                    kind: BufferKind::Output,
                    ..buffer.clone()
                };
                plan.buffers.push(copy);
            }
        }
    }
}

#[test]
fn any_plan_gets_an_answer() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/corrupt");
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut rejected = 0;
    for name in [
        "branches",
        "carried",
        "copied",
        "pieces",
        "update",
        "two_results",
    ] {
        let text = std::fs::read_to_string(dir.join(format!("{name}.hlo"))).unwrap();
        let module = parse(&text);
        let target = target(8);
        for _ in 0..2000 {
            let mut plan = plan_apart(&module, &target);
            spoil(&mut plan, &mut numbers);
            if let Err(v) = check(&module, &plan, &target) {
                rejected += 1;
                assert!(v.list.len() <= v.total && v.list.len() <= MAX_VIOLATIONS);
                assert!(v.list.iter().all(|v| !v.message.is_empty()));
            }
        }
    }
    // Most are wrong.
    assert!(rejected > 10_000, "{rejected}");
}
