//! Reductions of one array with one associative operation: whole stretches of memory at a time.
//!
//! Where the innermost dimension is folded away, some accumulators take the elements of a row
//! in turn and are folded together at its end; where it is kept, rows are added to a row of
//! accumulators. The order of all operations follows from the shape alone.

use super::accumulate::{ACCUMULATORS, Accumulate};
use super::convert::Convert;
use super::lanes::{Loop2, fill};
use super::reducer::{Reducer, Simple};
use super::walk::{Axes, Walk, merge, volume};
use super::{ArrayMut, ArrayRef, Run};

/// Accumulators of a row where they can't stay in registers; most accumulators side by side.
const LANES: usize = 256;
const COLUMNS: usize = 2048;
/// Elements of a row that are folded on their own, so that no accumulator takes in so many that rounding adds up.
const PIECE: usize = 1 << 13;
/// Rows shorter than this are not worth folding lane by lane.
const MIN_ROW: usize = 16;
/// Elements below which one thread does all.
const SEQUENTIAL: usize = 1 << 16;

/// A prepared reduction.
#[derive(Debug)]
pub(super) struct Folds {
    op: Loop2,
    /// The same with accumulators in registers.
    accumulate: Option<Accumulate>,
    /// Bytes of an element and of an accumulator, and the conversions between them.
    width: usize,
    wide: usize,
    widen: Option<(Convert, Convert)>,
    /// Dimensions of the result but those that `shape` walks, with steps in the operand.
    kept: Axes,
    /// Dimensions folded away but those that `shape` walks.
    reduced: Axes,
    shape: Shape,
    parts: usize,
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Rows of so many elements are folded away.
    Rows(usize),
    /// So many elements side by side are kept.
    Columns(usize),
}

impl Folds {
    /// For dimensions that are kept (size, step in operand and result, in the order of the result)
    /// and folded away (in the order of the operand); `None` where another way is needed.
    pub(super) fn new(
        reducer: &Reducer,
        kept: &[(usize, usize, usize)],
        reduced: &[(usize, usize)],
        threads: usize,
    ) -> Option<Self> {
        let Simple {
            op,
            accumulate,
            widen,
        } = reducer.simple()?;
        let mut expected = 1;
        let dense = kept.iter().rev().all(|&(size, _, step)| {
            let fits = step == expected;
            expected *= size;
            fits
        });
        if !dense || kept.iter().any(|k| k.0 == 0) || reduced.iter().any(|r| r.0 == 0) {
            return None;
        }
        let mut kept = merge(kept.iter().map(|k| (k.0, k.1)));
        let mut reduced = merge(reduced.iter().copied());
        let shape = match (kept.last(), reduced.last()) {
            (_, Some(&(size, 1))) if size >= MIN_ROW => {
                reduced.pop();
                Shape::Rows(size)
            }
            (Some(&(size, 1)), _) if size >= MIN_ROW => {
                kept.pop();
                Shape::Columns(size)
            }
            _ => return None,
        };
        let width = reducer.width(0);
        Some(Self {
            op,
            accumulate,
            width,
            wide: reducer.register_width(),
            widen,
            kept,
            reduced,
            shape,
            parts: threads,
        })
    }

    fn part_bytes(&self) -> usize {
        3 * COLUMNS * self.wide
    }

    /// Accumulators of a row.
    fn row_lanes(&self) -> usize {
        self.accumulate.map_or(LANES, |_| ACCUMULATORS)
    }

    /// Accumulators that a task keeps at a time, and results of one index of `kept`.
    fn columns(&self) -> usize {
        match self.shape {
            Shape::Rows(_) => 1,
            Shape::Columns(n) => n,
        }
    }

    /// Divides the indices of `kept` among tasks; `out` has the results from the first one on.
    fn split(
        &self,
        (first, last): (usize, usize),
        parts: usize,
        data: &[u8],
        init: &[u8],
        out: &mut [u8],
        scratch: &mut [u8],
    ) {
        let count = last - first;
        if parts <= 1 || count <= 1 {
            for index in first..last {
                let bytes = self.columns() * self.width;
                let out = &mut out[(index - first) * bytes..][..bytes];
                self.one(position(&self.kept, index), data, init, out, scratch);
            }
            return;
        }
        let low = parts / 2;
        let middle = first + (count * low / parts).max(1);
        let at = (middle - first) * self.columns() * self.width;
        let (low_out, high_out) = out.split_at_mut(at);
        let (low_scratch, high_scratch) = scratch.split_at_mut(low * self.part_bytes());
        rayon::join(
            || self.split((first, middle), low, data, init, low_out, low_scratch),
            || {
                self.split(
                    (middle, last),
                    parts - low,
                    data,
                    init,
                    high_out,
                    high_scratch,
                );
            },
        );
    }

    /// The results of one index of `kept`, whose elements start at `start`.
    fn one(&self, start: usize, data: &[u8], init: &[u8], out: &mut [u8], scratch: &mut [u8]) {
        let mut lanes = Lanes::new(self, scratch);
        match self.shape {
            Shape::Rows(row) => self.row(start, row, data, init, out, &mut lanes),
            Shape::Columns(columns) => {
                for first in (0..columns).step_by(COLUMNS) {
                    let n = COLUMNS.min(columns - first);
                    lanes.set(init, n);
                    let mut walk = Walk::new(&self.reduced);
                    loop {
                        let at = (start + first + walk.position()) * self.width;
                        lanes.add(&data[at..at + n * self.width]);
                        if !walk.advance() {
                            break;
                        }
                    }
                    lanes.get(n, &mut out[first * self.width..][..n * self.width]);
                }
            }
        }
    }

    /// One result from all its rows.
    fn row(
        &self,
        start: usize,
        row: usize,
        data: &[u8],
        init: &[u8],
        out: &mut [u8],
        lanes: &mut Lanes<'_>,
    ) {
        let mut total = [0; 16];
        let total = &mut total[..self.wide];
        lanes.set(init, 1);
        total.copy_from_slice(&lanes.accumulators[..self.wide]);
        let mut walk = Walk::new(&self.reduced);
        let most = self.row_lanes();
        // Pieces are folded on their own; short rows share one piece.
        let (mut held, mut filled) = (0, 0);
        loop {
            let at = (start + walk.position()) * self.width;
            let mut rest = &data[at..at + row * self.width];
            while !rest.is_empty() {
                let left = rest.len() / self.width;
                if filled == most && left >= most {
                    let lines = (left / most).min((PIECE - held).div_ceil(most));
                    let (now, later) = rest.split_at(lines * most * self.width);
                    lanes.add_lines(now, most);
                    held += lines * most;
                    rest = later;
                } else {
                    let n = most.min(left);
                    let (now, later) = rest.split_at(n * self.width);
                    let (old, new) = now.split_at(filled.min(n) * self.width);
                    lanes.add(old);
                    lanes.load(new, filled);
                    filled = filled.max(n);
                    held += n;
                    rest = later;
                }
                if held >= PIECE {
                    lanes.fold_into(filled, total);
                    (held, filled) = (0, 0);
                }
            }
            if !walk.advance() {
                break;
            }
        }
        if held > 0 {
            lanes.fold_into(filled, total);
        }
        match &self.widen {
            Some((_, narrow)) => narrow.apply(total, out),
            None => out.copy_from_slice(total),
        }
    }
}

fn position(axes: &Axes, index: usize) -> usize {
    let (mut rest, mut position) = (index, 0);
    for &(size, step) in axes.iter().rev() {
        position += rest % size * step;
        rest /= size;
    }
    position
}

impl Run for Folds {
    fn is_strided(&self) -> bool {
        true
    }

    fn scratch_bytes(&self) -> usize {
        self.parts * self.part_bytes()
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]) {
        let elements = operands[0].data.len() / self.width;
        let parts = if elements < SEQUENTIAL { 1 } else { self.parts };
        let all = (0, volume(&self.kept));
        self.split(
            all,
            parts,
            operands[0].data,
            operands[1].data,
            results[0].data,
            scratch,
        );
    }
}

/// Accumulators side by side.
struct Lanes<'a> {
    of: &'a Folds,
    accumulators: &'a mut [u8],
    /// Room for the next accumulators and for widened elements.
    next: &'a mut [u8],
    widened: &'a mut [u8],
}

impl<'a> Lanes<'a> {
    fn new(of: &'a Folds, scratch: &'a mut [u8]) -> Self {
        let bytes = COLUMNS * of.wide;
        let (accumulators, rest) = scratch.split_at_mut(bytes);
        let (next, rest) = rest.split_at_mut(bytes);
        Self {
            of,
            accumulators,
            next,
            widened: &mut rest[..bytes],
        }
    }

    /// Sets the first `n` to copies of an element.
    fn set(&mut self, element: &[u8], n: usize) {
        let out = &mut self.accumulators[..n * self.of.wide];
        match &self.of.widen {
            None => fill(element, out),
            Some((widen, _)) => {
                let mut wide = [0; 16];
                widen.apply(element, &mut wide[..self.of.wide]);
                fill(&wide[..self.of.wide], out);
            }
        }
    }

    /// Sets those from `first` on to elements.
    fn load(&mut self, elements: &[u8], first: usize) {
        let n = elements.len() / self.of.width;
        let out = &mut self.accumulators[first * self.of.wide..][..n * self.of.wide];
        match &self.of.widen {
            None => out.copy_from_slice(elements),
            Some((widen, _)) => widen.apply(elements, out),
        }
    }

    /// Adds elements to the first accumulators.
    fn add(&mut self, elements: &[u8]) {
        let n = elements.len() / self.of.width;
        let range = ..n * self.of.wide;
        let elements = match &self.of.widen {
            None => elements,
            Some((widen, _)) => {
                let wide = &mut self.widened[range];
                widen.apply(elements, wide);
                wide
            }
        };
        (self.of.op)(&self.accumulators[range], elements, &mut self.next[range]);
        if n == self.of.row_lanes() || n == COLUMNS {
            // There are no others: rows have no more, and of columns all are added to.
            std::mem::swap(&mut self.accumulators, &mut self.next);
        } else {
            self.accumulators[range].copy_from_slice(&self.next[range]);
        }
    }

    /// Adds lines of `n` elements to the first `n`, which all hold something.
    fn add_lines(&mut self, elements: &[u8], n: usize) {
        match self.of.accumulate {
            Some(accumulate) => accumulate(&mut self.accumulators[..n * self.of.wide], elements),
            None => elements
                .chunks(n * self.of.width)
                .for_each(|line| self.add(line)),
        }
    }

    /// Folds the first `n` together, in halves, and adds the result to `total`.
    fn fold_into(&mut self, n: usize, total: &mut [u8]) {
        let w = self.of.wide;
        let mut n = n;
        while n > 1 {
            let half = n.div_ceil(2);
            let low = (n - half) * w;
            let (lower, upper) = self.accumulators.split_at(half * w);
            (self.of.op)(&lower[..low], &upper[..low], &mut self.next[..low]);
            self.accumulators[..low].copy_from_slice(&self.next[..low]);
            n = half;
        }
        (self.of.op)(total, &self.accumulators[..w], &mut self.next[..w]);
        total.copy_from_slice(&self.next[..w]);
    }

    /// Writes the first `n` as elements.
    fn get(&self, n: usize, out: &mut [u8]) {
        let from = &self.accumulators[..n * self.of.wide];
        match &self.of.widen {
            None => out.copy_from_slice(from),
            Some((_, narrow)) => narrow.apply(from, out),
        }
    }
}
