//! A run allocates its outputs and nothing else, however many instructions it executes.
#![allow(unsafe_code, reason = "a global allocator that counts")]

mod cases;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use cases::all_cases;
use slabplan::exec::{ExecConfig, Executable, HostArray};
use slabplan::{CompileConfig, compile, target};

thread_local! {
    /// Of this thread: others, of the pool that packing uses, come to rest in their own time.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends has no counter any more.
    let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_run_allocates_only_its_outputs() {
    let target = target::load("tpu-v5e").unwrap();
    let stage = "tpu.after.hlo";
    for case in all_cases() {
        let Some(module) = case.module(stage) else {
            continue;
        };
        let compiled = compile(module, &target, &CompileConfig::default()).unwrap();
        for poison in [false, true] {
            let config = ExecConfig {
                poison,
                ..ExecConfig::default()
            };
            let mut executable =
                Executable::new(&compiled.module, compiled.plan(), config).unwrap();
            let devices = executable.device_count();
            let inputs = case.inputs(&executable);
            let per_device = inputs.len() / devices;
            let lists: Vec<&[HostArray]> = (0..devices)
                .map(|d| &inputs[d * per_device..(d + 1) * per_device])
                .collect();
            let before = ALLOCATIONS.get();
            let outputs = executable.execute_devices(&lists).unwrap();
            let allocations = ALLOCATIONS.get() - before;
            // Bytes and dimensions of each output, a list for each device, and the list of those.
            let arrays: usize = outputs.iter().map(Vec::len).sum();
            let allowed = 2 * arrays + devices + 1;
            assert!(
                allocations <= allowed,
                "{}: {allocations} allocations, {allowed} allowed",
                case.name
            );
        }
    }
}
