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
    /// Why no output is paired with it, where none is.
    pub unpaired: Option<Unpaired>,
}

impl Donation {
    /// Whether an output takes its bytes.
    pub fn is_used(&self) -> bool {
        matches!(self.outcome, Outcome::Output { .. })
    }
}

/// Why no output is paired with a donated argument. XLA pairs donors with outputs of equal padded size in the same memory
/// space (`OptimizeInputOutputBufferAlias`); what is left over has one of these reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpaired {
    /// Its size is known at run time only.
    Dynamic,
    /// The program returns nothing in its memory space.
    Space(u32),
    /// No output in its memory space has its size.
    Size(Bytes),
    /// Every output of its size has the bytes of another argument.
    Taken(Bytes),
    /// This output would fit, but the module does not name it in `input_output_alias`.
    NotNamed(ShapeIndex),
}

impl fmt::Display for Unpaired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unpaired::Dynamic => f.write_str("its size is known at run time only"),
            Unpaired::Space(space) => write!(f, "no output lies in memory space {space}"),
            Unpaired::Size(size) => write!(f, "no output occupies {size} with padding, as it does"),
            Unpaired::Taken(size) => {
                write!(f, "every output of {size} has another argument's bytes")
            }
            Unpaired::NotNamed(output) => write!(
                f,
                "output {} would fit, but input_output_alias does not name it",
                DisplayIndex(output)
            ),
        }
    }
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
                f.write_str("no output is paired with it")?;
                if let Some(reason) = &self.unpaired {
                    write!(f, " ({reason})")?;
                }
                f.write_str("; its bytes are free after its last read")
            }
            Outcome::Refused { output, reason, .. } => write!(
                f,
                "output {} can't take its bytes: {reason}",
                DisplayIndex(output)
            ),
        }
    }
}

/// Every donation of `module`, in the order of its header. O(entries · tuple depth + donors · outputs).
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
            unpaired: None,
        }
    });
    let donors = module.buffer_donors.iter().map(|d| Donation {
        parameter: d.parameter,
        index: d.parameter_index.clone(),
        outcome: Outcome::Scratch,
        unpaired: unpaired(module, d.parameter, &d.parameter_index),
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

/// Why no output takes the bytes of a donor.
fn unpaired(module: &Module, number: u32, index: &[u32]) -> Option<Unpaired> {
    let argument = parameter_shape(module, number, index)?;
    let size = |s| shape_bytes(&module.shapes, s).unwrap_or(Bytes::ZERO);
    if is_dynamic(module, argument) {
        return Some(Unpaired::Dynamic);
    }
    let space = space_of(&module.shapes, argument);
    let result = module.instrs[module.entry().root].shape;
    let outputs: Vec<(ShapeIndex, ShapeId)> = (0..module.shapes.node_count(result))
        .map(|node| module.shapes.index_of_node(result, node))
        .filter_map(|i| Some((i.clone(), module.shapes.subshape(result, &i)?)))
        .filter(|&(_, s)| module.shapes.array(s).is_some() && space_of(&module.shapes, s) == space)
        .collect();
    if outputs.is_empty() {
        return Some(Unpaired::Space(space));
    }
    let mut of_size = outputs
        .into_iter()
        .filter(|&(_, s)| size(s) == size(argument) && !is_dynamic(module, s))
        .peekable();
    if of_size.peek().is_none() {
        return Some(Unpaired::Size(size(argument)));
    }
    let is_taken = |i: &ShapeIndex| {
        module
            .input_output_alias
            .iter()
            .any(|a| a.output_index == *i)
    };
    let free = of_size.find(|(i, _)| !is_taken(i));
    Some(free.map_or(Unpaired::Taken(size(argument)), |(i, _)| {
        Unpaired::NotNamed(i)
    }))
}

fn is_dynamic(module: &Module, shape: ShapeId) -> bool {
    let array = module.shapes.array(shape);
    array.is_some_and(|a| a.dynamic != 0)
}
