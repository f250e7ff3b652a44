//! Types of values as text, and the layouts that a module's style gives them.

use std::fmt;

use slabplan_ir::ElementType::{
    self, Bf16, F16, F32, F64, Pred, S4, S8, S16, S32, S64, U4, U8, U16, U32,
};

/// An array type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Array {
    pub(super) element: ElementType,
    pub(super) dims: Vec<u64>,
    /// `{1,0:T(8,128)}`; empty in modules without layouts.
    pub(super) layout: String,
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Array(Array),
    Tuple(Vec<Type>),
    Token,
}

impl Type {
    pub(super) fn array(&self) -> Option<&Array> {
        match self {
            Type::Array(a) => Some(a),
            _ => None,
        }
    }

    pub(super) fn elements(&self) -> Option<&[Type]> {
        match self {
            Type::Tuple(e) => Some(e),
            _ => None,
        }
    }

    /// Whether it is a scalar of this element type.
    pub(super) fn is_scalar(&self, element: ElementType) -> bool {
        self.array()
            .is_some_and(|a| a.element == element && a.dims.is_empty())
    }

    /// Whether tokens are in it.
    pub(super) fn has_token(&self) -> bool {
        match self {
            Type::Array(_) => false,
            Type::Tuple(e) => e.iter().any(Type::has_token),
            Type::Token => true,
        }
    }

    /// Its arrays, with their shape indices.
    pub(super) fn leaves(&self) -> Vec<(Vec<usize>, &Array)> {
        match self {
            Type::Array(a) => vec![(Vec::new(), a)],
            Type::Tuple(elements) => elements
                .iter()
                .enumerate()
                .flat_map(|(k, e)| {
                    e.leaves().into_iter().map(move |(mut index, a)| {
                        index.insert(0, k);
                        (index, a)
                    })
                })
                .collect(),
            Type::Token => Vec::new(),
        }
    }
}

impl Array {
    pub(super) fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Whether both have the same dimensions.
    pub(super) fn same_dims(&self, other: &Array) -> bool {
        self.dims == other.dims
    }
}

impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> = self.dims.iter().map(u64::to_string).collect();
        write!(
            f,
            "{}[{}]{}",
            self.element.name(),
            dims.join(","),
            self.layout
        )
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Array(a) => a.fmt(f),
            Type::Tuple(elements) => {
                let parts: Vec<String> = elements.iter().map(ToString::to_string).collect();
                write!(f, "({})", parts.join(", "))
            }
            Type::Token => f.write_str("token[]"),
        }
    }
}

/// What a module says of layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layouts {
    /// Nothing.
    None,
    /// Orders of dimensions.
    Orders,
    /// Orders and tiles, as a TPU has them.
    Tiles,
}

/// Element types that arrays of the generated modules have.
pub(super) const ELEMENTS: &[ElementType] = &[
    F32, F32, F32, S32, S32, Bf16, S8, Pred, U8, U16, F64, S64, S4, U4, U32, F16,
];

/// A literal of `element`, small enough for every type and different for most `n`.
pub(super) fn scalar_literal(element: ElementType, n: u64) -> String {
    if element == Pred {
        return (n % 2 == 1).to_string();
    }
    let magnitude = n % 7;
    let sign = if element.is_float() || matches!(element, S4 | S8 | S16 | S32 | S64) {
        n / 7 % 2
    } else {
        0
    };
    let minus = if sign == 1 && magnitude > 0 { "-" } else { "" };
    if element.is_float() && n / 14 % 2 == 1 {
        format!("{minus}{magnitude}.5")
    } else {
        format!("{minus}{magnitude}")
    }
}

/// A literal with the elements `n`, `n + 1`, ... in row-major order.
pub(super) fn literal(array: &Array, n: u64) -> String {
    fn part(array: &Array, dim: usize, n: &mut u64, out: &mut String) {
        let Some(&size) = array.dims.get(dim) else {
            out.push_str(&scalar_literal(array.element, *n));
            *n += 1;
            return;
        };
        out.push('{');
        for k in 0..size {
            if k > 0 {
                out.push(',');
            }
            part(array, dim + 1, n, out);
        }
        out.push('}');
    }
    let mut out = String::new();
    part(array, 0, &mut n.clone(), &mut out);
    out
}

/// The tiles a TPU gives an array of this rank; `alternative` chooses between two usual ones.
pub(super) fn tiles(element: ElementType, rank: usize, alternative: bool) -> &'static str {
    match (element.bits(), rank, alternative) {
        (4, 0 | 1, _) => "T(1024)(128)(8,1)E(4)",
        (4, _, false) => "T(64,128)(8,1)E(4)",
        (4, _, true) => "T(8,128)(8,1)E(4)",
        (8, 0 | 1, _) => "T(512)(128)(4,1)",
        (8, _, false) => "T(8,128)(4,1)",
        (8, _, true) => "T(32,128)(4,1)",
        (16, 0 | 1, _) => "T(256)(128)(2,1)",
        (16, _, false) => "T(8,128)(2,1)",
        (16, _, true) => "T(2,128)(2,1)",
        (_, 0 | 1, _) => "T(128)",
        (_, _, false) => "T(8,128)",
        (_, _, true) => "T(2,128)",
    }
}
