//! Several searches side by side, with one result for every number of threads.
//!
//! A problem that the packer does not settle at once is given to a fixed set of variations of it. Each is a sequence of
//! steps that depends on nothing but the problem, so *which steps came first* has a meaning without a clock: time is
//! counted in nodes. The variation that proves its packing optimal after the fewest nodes wins, and the others may stop
//! once they have spent more. Without a proof, the lowest packing wins, then the lowest variation. Threads decide only
//! how long that takes; a caller who stops the search takes what is there.

use slabplan_planner::pack::{
    self, Control, Effort, PackConfig, Packing, Problem, ProblemError, Progress,
};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::time::Duration;

/// How often the caller is asked when there is no progress.
const PERIOD: Duration = Duration::from_millis(10);

/// Questions of a search between two offers of its place to another.
const SLICE: u32 = 256;

/// Packs `problem` like [`pack::pack`]; where that leaves a gap, goes on with further variations, of which `threads` run
/// at a time. `watch` is asked on the calling thread.
pub fn pack(
    problem: &Problem,
    config: &PackConfig,
    threads: NonZeroUsize,
    watch: &mut dyn FnMut(&Progress) -> Control,
) -> Result<Packing, ProblemError> {
    let mut stopped = false;
    let alone = PackConfig {
        effort: config.effort.min(Effort::Default),
        ..*config
    };
    let first = pack::pack(problem, &alone, &mut |progress| {
        let control = watch(progress);
        stopped |= control == Control::Stop;
        control
    })?;
    let is_answered = first.optimal || (problem.capacity.is_some() && first.feasible);
    let variations: &[u32] = match config.effort {
        Effort::Fast => return Ok(first),
        Effort::Default if is_answered => return Ok(first),
        Effort::Max if first.optimal => return Ok(first),
        Effort::Default => &[1, 2, 3],
        Effort::Max => &[0, 1],
    };
    if stopped {
        return Ok(first);
    }
    let mut results = search(problem, config, variations, threads, watch)?;
    results.insert(0, first);
    Ok(best(&results))
}

/// Runs the variations; those that can no longer win are left out of the results.
fn search(
    problem: &Problem,
    config: &PackConfig,
    variations: &[u32],
    threads: NonZeroUsize,
    watch: &mut dyn FnMut(&Progress) -> Control,
) -> Result<Vec<Packing>, ProblemError> {
    let race = Race {
        places: Places::new(threads.get()),
        is_stopped: AtomicBool::new(false),
        proved_after: AtomicU64::new(u64::MAX),
    };
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let run = |&variation: &u32| {
            let (race, sender) = (&race, sender.clone());
            let config = PackConfig {
                variation: config.variation.wrapping_add(variation),
                ..*config
            };
            scope.spawn(move || race.run(problem, &config, &sender))
        };
        let tasks: Vec<_> = variations.iter().map(run).collect();
        drop(sender);
        let mut last = None;
        loop {
            match receiver.recv_timeout(PERIOD) {
                Ok(progress) => last = Some(progress),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            if last.is_some_and(|progress| watch(&progress) == Control::Stop) {
                race.is_stopped.store(true, Ordering::Relaxed);
            }
        }
        let mut results = Vec::new();
        for task in tasks {
            match task.join() {
                Ok(result) => results.extend(result?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(results)
    })
}

/// The result: the first proof in nodes, else the lowest packing; of equals, the earlier in the list. With a proof, the
/// effort is that of the first packing and of the proof: how far the others came is a matter of threads.
fn best(results: &[Packing]) -> Packing {
    let bound = results.iter().map(|it| it.lower_bound).max().unwrap_or(0);
    let proved = results
        .iter()
        .filter(|it| it.optimal)
        .min_by_key(|it| it.effort_spent);
    let chosen = proved.or_else(|| results.iter().min_by_key(|it| it.height));
    let mut packing = chosen.unwrap_or(&results[0]).clone();
    packing.lower_bound = bound;
    packing.optimal = packing.height == bound;
    packing.effort_spent = match proved {
        Some(proof) if !results[0].optimal => results[0].effort_spent + proof.effort_spent,
        Some(proof) => proof.effort_spent,
        None => results.iter().map(|it| it.effort_spent).sum(),
    };
    packing
}

/// What the variations know of each other.
struct Race {
    places: Places,
    is_stopped: AtomicBool,
    /// Nodes of the shortest proof so far.
    proved_after: AtomicU64,
}

impl Race {
    /// Runs one variation; no result when another has won.
    fn run(
        &self,
        problem: &Problem,
        config: &PackConfig,
        sender: &mpsc::Sender<Progress>,
    ) -> Result<Option<Packing>, ProblemError> {
        let (mut asked, mut has_lost) = (0u32, false);
        self.places.enter();
        let packing = pack::pack(problem, config, &mut |progress| {
            asked = asked.wrapping_add(1);
            if asked.is_multiple_of(SLICE) {
                self.places.leave();
                self.places.enter();
            }
            if asked.is_multiple_of(16) {
                // Nobody listens any more when the caller has stopped the search.
                let _ = sender.send(*progress);
            }
            has_lost |= progress.nodes > self.proved_after.load(Ordering::Relaxed);
            if has_lost || self.is_stopped.load(Ordering::Relaxed) {
                Control::Stop
            } else {
                Control::Continue
            }
        });
        self.places.leave();
        let packing = packing?;
        if packing.optimal {
            self.proved_after
                .fetch_min(packing.effort_spent, Ordering::Relaxed);
        }
        Ok((packing.optimal || !has_lost).then_some(packing))
    }
}

/// As many places as threads may run; who waits longest need not come first.
struct Places {
    free: Mutex<usize>,
    left: Condvar,
}

impl Places {
    fn new(count: usize) -> Self {
        Self {
            free: Mutex::new(count),
            left: Condvar::new(),
        }
    }

    fn enter(&self) {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.left.wait_while(free, |free| *free == 0);
        *waited.unwrap_or_else(PoisonError::into_inner) -= 1;
    }

    fn leave(&self) {
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::pack;
    use slabplan_planner::pack::{Buffer, Control, PackConfig, Problem, validate};
    use std::num::NonZeroUsize;

    /// Enough odd sizes that the first search leaves a gap.
    fn hard() -> Problem {
        let buffer = |id: u64| {
            let random = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            let start = random % 97;
            Buffer::new(
                id,
                start,
                start + 3 + random / 97 % 40,
                50 + random / 4_000 % 1_900,
            )
        };
        Problem {
            buffers: (0..220).map(buffer).collect(),
            ..Problem::default()
        }
    }

    #[test]
    fn one_result_for_every_number_of_threads() {
        let problem = hard();
        let run = |threads| {
            let threads = NonZeroUsize::new(threads).expect("not zero");
            let config = PackConfig::default();
            pack(&problem, &config, threads, &mut |_| Control::Continue).expect("sound")
        };
        let one = run(1);
        assert_eq!(validate(&problem, &one.offsets), Ok(one.height));
        assert_eq!(one, run(2));
        assert_eq!(one, run(3));
    }
}
