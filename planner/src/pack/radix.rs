//! Sorting many numbers by a key of few significant bits, in linear time.

/// Bits of a key looked at in one pass.
const DIGIT: u32 = 11;

/// Below this, comparing is quicker.
const FEW: usize = 2_000;

/// Elements between two questions whether to go on.
const ASKING: usize = 1 << 16;

/// Sorts `(key, number)` pairs by key; those of equal keys stay in their order. O(n) for each eleven bits of the
/// largest key. Asks before each of these whether to stop, and tells whether it did, with the list half sorted.
pub(super) fn sort_by_key(
    list: &mut Vec<(u64, u32)>,
    is_stopped: &mut dyn FnMut() -> bool,
) -> bool {
    if list.len() < FEW {
        list.sort_by_key(|it| it.0);
        return false;
    }
    let largest = list.iter().map(|it| it.0).max().unwrap_or(0);
    let mut other = vec![(0, 0); list.len()];
    let mut shift = 0;
    while shift < u64::BITS && largest >> shift > 0 {
        if is_stopped() {
            return true;
        }
        pass(list, &mut other, shift);
        std::mem::swap(list, &mut other);
        shift += DIGIT;
    }
    false
}

/// Sorts numbers by key, the largest first; those of equal keys stay in their order.
pub(super) fn sort_descending(list: &mut [u32], key: impl Fn(u32) -> u64) {
    let largest = list.iter().map(|&it| key(it)).max().unwrap_or(0);
    let mut keyed: Vec<(u64, u32)> = list.iter().map(|&it| (largest - key(it), it)).collect();
    sort_by_key(&mut keyed, &mut || false);
    for (place, it) in list.iter_mut().zip(keyed) {
        *place = it.1;
    }
}

/// The list in the order of a key of at most `limit`; those of equal keys stay in their order. Nothing when it was
/// stopped. O(n + limit).
pub(super) fn by_small_key<T: Copy + Default>(
    mut list: Vec<T>,
    limit: u32,
    key: impl Fn(&T) -> u32,
    is_stopped: &mut dyn FnMut() -> bool,
) -> Option<Vec<T>> {
    if list.len() < limit as usize / 16 {
        list.sort_by_key(key);
        return Some(list);
    }
    let mut next = vec![0u32; limit as usize + 1];
    for some in list.chunks(ASKING) {
        if is_stopped() {
            return None;
        }
        for it in some {
            next[key(it) as usize] += 1;
        }
    }
    first_places(&mut next);
    let mut sorted = vec![T::default(); list.len()];
    for some in list.chunks(ASKING) {
        if is_stopped() {
            return None;
        }
        for it in some {
            let place = &mut next[key(it) as usize];
            sorted[*place as usize] = *it;
            *place += 1;
        }
    }
    Some(sorted)
}

/// Turns numbers of things into the number of those before.
fn first_places(counts: &mut [u32]) {
    let mut first = 0;
    for place in counts {
        first += std::mem::replace(place, first);
    }
}

/// Distributes by one digit.
fn pass(from: &[(u64, u32)], into: &mut [(u64, u32)], shift: u32) {
    let digit = |key: u64| (key >> shift) as usize & ((1 << DIGIT) - 1);
    let mut next = vec![0u32; 1 << DIGIT];
    for it in from {
        next[digit(it.0)] += 1;
    }
    first_places(&mut next);
    for it in from {
        let place = &mut next[digit(it.0)];
        into[*place as usize] = *it;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::{by_small_key, sort_by_key};

    #[test]
    fn sorts_like_a_stable_sort() {
        for bits in [1, 11, 12, 40, 64] {
            let key = |at: u32| u64::from(at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits);
            let mut list: Vec<(u64, u32)> = (0..5_000).map(|at| (key(at), at)).collect();
            let mut expected = list.clone();
            expected.sort_unstable();
            assert!(!sort_by_key(&mut list, &mut || false));
            assert_eq!(list, expected, "{bits} bits");
        }
    }

    #[test]
    fn small_keys_sort_stably() {
        for limit in [0, 3, 700, 200_000] {
            let key = |at: u32| at.wrapping_mul(0x9e37_79b9) % (limit + 1);
            let list: Vec<(u32, u32)> = (0..5_000).map(|at| (key(at), at)).collect();
            let mut expected = list.clone();
            expected.sort_unstable();
            let sorted = by_small_key(list, limit, |it| it.0, &mut || false);
            assert_eq!(sorted, Some(expected), "{limit}");
        }
    }
}
