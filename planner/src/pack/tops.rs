//! The highest byte in use by section, for ranges of sections: a segment tree that only ever rises.

/// Highest ends, by section.
pub(super) struct Tops {
    leaves: usize,
    /// By node: the highest end at some section under the node.
    highest: Vec<u64>,
    /// By node: an end that holds at every section under the node.
    everywhere: Vec<u64>,
}

impl Tops {
    pub(super) fn new(sections: u32) -> Self {
        let leaves = (sections.max(1) as usize).next_power_of_two();
        Self {
            leaves,
            highest: vec![0; 2 * leaves],
            everywhere: vec![0; 2 * leaves],
        }
    }

    /// Raises the sections `[begin, end)` to a height, where they are lower. O(log sections).
    pub(super) fn raise(&mut self, begin: u32, end: u32, height: u64) {
        let (mut low, mut high) = (begin as usize + self.leaves, end as usize + self.leaves);
        let (first, last) = (low, high - 1);
        // Before the nodes below them, so that a node as high as its ancestors need not look further up.
        for leaf in [first, last] {
            let mut node = leaf >> 1;
            while node >= 1 && self.highest[node] < height {
                self.highest[node] = height;
                node >>= 1;
            }
        }
        while low < high {
            if low & 1 == 1 {
                self.raise_node(low, height);
                low += 1;
            }
            if high & 1 == 1 {
                high -= 1;
                self.raise_node(high, height);
            }
            low >>= 1;
            high >>= 1;
        }
    }

    fn raise_node(&mut self, node: usize, height: u64) {
        self.highest[node] = self.highest[node].max(height);
        self.everywhere[node] = self.everywhere[node].max(height);
    }

    /// The highest end in the sections `[begin, end)`. O(log sections).
    pub(super) fn over(&self, begin: u32, end: u32) -> u64 {
        let (mut low, mut high) = (begin as usize + self.leaves, end as usize + self.leaves);
        let (first, last) = (low, high - 1);
        let mut most = 0;
        while low < high {
            if low & 1 == 1 {
                most = most.max(self.highest[low]);
                low += 1;
            }
            if high & 1 == 1 {
                high -= 1;
                most = most.max(self.highest[high]);
            }
            low >>= 1;
            high >>= 1;
        }
        for leaf in [first, last] {
            let mut node = leaf >> 1;
            while node >= 1 {
                most = most.max(self.everywhere[node]);
                node >>= 1;
            }
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::Tops;

    #[test]
    fn is_a_list_of_heights() {
        let (mut tops, mut list) = (Tops::new(37), vec![0u64; 37]);
        let mut state = 1u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % below
        };
        for step in 0..2_000 {
            let begin = random(37);
            let end = begin + 1 + random(37 - begin);
            let covered = begin as usize..end as usize;
            let expected = list[covered.clone()].iter().copied().max();
            assert_eq!(Some(tops.over(begin, end)), expected, "step {step}");
            let height = u64::from(random(1 + step));
            tops.raise(begin, end, height);
            list[covered]
                .iter_mut()
                .for_each(|it| *it = height.max(*it));
        }
    }
}
