//! The matrix product that `dot` and `convolution` are built from.
//!
//! Both matrices are seen as [`Lines`]: rows of the left one, columns of the right one. Blocks of
//! them are packed into panels that stay in the caches while a [tile](tile) of the result is kept
//! in registers (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008).
//! Packing reads any layout, so that operands are never brought into another one as a whole.
//!
//! Every entry of the result is a sum in the order of the depth, in parts of [`DEPTH`]: whatever
//! the block it is computed in, and whatever the number of threads, it comes out the same.

mod strided;
mod tile;
mod vector;

use slabplan_ir::ElementType;

pub(super) use strided::{Matrix, StridedLines, StridedSink, copy_line, position};
pub(super) use tile::Accumulator;
use tile::{LINE, ROWS, Sums};
pub(super) use vector::{is_vector, multiply_vector};

/// Depth, rows and bytes of a row's panels that are packed at a time.
const DEPTH: usize = 256;
const BLOCK_ROWS: usize = 240;
const BLOCK_LINES: usize = 32;
/// Most tiles that the rows of a block are divided into.
const BLOCK_TILES: usize = BLOCK_ROWS / ROWS + 5;
/// Up to so many rows the right matrix is not packed if it can be read as it lies.
const FEW_ROWS: usize = 24;

/// The element type that products with results of type `ty` are accumulated in: `f32` for narrow
/// floats, integers that wrap as the result does, and for `pred` the number of pairs that are true.
pub(super) fn accumulator_type(ty: ElementType) -> Option<ElementType> {
    use ElementType as E;
    Some(match ty {
        E::F64 | E::C64 | E::C128 => ty,
        _ if ty.is_float() => E::F32,
        E::Pred => E::S64,
        _ if ty.is_integer() && ty.bits() <= 32 => E::S32,
        _ if ty.is_integer() => E::S64,
        _ => return None,
    })
}

/// `body` with `$t` bound to the Rust type of an accumulator type.
macro_rules! match_accumulator {
    ($ty:expr, $t:ident => $body:expr) => {{
        use slabplan_ir::ElementType as E;
        match $ty {
            E::S32 => {
                type $t = i32;
                $body
            }
            E::S64 => {
                type $t = i64;
                $body
            }
            field => $crate::exec::kernels::field::match_field!(
                field, $t => $body,
                _ => unreachable!("{field} is no accumulator type")
            ),
        }
    }};
}
pub(super) use match_accumulator;

/// The lines of one matrix along which entries are multiplied and added up.
pub(super) trait Lines: Sync {
    /// Copies the entries `depth.0..depth.1` of `count` lines from `first` on: entry `l` of line
    /// `i` to element `l * width + i` of `panel`. The places of lines past `count` become zero.
    /// Returns the range of entries that may differ from zero; only those need to be written.
    fn pack<T: Accumulator>(
        &self,
        first: usize,
        count: usize,
        depth: (usize, usize),
        width: usize,
        panel: &mut [u8],
    ) -> (usize, usize);

    /// Where neighbouring lines lie side by side: the bytes from the entry at `first` and `depth`
    /// on, and the elements from one entry of a line to the next.
    fn in_place<T: Accumulator>(&self, _first: usize, _depth: usize) -> Option<(&[u8], usize)> {
        None
    }
}

/// Where a product goes.
pub(super) trait Sink {
    /// Sets the entries of `row` from `column` on if they are the first part of the sum, and adds
    /// to them otherwise.
    fn put<T: Accumulator>(&mut self, row: usize, column: usize, values: &[u8], first: bool);
}

/// Sizes of a product.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Rows of the left matrix and of the result.
    pub(super) rows: usize,
    /// Columns of the right matrix and of the result.
    pub(super) columns: usize,
    /// Entries that each sum is taken over.
    pub(super) depth: usize,
}

impl Size {
    /// Bytes of scratch, at any alignment, that [`multiply`] needs; `None` past `usize`.
    pub(super) fn scratch_bytes(self, element: usize) -> Option<usize> {
        let (left, right) = self.panel_bytes(element)?;
        left.checked_add(right)?.checked_add(ALIGNMENT)
    }

    /// Bytes of the packed blocks.
    fn panel_bytes(self, element: usize) -> Option<(usize, usize)> {
        let depth = self.depth.min(DEPTH);
        let rows = self.rows.checked_next_multiple_of(ROWS)?.min(BLOCK_ROWS);
        let lines = self
            .columns
            .div_ceil(columns_of_line(element))
            .min(BLOCK_LINES);
        Some((rows * depth * element, lines * depth * LINE))
    }
}

const ALIGNMENT: usize = 64;

fn columns_of_line(element: usize) -> usize {
    LINE / element
}

/// Multiplies rows `rows.0..rows.1` of `lhs` with all columns of `rhs`.
///
/// `scratch` has at least [`Size::scratch_bytes`]. Row `rows.0` is row 0 of the sink.
pub(super) fn multiply<T: Accumulator>(
    lhs: &impl Lines,
    rhs: &impl Lines,
    size: Size,
    rows: (usize, usize),
    sink: &mut impl Sink,
    scratch: &mut [u8],
) {
    T::dispatch(Multiply::<T, _, _, _> {
        lhs,
        rhs,
        size,
        rows,
        sink,
        scratch,
        element: std::marker::PhantomData,
    });
}

struct Multiply<'a, T, L, R, S> {
    lhs: &'a L,
    rhs: &'a R,
    size: Size,
    rows: (usize, usize),
    sink: &'a mut S,
    scratch: &'a mut [u8],
    element: std::marker::PhantomData<T>,
}

impl<T: Accumulator, L: Lines, R: Lines, S: Sink> pulp::WithSimd for Multiply<'_, T, L, R, S> {
    type Output = ();

    #[inline(always)]
    #[allow(
        clippy::inline_always,
        reason = "the loops must use the dispatched instructions"
    )]
    fn with_simd<V: pulp::Simd>(self, simd: V) {
        let Size { columns, depth, .. } = self.size;
        let aligned = self.scratch.as_ptr().align_offset(ALIGNMENT);
        let (left_bytes, right_bytes) = self.size.panel_bytes(T::BYTES).unwrap_or((0, 0));
        let (left, right) = self.scratch[aligned..].split_at_mut(left_bytes);
        let right = &mut right[..right_bytes];
        let (first_row, last_row) = self.rows;
        let few = last_row - first_row < FEW_ROWS;
        let width = columns_of_line(T::BYTES);
        if depth == 0 {
            self.fill_zero(width);
            return;
        }
        for block_column in (0..columns).step_by(width * BLOCK_LINES) {
            let block_columns = (width * BLOCK_LINES).min(columns - block_column);
            for start in (0..depth).step_by(DEPTH) {
                let length = DEPTH.min(depth - start);
                let range = (start, start + length);
                // Which panels are packed; the others are read where they lie.
                let as_it_lies = |column: usize| {
                    if few && column + width <= columns {
                        self.rhs
                            .in_place::<T>(column, start)
                            .filter(|(b, step)| fits::<T>(b, *step, length))
                    } else {
                        None
                    }
                };
                for c in (0..block_columns).step_by(width) {
                    let column = block_column + c;
                    if as_it_lies(column).is_none() {
                        let panel = &mut right[c / width * length * LINE..][..length * LINE];
                        let count = width.min(columns - column);
                        self.rhs.pack::<T>(column, count, range, width, panel);
                    }
                }
                for block_row in (first_row..last_row).step_by(BLOCK_ROWS) {
                    let block_rows = BLOCK_ROWS.min(last_row - block_row);
                    let mut used = [(0, 0); BLOCK_TILES];
                    each_tile(block_rows, |tile, r, height| {
                        let panel = &mut left[r * length * T::BYTES..];
                        let panel = &mut panel[..height * length * T::BYTES];
                        let row = block_row + r;
                        used[tile] = self.lhs.pack::<T>(row, height, range, height, panel);
                    });
                    // The rows of a tile stay in the nearest cache while the columns pass by, and the
                    // result is written along its rows.
                    each_tile(block_rows, |tile, r, height| {
                        let (low, high) = used[tile];
                        let rows = &left[(r * length + low * height) * T::BYTES..];
                        let rows = &rows[..(high - low) * height * T::BYTES];
                        for c in (0..block_columns).step_by(width) {
                            let column = block_column + c;
                            let (panel, step) = as_it_lies(column).unwrap_or_else(|| {
                                (&right[c / width * length * LINE..][..length * LINE], width)
                            });
                            let used_columns = width.min(columns - column);
                            let bytes = used_columns * T::BYTES;
                            let mut sums = Sums::default();
                            let panel = panel.get(low * step * T::BYTES..).unwrap_or(&[]);
                            match height {
                                12 => T::tile::<V, 12>(simd, rows, panel, step, &mut sums),
                                8 => T::tile::<V, 8>(simd, rows, panel, step, &mut sums),
                                4 => T::tile::<V, 4>(simd, rows, panel, step, &mut sums),
                                _ => T::tile::<V, 1>(simd, rows, panel, step, &mut sums),
                            }
                            for (i, sums) in sums.0.chunks_exact(LINE).take(height).enumerate() {
                                let row = block_row - first_row + r + i;
                                self.sink.put::<T>(row, column, &sums[..bytes], start == 0);
                            }
                        }
                    });
                }
            }
        }
    }
}

impl<T: Accumulator, L: Lines, R: Lines, S: Sink> Multiply<'_, T, L, R, S> {
    /// The sums of nothing.
    fn fill_zero(self, width: usize) {
        let zeros = Sums::default();
        for row in 0..self.rows.1 - self.rows.0 {
            for column in (0..self.size.columns).step_by(width) {
                let used = width.min(self.size.columns - column) * T::BYTES;
                self.sink.put::<T>(row, column, &zeros.0[..used], true);
            }
        }
    }
}

/// Divides `rows` into tiles of at most [`ROWS`]; calls `f` with its number, its first row and its height.
#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "the loops must use the dispatched instructions"
)]
fn each_tile(rows: usize, mut f: impl FnMut(usize, usize, usize)) {
    let (mut row, mut tile) = (0, 0);
    while row < rows {
        let height = match rows - row {
            ROWS.. => ROWS,
            8.. => 8,
            4.. => 4,
            _ => 1,
        };
        f(tile, row, height);
        row += height;
        tile += 1;
    }
}

/// Whether lines of a whole panel can be read from `b`.
fn fits<T: Accumulator>(b: &[u8], step: usize, length: usize) -> bool {
    b.len() >= ((length - 1) * step) * T::BYTES + LINE && b.as_ptr().align_offset(T::ALIGNMENT) == 0
}

/// Some rows of a product.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    /// The first one, and the one behind the last.
    pub(super) first: usize,
    pub(super) last: usize,
    /// Where the bytes of the first one start in the result.
    pub(super) base: usize,
    /// Most tasks to divide them among, and the scratch of each.
    pub(super) parts: usize,
    pub(super) part_bytes: usize,
}

impl Rows {
    /// Divides the rows among tasks that run in parallel. Each gets its rows, its part of `out`
    /// and scratch of its own. `offset` says where a row starts in the result; every row lies
    /// behind the whole of the one before.
    pub(super) fn in_parallel(
        self,
        out: &mut [u8],
        scratch: &mut [u8],
        offset: &(impl Fn(usize) -> usize + Sync),
        task: &(impl Fn(Rows, &mut [u8], &mut [u8]) + Sync),
    ) {
        let count = self.last - self.first;
        if self.parts <= 1 || count < 2 * ROWS {
            task(self, out, scratch);
            return;
        }
        let parts = self.parts / 2;
        let share = (count * parts / self.parts).next_multiple_of(ROWS);
        let middle = self.first + share.min(count);
        let at = (offset(middle) - self.base).min(out.len());
        let low = Rows {
            last: middle,
            parts,
            ..self
        };
        let high = Rows {
            first: middle,
            base: self.base + at,
            parts: self.parts - parts,
            ..self
        };
        let (low_out, high_out) = out.split_at_mut(at);
        let (low_scratch, high_scratch) = scratch.split_at_mut(parts * self.part_bytes);
        rayon::join(
            || low.in_parallel(low_out, low_scratch, offset, task),
            || high.in_parallel(high_out, high_scratch, offset, task),
        );
    }
}

#[cfg(test)]
mod tests;
