//! Whether two arrays keep their elements at the same bytes, so that one may be a bitcast of the other.
//!
//! The place of an element in a tiled layout is a mixed-radix number. Its digits are written
//! down from major to minor, each with what it steps over in a common numbering of the elements
//! (the row-major index of the operand). Two arrays whose lists of digits are equal, padding
//! included, have every element at the same byte.
//!
//! ```text
//! f32[32,256]{1,0:T(8,128)}   rows/8: step 2048, 4   lanes/128: step 128, 2   row: step 256, 8   lane: step 1, 128
//! f32[4,8,256]{2,1,0:T(8,128)}       step 2048, 4             step 128, 2        step 256, 8         step 1, 128
//! ```
//!
//! XLA's `ShapeUtil::ReshapeIsBitcast` and `TransposeIsBitcast` look at untiled layouts only.

use smallvec::SmallVec;

use slabplan_ir::layout::TileDim;
use slabplan_ir::{ArrayShape, ElementType};

/// One digit of an element's place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Digit {
    /// Distance in the common numbering between neighbours; 0 where there is one element only.
    step: u64,
    /// How many values the digit takes, padding included.
    size: u64,
    /// Where the digit belongs to a padded dimension: its step and its number of elements.
    padded: Option<(u64, u64)>,
}

type Digits = SmallVec<[Digit; 8]>;

/// Where an array has its elements, in a numbering of them that it may share with another array: equal places mean that
/// every element is at the same byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Places {
    element_type: ElementType,
    element_bits: u64,
    memory_space: u32,
    digits: Digits,
}

impl Places {
    /// Elements numbered in their row-major order, as a reshape keeps them. `None` where it can't be told.
    pub(super) fn row_major(array: &ArrayShape) -> Option<Self> {
        Self::new(array, &row_major_steps(&array.dims)?)
    }

    /// Elements numbered in the row-major order of an array of dimensions `from`, of which `array` is the transpose: its
    /// dimension `i` is dimension `permutation[i]` of that array.
    pub(super) fn transposed(
        array: &ArrayShape,
        from: &[u64],
        permutation: &[i64],
    ) -> Option<Self> {
        let steps = row_major_steps(from)?;
        let of = |&p: &i64| usize::try_from(p).ok().and_then(|p| steps.get(p).copied());
        let steps: SmallVec<[u64; 6]> = permutation.iter().map(of).collect::<Option<_>>()?;
        (steps.len() == array.rank()).then(|| Self::new(array, &steps))?
    }

    fn new(array: &ArrayShape, steps: &[u64]) -> Option<Self> {
        if array.dynamic != 0 {
            return None;
        }
        Some(Self {
            element_type: array.element_type,
            element_bits: element_bits(array),
            memory_space: array.memory_space(),
            digits: digits(array, steps)?,
        })
    }
}

/// Whether `reshaped`, a reshape of `array`, may be a bitcast of it. False where it can't be told.
pub fn reshape_is_bitcast(array: &ArrayShape, reshaped: &ArrayShape) -> bool {
    let places = Places::row_major(array);
    places.is_some() && places == Places::row_major(reshaped)
}

/// Whether `transposed` may be a bitcast of `array`; its dimension `i` is dimension
/// `permutation[i]` of `array`.
pub fn transpose_is_bitcast(
    array: &ArrayShape,
    transposed: &ArrayShape,
    permutation: &[i64],
) -> bool {
    let places = Places::row_major(array);
    places.is_some() && places == Places::transposed(transposed, &array.dims, permutation)
}

fn row_major_steps(dims: &[u64]) -> Option<SmallVec<[u64; 6]>> {
    let mut steps: SmallVec<[u64; 6]> = SmallVec::from_elem(1, dims.len());
    for i in (1..dims.len()).rev() {
        steps[i - 1] = steps[i].checked_mul(dims[i])?;
    }
    Some(steps)
}

fn element_bits(a: &ArrayShape) -> u64 {
    match a.layout.as_ref().map_or(0, |l| l.element_size_in_bits) {
        0 => 8 * a.element_type.byte_width(),
        bits => u64::from(bits),
    }
}

/// The digits of an element's place, major to minor; `None` for layouts this knows nothing of.
fn digits(array: &ArrayShape, steps: &[u64]) -> Option<Digits> {
    if array.dims.contains(&0) {
        return None;
    }
    let mut digits: Digits = array
        .minor_to_major()
        .iter()
        .rev()
        .map(|&d| {
            let size = array.dims[d as usize];
            let step = if size == 1 { 0 } else { steps[d as usize] };
            Digit {
                step,
                size,
                padded: None,
            }
        })
        .collect();
    if let Some(layout) = &array.layout {
        let plain_rest = layout.split_configs.is_empty()
            && layout.tail_padding_alignment.0 <= 1
            && layout.dynamic_shape_metadata_prefix_bytes == 0;
        if !plain_rest {
            return None;
        }
        for tile in &layout.tiles {
            digits = split(&digits, &tile.0)?;
        }
    }
    Some(normal(digits))
}

/// The digits after one tile: the last ones are cut in two, and the lower parts go to the end.
fn split(digits: &[Digit], tile: &[TileDim]) -> Option<Digits> {
    let mut all: Digits = SmallVec::new();
    for _ in digits.len()..tile.len() {
        all.push(Digit {
            step: 0,
            size: 1,
            padded: None,
        });
    }
    all.extend(digits.iter().cloned());
    let first = all.len() - tile.len();
    let mut outer: Digits = all[..first].into();
    let mut inner = Digits::new();
    for (digit, entry) in all[first..].iter().zip(tile) {
        let TileDim::Size(t) = *entry else {
            return None;
        };
        if t == 0 {
            return None;
        }
        let padded = if digit.size.is_multiple_of(t) {
            digit.padded
        } else if digit.padded.is_some() {
            // Padding of padding: not told apart here.
            return None;
        } else {
            Some((digit.step, digit.size))
        };
        outer.push(Digit {
            step: digit.step.checked_mul(t)?,
            size: digit.size.div_ceil(t),
            padded,
        });
        inner.push(Digit {
            step: digit.step,
            size: t,
            padded,
        });
    }
    outer.extend(inner);
    Some(outer)
}

/// Without digits that never change, and with neighbours that count on joined.
fn normal(digits: Digits) -> Digits {
    let mut out = Digits::new();
    for digit in digits {
        if digit.size == 1 {
            continue;
        }
        match out.last_mut() {
            Some(last)
                if last.padded.is_none()
                    && digit.padded.is_none()
                    && digit.step.checked_mul(digit.size) == Some(last.step) =>
            {
                last.size *= digit.size;
                last.step = digit.step;
            }
            _ => out.push(digit),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use slabplan_ir::{EntityId, InstrId};

    fn array(text: &str) -> ArrayShape {
        let module = slabplan_ir::text::parse(&format!("ENTRY e {{ p = {text} parameter(0) }}"))
            .into_result()
            .unwrap();
        let shape = module.instrs[InstrId::from_index(0)].shape;
        module.shapes.array(shape).unwrap().clone()
    }

    #[track_caller]
    fn reshape(a: &str, b: &str, expected: bool) {
        let (x, y) = (array(a), array(b));
        assert_eq!(reshape_is_bitcast(&x, &y), expected, "{a} -> {b}");
        assert_eq!(reshape_is_bitcast(&y, &x), expected, "{b} -> {a}");
    }

    #[test]
    fn whole_tiles_may_be_renamed() {
        reshape(
            "f32[32,256]{1,0:T(8,128)}",
            "f32[4,8,256]{2,1,0:T(8,128)}",
            true,
        );
        reshape(
            "f32[6,8,128]{2,1,0:T(8,128)}",
            "f32[48,128]{1,0:T(8,128)}",
            true,
        );
        // Rows 4 to 7 are padding in one and the next matrix in the other.
        reshape(
            "f32[6,4,128]{2,1,0:T(8,128)}",
            "f32[24,128]{1,0:T(8,128)}",
            false,
        );
        // No padding at all: both are dense.
        reshape(
            "f32[6,4,128]{2,1,0:T(4,128)}",
            "f32[24,128]{1,0:T(8,128)}",
            true,
        );
        reshape(
            "f32[32,256]{1,0:T(8,128)}",
            "f32[32,2,128]{2,1,0:T(2,128)}",
            false,
        );
        // Eight rows of two tiles: the columns of tiles are the major dimension.
        reshape(
            "f32[8,256]{1,0:T(8,128)}",
            "f32[8,2,128]{2,0,1:T(8,128)}",
            true,
        );
    }

    #[test]
    fn dimensions_of_one_may_come_and_go() {
        reshape(
            "f32[5,7,100]{2,1,0:T(8,128)}",
            "f32[5,1,7,100]{3,2,1,0:T(8,128)}",
            true,
        );
        reshape("f32[1,100]{1,0:T(1,128)}", "f32[100]{0:T(128)}", true);
        // 300 elements of one row take 384 places, of a vector 512.
        reshape("f32[1,300]{1,0:T(1,128)}", "f32[300]{0:T(512)}", false);
        reshape(
            "f32[7,100]{1,0:T(8,128)}",
            "f32[7,1,100]{2,1,0:T(1,128)}",
            false,
        );
        reshape(
            "f32[7,1,100]{2,0,1:T(8,128)}",
            "f32[7,100]{1,0:T(8,128)}",
            true,
        );
    }

    #[test]
    fn packed_tiles() {
        reshape(
            "bf16[32,256]{1,0:T(8,128)(2,1)}",
            "bf16[4,8,256]{2,1,0:T(8,128)(2,1)}",
            true,
        );
        reshape(
            "bf16[7,100]{1,0:T(8,128)(2,1)}",
            "bf16[1,7,100]{2,1,0:T(8,128)(2,1)}",
            true,
        );
        reshape(
            "bf16[32,256]{1,0:T(8,128)(2,1)}",
            "bf16[32,256]{1,0:T(8,128)}",
            false,
        );
    }

    #[test]
    fn transposes() {
        let t = |a: &str, b: &str, p: &[i64]| transpose_is_bitcast(&array(a), &array(b), p);
        let (a, plain) = ("f32[16,300]{1,0:T(8,128)}", "f32[300,16]{1,0:T(8,128)}");
        assert!(t(a, "f32[300,16]{0,1:T(8,128)}", &[1, 0]));
        assert!(!t(a, plain, &[1, 0]));
        assert!(t(
            "f32[3,16,300]{2,1,0:T(8,128)}",
            "f32[16,3,300]{2,0,1:T(8,128)}",
            &[1, 0, 2]
        ));
        // Only a dimension of one moves.
        assert!(t(
            "f32[1,16,300]{2,1,0:T(8,128)}",
            "f32[16,1,300]{2,0,1:T(8,128)}",
            &[1, 0, 2]
        ));
        assert!(!t(
            "f32[1,16,300]{2,1,0:T(8,128)}",
            "f32[16,1,300]{2,1,0:T(1,128)}",
            &[1, 0, 2]
        ));
        // A square: dimensions, but not elements, agree.
        assert!(!t(
            "f32[8,8]{1,0:T(8,128)}",
            "f32[8,8]{1,0:T(8,128)}",
            &[1, 0]
        ));
    }
}
