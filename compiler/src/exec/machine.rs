//! What the machine that runs a program has: threads and memory.

use std::num::NonZeroUsize;

use crate::exec::ExecError;
use crate::exec::program::Program;

/// An error unless what a run takes of the machine's memory is within the limit.
pub(super) fn check_memory(program: &Program, limit: Option<u64>) -> Result<(), ExecError> {
    let limit = limit.unwrap_or_else(machine_memory);
    let on_all = |bytes: u64| bytes.saturating_mul(program.devices() as u64);
    // What is reserved beyond a slab is never touched, so that the machine need not have it.
    let slabs = program.slabs.iter().map(|s| s.bytes as u64);
    let slabs = on_all(slabs.fold(0, u64::saturating_add));
    let shared = [program.exchange, program.mail.total(), program.spare].map(|n| n as u64);
    let slabs = shared.into_iter().fold(slabs, u64::saturating_add);
    let arrays = program.inputs.iter().chain(&program.outputs);
    let arrays = arrays.map(|&leaf| program.info(leaf).map.dense_bytes() as u64);
    let arrays = on_all(arrays.fold(0, u64::saturating_add));
    if slabs.saturating_add(arrays) > limit {
        return Err(ExecError::OverLimit {
            slabs,
            arrays,
            limit,
        });
    }
    Ok(())
}

/// Bytes of memory that this machine has free, and the group of processes that this one belongs to; as many
/// as can be counted where the machine does not say.
pub fn machine_memory() -> u64 {
    let memory = sysinfo::MemoryRefreshKind::nothing().with_ram();
    let asked = sysinfo::RefreshKind::nothing().with_memory(memory);
    let Ok(system) = sysinfo::System::new_with_specifics(asked) else {
        return u64::MAX;
    };
    // What files take of a group's memory is given up when it is needed.
    let of_group = |g: sysinfo::CGroupLimits| g.total_memory.saturating_sub(g.rss);
    let of_group = system.cgroup_limits().map_or(u64::MAX, of_group);
    system.available_memory().min(of_group)
}

/// Threads that this machine runs at once.
pub fn machine_threads() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}
