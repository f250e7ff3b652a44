//! Watching a run from another thread: how far it is, and stopping it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Shared by a run and whoever watches it. All numbers are for one device, the one that runs now.
#[derive(Debug, Default)]
pub struct Watch {
    stop: AtomicBool,
    steps: AtomicU64,
    done: AtomicU32,
    total: AtomicU32,
    /// Zero if nobody knows.
    expected: AtomicU64,
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
    /// Steps that all devices will take, loops and what they call counted as often as they run, about:
    /// of conditionals every branch counts. `None` where the module does not say how often a loop runs
    /// (`known_trip_count`).
    pub expected: Option<u64>,
}

impl RunProgress {
    /// The part that is behind, from 0 to 1: of all steps, or of those of the entry computation where the
    /// number of all is unknown.
    pub fn fraction(&self) -> f64 {
        let part = match self.expected {
            Some(expected) => self.steps as f64 / expected.max(1) as f64,
            None => f64::from(self.done) / f64::from(self.total.max(1)),
        };
        part.min(1.0)
    }
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
            expected: match self.expected.load(Ordering::Relaxed) {
                0 => None,
                n => Some(n),
            },
        }
    }

    /// A run over `total` steps of the entry computation begins, and about `expected` in all.
    pub(crate) fn begin(&self, total: u32, expected: Option<u64>) {
        self.expected
            .store(expected.unwrap_or(0), Ordering::Relaxed);
        self.steps.store(0, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Another step begins, number `done` of the entry computation if it is one of those; false if the run
    /// is to stop.
    pub(crate) fn step(&self, done: Option<u32>) -> bool {
        // The run alone writes it: no need to lock the bus at every step.
        let steps = self.steps.load(Ordering::Relaxed);
        self.steps.store(steps.wrapping_add(1), Ordering::Relaxed);
        if let Some(done) = done {
            self.done.store(done, Ordering::Relaxed);
        }
        !self.is_stopped()
    }
}
