//! How many bytes are in use at every moment, kept up to date while buffers come and go.

use slabplan_ir::plan::LiveInterval;

/// Bytes by moment, in a tree over moments whose nodes know the most below them: adding to an interval, and finding
/// where most is, take O(log moments).
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Number of leaves, a power of two.
    leaves: usize,
    /// By node: the most below it, without what was added to nodes above.
    most: Vec<i64>,
    /// By node: added to everything below it.
    added: Vec<i64>,
}

impl Load {
    /// No bytes in use during `moments` moments.
    pub(crate) fn new(moments: u32) -> Self {
        let leaves = (moments.max(1) as usize).next_power_of_two();
        Self {
            leaves,
            most: vec![0; 2 * leaves],
            added: vec![0; 2 * leaves],
        }
    }

    /// Adds `bytes`, which may be negative, to every moment of `ranges`.
    pub(crate) fn add(&mut self, ranges: &[LiveInterval], bytes: i64) {
        for r in ranges.iter().filter(|r| r.start < r.end) {
            let (mut low, mut high) =
                (r.start as usize + self.leaves, r.end as usize + self.leaves);
            let (first, last) = (low, high - 1);
            while low < high {
                if low & 1 == 1 {
                    self.add_to(low, bytes);
                    low += 1;
                }
                if high & 1 == 1 {
                    high -= 1;
                    self.add_to(high, bytes);
                }
                low >>= 1;
                high >>= 1;
            }
            self.refresh_above(first);
            self.refresh_above(last);
        }
    }

    fn add_to(&mut self, node: usize, bytes: i64) {
        self.most[node] += bytes;
        self.added[node] += bytes;
    }

    fn refresh_above(&mut self, leaf: usize) {
        let mut node = leaf >> 1;
        while node >= 1 {
            self.most[node] = self.most[2 * node].max(self.most[2 * node + 1]) + self.added[node];
            node >>= 1;
        }
    }

    /// The most bytes in use at one moment.
    pub(crate) fn most(&self) -> i64 {
        self.most[1]
    }

    /// The first moment at which most bytes are in use.
    pub(crate) fn peak(&self) -> u32 {
        let mut node = 1;
        while node < self.leaves {
            let (left, right) = (2 * node, 2 * node + 1);
            node = if self.most[left] >= self.most[right] {
                left
            } else {
                right
            };
        }
        (node - self.leaves) as u32
    }

    /// The bytes in use at one moment.
    pub(crate) fn at(&self, moment: u32) -> i64 {
        let mut node = moment as usize + self.leaves;
        let mut bytes = 0;
        while node >= 1 {
            bytes += self.added[node];
            node >>= 1;
        }
        bytes
    }

    /// The most bytes in use at a moment of `ranges`.
    pub(crate) fn most_during(&self, ranges: &[LiveInterval]) -> i64 {
        ranges
            .iter()
            .map(|r| self.most_in(1, 0, self.leaves as u32, *r))
            .max()
            .unwrap_or(0)
    }

    fn most_in(&self, node: usize, first: u32, end: u32, r: LiveInterval) -> i64 {
        if r.end <= first || end <= r.start {
            return 0;
        }
        if r.start <= first && end <= r.end {
            return self.most[node];
        }
        let middle = first + (end - first) / 2;
        let left = self.most_in(2 * node, first, middle, r);
        self.added[node] + left.max(self.most_in(2 * node + 1, middle, end, r))
    }
}
