//! Operations that move elements and compute nothing.

use slabplan_ir::ElementType as E;

use super::types::Layouts;
use super::{Array, Generator, Scope, Type};

/// `{1,0}`.
fn braced<T: ToString>(numbers: &[T]) -> String {
    let numbers: Vec<String> = numbers.iter().map(T::to_string).collect();
    format!("{{{}}}", numbers.join(","))
}

impl Generator<'_, '_> {
    /// From a scalar, or along one more dimension.
    pub(super) fn broadcast(&mut self, s: &mut Scope) -> Option<()> {
        let like = self.any_array()?;
        if let Some((x, a)) = self.pick_array(s, |a| (1..3).contains(&a.rank())) {
            let size = self.source.range(1, 4) as u64;
            let before = self.source.chance(1, 2);
            let mut dims = a.dims.clone();
            dims.insert(if before { 0 } else { a.rank() }, size);
            let kept: Vec<usize> = (0..a.rank()).map(|d| d + usize::from(before)).collect();
            let result = self.style.array(&mut self.source, a.element, &dims);
            let attributes = format!(", dimensions={}", braced(&kept));
            self.emit(s, Type::Array(result), "broadcast", &[&x], &attributes);
            return Some(());
        }
        let x = self.scalar(s, like.element);
        self.emit(s, Type::Array(like), "broadcast", &[&x], ", dimensions={}");
        Some(())
    }

    pub(super) fn transpose(&mut self, s: &mut Scope) -> Option<()> {
        let (x, a) = self.pick_array(s, |a| a.rank() > 1)?;
        let order = self.source.permutation(a.rank());
        let dims: Vec<u64> = order.iter().map(|&d| a.dims[d]).collect();
        let result = self.style.array(&mut self.source, a.element, &dims);
        let attributes = format!(", dimensions={}", braced(&order));
        self.emit(s, Type::Array(result), "transpose", &[&x], &attributes);
        Some(())
    }

    /// Other dimensions for the same bytes: a dimension of 1 more where there are tiles or
    /// permuted layouts, else all in one.
    pub(super) fn bitcast(&mut self, s: &mut Scope) -> Option<()> {
        let tiled = self.style.layouts == Layouts::Tiles;
        let (x, a) = self.pick_array(s, |a| a.rank() >= if tiled { 2 } else { 1 })?;
        let result = if tiled {
            Array {
                dims: [&[1], a.dims.as_slice()].concat(),
                layout: with_outer_dimension(&a.layout),
                ..a
            }
        } else if self.style.layouts == Layouts::Orders {
            // The dimensions in the order in which they lie.
            let order: Vec<usize> = a.layout[1..a.layout.len() - 1]
                .split(',')
                .filter_map(|d| d.parse().ok())
                .collect();
            let dims: Vec<u64> = order.iter().rev().map(|&d| a.dims[d]).collect();
            let rank = dims.len();
            let straight: Vec<usize> = (0..rank).rev().collect();
            self.style
                .array_in_order(a.element, &dims, &straight, false)
        } else {
            let count = a.dims.iter().product();
            self.style.array_in_order(a.element, &[count], &[0], false)
        };
        self.emit(s, Type::Array(result), "bitcast", &[&x], "");
        Some(())
    }

    pub(super) fn reshape(&mut self, s: &mut Scope) -> Option<()> {
        let (x, a) = self.pick_array(s, |a| a.rank() > 0)?;
        let count: u64 = a.dims.iter().product();
        let dims = match self.source.below(3) {
            0 => vec![count],
            1 => a.dims.iter().rev().copied().collect(),
            _ if count.is_multiple_of(2) => vec![2, count / 2],
            _ => vec![1, count],
        };
        let result = self.style.array(&mut self.source, a.element, &dims);
        self.emit(s, Type::Array(result), "reshape", &[&x], "");
        Some(())
    }

    pub(super) fn reverse(&mut self, s: &mut Scope) -> Option<()> {
        let (x, a) = self.pick_array(s, |a| a.rank() > 0)?;
        let dim = self.source.below(a.rank());
        let result = self.result_like(&a);
        self.emit(
            s,
            result,
            "reverse",
            &[&x],
            &format!(", dimensions={{{dim}}}"),
        );
        Some(())
    }

    pub(super) fn slice(&mut self, s: &mut Scope) -> Option<()> {
        let (x, a) = self.pick_array(s, |a| a.rank() > 0)?;
        let (result, attributes) = self.slice_of(&a);
        self.emit(s, Type::Array(result), "slice", &[&x], &attributes);
        Some(())
    }

    /// Result and attributes of a slice of `a`.
    pub(super) fn slice_of(&mut self, a: &Array) -> (Array, String) {
        let mut dims = Vec::new();
        let mut ranges = Vec::new();
        for &d in &a.dims {
            let start = self.source.below(d as usize + 1) as u64;
            let end = start + self.source.below((d - start) as usize + 1) as u64;
            let stride = self.source.range(1, 2) as u64;
            dims.push((end - start).div_ceil(stride));
            ranges.push(format!("[{start}:{end}:{stride}]"));
        }
        let result = self.style.array(&mut self.source, a.element, &dims);
        (result, format!(", slice={{{}}}", ranges.join(",")))
    }

    pub(super) fn pad(&mut self, s: &mut Scope) -> Option<()> {
        let (x, a) = self.pick_array(s, |a| a.rank() > 0)?;
        let value = self.scalar(s, a.element);
        let mut dims = Vec::new();
        let mut parts = Vec::new();
        for &d in &a.dims {
            let (low, high) = (self.source.below(3) as u64, self.source.below(3) as u64);
            dims.push(low + d + high);
            parts.push(format!("{low}_{high}"));
        }
        let result = self.style.array(&mut self.source, a.element, &dims);
        let attributes = format!(", padding={}", parts.join("x"));
        self.emit(s, Type::Array(result), "pad", &[&x, &value], &attributes);
        Some(())
    }

    pub(super) fn concatenate(&mut self, s: &mut Scope) -> Option<()> {
        let (x, a) = self.pick_array(s, |a| a.rank() > 0)?;
        let (y, _) = self.pick_array(s, |b| b.element == a.element && b.same_dims(&a))?;
        let dim = self.source.below(a.rank());
        let mut dims = a.dims.clone();
        dims[dim] *= 2;
        let result = self.style.array(&mut self.source, a.element, &dims);
        let attributes = format!(", dimensions={{{dim}}}");
        self.emit(
            s,
            Type::Array(result),
            "concatenate",
            &[&x, &y],
            &attributes,
        );
        Some(())
    }

    pub(super) fn iota(&mut self, s: &mut Scope) -> Option<()> {
        let a = self.any_array()?;
        if a.rank() == 0 || a.element == E::Pred {
            return None;
        }
        let dim = self.source.below(a.rank());
        self.emit(
            s,
            Type::Array(a),
            "iota",
            &[],
            &format!(", iota_dimension={dim}"),
        );
        Some(())
    }

    pub(super) fn dynamic_slice(&mut self, s: &mut Scope) -> Option<()> {
        let (x, a) = self.pick_array(s, |a| a.rank() > 0)?;
        let dims: Vec<u64> = a
            .dims
            .iter()
            .map(|&d| self.source.below(d as usize + 1) as u64)
            .collect();
        let result = self.style.array(&mut self.source, a.element, &dims);
        let indices: Vec<_> = dims.iter().map(|_| self.index(s)).collect();
        let mut operands = vec![&x];
        operands.extend(&indices);
        let attributes = format!(", dynamic_slice_sizes={}", braced(&dims));
        self.emit(
            s,
            Type::Array(result),
            "dynamic-slice",
            &operands,
            &attributes,
        );
        Some(())
    }

    /// Rows of an array, by a list of their numbers.
    pub(super) fn gather(&mut self, s: &mut Scope) -> Option<()> {
        let (x, a) = self.pick_array(s, |a| a.rank() > 0 && a.dims[0] > 0)?;
        let rows = self.source.range(1, 3) as u64;
        let indices = self.style.array(&mut self.source, E::S32, &[rows, 1]);
        let indices = self.value(s, &Type::Array(indices));
        let mut dims = a.dims.clone();
        dims[0] = rows;
        let offsets: Vec<usize> = (1..a.rank()).collect();
        let mut sizes = a.dims.clone();
        sizes[0] = 1;
        let attributes = format!(
            ", offset_dims={}, collapsed_slice_dims={{0}}, start_index_map={{0}}, \
             index_vector_dim=1, slice_sizes={}",
            braced(&offsets),
            braced(&sizes)
        );
        let result = self.style.array(&mut self.source, a.element, &dims);
        self.emit(
            s,
            Type::Array(result),
            "gather",
            &[&x, &indices],
            &attributes,
        );
        Some(())
    }
}

/// The layout with one more dimension, 0, outside all others.
fn with_outer_dimension(layout: &str) -> String {
    let (order, rest) = layout[1..].split_once(':').unwrap_or((&layout[1..], "}"));
    let order: Vec<String> = order
        .split(',')
        .filter_map(|d| d.parse::<usize>().ok())
        .map(|d| (d + 1).to_string())
        .chain(["0".to_owned()])
        .collect();
    format!("{{{}:{rest}", order.join(","))
}
