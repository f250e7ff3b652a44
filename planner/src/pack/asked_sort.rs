//! Sorting by comparison that can be stopped in the middle.

use std::cmp::Ordering;

/// Elements sorted or merged between two questions.
const RUN: usize = 1 << 11;

/// Sorts a list. Asks every few thousand steps whether to stop, and tells whether it did, with the list half sorted.
/// O(n log n).
pub(super) fn sort<T: Copy>(
    list: &mut [T],
    compare: impl Fn(&T, &T) -> Ordering,
    is_stopped: &mut dyn FnMut() -> bool,
) -> bool {
    if list.len() <= RUN {
        list.sort_unstable_by(compare);
        return false;
    }
    for run in list.chunks_mut(RUN) {
        if is_stopped() {
            return true;
        }
        run.sort_unstable_by(&compare);
    }
    let mut other = list.to_vec();
    let mut sorted = RUN;
    while sorted < list.len() {
        for (from, into) in list.chunks(2 * sorted).zip(other.chunks_mut(2 * sorted)) {
            let (low, high) = from.split_at(sorted.min(from.len()));
            if merge(low, high, into, &compare, is_stopped) {
                return true;
            }
        }
        list.copy_from_slice(&other);
        sorted *= 2;
    }
    false
}

/// Merges two sorted lists into one; true when it was stopped.
fn merge<'a, T: Copy>(
    mut low: &'a [T],
    mut high: &'a [T],
    into: &mut [T],
    compare: &impl Fn(&T, &T) -> Ordering,
    is_stopped: &mut dyn FnMut() -> bool,
) -> bool {
    for places in into.chunks_mut(RUN) {
        if is_stopped() {
            return true;
        }
        for place in places {
            let is_low = match (low.first(), high.first()) {
                (Some(a), Some(b)) => compare(a, b) != Ordering::Greater,
                (first, _) => first.is_some(),
            };
            let list = if is_low { &mut low } else { &mut high };
            let (first, rest) = list.split_at(1);
            (*place, *list) = (first[0], rest);
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{RUN, sort};

    fn shuffled(count: usize) -> Vec<u32> {
        (0..count as u32)
            .map(|it| it.wrapping_mul(0x9e37_79b9) >> 7)
            .collect()
    }

    #[test]
    fn sorts_lists_of_all_lengths() {
        for count in [
            0,
            1,
            RUN,
            RUN + 1,
            2 * RUN,
            3 * RUN + 7,
            8 * RUN,
            9 * RUN + 1,
        ] {
            let mut list = shuffled(count);
            let mut expected = list.clone();
            expected.sort_unstable();
            assert!(!sort(&mut list, Ord::cmp, &mut || false));
            assert_eq!(list, expected, "{count}");
        }
    }

    #[test]
    fn stops_when_told_to() {
        for questions in 0..20 {
            let (mut list, mut asked) = (shuffled(8 * RUN), 0);
            let is_stopped = sort(&mut list, Ord::cmp, &mut || {
                asked += 1;
                asked > questions
            });
            assert!(is_stopped, "{questions}");
            assert_eq!(asked, questions + 1);
        }
    }
}
