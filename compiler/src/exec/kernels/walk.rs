//! Walking the indices of a box in row-major order.

use smallvec::SmallVec;

use super::prepare::MAX_RANK;

/// Axes of a box: the size, and how far one step moves the position.
pub(super) type Axes = SmallVec<[(usize, usize); 6]>;

/// Merges neighbouring axes that step alike and drops those of size 1; outermost first.
pub(super) fn merge(axes: impl IntoIterator<Item = (usize, usize)>) -> Axes {
    let mut merged = Axes::new();
    for (size, step) in axes {
        match merged.last_mut() {
            _ if size == 1 => {}
            Some(outer) if outer.1 == step * size => *outer = (outer.0 * size, step),
            _ => merged.push((size, step)),
        }
    }
    merged
}

/// Number of indices in the box.
pub(super) fn volume(axes: &[(usize, usize)]) -> usize {
    axes.iter().map(|a| a.0).product()
}

/// A place in a box, moving in row-major order.
#[derive(Clone, Debug)]
pub(super) struct Walk<'a> {
    axes: &'a [(usize, usize)],
    index: [usize; MAX_RANK],
    position: usize,
}

impl<'a> Walk<'a> {
    /// At the first index of the box.
    pub(super) fn new(axes: &'a [(usize, usize)]) -> Self {
        Self {
            axes,
            index: [0; MAX_RANK],
            position: 0,
        }
    }

    /// The position of the current index.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// The current index.
    pub(super) fn index(&self) -> &[usize] {
        &self.index[..self.axes.len()]
    }

    /// Moves on; false (and back at the start) after the last index.
    pub(super) fn advance(&mut self) -> bool {
        for (i, &(size, step)) in self.index.iter_mut().zip(self.axes).rev() {
            *i += 1;
            if *i < size {
                self.position += step;
                return true;
            }
            *i = 0;
            self.position -= step * size.saturating_sub(1);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_in_row_major_order() {
        let axes = [(2, 10), (3, 1)];
        let mut walk = Walk::new(&axes);
        let mut seen = vec![walk.position()];
        while walk.advance() {
            seen.push(walk.position());
        }
        assert_eq!(seen, [0, 1, 2, 10, 11, 12]);
        assert_eq!(walk.position(), 0);
        assert_eq!(
            merge([(2, 12), (1, 5), (3, 4), (4, 1)]).as_slice(),
            [(24, 1)]
        );
    }
}
