//! The verifier: whether a module means anything, and what to do if not.
//!
//! Later stages index and size without asking; this is where they may rely on
//! that. One run reports every error it finds, each with the entity, its place
//! in the text, and a remedy. As XLA does, it ignores differences of layout
//! and of floating-point precision between what is declared and what follows.
//!
//! **Structure** (`structure`, `calls`, `attributes`)
//! - Every id is in range. Every computation has instructions, owns each of them, and no other
//!   computation lists them. Its root is one of them.
//! - Names are not empty, and unique among the instructions of a computation and among computations.
//! - Parameters are numbered densely from 0, each number once, and only `parameter` has a number,
//!   only `constant` a literal.
//! - Operands and control predecessors are in the same computation; operands come earlier in it;
//!   operands and control predecessors together form no cycle.
//! - The number of operands is one the operation takes, and required attributes are present.
//! - Computations call each other in no circle, and the entry is not called. An async computation
//!   has one async-start.
//!
//! **Shapes** (`shapes`, `declared`, `layouts`)
//! - The declared shape is the inferred one ([`crate::infer`]), which checks operand shapes,
//!   element types and the signatures of called computations on the way.
//! - Where the operation leaves its result to the text (`reshape`, `convert`, `broadcast`, `iota`,
//!   `bitcast`, collectives, async operations, ...), the declared shape is one it can give.
//! - Layouts: one number for every dimension, each once; tiles have positive entries and end in a
//!   number; tail alignment is positive; cuts lie in the dimension. Padded sizes fit 2^63 - 1 bytes.
//!
//! **Aliasing** (`aliasing`)
//! - `input_output_alias` and `buffer_donor` name arrays that exist, no output twice and no
//!   parameter array twice. A must-alias pair has equal padded sizes in one memory space; a
//!   may-alias pair that does not is a warning.
//! - `output_to_operand_aliasing` names arrays that exist, no output twice, of equal padded size in
//!   one memory space.
//!
//! **Schedule** (`schedule`)
//! - If the module is scheduled, control predecessors come earlier too.
//! - Whether or not it is: a start has one user, its done (through updates); a done has a start.
//!
//! **Entry layout** (`entry`)
//! - `entry_computation_layout` has the entry's parameters and result, layouts aside.

mod aliasing;
mod attributes;
mod calls;
mod declared;
mod entry;
mod error;
mod layouts;
mod schedule;
mod shapes;
mod structure;
#[cfg(test)]
mod tests;

use std::ops::Deref;

use crate::module::Module;
use error::Sink;
pub use error::{ErrorKind, Place, VerifyError, VerifyErrors};
use layouts::Layouts;

/// A module that has passed [`verify`].
#[derive(Clone, Debug)]
pub struct Verified<'a> {
    module: &'a Module,
    warnings: Vec<VerifyError>,
}

impl<'a> Verified<'a> {
    /// The module.
    pub fn module(&self) -> &'a Module {
        self.module
    }

    /// What is odd but allowed: wishes (`may-alias`) that cannot be granted.
    pub fn warnings(&self) -> &[VerifyError] {
        &self.warnings
    }
}

impl Deref for Verified<'_> {
    type Target = Module;

    fn deref(&self) -> &Module {
        self.module
    }
}

/// Verifies a module; see the [module documentation](self) for what that means.
///
/// O(size of the module · log), about 0.3 µs for an instruction.
///
/// # Errors
/// Everything that is wrong, in the order of the text, up to a bound. If ids are out of range or
/// computations do not own their instructions, nothing else is looked at.
pub fn verify(module: &Module) -> Result<Verified<'_>, VerifyErrors> {
    let mut sink = Sink::new(module);
    structure::check_ids(&mut sink);
    if sink.is_clean() {
        structure::check(&mut sink);
        calls::check(&mut sink);
        let mut layouts = Layouts::new(module);
        for (id, instr) in sink.instrs() {
            layouts.check(&mut sink, id, instr);
            if attributes::check(&mut sink, id, instr) {
                shapes::check(&mut sink, id, instr);
            }
        }
        schedule::check(&mut sink);
        aliasing::check(&mut sink);
        entry::check(&mut sink);
    }
    let (errors, warnings) = sink.finish();
    match errors {
        None => Ok(Verified { module, warnings }),
        Some(errors) => Err(errors),
    }
}
