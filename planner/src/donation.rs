//! What becomes of every argument the caller gives away, and why a donation is not used.

use std::fmt;

use slabplan_ir::module::AliasKind;
use slabplan_ir::padding::shape_bytes;
use slabplan_ir::shape::{DisplayIndex, ShapeIndex};
use slabplan_ir::{Bytes, Module, ShapeId};

use crate::buffers::space_of;

/// One argument array the caller gives away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Donation {
    /// Entry parameter number.
    pub parameter: u32,
    /// Part of the parameter.
    pub index: ShapeIndex,
    /// What becomes of it.
    pub outcome: Outcome,
}

/// What becomes of a donated argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An output takes its bytes.
    Output {
        /// Part of the entry computation's result.
        output: ShapeIndex,
        /// Number of the entry in `input_output_alias`.
        alias: u32,
    },
    /// No output is paired with it; temporaries may use its bytes after its last read.
    Scratch,
    /// The output named for it can't take its bytes.
    Refused {
        /// Part of the entry computation's result.
        output: ShapeIndex,
        /// Whether the caller relies on it: then the module can't be planned.
        kind: AliasKind,
        /// Why not.
        reason: Refusal,
    },
}

/// Why an output can't take a donated argument's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Their padded sizes differ.
    Size {
        /// Padded bytes of the argument.
        argument: Bytes,
        /// Padded bytes of the output.
        output: Bytes,
    },
    /// They lie in different memory spaces.
    Space {
        /// Memory space of the argument.
        argument: u32,
        /// Memory space of the output.
        output: u32,
    },
    /// One of the two is not an array of the module.
    NoArray,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Size { argument, output } => write!(
                f,
                "the argument occupies {argument} with padding and the output {output}; \
                 give both the same shape and layout"
            ),
            Refusal::Space { argument, output } => write!(
                f,
                "the argument lies in memory space {argument} and the output in {output}"
            ),
            Refusal::NoArray => f.write_str("argument or output is not an array"),
        }
    }
}

impl fmt::Display for Donation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = DisplayIndex(&self.index);
        write!(f, "parameter {} {part}: ", self.parameter)?;
        match &self.outcome {
            Outcome::Output { output, .. } => {
                write!(f, "holds output {}", DisplayIndex(output))
            }
            Outcome::Scratch => {
                f.write_str("no output is paired with it; its bytes are free after its last read")
            }
            Outcome::Refused { output, reason, .. } => write!(
                f,
                "output {} can't take its bytes: {reason}",
                DisplayIndex(output)
            ),
        }
    }
}

/// Every donation of `module`, in the order of its header. O(entries · tuple depth).
pub fn donations(module: &Module) -> Vec<Donation> {
    let aliases = (0..).zip(&module.input_output_alias).map(|(alias, a)| {
        let argument = parameter_shape(module, a.parameter, &a.parameter_index);
        let result = module.instrs[module.entry().root].shape;
        let output = module.shapes.subshape(result, &a.output_index);
        Donation {
            parameter: a.parameter,
            index: a.parameter_index.clone(),
            outcome: match refusal(module, argument, output) {
                None => Outcome::Output {
                    output: a.output_index.clone(),
                    alias,
                },
                Some(reason) => Outcome::Refused {
                    output: a.output_index.clone(),
                    kind: a.kind,
                    reason,
                },
            },
        }
    });
    let donors = module.buffer_donors.iter().map(|d| Donation {
        parameter: d.parameter,
        index: d.parameter_index.clone(),
        outcome: Outcome::Scratch,
    });
    aliases.chain(donors).collect()
}

fn parameter_shape(module: &Module, number: u32, index: &[u32]) -> Option<ShapeId> {
    let &param = module.entry().params.get(number as usize)?;
    module.shapes.subshape(module.instrs[param].shape, index)
}

fn refusal(module: &Module, argument: Option<ShapeId>, output: Option<ShapeId>) -> Option<Refusal> {
    let arrays = argument.zip(output).filter(|&(a, o)| {
        let is_array = |s| module.shapes.tuple(s).is_none();
        is_array(a) && is_array(o)
    });
    let Some((argument, output)) = arrays else {
        return Some(Refusal::NoArray);
    };
    let space = |s| space_of(&module.shapes, s);
    let size = |s| shape_bytes(&module.shapes, s).unwrap_or(Bytes::ZERO);
    if space(argument) != space(output) {
        Some(Refusal::Space {
            argument: space(argument),
            output: space(output),
        })
    } else if size(argument) != size(output) {
        Some(Refusal::Size {
            argument: size(argument),
            output: size(output),
        })
    } else {
        None
    }
}
