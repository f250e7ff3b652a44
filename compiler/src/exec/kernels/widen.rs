//! Operands of products brought into the accumulator's type, in the order in which they lie.

use slabplan_ir::{ArrayShape, ElementType};

use super::KernelError;
use super::convert::Convert;
use super::prepare::Prepare;
use super::scalar::width;

/// The conversion of an operand, if it needs one.
#[derive(Debug)]
pub(super) struct Widen {
    convert: Option<Convert>,
    /// Bytes of the converted operand.
    bytes: usize,
}

impl Widen {
    /// For an operand of the given shape.
    pub(super) fn new(
        p: &Prepare<'_>,
        shape: &ArrayShape,
        accumulator: ElementType,
    ) -> Result<Self, KernelError> {
        let ty = shape.element_type;
        if ty == accumulator {
            return Ok(Self {
                convert: None,
                bytes: 0,
            });
        }
        let convert = Convert::new(ty, accumulator);
        Ok(Self {
            convert: Some(convert.ok_or_else(|| p.error(format!("not defined on {ty}")))?),
            bytes: p
                .element_count(shape)?
                .checked_mul(width(accumulator))
                .ok_or_else(|| p.error("is too large to execute".into()))?,
        })
    }

    /// Bytes of scratch that [`apply`](Self::apply) needs.
    pub(super) fn scratch_bytes(&self) -> usize {
        self.bytes
    }

    /// The operand in the accumulator's type: in `data` itself or in scratch.
    pub(super) fn apply<'a>(&self, data: &'a [u8], scratch: &'a mut [u8]) -> &'a [u8] {
        match &self.convert {
            None => data,
            Some(convert) => {
                let out = &mut scratch[..self.bytes];
                convert.apply(data, out);
                out
            }
        }
    }
}
