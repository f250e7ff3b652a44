//! The rule table.
//!
//! A rule looks at one node and answers with nodes that are equal to it. To add one: write the
//! function, add its row with the condition and the sentence that says why it is sound; the
//! randomised test of `rewrite::tests` then runs every row against the interpreter by itself, and
//! fails if the row never fires.

mod broadcasts;
mod converts;
mod moves;
mod reductions;
mod slices;
mod support;
mod views;

use egg::{Id, Subst, Symbol, Var};

use super::lang::{Graph, Node, Tables};

/// A rewrite rule.
pub(super) struct Rule {
    /// Name: `transpose-of-transpose`.
    pub(super) name: &'static str,
    /// When it applies.
    pub(super) condition: &'static str,
    /// Why both sides have the same elements.
    pub(super) soundness: &'static str,
    /// Classes equal to the class of the node.
    pub(super) apply: fn(&mut Graph, &Node) -> Vec<Id>,
}

const fn rule(
    name: &'static str,
    condition: &'static str,
    soundness: &'static str,
    apply: fn(&mut Graph, &Node) -> Vec<Id>,
) -> Rule {
    Rule {
        name,
        condition,
        soundness,
        apply,
    }
}

/// All rules, in the order in which they are tried.
#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    rule("transpose-of-nothing", "the permutation is the identity",
        "every element stays where it is", views::transpose_of_nothing),
    rule("transpose-of-transpose", "always",
        "permutations compose", views::transpose_of_transpose),
    rule("transpose-of-units", "only dimensions of one change their order",
        "the row-major order of elements does not depend on dimensions of one", views::transpose_of_units),
    rule("reshape-of-nothing", "the dimensions are the operand's",
        "every element stays where it is", views::reshape_of_nothing),
    rule("reshape-of-reshape", "always",
        "both keep the row-major order of elements", views::reshape_of_reshape),
    rule("broadcast-of-nothing", "the map is the identity and the dimensions are the operand's",
        "every element is repeated once", broadcasts::broadcast_of_nothing),
    rule("broadcast-of-broadcast", "always",
        "maps of dimensions compose", broadcasts::broadcast_of_broadcast),
    rule("broadcast-of-reshape", "the reshape only adds dimensions of one, which map to dimensions of one",
        "an added dimension of one has one index, and nothing is repeated along it", broadcasts::broadcast_of_reshape),
    rule("broadcast-to-reshape", "the broadcast only adds dimensions of one and keeps the order of the others",
        "without repetition a broadcast keeps the row-major order of elements", broadcasts::broadcast_to_reshape),
    rule("transpose-of-broadcast", "always",
        "the element at an index of the result is the operand's at the mapped part of it, in whatever order the dimensions stand",
        broadcasts::transpose_of_broadcast),
    rule("reshape-of-broadcast", "the broadcast is of a scalar",
        "all elements are the same one", broadcasts::reshape_of_broadcast),
    rule("slice-of-broadcast", "always",
        "along a repeated dimension all slices are alike; along a mapped one the operand can be sliced", broadcasts::slice_of_broadcast),
    rule("concatenate-of-broadcasts", "all operands are broadcasts of one array along the dimension joined",
        "the joined dimension repeats the same elements throughout", broadcasts::concatenate_of_broadcasts),
    rule("elementwise-of-broadcasts", "all operands are broadcasts with one map, or broadcasts of scalars",
        "equal elements give equal results, so computing before repeating is the same", broadcasts::elementwise_of_broadcasts),
    rule("elementwise-of-transposes", "all operands are transposed alike, or broadcasts of scalars",
        "an elementwise operation does not see where an element stands", moves::elementwise_of_transposes),
    rule("transpose-of-elementwise", "always",
        "an elementwise operation does not see where an element stands", moves::transpose_of_elementwise),
    rule("elementwise-of-reshapes", "all operands are reshapes from one shape, or broadcasts of scalars",
        "an elementwise operation does not see where an element stands", moves::elementwise_of_reshapes),
    rule("reshape-of-elementwise", "the operation has one operand",
        "an elementwise operation does not see where an element stands", moves::reshape_of_elementwise),
    rule("broadcast-of-convert", "always",
        "the converted element is repeated, or the repeated element converted", moves::broadcast_of_convert),
    rule("slice-of-nothing", "the slice is the whole operand",
        "every element stays where it is", slices::slice_of_nothing),
    rule("slice-of-slice", "always",
        "start and stride compose", slices::slice_of_slice),
    rule("slice-of-elementwise", "always",
        "an element of the result depends on the operands' elements at its index only", slices::slice_of_elementwise),
    rule("slice-of-transpose", "always",
        "bounds move with their dimensions", slices::slice_of_transpose),
    rule("slice-of-concatenate", "the slice lies in one operand, or has stride 1 along the dimension joined",
        "what lies in other operands is not read", slices::slice_of_concatenate),
    rule("slice-of-pad", "the slice lies inside the operand of a pad without interior padding",
        "no padding is read", slices::slice_of_pad),
    rule("concatenate-of-one", "there is one operand",
        "nothing is joined", slices::concatenate_of_one),
    rule("concatenate-of-concatenates", "an operand is a concatenate along the same dimension",
        "joining is associative", slices::concatenate_of_concatenates),
    rule("concatenate-of-slices", "neighbouring operands are slices of one array that meet, with stride 1",
        "the joined slice reads the same elements in the same order", slices::concatenate_of_slices),
    rule("pad-of-nothing", "all padding is zero",
        "nothing is added", slices::pad_of_nothing),
    rule("pad-of-pad", "no negative or interior padding, one padding value",
        "padding on padding is more padding", slices::pad_of_pad),
    rule("convert-of-nothing", "the element type is the operand's",
        "every element stays what it is", converts::convert_of_nothing),
    rule("convert-of-convert", "the first conversion keeps every value exactly",
        "what arrives at the second conversion is the value itself", converts::convert_of_convert),
    rule("negate-of-negate", "two negations, or two logical complements",
        "both are their own inverse on every value", converts::involution),
    rule("multiply-by-one", "one factor, or the divisor, is a broadcast of the constant 1",
        "the product with one is the other factor exactly, also for infinities, zeros and NaNs", converts::multiply_by_one),
    rule("select-of-same", "both choices are the same array",
        "either choice gives its elements", converts::select_of_same),
    rule("reduce-of-units", "the dimensions have one element, the initial value is the reducer's identity",
        "the reduction of one element with the identity is that element (HLO lets a sum turn -0 into 0; this keeps it)",
        reductions::reduce_of_units),
    rule("reduce-of-reshape", "the reshape only adds or drops dimensions of one",
        "along a dimension of one there is nothing to combine beyond the initial value, which is applied once", reductions::reduce_of_reshape),
    rule("reduce-of-transpose", "always",
        "HLO leaves the order in which elements are combined open", reductions::reduce_of_transpose),
    rule("reduce-of-broadcast", "maximum, minimum, and, or; from their identity; only repeated dimensions are reduced",
        "an element combined with itself is itself", reductions::reduce_of_broadcast),
    rule("reduce-of-reduce", "one exact associative reducer twice, the inner one from its identity",
        "all elements are combined once either way", reductions::reduce_of_reduce),
];

/// A rule as egg wants it: searches every class, applies to every node.
#[derive(Clone, Copy)]
pub(super) struct Everywhere {
    pub(super) name: &'static str,
    pub(super) apply: fn(&mut Graph, &Node) -> Vec<Id>,
}

impl egg::Searcher<Node, Tables> for Everywhere {
    fn search_eclass_with_limit(
        &self,
        _: &Graph,
        eclass: Id,
        _: usize,
    ) -> Option<egg::SearchMatches<'_, Node>> {
        Some(egg::SearchMatches {
            eclass,
            substs: vec![Subst::default()],
            ast: None,
        })
    }

    fn vars(&self) -> Vec<Var> {
        Vec::new()
    }
}

impl egg::Applier<Node, Tables> for Everywhere {
    fn apply_one(
        &self,
        egraph: &mut Graph,
        eclass: Id,
        _: &Subst,
        _: Option<&egg::PatternAst<Node>>,
        _: Symbol,
    ) -> Vec<Id> {
        let mut changed = Vec::new();
        if egraph.find(eclass) != eclass {
            // It was joined with another one, which has its nodes now.
            return changed;
        }
        egraph.analysis.at_work = self.name;
        for node in support::nodes(egraph, eclass) {
            if egraph.total_size() >= egraph.analysis.most_names {
                egraph.analysis.is_cut_short = true;
                break;
            }
            for equal in (self.apply)(egraph, &node) {
                if egraph.union(eclass, equal) {
                    egraph.analysis.joined.push((eclass, self.name));
                    changed.push(eclass);
                }
            }
        }
        changed
    }
}
