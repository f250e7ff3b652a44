//! Declared shapes against what operations give.

use super::declared;
use super::error::{ErrorKind, Place, Sink};
use crate::entity::InstrId;
use crate::infer::{Context, ElementMatch, infer};
use crate::instr::Instr;

/// The instruction's shape follows from, or at least agrees with, its operation and operands.
pub(super) fn check(sink: &mut Sink<'_>, id: InstrId, instr: &Instr) {
    let module = sink.module;
    let place = Place::Instr(id);
    match infer(Context::of(module), instr) {
        Err(e) => sink.error(
            ErrorKind::Operands,
            place,
            e.to_string(),
            "make operands, attributes and called computations fit the operation",
        ),
        Ok(Some(inferred)) => {
            let elements = ElementMatch::of_result(instr.opcode);
            if !inferred.matches(&module.shapes, instr.shape, elements) {
                let expected = inferred.describe(&module.shapes);
                sink.error(
                    ErrorKind::Shape,
                    place,
                    format!(
                        "declared {}, but {} gives {expected}",
                        module.shapes.display_without_layout(instr.shape),
                        instr.opcode
                    ),
                    format!("declare {expected}"),
                );
            }
        }
        Ok(None) => {
            if let Err(e) = declared::check(module, instr) {
                sink.error(
                    ErrorKind::Shape,
                    place,
                    format!("{} {e}", instr.opcode),
                    "change the declared shape, or what it is made from",
                );
            }
        }
    }
}
