//! A line that says how far a long run is, and Ctrl-C.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::exec::Watch;

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
    let bar = ProgressBar::new(u64::from(watch.progress().total));
    let template = "{bar:30} {pos}/{len} instructions of the entry, {msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    while !finished.wait(EVERY) {
        let progress = watch.progress();
        bar.set_position(u64::from(progress.done));
        let elapsed = start.elapsed().as_secs_f64();
        let left = remaining(elapsed, progress.done, progress.total);
        bar.set_message(format!("{} steps in {elapsed:.0} s{left}", progress.steps));
    }
    bar.finish_and_clear();
}

/// `, about 12 s left`: as if the rest took as long for each instruction as what is behind. Empty as
/// long as too little is.
fn remaining(elapsed: f64, done: u32, total: u32) -> String {
    if done == 0 || done >= total {
        return String::new();
    }
    let left = elapsed * f64::from(total - done) / f64::from(done);
    format!(", about {left:.0} s left")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_what_is_behind() {
        assert_eq!(remaining(3.0, 10, 50), ", about 12 s left");
        assert_eq!(remaining(3.0, 0, 50), "");
        assert_eq!(remaining(3.0, 50, 50), "");
    }

    #[test]
    fn a_watched_run_gives_its_result() {
        let watch = Arc::new(Watch::default());
        assert_eq!(watched(&watch, || 7), 7);
        assert!(!watch.is_stopped());
    }
}
