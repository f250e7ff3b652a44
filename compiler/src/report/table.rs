//! Aligned columns for terminals.

use std::fmt;

/// A table: the first row is the head; columns but the first are right-aligned, and the last one too unless it is prose.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    ends_in_prose: bool,
}

impl Table {
    /// A table with a head.
    pub fn new(head: &[&str]) -> Self {
        Self {
            rows: vec![head.iter().map(|s| (*s).to_owned()).collect()],
            ends_in_prose: false,
        }
    }

    /// Aligns the last column to the left: its cells are of very different lengths.
    pub fn ending_in_prose(mut self) -> Self {
        self.ends_in_prose = true;
        self
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |c: usize| {
            let cells = self.rows.iter().filter_map(|r| r.get(c));
            cells.map(|s| s.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (c, cell) in row.iter().enumerate() {
                let pad = widths[c] - cell.chars().count();
                let is_left = c == 0 || (self.ends_in_prose && c + 1 == columns);
                let before = if is_left { 0 } else { pad };
                line.push_str(if c == 0 { "  " } else { "   " });
                line.extend(std::iter::repeat_n(' ', before));
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', pad - before));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut t = Table::new(&["space", "slab"]);
        t.row(["hbm".to_owned(), "1.00GiB".to_owned()]);
        t.row(["vmem".to_owned(), "512B".to_owned()]);
        assert_eq!(
            t.to_string(),
            "  space      slab\n  hbm     1.00GiB\n  vmem       512B\n"
        );
    }

    #[test]
    fn prose_begins_at_one_column() {
        let mut t = Table::new(&["at", "saves", "rules"]).ending_in_prose();
        t.row(["%a".to_owned(), "8B".to_owned(), "one two".to_owned()]);
        t.row(["%long".to_owned(), "512B".to_owned(), "one".to_owned()]);
        assert_eq!(
            t.to_string(),
            "  at      saves   rules\n  %a         8B   one two\n  %long    512B   one\n"
        );
    }
}
