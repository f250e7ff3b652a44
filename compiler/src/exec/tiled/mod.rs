//! Dense host form to and from the padded bytes that a tiled layout prescribes.
//!
//! A tile splits a dimension's index into quotient and remainder, and every later tile splits
//! those further; so the place of an element is a sum of one function a dimension. Such a
//! function is a small table that repeats with the product of the tile sizes, plus a stride for
//! each repetition (`axis`). Dimensions that a `*` merges before tiling break this: those
//! layouts take a table of all elements (`linear`).

mod axis;
mod copy;
mod linear;

use slabplan_ir::layout::{Layout, TileDim};
use slabplan_ir::padding::{SizeError, padded_bytes};
use slabplan_ir::shape::ArrayShape;
use smallvec::SmallVec;

use axis::Axis;

/// Most entries a table of element places may have.
const MAX_TABLE: u64 = 1 << 24;

/// Why the executor can't use a layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The shape has no size.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// The layout or shape has a property that the executor does not support.
    #[error("the executor does not support {0}")]
    Unsupported(String),
}

/// Where the elements of an array lie in its padded bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TiledMap {
    elements: usize,
    padded_bytes: usize,
    /// Bytes of metadata before the first element.
    prefix: usize,
    element: Element,
    places: Places,
}

/// One element in both forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Element {
    /// Bytes in dense form.
    dense: usize,
    storage: Storage,
}

/// One element in padded form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Storage {
    /// As in dense form.
    Same,
    /// More bytes than in dense form; the value is in the first.
    Wide { bytes: usize },
    /// Several elements a byte, the first in the low bits.
    Packed { bits: u32, signed: bool },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Places {
    /// Row-major without padding.
    Dense,
    /// The sum of a function of each index, major to minor.
    Sum(SmallVec<[Axis; 4]>),
    /// One entry an element, row-major.
    Table(Vec<u64>),
}

impl TiledMap {
    /// Works out the map of `array`. O(rank + tile sizes); O(elements) for layouts with `*`.
    pub fn new(array: &ArrayShape) -> Result<Self, LayoutError> {
        if array.dynamic != 0 {
            return Err(unsupported("dynamic dimensions"));
        }
        let padded = to_usize(padded_bytes(array)?.get())?;
        let elements = to_usize(array.element_count().ok_or(SizeError::Overflow)?)?;
        let layout = array
            .layout
            .clone()
            .unwrap_or_else(|| Layout::row_major(array.rank()));
        if !layout.split_configs.is_empty() {
            return Err(unsupported("layouts split over cores (`SC(..)`)"));
        }
        let mut places = if has_combine(&layout) {
            if elements as u64 > MAX_TABLE {
                return Err(unsupported("layouts with `*` for arrays this large"));
            }
            Places::Table(linear::table(array)?)
        } else {
            Places::Sum(axis::axes(array, &layout.tiles)?)
        };
        let element = Element {
            dense: array.element_type.byte_width() as usize,
            storage: storage(array, &layout)?,
        };
        if is_identity(&places, elements) {
            places = Places::Dense;
        }
        Ok(Self {
            elements,
            padded_bytes: padded,
            prefix: to_usize(layout.dynamic_shape_metadata_prefix_bytes)?,
            element,
            places,
        })
    }

    /// Bytes of the padded form.
    pub fn padded_bytes(&self) -> usize {
        self.padded_bytes
    }

    /// Bytes of the dense form.
    pub fn dense_bytes(&self) -> usize {
        self.elements * self.element.dense
    }

    /// Whether the padded form begins with the dense form.
    pub fn is_dense(&self) -> bool {
        self.places == Places::Dense && self.element.storage == Storage::Same && self.prefix == 0
    }

    /// Reads the padded form and writes the dense one.
    ///
    /// `padded` holds at least [`padded_bytes`](Self::padded_bytes), `dense` exactly
    /// [`dense_bytes`](Self::dense_bytes).
    pub fn unpack(&self, padded: &[u8], dense: &mut [u8]) {
        copy::unpack(self, &padded[self.prefix..], dense);
    }

    /// Reads the dense form and writes the elements of the padded one; padding keeps its bytes.
    pub fn pack(&self, dense: &[u8], padded: &mut [u8]) {
        copy::pack(self, dense, &mut padded[self.prefix..]);
    }
}

/// Elements between neighbours along each dimension, where the layout only orders dimensions:
/// no tiles, no padding, elements as in dense form.
pub(crate) fn plain_strides(array: &ArrayShape) -> Option<SmallVec<[usize; 6]>> {
    if let Some(layout) = &array.layout {
        let plain = layout.tiles.is_empty()
            && layout.split_configs.is_empty()
            && layout.dynamic_shape_metadata_prefix_bytes == 0
            && storage(array, layout) == Ok(Storage::Same)
            && layout.tail_padding_alignment.0 <= 1;
        if !plain {
            return None;
        }
    }
    if array.dynamic != 0 {
        return None;
    }
    let mut strides = SmallVec::from_elem(1, array.rank());
    let mut step = 1usize;
    for &d in &*array.minor_to_major() {
        strides[d as usize] = step;
        // With a dimension of size 0 there is no element to find.
        step = step.checked_mul((array.dims[d as usize] as usize).max(1))?;
    }
    Some(strides)
}

fn unsupported(what: &str) -> LayoutError {
    LayoutError::Unsupported(what.to_owned())
}

fn to_usize(n: u64) -> Result<usize, LayoutError> {
    usize::try_from(n).map_err(|_| LayoutError::Size(SizeError::Overflow))
}

fn has_combine(layout: &Layout) -> bool {
    layout.tiles.iter().any(|t| t.0.contains(&TileDim::Combine))
}

fn storage(array: &ArrayShape, layout: &Layout) -> Result<Storage, LayoutError> {
    let dense = array.element_type.byte_width() as u32;
    let signed = array.element_type.is_signed_integer();
    match layout.element_size_in_bits {
        0 => Ok(Storage::Same),
        bits if bits == dense * 8 => Ok(Storage::Same),
        bits @ (1 | 2 | 4) if bits >= array.element_type.bits() => {
            Ok(Storage::Packed { bits, signed })
        }
        bits if bits % 8 == 0 && bits / 8 > dense => Ok(Storage::Wide {
            bytes: bits as usize / 8,
        }),
        bits => Err(unsupported(&format!(
            "elements of {} in {bits} bits",
            array.element_type
        ))),
    }
}

fn is_identity(places: &Places, elements: usize) -> bool {
    match places {
        Places::Dense => true,
        Places::Sum(axes) => match axes.as_slice() {
            [] => true,
            [axis] => axis.is_contiguous(),
            _ => elements == 0,
        },
        Places::Table(table) => table.iter().enumerate().all(|(i, &p)| i as u64 == p),
    }
}

#[cfg(test)]
mod tests;
