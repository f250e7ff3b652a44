//! Layouts: how a logical array lies in memory.

use std::fmt;

use smallvec::SmallVec;

/// One entry of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TileDim {
    /// Elements of this dimension in a tile.
    Size(u64),
    /// `*`: merge this dimension with the next more minor one before tiling.
    Combine,
}

/// One tile: sizes of the most minor physical dimensions, major to minor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tile(pub SmallVec<[TileDim; 3]>);

/// A cut of one dimension into parts that lie on different cores: `SC(dim:i,j)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SplitConfig {
    /// Dimension, counted in major order.
    pub dimension: u64,
    /// Indices at which the dimension is cut, ascending.
    pub split_indices: SmallVec<[u64; 4]>,
}

/// Layout of an array, as `{2,1,0:T(8,128)(2,1)E(4)S(1)}` writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Logical dimension numbers, most minor first.
    pub minor_to_major: SmallVec<[u32; 6]>,
    /// `D(..)` text between the parentheses, kept and otherwise ignored, as XLA does.
    pub dim_level_types: Option<Box<str>>,
    /// Tiles, outermost first.
    pub tiles: SmallVec<[Tile; 2]>,
    /// `L(n)`: round the number of elements up to a multiple of this; 1 by default.
    pub tail_padding_alignment: TailPadding,
    /// `#(u32)`: element type of sparse indices, kept and otherwise ignored.
    pub index_type: Option<crate::ElementType>,
    /// `*(u32)`: element type of sparse pointers, kept and otherwise ignored.
    pub pointer_type: Option<crate::ElementType>,
    /// `E(n)`: bits an element takes when packed; 0 means the type's bytes.
    pub element_size_in_bits: u32,
    /// `S(n)`: memory space; 0 is HBM.
    pub memory_space: u32,
    /// `SC(..)`: cuts for several cores.
    pub split_configs: SmallVec<[SplitConfig; 1]>,
    /// `M(n)`: bytes of run-time shape metadata before the data.
    pub dynamic_shape_metadata_prefix_bytes: u64,
}

/// The `L(n)` of a layout, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TailPadding(pub u64);

impl Default for TailPadding {
    fn default() -> Self {
        Self(1)
    }
}

impl Layout {
    /// The untiled row-major layout of `rank` dimensions.
    pub fn row_major(rank: usize) -> Self {
        Self {
            minor_to_major: (0..rank as u32).rev().collect(),
            ..Self::default()
        }
    }

    /// Whether the layout says nothing beyond the order of the dimensions.
    pub fn is_plain(&self) -> bool {
        *self
            == Self {
                minor_to_major: self.minor_to_major.clone(),
                ..Self::default()
            }
    }

    /// Whether dimensions run most minor last, without regard to tiles.
    pub fn is_descending(&self) -> bool {
        self.minor_to_major.windows(2).all(|w| w[1] < w[0])
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            match d {
                TileDim::Size(n) => write!(f, "{n}")?,
                TileDim::Combine => f.write_str("*")?,
            }
        }
        f.write_str(")")
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, d) in self.minor_to_major.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{d}")?;
        }
        if !self.is_plain() {
            f.write_str(":")?;
        }
        if let Some(d) = &self.dim_level_types {
            write!(f, "D({d})")?;
        }
        for (i, t) in self.tiles.iter().enumerate() {
            if i == 0 {
                f.write_str("T")?;
            }
            write!(f, "{t}")?;
        }
        if self.tail_padding_alignment.0 != 1 {
            write!(f, "L({})", self.tail_padding_alignment.0)?;
        }
        if let Some(t) = self.index_type {
            write!(f, "#({t})")?;
        }
        if let Some(t) = self.pointer_type {
            write!(f, "*({t})")?;
        }
        if self.element_size_in_bits != 0 {
            write!(f, "E({})", self.element_size_in_bits)?;
        }
        if self.memory_space != 0 {
            write!(f, "S({})", self.memory_space)?;
        }
        for (i, s) in self.split_configs.iter().enumerate() {
            f.write_str(if i == 0 { "SC(" } else { "(" })?;
            write!(f, "{}:", s.dimension)?;
            for (j, n) in s.split_indices.iter().enumerate() {
                if j > 0 {
                    f.write_str(",")?;
                }
                write!(f, "{n}")?;
            }
            f.write_str(")")?;
        }
        if self.dynamic_shape_metadata_prefix_bytes != 0 {
            write!(f, "M({})", self.dynamic_shape_metadata_prefix_bytes)?;
        }
        f.write_str("}")
    }
}
