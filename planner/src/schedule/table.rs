//! Lists of small numbers, one for each of many: rows of a sparse table.

/// For every row, a list of numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    first: Vec<u32>,
    items: Vec<u32>,
}

impl Table {
    /// An empty table, to be filled row by row with [`push_row`](Self::push_row).
    pub(super) fn new() -> Self {
        Self {
            first: vec![0],
            items: Vec::new(),
        }
    }

    /// Adds the next row: `items` sorted, each once.
    pub(super) fn push_set(&mut self, items: &mut Vec<u32>) {
        items.sort_unstable();
        items.dedup();
        self.push_row(items);
    }

    /// Adds the next row as it is.
    pub(super) fn push_row(&mut self, items: &[u32]) {
        self.items.extend_from_slice(items);
        self.first.push(self.items.len() as u32);
    }

    /// From `(row, item)` pairs: rows sorted, each item once. O(E log E).
    pub(super) fn from_pairs(rows: u32, mut pairs: Vec<(u32, u32)>) -> Self {
        pairs.sort_unstable();
        pairs.dedup();
        let mut first = vec![0u32; rows as usize + 1];
        for &(row, _) in &pairs {
            first[row as usize + 1] += 1;
        }
        for i in 1..first.len() {
            first[i] += first[i - 1];
        }
        Self {
            first,
            items: pairs.into_iter().map(|(_, item)| item).collect(),
        }
    }

    /// The rows that contain each of the numbers below `columns`.
    pub(super) fn transposed(&self, columns: u32) -> Self {
        let pairs = self.pairs().map(|(row, item)| (item, row)).collect();
        Self::from_pairs(columns, pairs)
    }

    /// All `(row, item)` pairs.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..self.len()).flat_map(|row| self.row(row).iter().map(move |&item| (row, item)))
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> u32 {
        self.first.len() as u32 - 1
    }

    /// The list of a row.
    pub(super) fn row(&self, row: u32) -> &[u32] {
        &self.items[self.first[row as usize] as usize..self.first[row as usize + 1] as usize]
    }
}
