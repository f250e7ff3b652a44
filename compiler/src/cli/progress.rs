//! A line that says how far a long run is, and Ctrl-C.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::exec::{RunProgress, Watch};

/// A run shorter than this shows nothing.
const QUIET: Duration = Duration::from_secs(1);
/// How often the line is drawn.
const EVERY: Duration = Duration::from_millis(100);

/// Runs `run`. Ctrl-C makes it stop through `watch`; on a terminal a line shows how far it is.
pub(super) fn watched<T>(watch: &Arc<Watch>, run: impl FnOnce() -> T) -> T {
    stop_on_interrupt(watch);
    if !std::io::stderr().is_terminal() {
        return run();
    }
    let finished = Finished::default();
    std::thread::scope(|scope| {
        scope.spawn(|| show(watch, &finished));
        // Tells the other thread even if `run` panics: the scope waits for it.
        let _guard = Guard(&finished);
        run()
    })
}

/// The first Ctrl-C stops the run at its next instruction, the second ends the process.
fn stop_on_interrupt(watch: &Arc<Watch>) {
    let watch = Arc::clone(watch);
    let asked = AtomicBool::new(false);
    // A handler that can't be installed leaves Ctrl-C as it is.
    let _ = ctrlc::set_handler(move || {
        if asked.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        watch.stop();
    });
}

#[derive(Default)]
struct Finished {
    flag: Mutex<bool>,
    changed: Condvar,
}

impl Finished {
    /// Waits for the end; false if it has not come after `time`.
    fn wait(&self, time: Duration) -> bool {
        let flag = self.flag.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(flag, time, |finished| !*finished);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

struct Guard<'a>(&'a Finished);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let mut flag = self.0.flag.lock().unwrap_or_else(PoisonError::into_inner);
        *flag = true;
        self.0.changed.notify_all();
    }
}

fn show(watch: &Watch, finished: &Finished) {
    let start = Instant::now();
    if finished.wait(QUIET) {
        return;
    }
    let bar = ProgressBar::new(PERMILLE);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}") {
        bar.set_style(style);
    }
    while !finished.wait(EVERY) {
        let progress = watch.progress();
        bar.set_position((progress.fraction() * PERMILLE as f64) as u64);
        bar.set_message(message(&progress, start.elapsed().as_secs_f64()));
    }
    bar.finish_and_clear();
}

/// Steps of the bar.
const PERMILLE: u64 = 1000;

/// How far the run is, and when it ends if the rest takes as long for each step as what is behind.
fn message(progress: &RunProgress, elapsed: f64) -> String {
    let behind = match progress.expected {
        Some(expected) => format!("{} of about {expected} steps", progress.steps),
        None => format!(
            "{} of {} instructions of the entry, {} steps",
            progress.done, progress.total, progress.steps
        ),
    };
    let fraction = progress.fraction();
    let left = if fraction > 0.0 && fraction < 1.0 {
        let left = elapsed * (1.0 - fraction) / fraction;
        format!(", about {left:.0} s left")
    } else {
        String::new()
    };
    format!("{behind} in {elapsed:.0} s{left}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_what_is_behind() {
        let mut progress = RunProgress {
            steps: 10,
            done: 1,
            total: 4,
            expected: Some(50),
        };
        assert_eq!(
            message(&progress, 3.0),
            "10 of about 50 steps in 3 s, about 12 s left"
        );
        // A loop that nobody knows the end of: by the entry alone.
        progress.expected = None;
        assert_eq!(
            message(&progress, 3.0),
            "1 of 4 instructions of the entry, 10 steps in 3 s, about 9 s left"
        );
        progress.done = 0;
        assert!(!message(&progress, 3.0).contains("left"));
        // More steps than expected: the estimate was low.
        progress.expected = Some(5);
        assert!(!message(&progress, 3.0).contains("left"));
    }

    #[test]
    fn a_watched_run_gives_its_result() {
        let watch = Arc::new(Watch::default());
        assert_eq!(watched(&watch, || 7), 7);
        assert!(!watch.is_stopped());
    }
}
