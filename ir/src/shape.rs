//! Shapes, interned per module.

use std::fmt;

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

use crate::entity::{EntityId, ShapeId};
use crate::{ElementType, Layout};

/// Size of an unbounded dynamic dimension, written `?`.
pub const UNBOUNDED: u64 = u64::MAX;

/// The kind of a value and where each of its arrays lies.
#[allow(
    clippy::large_enum_variant,
    reason = "interned: each shape is stored once"
)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// An array.
    Array(ArrayShape),
    /// A tuple of shapes.
    Tuple(Box<[ShapeId]>),
    /// `token[]`: orders side effects, has no bytes.
    Token,
    /// `opaque[]`: a handle of the run time.
    Opaque,
    /// `b(..)`: the address of an array as a value of its own.
    Buffer(ShapeId),
}

/// An array's element type, dimensions and layout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArrayShape {
    /// Element type.
    pub element_type: ElementType,
    /// Logical dimensions, major to minor; the bound of a dynamic one.
    pub dims: SmallVec<[u64; 4]>,
    /// Bit `i` is set where dimension `i` is dynamic (`<=N` or `?`).
    pub dynamic: u64,
    /// Layout; absent means the default one (row-major, no tiles).
    pub layout: Option<Layout>,
}

impl ArrayShape {
    /// A static array with the default layout.
    pub fn new(element_type: ElementType, dims: &[u64]) -> Self {
        Self {
            element_type,
            dims: dims.into(),
            dynamic: 0,
            layout: None,
        }
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Number of logical elements, or `None` past 2^63 - 1 or where a dimension is unbounded.
    pub fn element_count(&self) -> Option<u64> {
        if self.dims.contains(&0) {
            return Some(0);
        }
        self.dims
            .iter()
            .try_fold(1u64, |n, &d| n.checked_mul(d))
            .filter(|&n| i64::try_from(n).is_ok())
    }

    /// The memory space of the layout; 0 without one.
    pub fn memory_space(&self) -> u32 {
        self.layout.as_ref().map_or(0, |l| l.memory_space)
    }

    /// Logical dimension numbers, most minor first, of the layout or the default one.
    pub fn minor_to_major(&self) -> SmallVec<[u32; 6]> {
        self.layout.as_ref().map_or_else(
            || Layout::row_major(self.rank()).minor_to_major,
            |l| l.minor_to_major.clone(),
        )
    }

    /// Whether element type and dimensions agree, layouts aside.
    pub fn compatible(&self, other: &Self) -> bool {
        self.element_type == other.element_type && self.dims == other.dims
    }
}

/// Path from a shape to one of its parts: tuple element numbers, outermost first.
pub type ShapeIndex = SmallVec<[u32; 4]>;

/// Prints a [`ShapeIndex`] as HLO does: `{}`, `{1}`, `{1,0}`.
pub struct DisplayIndex<'a>(pub &'a [u32]);

impl fmt::Display for DisplayIndex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, n) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{n}")?;
        }
        f.write_str("}")
    }
}

/// All shapes of a module, each stored once.
#[derive(Clone, Debug, Default)]
pub struct ShapePool {
    shapes: IndexSet<Shape, FxBuildHasher>,
    /// Parts of each shape, itself included.
    nodes: Vec<u32>,
    depth: Vec<u32>,
}

impl ShapePool {
    /// An empty pool.
    pub fn new() -> Self {
        Self::default()
    }

    /// The id of `shape`, which is stored if new.
    ///
    /// A tuple's elements must be in the pool. Amortised O(size of `shape`).
    pub fn intern(&mut self, shape: Shape) -> ShapeId {
        let (nodes, depth) = match &shape {
            Shape::Tuple(elements) => elements.iter().fold((1u32, 1u32), |(n, d), &e| {
                (
                    n.saturating_add(self.nodes[e.index()]),
                    d.max(self.depth[e.index()] + 1),
                )
            }),
            _ => (1, 1),
        };
        let (index, new) = self.shapes.insert_full(shape);
        if new {
            self.nodes.push(nodes);
            self.depth.push(depth);
        }
        ShapeId::from_index(index)
    }

    /// Interns an array shape.
    pub fn intern_array(&mut self, array: ArrayShape) -> ShapeId {
        self.intern(Shape::Array(array))
    }

    /// Interns a tuple shape.
    pub fn intern_tuple(&mut self, elements: &[ShapeId]) -> ShapeId {
        self.intern(Shape::Tuple(elements.into()))
    }

    /// The shape of `id`.
    pub fn get(&self, id: ShapeId) -> &Shape {
        &self.shapes[id.index()]
    }

    /// How many distinct shapes there are.
    pub fn len(&self) -> usize {
        self.shapes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    /// All shape ids.
    pub fn ids(&self) -> impl Iterator<Item = ShapeId> + use<> {
        (0..self.shapes.len()).map(ShapeId::from_index)
    }

    /// The array shape of `id`, if it is one.
    pub fn array(&self, id: ShapeId) -> Option<&ArrayShape> {
        match self.get(id) {
            Shape::Array(a) => Some(a),
            _ => None,
        }
    }

    /// The elements of `id`, if it is a tuple.
    pub fn tuple(&self, id: ShapeId) -> Option<&[ShapeId]> {
        match self.get(id) {
            Shape::Tuple(e) => Some(e),
            _ => None,
        }
    }

    /// How many parts the shape has, itself and all nested ones; saturates at `u32::MAX`.
    pub fn node_count(&self, id: ShapeId) -> u32 {
        self.nodes[id.index()]
    }

    /// How deep tuples nest: 1 for an array.
    pub fn depth(&self, id: ShapeId) -> u32 {
        self.depth[id.index()]
    }

    /// The part of `id` at `index`, if there is one.
    pub fn subshape(&self, id: ShapeId, index: &[u32]) -> Option<ShapeId> {
        index
            .iter()
            .try_fold(id, |s, &i| self.tuple(s)?.get(i as usize).copied())
    }

    /// The number of the part at `index` in preorder (0 is the shape itself), if there is one.
    pub fn node_of_index(&self, id: ShapeId, index: &[u32]) -> Option<u32> {
        let mut node = 0;
        let mut shape = id;
        for &i in index {
            let elements = self.tuple(shape)?;
            let &next = elements.get(i as usize)?;
            node += 1 + elements[..i as usize]
                .iter()
                .map(|&e| self.node_count(e))
                .sum::<u32>();
            shape = next;
        }
        Some(node)
    }

    /// The shape index of part `node`, the inverse of [`node_of_index`](Self::node_of_index).
    pub fn index_of_node(&self, id: ShapeId, node: u32) -> ShapeIndex {
        let mut index = ShapeIndex::new();
        let mut rest = node;
        let mut shape = id;
        while rest > 0 {
            rest -= 1;
            let elements = self.tuple(shape).expect("node lies in the shape");
            for (i, &e) in elements.iter().enumerate() {
                let n = self.node_count(e);
                if rest < n {
                    index.push(i as u32);
                    shape = e;
                    break;
                }
                rest -= n;
            }
        }
        index
    }

    /// All parts in preorder: entry `i` is the shape of node `i`.
    pub fn preorder(&self, id: ShapeId) -> Vec<ShapeId> {
        let mut out = Vec::with_capacity(self.node_count(id) as usize);
        let mut stack = vec![id];
        while let Some(s) = stack.pop() {
            out.push(s);
            if let Some(elements) = self.tuple(s) {
                stack.extend(elements.iter().rev());
            }
        }
        out
    }

    /// Whether two shapes agree in structure, element types and dimensions, layouts aside.
    pub fn compatible(&self, a: ShapeId, b: ShapeId) -> bool {
        if a == b {
            return true;
        }
        match (self.get(a), self.get(b)) {
            (Shape::Array(x), Shape::Array(y)) => x.compatible(y),
            (Shape::Tuple(x), Shape::Tuple(y)) => {
                x.len() == y.len() && x.iter().zip(y.iter()).all(|(&p, &q)| self.compatible(p, q))
            }
            (Shape::Buffer(x), Shape::Buffer(y)) => self.compatible(*x, *y),
            (x, y) => x == y,
        }
    }

    /// Prints a shape as HLO text does, layouts included, with an `/*index=N*/` comment before
    /// every fifth tuple element.
    pub fn display(&self, id: ShapeId) -> DisplayShape<'_> {
        DisplayShape {
            pool: self,
            id,
            layouts: true,
        }
    }

    /// Prints a shape without layouts.
    pub fn display_without_layout(&self, id: ShapeId) -> DisplayShape<'_> {
        DisplayShape {
            pool: self,
            id,
            layouts: false,
        }
    }
}

/// A shape, ready to print.
pub struct DisplayShape<'a> {
    pool: &'a ShapePool,
    id: ShapeId,
    layouts: bool,
}

impl fmt::Display for DisplayShape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pool.get(self.id) {
            Shape::Array(a) => {
                write!(f, "{}[", a.element_type)?;
                for (i, &d) in a.dims.iter().enumerate() {
                    if i > 0 {
                        f.write_str(",")?;
                    }
                    if d == UNBOUNDED {
                        f.write_str("?")?;
                    } else if a.dynamic >> i & 1 == 1 {
                        write!(f, "<={d}")?;
                    } else {
                        write!(f, "{d}")?;
                    }
                }
                f.write_str("]")?;
                match &a.layout {
                    // A plain scalar layout prints as nothing.
                    Some(l) if self.layouts && (a.rank() > 0 || !l.is_plain()) => l.fmt(f),
                    _ => Ok(()),
                }
            }
            Shape::Tuple(elements) => {
                f.write_str("(")?;
                for (i, &e) in elements.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                        if i % 5 == 0 {
                            write!(f, "/*index={i}*/")?;
                        }
                    }
                    DisplayShape { id: e, ..*self }.fmt(f)?;
                }
                f.write_str(")")
            }
            Shape::Token => f.write_str("token[]"),
            Shape::Opaque => f.write_str("opaque[]"),
            Shape::Buffer(inner) => {
                f.write_str("b(")?;
                DisplayShape {
                    id: *inner,
                    ..*self
                }
                .fmt(f)?;
                f.write_str(")")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_indices_are_inverse() {
        let mut pool = ShapePool::new();
        let a = pool.intern_array(ArrayShape::new(ElementType::F32, &[2]));
        let inner = pool.intern_tuple(&[a, a]);
        let empty = pool.intern_tuple(&[]);
        let outer = pool.intern_tuple(&[a, inner, empty, a]);
        assert_eq!(pool.node_count(outer), 7);
        let expected: [&[u32]; 7] = [&[], &[0], &[1], &[1, 0], &[1, 1], &[2], &[3]];
        for (node, index) in expected.iter().enumerate() {
            assert_eq!(pool.index_of_node(outer, node as u32).as_slice(), *index);
            assert_eq!(pool.node_of_index(outer, index), Some(node as u32));
        }
        assert_eq!(pool.node_of_index(outer, &[4]), None);
        assert_eq!(pool.preorder(outer), [outer, a, inner, a, a, empty, a]);
    }
}
