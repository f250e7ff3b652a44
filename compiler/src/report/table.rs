//! Aligned columns for terminals.

use std::fmt;

/// A table: the first row is the head; columns but the first are right-aligned.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with a head.
    pub fn new(head: &[&str]) -> Self {
        Self {
            rows: vec![head.iter().map(|s| (*s).to_owned()).collect()],
        }
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
                let gap = if c == 0 { "  " } else { "   " };
                line.push_str(gap);
                if c > 0 {
                    line.extend(std::iter::repeat_n(' ', pad));
                }
                line.push_str(cell);
                if c == 0 {
                    line.extend(std::iter::repeat_n(' ', pad));
                }
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
}
