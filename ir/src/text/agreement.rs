//! What an instruction's attributes say must agree with its operands, and with what was said before.

use std::ops::Range;

use super::async_sugar::Phase;
use super::diagnostic::{Fault, Rule, shown};
use super::instruction::Operation;
use super::parser::Parser;
use crate::ElementType;
use crate::attr::{Attr, AttrName, AttrValue};
use crate::entity::{InstrId, ShapeId};
use crate::opcode::Opcode;
use crate::shape::Shape;

/// Versions of custom calls; `API_VERSION_UNSPECIFIED` may not be written.
const API_VERSIONS: &[&str] = &[
    "API_VERSION_ORIGINAL",
    "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI",
];

/// Attributes that are one of a few words, with the words.
const WORDS: &[(AttrName, &[&str])] = &[
    (AttrName::Direction, &["EQ", "NE", "GE", "GT", "LE", "LT"]),
    (
        AttrName::Type,
        &["FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"],
    ),
    (AttrName::Kind, &["kLoop", "kInput", "kOutput", "kCustom"]),
    (AttrName::FftType, &["FFT", "IFFT", "RFFT", "IRFFT"]),
    (
        AttrName::TransposeA,
        &["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"],
    ),
    (
        AttrName::ConvolutionKind,
        &["unset", "fprop", "wgrad", "dgrad"],
    ),
];

impl Parser<'_> {
    /// Checks the instruction at `span`, whose parts are all good.
    pub(super) fn check_agreement(
        &self,
        op: Operation,
        span: &Range<usize>,
        shape: Option<ShapeId>,
        operands: &[InstrId],
        attrs: &[Attr],
    ) -> Rule<()> {
        let wrong = self
            .word_error(attrs)
            .or_else(|| match (op.phase, op.opcode) {
                (Some(Phase::Update | Phase::Done), wrapped) => {
                    self.continuation_error(Some(wrapped), operands, attrs)
                }
                (None, Opcode::AsyncUpdate | Opcode::AsyncDone) => {
                    self.continuation_error(None, operands, attrs)
                }
                (_, Opcode::CustomCall) => self.custom_call_error(operands, attrs),
                (_, Opcode::Conditional) => self.selector_error(operands, attrs),
                (_, Opcode::Parameter) => shape.and_then(|s| self.replication_error(s, attrs)),
                _ => None,
            });
        match wrong {
            None => Ok(()),
            Some(message) => Err(Fault::new(span.clone(), message)),
        }
    }

    /// A word that its attribute does not know.
    fn word_error(&self, attrs: &[Attr]) -> Option<String> {
        attrs.iter().find_map(|a| {
            let &AttrValue::Ident(word) = &a.value else {
                return None;
            };
            let (_, words) = WORDS.iter().find(|(name, _)| *name == a.name)?;
            let word = self.module.str(word);
            (!words.contains(&word)).then(|| {
                format!(
                    "has `{}={}`, which is none of {}",
                    a.name.name(),
                    shown(word),
                    words.join(", ")
                )
            })
        })
    }

    /// An update or a done may repeat what its start says, but not contradict it.
    fn continuation_error(
        &self,
        wrapped: Option<Opcode>,
        operands: &[InstrId],
        attrs: &[Attr],
    ) -> Option<String> {
        let &start = self.async_start_of.get(operands.first()?)?;
        let start = &self.module.instrs[start];
        let comp = start.comp(AttrName::Calls)?;
        let comp_name = |c| self.module.comp_name(c);
        let root = &self.module.instrs[self.module.computations[comp].root];
        if let Some(wrapped) = wrapped.filter(|&w| w != root.opcode) {
            return Some(format!("continues `{}`, not `{wrapped}`", root.opcode));
        }
        for attr in attrs {
            match (attr.name, &attr.value) {
                (AttrName::Calls, &AttrValue::Comp(c)) if c != comp => {
                    return Some(format!(
                        "runs `{}`, but its start runs `{}`",
                        comp_name(c),
                        comp_name(comp)
                    ));
                }
                (AttrName::AsyncExecutionThread, &AttrValue::Raw(thread)) => {
                    let begun = match start.attr(AttrName::AsyncExecutionThread) {
                        Some(&AttrValue::Raw(thread)) => self.module.str(thread),
                        _ => "main",
                    };
                    let here = self.module.str(thread);
                    if here.trim_matches('"') != begun.trim_matches('"') {
                        return Some(format!(
                            "runs on thread {}, but its start runs on {}",
                            shown(here),
                            shown(begun)
                        ));
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn custom_call_error(&self, operands: &[InstrId], attrs: &[Attr]) -> Option<String> {
        attrs.iter().find_map(|a| match (a.name, &a.value) {
            (AttrName::OperandLayoutConstraints, AttrValue::Shapes(given)) => {
                if given.len() != operands.len() {
                    return Some(format!(
                        "{} layout constraints for {} operands",
                        given.len(),
                        operands.len()
                    ));
                }
                let shapes = &self.module.shapes;
                let shape = |o: InstrId| self.module.instrs[o].shape;
                let mut pairs = given.iter().zip(operands).enumerate();
                pairs.find_map(|(n, (&given, &operand))| {
                    (!shapes.compatible(given, shape(operand))).then(|| {
                        format!(
                            "layout constraint {n} is of {}, but the operand is {}",
                            shapes.display_without_layout(given),
                            shapes.display_without_layout(shape(operand))
                        )
                    })
                })
            }
            (AttrName::ApiVersion, &AttrValue::Ident(version)) => {
                let version = self.module.str(version);
                (!API_VERSIONS.contains(&version))
                    .then(|| format!("`{}` is no version of custom calls", shown(version)))
            }
            _ => None,
        })
    }

    /// A predicate chooses between a true and a false computation, a number among branches.
    fn selector_error(&self, operands: &[InstrId], attrs: &[Attr]) -> Option<String> {
        let shape = self.module.instrs[*operands.first()?].shape;
        let selector = self.module.shapes.array(shape)?.element_type;
        let listed = attrs.iter().any(|a| a.name == AttrName::BranchComputations);
        match selector {
            ElementType::Pred if listed => Some(
                "chooses by a predicate: name a `true_computation` and a `false_computation`"
                    .to_owned(),
            ),
            ElementType::S32 if !listed => {
                Some("chooses by a number: name its `branch_computations`".to_owned())
            }
            _ => None,
        }
    }

    fn replication_error(&self, shape: ShapeId, attrs: &[Attr]) -> Option<String> {
        let given = attrs.iter().find_map(|a| match a.value {
            AttrValue::Raw(text) if a.name == AttrName::ParameterReplication => Some(text),
            _ => None,
        })?;
        let given = self.module.str(given).matches(['t', 'f']).count();
        let shapes = &self.module.shapes;
        let mut leaves = 0;
        let mut open = vec![shape];
        while let Some(shape) = open.pop() {
            match shapes.get(shape) {
                Shape::Tuple(elements) => open.extend(elements),
                _ => leaves += 1,
            }
        }
        (given != leaves)
            .then(|| format!("has {leaves} parts, but `parameter_replication` is of {given}"))
    }
}
