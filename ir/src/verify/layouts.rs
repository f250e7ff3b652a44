//! Layouts and sizes of arrays. Shapes are interned, so each is looked at once.

use super::error::{ErrorKind, Place, Sink};
use crate::entity::{InstrId, SecondaryMap, ShapeId};
use crate::instr::Instr;
use crate::layout::{Layout, TileDim};
use crate::module::Module;
use crate::padding::{SizeError, padded_bytes};
use crate::shape::{ArrayShape, Shape};

/// Most dimensions an array may have: one bit each says whether it is dynamic.
const MAX_RANK: usize = 64;

/// The shapes that have been looked at.
pub(super) struct Layouts {
    seen: SecondaryMap<ShapeId, bool>,
}

impl Layouts {
    pub(super) fn new(module: &Module) -> Self {
        Self {
            seen: SecondaryMap::filled(module.shapes.len(), false),
        }
    }

    /// Every layout of the instruction's shape is well formed and every array has a size.
    pub(super) fn check(&mut self, sink: &mut Sink<'_>, id: InstrId, instr: &Instr) {
        if self.seen[instr.shape] {
            return;
        }
        let mut parts: Vec<ShapeId> = vec![instr.shape];
        while let Some(shape) = parts.pop() {
            if std::mem::replace(&mut self.seen[shape], true) {
                continue;
            }
            match sink.module.shapes.get(shape) {
                Shape::Array(a) => check_array(sink, id, shape, a),
                Shape::Tuple(elements) => parts.extend(elements.iter().rev()),
                Shape::Buffer(inner) => parts.push(*inner),
                Shape::Token | Shape::Opaque => {}
            }
        }
    }
}

fn check_array(sink: &mut Sink<'_>, user: InstrId, shape: ShapeId, a: &ArrayShape) {
    let place = Place::Instr(user);
    let text = || sink.module.shapes.display(shape).to_string();
    if a.rank() > MAX_RANK {
        let message = format!("an array of {} dimensions", a.rank());
        let remedy = format!("use at most {MAX_RANK}");
        return sink.error(ErrorKind::Layout, place, message, remedy);
    }
    if let Some((message, remedy)) = a.layout.as_ref().and_then(|l| layout_error(a, l)) {
        let message = format!("layout of {}: {message}", text());
        return sink.error(ErrorKind::Layout, place, message, remedy);
    }
    match padded_bytes(a) {
        // An array without bounds can be described, though not planned: the planner says so.
        Ok(_) | Err(SizeError::Unbounded { .. }) => {}
        Err(e @ SizeError::Overflow) => {
            let message = format!("{}: {e}", text());
            sink.error(ErrorKind::Size, place, message, "make the array smaller");
        }
        Err(e @ SizeError::BadTile) => {
            let message = format!("layout of {}: {e}", text());
            sink.error(ErrorKind::Layout, place, message, "correct the tile");
        }
    }
}

/// What is wrong with a layout, and the remedy.
fn layout_error(a: &ArrayShape, layout: &Layout) -> Option<(String, &'static str)> {
    let mut dims: Vec<u32> = layout.minor_to_major.to_vec();
    dims.sort_unstable();
    if !dims.iter().copied().eq(0..a.rank() as u32) {
        return Some((
            format!("the order of dimensions is no permutation of {}", a.rank()),
            "name every dimension once",
        ));
    }
    let bad_tile = layout.tiles.iter().any(|t| {
        t.0.iter().any(|d| matches!(d, TileDim::Size(0)))
            || matches!(t.0.last(), Some(TileDim::Combine))
    });
    if bad_tile {
        return Some((
            "a tile has a zero entry or ends in `*`".to_owned(),
            "give tiles positive entries, the last one a number",
        ));
    }
    if layout.tail_padding_alignment.0 == 0 {
        return Some(("L(0) aligns to nothing".to_owned(), "use L(1) or more"));
    }
    for split in &layout.split_configs {
        let dim = usize::try_from(split.dimension)
            .ok()
            .filter(|&d| d < a.rank());
        let ascending = split.split_indices.windows(2).all(|w| w[0] < w[1]);
        if dim.is_none() || !ascending {
            return Some((
                format!(
                    "SC({}:...) cuts no dimension in ascending places",
                    split.dimension
                ),
                "name a dimension of the array and ascending indices",
            ));
        }
    }
    None
}
