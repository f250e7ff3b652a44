//! Matrices made of parts of arrays: brought into row-major order and into the accumulator's type.

use slabplan_ir::ElementType;

use super::KernelError;
use super::convert::Convert;
use super::prepare::Prepare;
use super::scalar::width;
use super::strided::StridedCopy;

/// How a part of an operand becomes a matrix.
#[derive(Debug)]
pub(super) struct Pack {
    /// To row-major order, where the part is not already.
    copy: Option<StridedCopy>,
    /// To the accumulator's type, where it is another.
    convert: Option<Convert>,
    raw_bytes: usize,
    bytes: usize,
}

impl Pack {
    /// A part of an array of type `ty` with the given axes (size, step in elements, outermost first).
    pub(super) fn new(
        p: &Prepare<'_>,
        ty: ElementType,
        accumulator: ElementType,
        axes: &[(usize, isize)],
    ) -> Result<Self, KernelError> {
        let mut count = 1usize;
        let mut placed: Vec<(usize, isize, isize)> = Vec::new();
        for &(size, step) in axes.iter().rev() {
            placed.push((size, step, count as isize));
            count = count.saturating_mul(size.max(1));
        }
        let total = axes.iter().map(|a| a.0).product::<usize>();
        let copy = StridedCopy::new(width(ty), placed.into_iter().rev());
        let convert = if ty == accumulator {
            None
        } else {
            let convert = Convert::new(ty, accumulator);
            Some(convert.ok_or_else(|| p.error(format!("not defined on {ty}")))?)
        };
        let bytes = |w| {
            total
                .checked_mul(w)
                .ok_or_else(|| p.error("is too large to execute".into()))
        };
        Ok(Self {
            copy: (!copy.is_plain()).then_some(copy),
            convert,
            raw_bytes: bytes(width(ty))?,
            bytes: bytes(width(accumulator))?,
        })
    }

    /// Bytes of scratch that [`apply`](Self::apply) needs.
    pub(super) fn scratch_bytes(&self) -> usize {
        match (&self.copy, &self.convert) {
            (None, None) => 0,
            (Some(_), Some(_)) => self.raw_bytes + self.bytes,
            _ => self.bytes,
        }
    }

    /// The matrix, from the part of `data` that starts at byte `from`; in `data` itself or in scratch.
    pub(super) fn apply<'a>(&self, data: &'a [u8], from: usize, scratch: &'a mut [u8]) -> &'a [u8] {
        match (&self.copy, &self.convert) {
            (None, None) => &data[from..from + self.bytes],
            (Some(copy), None) => {
                copy.run(data, from, scratch, 0);
                &scratch[..self.bytes]
            }
            (None, Some(convert)) => {
                let out = &mut scratch[..self.bytes];
                convert.apply(&data[from..from + self.raw_bytes], out);
                out
            }
            (Some(copy), Some(convert)) => {
                let (raw, out) = scratch.split_at_mut(self.raw_bytes);
                copy.run(data, from, raw, 0);
                let out = &mut out[..self.bytes];
                convert.apply(raw, out);
                out
            }
        }
    }
}
