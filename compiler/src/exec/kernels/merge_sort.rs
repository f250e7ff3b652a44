//! A stable sort of indices in borrowed memory.
//!
//! The comparator is the user's program and may be inconsistent, so nothing
//! here depends on it for memory safety or termination.

/// An order of the numbers `0..len`, and room to merge.
#[derive(Debug)]
pub(super) struct Order<'a> {
    current: &'a mut [u8],
    spare: &'a mut [u8],
}

const WIDTH: usize = size_of::<u32>();
/// Runs of this length are sorted by insertion first.
const RUN: usize = 8;

impl<'a> Order<'a> {
    /// Bytes an order of `len` numbers needs.
    pub(super) fn bytes(len: usize) -> usize {
        2 * WIDTH * len
    }

    /// The numbers `0..len` in ascending order.
    pub(super) fn new(memory: &'a mut [u8], len: usize) -> Self {
        let (current, rest) = memory.split_at_mut(len * WIDTH);
        for (i, slot) in current.chunks_exact_mut(WIDTH).enumerate() {
            slot.copy_from_slice(&(i as u32).to_le_bytes());
        }
        Self {
            current,
            spare: &mut rest[..len * WIDTH],
        }
    }

    /// The number at place `i`.
    pub(super) fn get(&self, i: usize) -> u32 {
        read(self.current, i)
    }

    fn len(&self) -> usize {
        self.current.len() / WIDTH
    }
}

fn read(memory: &[u8], i: usize) -> u32 {
    let bytes = &memory[i * WIDTH..][..WIDTH];
    u32::from_le_bytes(bytes.try_into().expect("four bytes"))
}

fn write(memory: &mut [u8], i: usize, value: u32) {
    memory[i * WIDTH..][..WIDTH].copy_from_slice(&value.to_le_bytes());
}

/// Sorts so that no number comes after one it is `less` than; equals keep their order.
/// O(n log n) comparisons.
pub(super) fn merge_sort(order: &mut Order<'_>, mut less: impl FnMut(u32, u32) -> bool) {
    let n = order.len();
    for start in (0..n).step_by(RUN) {
        insertion_sort(order.current, start, n.min(start + RUN), &mut less);
    }
    let mut run = RUN;
    while run < n {
        for start in (0..n).step_by(2 * run) {
            let middle = n.min(start + run);
            let end = n.min(start + 2 * run);
            merge(order.current, order.spare, start, middle, end, &mut less);
        }
        std::mem::swap(&mut order.current, &mut order.spare);
        run *= 2;
    }
}

fn insertion_sort(
    memory: &mut [u8],
    start: usize,
    end: usize,
    less: &mut impl FnMut(u32, u32) -> bool,
) {
    for i in start + 1..end {
        let value = read(memory, i);
        let mut place = i;
        while place > start && less(value, read(memory, place - 1)) {
            let moved = read(memory, place - 1);
            write(memory, place, moved);
            place -= 1;
        }
        write(memory, place, value);
    }
}

fn merge(
    from: &[u8],
    to: &mut [u8],
    start: usize,
    middle: usize,
    end: usize,
    less: &mut impl FnMut(u32, u32) -> bool,
) {
    let (mut left, mut right) = (start, middle);
    for place in start..end {
        let take_right =
            right < end && (left == middle || less(read(from, right), read(from, left)));
        let taken = if take_right { &mut right } else { &mut left };
        write(to, place, read(from, *taken));
        *taken += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_stable_sort() {
        for n in [0usize, 1, 2, 7, 8, 9, 33, 100] {
            let keys: Vec<u32> = (0..n as u32)
                .map(|i| i.wrapping_mul(2_654_435_761) >> 29)
                .collect();
            let mut memory = vec![0; Order::bytes(n)];
            let mut order = Order::new(&mut memory, n);
            merge_sort(&mut order, |a, b| keys[a as usize] < keys[b as usize]);
            let mut expected: Vec<u32> = (0..n as u32).collect();
            expected.sort_by_key(|&i| keys[i as usize]);
            let found: Vec<u32> = (0..n).map(|i| order.get(i)).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn an_inconsistent_comparator_ends() {
        let mut memory = vec![0; Order::bytes(50)];
        let mut order = Order::new(&mut memory, 50);
        merge_sort(&mut order, |_, _| true);
        let mut found: Vec<u32> = (0..50).map(|i| order.get(i)).collect();
        found.sort_unstable();
        assert_eq!(found, (0..50).collect::<Vec<u32>>());
    }
}
