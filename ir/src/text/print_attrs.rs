//! Attribute values as HLO text.

use std::fmt::Display;

use super::print::Printer;
use crate::attr::{AttrValue, ConvDimLabels, ReplicaGroups, WindowDim};
use crate::entity::CompId;
use crate::shape::DisplayIndex;

impl Printer<'_> {
    pub(super) fn attr_value(&mut self, value: &AttrValue) {
        let module = self.module;
        match value {
            AttrValue::Int(n) => self.fmt(format_args!("{n}")),
            AttrValue::Bool(b) => self.fmt(format_args!("{b}")),
            AttrValue::Ident(s) | AttrValue::Raw(s) => self.out.push_str(module.str(*s)),
            AttrValue::Idents(words) => {
                self.braced(words, ",", |p, &w| p.out.push_str(module.str(w)));
            }
            AttrValue::Ints(ints) => self.ints(ints),
            AttrValue::Comp(comp) => self.comp_name(*comp),
            AttrValue::Comps(comps) => self.braced(comps, ", ", |p, &c| p.comp_name(c)),
            AttrValue::Instrs(instrs) => self.braced(instrs, ", ", |p, &i| {
                p.out.push('%');
                p.out.push_str(module.name_of(i));
            }),
            AttrValue::Window(dims) => self.window(dims),
            AttrValue::DimLabels(labels) => self.dim_labels(labels),
            AttrValue::Padding(dims) => {
                // XLA writes the interior of all dimensions as soon as one has it.
                let interior = dims.iter().any(|d| d.interior != 0);
                self.joined(dims, "x", |p, d| {
                    p.fmt(format_args!("{}_{}", d.low, d.high));
                    if interior {
                        p.fmt(format_args!("_{}", d.interior));
                    }
                });
            }
            AttrValue::Slice(dims) => {
                let strides = dims.iter().any(|d| d.stride != 1);
                self.braced(dims, ", ", |p, d| {
                    p.fmt(format_args!("[{}:{}", d.start, d.limit));
                    if strides {
                        p.fmt(format_args!(":{}", d.stride));
                    }
                    p.out.push(']');
                });
            }
            AttrValue::Pairs(pairs) => self.braced(pairs, ",", |p, &(a, b)| {
                p.fmt(format_args!("{{{a},{b}}}"));
            }),
            AttrValue::ReplicaGroups(groups) => self.replica_groups(groups),
            AttrValue::Shape(shape) => self.shape(*shape),
            AttrValue::Shapes(shapes) => self.braced(shapes, ", ", |p, &s| p.shape(s)),
            AttrValue::Aliasing(aliases) => self.braced(aliases, ", ", |p, a| {
                p.fmt(format_args!(
                    "{}: ({}, {})",
                    DisplayIndex(&a.output_index),
                    a.operand,
                    DisplayIndex(&a.operand_index)
                ));
            }),
        }
    }

    fn joined<T>(&mut self, items: &[T], separator: &str, mut item: impl FnMut(&mut Self, &T)) {
        for (i, x) in items.iter().enumerate() {
            if i > 0 {
                self.out.push_str(separator);
            }
            item(self, x);
        }
    }

    fn braced<T>(&mut self, items: &[T], separator: &str, item: impl FnMut(&mut Self, &T)) {
        self.out.push('{');
        self.joined(items, separator, item);
        self.out.push('}');
    }

    fn ints(&mut self, ints: &[i64]) {
        self.braced(ints, ",", |p, n| p.fmt(format_args!("{n}")));
    }

    fn comp_name(&mut self, comp: CompId) {
        self.out.push('%');
        self.out.push_str(self.module.comp_name(comp));
    }

    /// Fields at their defaults in all dimensions are left out, except the size.
    fn window(&mut self, dims: &[WindowDim]) {
        self.out.push('{');
        if !dims.is_empty() {
            self.out.push_str("size=");
            self.joined(dims, "x", |p, d| p.fmt(format_args!("{}", d.size)));
            self.window_field(dims, "stride", 1, |d| d.stride);
            if dims.iter().any(|d| d.pad_low != 0 || d.pad_high != 0) {
                self.out.push_str(" pad=");
                self.joined(dims, "x", |p, d| {
                    p.fmt(format_args!("{}_{}", d.pad_low, d.pad_high));
                });
            }
            self.window_field(dims, "lhs_dilate", 1, |d| d.base_dilation);
            self.window_field(dims, "rhs_dilate", 1, |d| d.window_dilation);
            self.window_field(dims, "rhs_reversal", 0, |d| i64::from(d.reversal));
        }
        self.out.push('}');
    }

    fn window_field(
        &mut self,
        dims: &[WindowDim],
        name: &str,
        default: i64,
        field: impl Fn(&WindowDim) -> i64,
    ) {
        if dims.iter().any(|d| field(d) != default) {
            self.fmt(format_args!(" {name}="));
            self.joined(dims, "x", |p, d| p.fmt(format_args!("{}", field(d))));
        }
    }

    fn dim_labels(&mut self, labels: &ConvDimLabels) {
        self.label_side(
            [('b', labels.input_batch), ('f', labels.input_feature)],
            &labels.input_spatial,
        );
        self.out.push('_');
        self.label_side(
            [
                ('i', labels.kernel_input_feature),
                ('o', labels.kernel_output_feature),
            ],
            &labels.kernel_spatial,
        );
        self.out.push_str("->");
        self.label_side(
            [('b', labels.output_batch), ('f', labels.output_feature)],
            &labels.output_spatial,
        );
    }

    fn label_side(&mut self, letters: [(char, usize); 2], spatial: &[usize]) {
        let mut side: Vec<(usize, String)> = letters
            .into_iter()
            .map(|(c, place)| (place, c.to_string()))
            .chain(spatial.iter().enumerate().map(|(i, &p)| (p, i.to_string())))
            .collect();
        side.sort();
        self.joined(&side, "", |p, (_, label)| p.out.push_str(label));
    }

    fn replica_groups(&mut self, groups: &ReplicaGroups) {
        match groups {
            ReplicaGroups::List(groups) => self.braced(groups, ",", |p, g| p.ints(g)),
            ReplicaGroups::Raw(text) => self.out.push_str(self.module.str(*text)),
            ReplicaGroups::Iota {
                dims,
                reshape,
                transpose,
            } => {
                self.bracketed("[", dims, "]<=");
                self.bracketed("[", reshape, "]");
                if !transpose.is_empty() {
                    self.bracketed("T(", transpose, ")");
                }
            }
        }
    }

    fn bracketed<T: Display>(&mut self, open: &str, items: &[T], close: &str) {
        self.out.push_str(open);
        self.joined(items, ",", |p, n| p.fmt(format_args!("{n}")));
        self.out.push_str(close);
    }
}
