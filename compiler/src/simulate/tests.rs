//! Every expected address and figure is worked out by hand from the rules in the allocators' headers.

use slabplan_ir::entity::{BufferId, EntityId};
use slabplan_ir::plan::LiveInterval;

use super::*;
use crate::{CompileConfig, compile, target};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

#[test]
fn bfc_grows_by_doubling_regions() {
    let mut a = Bfc::new(1 << 40, Growth::Regions);
    a.allocate(1).unwrap();
    assert_eq!((a.reserved(), a.in_use()), (2 * MIB, 256));
    // Does not fit what is left of 2 MiB; the next region is of 4 MiB.
    a.allocate(2 * MIB).unwrap();
    assert_eq!(a.reserved(), 6 * MIB);
    // The next would be of 8 MiB; doubled until it holds 20, and then not doubled again.
    a.allocate(20 * MIB).unwrap();
    assert_eq!(a.reserved(), 38 * MIB);
    a.allocate(33 * MIB).unwrap();
    assert_eq!(a.reserved(), 38 * MIB + 64 * MIB);
    assert_eq!(a.device_calls(), 4);
}

#[test]
fn bfc_takes_the_best_fit_and_splits_only_twice_the_size() {
    let mut a = Bfc::new(MIB, Growth::Preallocate);
    // Blocks of 1, 3 and 2 KiB with one of 256 bytes after each, then the holes are freed.
    let holes: Vec<Address> = [1, 3, 2]
        .map(|k| {
            let hole = a.allocate(k * KIB).unwrap();
            a.allocate(256).unwrap();
            hole
        })
        .into();
    for &hole in &holes {
        a.free(hole);
    }
    // The smallest hole of at least 1.5 KiB is that of 2 KiB, which is less than twice as large.
    let before = a.in_use();
    assert_eq!(a.allocate(1536), Some(holes[2]));
    assert_eq!(a.in_use() - before, 2 * KIB);
    // 3 KiB is at least twice 1.25 KiB: split, and the rest serves the next request.
    assert_eq!(a.allocate(1280), Some(holes[1]));
    assert_eq!(a.allocate(1792), Some(holes[1] + 1280));
}

#[test]
fn bfc_coalesces_with_both_neighbours() {
    let mut a = Bfc::new(3 * KIB, Growth::Preallocate);
    let blocks: Vec<Address> = (0..3).map(|_| a.allocate(KIB).unwrap()).collect();
    assert_eq!(a.allocate(256), None);
    a.free(blocks[0]);
    a.free(blocks[2]);
    assert_eq!(a.largest_free(), KIB);
    a.free(blocks[1]);
    assert_eq!(a.largest_free(), 3 * KIB);
    assert_eq!(a.allocate(3 * KIB), Some(0));
}

#[test]
fn bfc_takes_what_the_device_has_left() {
    let mut a = Bfc::new(5 * MIB + 100, Growth::Regions);
    a.allocate(2 * MIB).unwrap();
    // A region of 4 MiB is due; 3 MiB are left, a multiple of 256 bytes.
    a.allocate(MIB).unwrap();
    assert_eq!(a.reserved(), 5 * MIB);
    assert_eq!(a.allocate(2 * MIB + 1), None);
}

#[test]
fn caching_segments_by_size_of_the_request() {
    let mut a = Caching::new(1 << 40);
    a.allocate(1).unwrap();
    assert_eq!((a.reserved(), a.in_use()), (2 * MIB, 512));
    a.allocate(MIB).unwrap(); // Small still: the same segment.
    assert_eq!(a.reserved(), 2 * MIB);
    a.allocate(MIB + 1).unwrap();
    assert_eq!(a.reserved(), 22 * MIB);
    a.allocate(9 * MIB).unwrap(); // From the same 20 MiB.
    assert_eq!(a.reserved(), 22 * MIB);
    a.allocate(10 * MIB).unwrap(); // 9.998 MiB are left: a segment of its own.
    assert_eq!(a.reserved(), 32 * MIB);
    a.allocate(11 * MIB).unwrap(); // Rounded up to 12; the 1 MiB left over is not split off.
    assert_eq!(a.reserved(), 44 * MIB);
    assert_eq!(
        a.in_use(),
        512 + MIB + (MIB + 512) + 9 * MIB + 10 * MIB + 12 * MIB
    );
}

#[test]
fn caching_gives_free_segments_back_when_the_device_is_full() {
    let mut a = Caching::new(30 * MIB);
    let first = a.allocate(12 * MIB).unwrap();
    let second = a.allocate(12 * MIB).unwrap();
    a.free(first);
    a.free(second);
    assert_eq!(a.reserved(), 24 * MIB);
    // Neither segment holds 20 MiB, and 6 MiB are left.
    assert!(a.allocate(20 * MIB).is_some());
    assert_eq!(a.reserved(), 20 * MIB);
    assert_eq!(a.device_calls(), 2 + 2 + 1);
    assert!(a.allocate(12 * MIB).is_none());
}

#[test]
fn bump_falls_back_over_everything_that_is_free() {
    let mut a = Bump::new(1000);
    let (x, y, z) = (
        a.allocate(256).unwrap(),
        a.allocate(200).unwrap(),
        a.allocate(1).unwrap(),
    );
    assert_eq!([x, y, z], [0, 256, 512]);
    assert_eq!(a.allocate(256), None);
    a.free(y);
    assert_eq!(a.allocate(256), None, "the hole is lost");
    a.free(z);
    assert_eq!(a.allocate(512), Some(256));
    assert_eq!(a.reserved(), 768);
}

fn block(bytes: u64, live: &[(u32, u32)]) -> Block {
    Block {
        bytes,
        live: live
            .iter()
            .map(|&(start, end)| LiveInterval { start, end })
            .collect(),
        buffer: BufferId::from_index(0),
    }
}

#[test]
fn a_replay_frees_before_it_allocates() {
    // Two blocks that follow each other need the bytes of one.
    let trace = Trace {
        blocks: vec![block(1000, &[(0, 2)]), block(1000, &[(2, 3)])],
        events: vec![Event::At(0), Event::At(1), Event::At(2)],
        loops: Vec::new(),
        branches: Vec::new(),
        peak: 1000,
    };
    let replay = replay(&trace, &mut Bump::new(1 << 20), 2);
    assert_eq!(replay.peak_used, 1000);
    assert_eq!(replay.peak_in_use, 1024);
    assert_eq!((replay.allocations, replay.frees), (2, 1));
}

/// A loop of ten iterations whose body needs 1000 bytes at its first instruction and 2000 at its second.
const LOOP: &str = r#"HloModule m, is_scheduled=true
condition {
  c = (s32[], f32[1024]{0}) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  ten = s32[] constant(10)
  ROOT less = pred[] compare(i, ten), direction=LT
}
body {
  b = (s32[], f32[1024]{0}) parameter(0)
  j = s32[] get-tuple-element(b), index=0
  x = f32[1024]{0} get-tuple-element(b), index=1
  one = s32[] constant(1)
  k = s32[] add(j, one)
  wide = f32[2048]{0} concatenate(x, x), dimensions={0}
  y = f32[1024]{0} slice(wide), slice={[0:1024]}
  ROOT next = (s32[], f32[1024]{0}) tuple(k, y)
}
ENTRY main {
  zero = s32[] constant(0)
  start = f32[1024]{0} parameter(0)
  state = (s32[], f32[1024]{0}) tuple(zero, start)
  loop = (s32[], f32[1024]{0}) while(state), condition=condition, body=body, backend_config={"known_trip_count":{"n":"10"}}
  ROOT out = f32[1024]{0} get-tuple-element(loop), index=1
}
"#;

#[test]
fn loops_are_replayed_until_the_state_repeats_and_counted_in_full() {
    let module = slabplan_ir::text::parse(LOOP).into_result().unwrap();
    let target = target::load("cpu").unwrap();
    let compiled = compile(module, &target, &CompileConfig::default()).unwrap();
    let result = simulate(&compiled, 0, 1 << 30, Growth::Regions, &Kind::ALL, 2);
    assert!(result.fits());
    for row in &result.rows {
        let [l] = row.replay.loops.as_slice() else {
            panic!("one loop")
        };
        assert_eq!((l.trip_count, l.known, l.settled), (10, true, true));
        assert!(l.replayed <= 3, "{} iterations replayed", l.replayed);
        // Once: the argument, three constants, copies of what the loop would write over (`zero` and
        // `start`). Eleven times the condition's predicate, ten times `wide`.
        assert_eq!(row.replay.allocations, 6 + 11 + 10);
        // The predicate and `wide` each time, and the counter after the loop.
        assert_eq!(row.replay.frees, 11 + 10 + 1);
        // `start`, its copy, `wide`, and four scalars: the constants and the counter.
        assert_eq!(row.replay.peak_used, 4096 + 4096 + 8192 + 4 * 4);
        assert_eq!(row.replay.peak_used, result.trace.peak);
    }
}

#[test]
fn running_out_names_the_place_and_what_would_suffice() {
    let module = slabplan_ir::text::parse(LOOP).into_result().unwrap();
    let target = target::load("cpu").unwrap();
    let compiled = compile(module, &target, &CompileConfig::default()).unwrap();
    let result = simulate(&compiled, 0, 10_000, Growth::Regions, &[Kind::Bump], 2);
    assert!(!result.fits());
    let text = result.table(&compiled);
    assert!(text.contains("bump runs out of memory at %wide"), "{text}");
    assert!(result.rows[0].needs.unwrap() > 10_000);
}
