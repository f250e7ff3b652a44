//! What the planner needs to know of a machine: its memory spaces and how it tiles arrays.

use serde::{Deserialize, Serialize};

use crate::units::{Alignment, Bytes};

/// One memory space of a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemorySpace {
    /// The `n` of `S(n)`; 0 is the default space.
    pub id: u32,
    /// Name for people: `hbm`, `vmem`.
    pub name: String,
    /// Bytes there are.
    pub capacity: Bytes,
    /// Every buffer starts at a multiple of this.
    pub alignment: Alignment,
    /// Bytes a second that a compute core moves to or from this space.
    pub bandwidth: f64,
}

/// How arrays whose elements have a given width are tiled where a module does not say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tiling {
    /// Bits of an element.
    pub bits: u32,
    /// Elements of the most minor dimension in a tile.
    pub lanes: u64,
    /// Rows of a tile.
    pub sublanes: u64,
    /// Rows allowed instead where the second-minor dimension is not larger, ascending.
    #[serde(default)]
    pub compact_sublanes: Vec<u64>,
    /// Elements packed in one 32-bit word along the rows; 1 where no second tile is needed.
    pub packing: u64,
    /// Smallest tile of a one-dimensional array.
    pub rank1_min: u64,
    /// Largest tile of a one-dimensional array.
    pub rank1_max: u64,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Name: `tpu-v5e`.
    pub name: String,
    /// Memory spaces; space 0 is among them.
    #[serde(rename = "space")]
    pub spaces: Vec<MemorySpace>,
    /// Tilings by element width; empty where arrays are not tiled.
    #[serde(default, rename = "tiling")]
    pub tilings: Vec<Tiling>,
}

impl Target {
    /// The memory space with this number.
    pub fn space(&self, id: u32) -> Option<&MemorySpace> {
        self.spaces.iter().find(|s| s.id == id)
    }

    /// The tiling of elements of this width.
    pub fn tiling(&self, bits: u32) -> Option<&Tiling> {
        self.tilings.iter().find(|t| t.bits == bits)
    }
}
