//! Where choices come from, and what a whole module has in common.

use arbitrary::Unstructured;
use slabplan_ir::ElementType;

use super::types::{Array, ELEMENTS, Layouts, Type, tiles};

/// Choices out of a finite run of bytes. Past its end every choice is the first one, so that
/// fewer bytes make a simpler module.
pub(super) struct Source<'u, 'b> {
    bytes: &'b mut Unstructured<'u>,
}

impl<'u, 'b> Source<'u, 'b> {
    pub(super) fn new(bytes: &'b mut Unstructured<'u>) -> Self {
        Self { bytes }
    }

    /// Whether nothing is left to choose by.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// A number below `n`, which is at least 1.
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.bytes.int_in_range(0..=n - 1).unwrap_or(0)
    }

    /// A number from `low` to `high`.
    pub(super) fn range(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// True `n` times of `d`; never once nothing is left.
    pub(super) fn chance(&mut self, n: usize, d: usize) -> bool {
        self.below(d) >= d - n
    }

    /// One of `items`.
    pub(super) fn one_of<'i, T>(&mut self, items: &'i [T]) -> Option<&'i T> {
        (!items.is_empty()).then(|| &items[self.below(items.len())])
    }

    /// `0..n` in some order.
    pub(super) fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for k in (1..n).rev() {
            order.swap(k, self.below(k + 1));
        }
        order
    }
}

/// What all computations of a module have in common.
pub(super) struct Style {
    pub(super) scheduled: bool,
    pub(super) layouts: Layouts,
    /// Types that arrays mostly have, so that values often fit one another.
    pub(super) palette: Vec<Array>,
}

impl Style {
    pub(super) fn new(source: &mut Source<'_, '_>) -> Self {
        let layouts = [Layouts::None, Layouts::Orders, Layouts::Tiles][source.below(3)];
        let mut style = Self {
            scheduled: source.chance(1, 2),
            layouts,
            palette: Vec::new(),
        };
        for _ in 0..source.range(1, 4) {
            let element = *source.one_of(ELEMENTS).unwrap_or(&ElementType::F32);
            let dims = match source.below(8) {
                0..=2 => vec![16],
                3 | 4 => vec![4, 6],
                5 => vec![40],
                6 => vec![2, 3, 5],
                _ => vec![source.range(0, 9) as u64, source.range(1, 5) as u64],
            };
            let array = style.array(source, element, &dims);
            style.palette.push(array);
        }
        style
    }

    /// An array type with a layout in this style: mostly the usual one.
    pub(super) fn array(
        &self,
        source: &mut Source<'_, '_>,
        element: ElementType,
        dims: &[u64],
    ) -> Array {
        let rank = dims.len();
        let order = if self.layouts != Layouts::None && rank > 1 && source.chance(1, 4) {
            source.permutation(rank)
        } else {
            (0..rank).rev().collect()
        };
        let alternative = self.layouts == Layouts::Tiles && source.chance(1, 8);
        self.array_in_order(element, dims, &order, alternative)
    }

    /// An array type with this minor-to-major order.
    pub(super) fn array_in_order(
        &self,
        element: ElementType,
        dims: &[u64],
        order: &[usize],
        alternative: bool,
    ) -> Array {
        let order: Vec<String> = order.iter().map(usize::to_string).collect();
        let layout = match self.layouts {
            Layouts::None => String::new(),
            Layouts::Orders if order.is_empty() => String::new(),
            Layouts::Orders => format!("{{{}}}", order.join(",")),
            Layouts::Tiles => format!(
                "{{{}:{}}}",
                order.join(","),
                tiles(element, dims.len(), alternative)
            ),
        };
        Array {
            element,
            dims: dims.to_vec(),
            layout,
        }
    }

    /// A scalar type.
    pub(super) fn scalar(&self, element: ElementType) -> Type {
        Type::Array(self.array_in_order(element, &[], &[], false))
    }

    /// An array of `like`'s dimensions and layout with another element type.
    pub(super) fn with_element(
        &self,
        source: &mut Source<'_, '_>,
        like: &Array,
        element: ElementType,
    ) -> Array {
        if self.layouts == Layouts::Tiles {
            self.array(source, element, &like.dims)
        } else {
            Array {
                element,
                ..like.clone()
            }
        }
    }
}
