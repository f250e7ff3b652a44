//! `pad`: elements set apart and surrounded by a value; negative padding cuts them off.

use super::lanes::fill;
use super::prepare::{Prepare, dims};
use super::scalar::width;
use super::strided::StridedCopy;
use super::{ArrayMut, ArrayRef, KernelError, Run};

#[derive(Debug)]
struct Pad {
    copy: StridedCopy,
    from: usize,
    to: usize,
}

/// Prepares a `pad`.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (operand, value, result) = (p.operand(0)?, p.operand(1)?, p.result()?);
    let (sizes, out) = (dims(operand), dims(result));
    let padding = p.instr.padding();
    let ty = result.element_type;
    p.require(
        padding.len() == sizes.len()
            && out.len() == sizes.len()
            && value.dims.is_empty()
            && operand.element_type == ty
            && value.element_type == ty,
        "operand, padding and result do not match",
    )?;
    let (strides, out_strides) = (p.strides(operand), p.strides(result));
    let (mut from, mut to) = (0, 0);
    let mut axes = Vec::new();
    for (d, pad) in padding.iter().enumerate() {
        p.require(0 <= pad.interior, "interior padding is negative")?;
        let kept = kept(
            sizes[d],
            out[d],
            i128::from(pad.low),
            i128::from(pad.interior) + 1,
        );
        axes.push((
            kept.count,
            strides[d] as isize,
            (out_strides[d] as isize).wrapping_mul(kept.step as isize),
        ));
        from += kept.first * strides[d];
        to += kept.place * out_strides[d];
    }
    let w = width(ty);
    Ok(Box::new(Pad {
        copy: StridedCopy::new(w, axes),
        from: from * w,
        to: to * w,
    }))
}

/// The elements of one dimension that the result keeps.
struct Kept {
    first: usize,
    count: usize,
    /// Where the first one goes, and how far apart they lie.
    place: usize,
    step: usize,
}

/// Element `i` of `size` goes to `low + i * step`, if that lies in `[0, out)`.
fn kept(size: usize, out: usize, low: i128, step: i128) -> Kept {
    let first = if low < 0 { (-low + step - 1) / step } else { 0 };
    let place = low + first * step;
    let room = out as i128 - place;
    let fitting = if room <= 0 { 0 } else { (room - 1) / step + 1 };
    let count = fitting.min(size as i128 - first).max(0) as usize;
    if count == 0 {
        return Kept {
            first: 0,
            count,
            place: 0,
            step: 0,
        };
    }
    Kept {
        first: first as usize,
        count,
        place: place as usize,
        // A single element needs no step, which may then be absurdly large.
        step: if count == 1 { 0 } else { step as usize },
    }
}

impl Run for Pad {
    fn is_strided(&self) -> bool {
        true
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], _: &mut [u8]) {
        let out = &mut *results[0].data;
        fill(operands[1].data, out);
        self.copy.run(operands[0].data, self.from, out, self.to);
    }
}
