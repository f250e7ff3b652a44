//! Typed `u32` ids and the storage keyed by them.
//!
//! An id names one entity of one kind, so the compiler rejects an instruction
//! id where a computation id is meant. [`PrimaryMap`] allocates ids;
//! [`SecondaryMap`] holds facts an analysis attaches to them from outside,
//! which keeps analyses out of the IR.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A dense `u32` id.
pub trait EntityId: Copy + Eq + Ord {
    /// Wraps an index; the caller guarantees that it fits `u32`.
    fn from_index(index: usize) -> Self;
    /// The position of this id in its map.
    fn index(self) -> usize;
}

/// Defines `u32` newtype ids with the prefix they print with.
#[macro_export]
macro_rules! entity {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $crate::entity::EntityId for $name {
            fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("entity index fits u32"))
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    )*};
}

entity! {
    /// An instruction of a module.
    InstrId = "instr";
    /// A computation of a module.
    CompId = "comp";
    /// An interned shape.
    ShapeId = "shape";
    /// One (instruction, shape index) position of a module: see [`crate::position`].
    PosId = "pos";
    /// A buffer of a plan.
    BufferId = "buffer";
}

/// A vector whose index is the id of what it owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimaryMap<K, V> {
    items: Vec<V>,
    key: PhantomData<K>,
}

impl<K: EntityId, V> PrimaryMap<K, V> {
    /// An empty map.
    pub fn new() -> Self {
        Self {
            items: Vec::new(),
            key: PhantomData,
        }
    }

    /// An empty map with room for `capacity` entities.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            items: Vec::with_capacity(capacity),
            key: PhantomData,
        }
    }

    /// Stores `value` and returns its new id.
    pub fn push(&mut self, value: V) -> K {
        let id = K::from_index(self.items.len());
        self.items.push(value);
        id
    }

    /// The id the next [`push`](Self::push) will return.
    pub fn next_id(&self) -> K {
        K::from_index(self.items.len())
    }

    /// How many entities there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The entity of `id`, if it exists.
    pub fn get(&self, id: K) -> Option<&V> {
        self.items.get(id.index())
    }

    /// All ids, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = K> + ExactSizeIterator + use<K, V> {
        (0..self.items.len()).map(K::from_index)
    }

    /// All entities, in id order.
    pub fn values(&self) -> std::slice::Iter<'_, V> {
        self.items.iter()
    }

    /// All entities, mutable, in id order.
    pub fn values_mut(&mut self) -> std::slice::IterMut<'_, V> {
        self.items.iter_mut()
    }

    /// All (id, entity) pairs, in id order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> + ExactSizeIterator {
        self.items
            .iter()
            .enumerate()
            .map(|(i, v)| (K::from_index(i), v))
    }
}

impl<K: EntityId, V> Default for PrimaryMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: EntityId, V> Index<K> for PrimaryMap<K, V> {
    type Output = V;
    fn index(&self, id: K) -> &V {
        &self.items[id.index()]
    }
}

impl<K: EntityId, V> IndexMut<K> for PrimaryMap<K, V> {
    fn index_mut(&mut self, id: K) -> &mut V {
        &mut self.items[id.index()]
    }
}

/// Facts about the entities of a [`PrimaryMap`]: one value for every id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondaryMap<K, V> {
    items: Vec<V>,
    key: PhantomData<K>,
}

impl<K: EntityId, V: Clone> SecondaryMap<K, V> {
    /// `len` entries, all equal to `value`.
    pub fn filled(len: usize, value: V) -> Self {
        Self {
            items: vec![value; len],
            key: PhantomData,
        }
    }

    /// Extends the map to `len` entries with `value`.
    pub fn grow(&mut self, len: usize, value: V) {
        if self.items.len() < len {
            self.items.resize(len, value);
        }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// All (id, fact) pairs, in id order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> + ExactSizeIterator {
        self.items
            .iter()
            .enumerate()
            .map(|(i, v)| (K::from_index(i), v))
    }
}

impl<K: EntityId, V> Index<K> for SecondaryMap<K, V> {
    type Output = V;
    fn index(&self, id: K) -> &V {
        &self.items[id.index()]
    }
}

impl<K: EntityId, V> IndexMut<K> for SecondaryMap<K, V> {
    fn index_mut(&mut self, id: K) -> &mut V {
        &mut self.items[id.index()]
    }
}
