//! Watching a run from another thread: how far it is, and stopping it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Shared by a run and whoever watches it. All numbers are for one device, the one that runs now.
#[derive(Debug, Default)]
pub struct Watch {
    stop: AtomicBool,
    steps: AtomicU64,
    done: AtomicU32,
    total: AtomicU32,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunProgress {
    /// Steps taken so far, by all devices: instructions, jumps and calls.
    pub steps: u64,
    /// Steps of the entry computation that are behind, of [`total`](Self::total). A loop is one of them,
    /// however long it runs.
    pub done: u32,
    /// Steps of the entry computation.
    pub total: u32,
}

impl Watch {
    /// Makes the run end with [`ExecError::Stopped`](super::ExecError::Stopped) before its next
    /// instruction.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether [`stop`](Self::stop) was called.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// How far the run is.
    pub fn progress(&self) -> RunProgress {
        RunProgress {
            steps: self.steps.load(Ordering::Relaxed),
            done: self.done.load(Ordering::Relaxed),
            total: self.total.load(Ordering::Relaxed),
        }
    }

    /// A run over `total` steps of the entry computation begins.
    pub(crate) fn begin(&self, total: u32) {
        self.steps.store(0, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Another step begins, number `done` of the entry computation if it is one of those; false if the run
    /// is to stop.
    pub(crate) fn step(&self, done: Option<u32>) -> bool {
        self.steps.fetch_add(1, Ordering::Relaxed);
        if let Some(done) = done {
            self.done.store(done, Ordering::Relaxed);
        }
        !self.is_stopped()
    }
}
