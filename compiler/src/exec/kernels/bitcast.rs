//! `bitcast` on dense arrays, and `bitcast-convert`.

use slabplan_ir::{ArrayShape, ElementType};

use super::prepare::{Prepare, dims, row_major_strides};
use super::scalar::width;
use super::strided::StridedCopy;
use super::{ArrayMut, ArrayRef, KernelError, Run};

/// The operand's elements, in the order of its layout, become the result's in the order of its own.
#[derive(Debug)]
struct Bitcast {
    /// Operand to physical order.
    read: StridedCopy,
    /// Physical order to result.
    write: StridedCopy,
    bytes: usize,
}

/// Prepares a `bitcast`. The executor forwards the bytes of laid-out arrays and needs this only
/// inside fusions, whose values are dense.
pub(super) fn prepare_bitcast(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (operand, result) = (p.operand(0)?, p.result()?);
    let w = width(result.element_type);
    let count = p.element_count(result)?;
    p.require(
        w == width(operand.element_type) && p.element_count(operand)? == count,
        "a bitcast that changes the number of elements runs on laid-out bytes only",
    )?;
    let read = physical(operand).into_iter();
    let write = physical(result)
        .into_iter()
        .map(|(n, step, place)| (n, place, step));
    Ok(Box::new(Bitcast {
        read: StridedCopy::new(w, read),
        write: StridedCopy::new(w, write),
        bytes: count * w,
    }))
}

/// The dimensions in physical order, outermost first: size, step in the row-major array, and step
/// in the array that holds the elements in physical order.
fn physical(shape: &ArrayShape) -> Vec<(usize, isize, isize)> {
    let sizes = dims(shape);
    let strides = row_major_strides(&sizes);
    let mut place = 1;
    let mut axes = Vec::new();
    for m in shape.minor_to_major() {
        let n = sizes[m as usize];
        axes.push((n, strides[m as usize] as isize, place as isize));
        place *= n.max(1);
    }
    axes.reverse();
    axes
}

impl Run for Bitcast {
    fn scratch_bytes(&self) -> usize {
        if self.read.is_plain() || self.write.is_plain() {
            0
        } else {
            self.bytes
        }
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]) {
        let (x, out) = (operands[0].data, &mut *results[0].data);
        if self.read.is_plain() {
            self.write.run(x, 0, out, 0);
        } else if self.write.is_plain() {
            self.read.run(x, 0, out, 0);
        } else {
            self.read.run(x, 0, scratch, 0);
            self.write.run(scratch, 0, out, 0);
        }
    }
}

/// The bits of consecutive elements, low bits first, cut anew into elements of another width.
#[derive(Debug)]
struct BitcastConvert {
    from: Bits,
    to: Bits,
}

/// How an element's bits lie in its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bits {
    /// Bits that carry information.
    used: u32,
    bytes: usize,
    /// Whether the rest of the byte repeats the top bit.
    sign_extended: bool,
}

impl Bits {
    fn of(ty: ElementType) -> Self {
        Self {
            used: ty.bits(),
            bytes: width(ty),
            sign_extended: ty.is_sub_byte() && ty.is_signed_integer(),
        }
    }
}

/// Prepares a `bitcast-convert`.
pub(super) fn prepare_bitcast_convert(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (operand, result) = (p.operand(0)?, p.result()?);
    let (from, to) = (
        Bits::of(operand.element_type),
        Bits::of(result.element_type),
    );
    let (m, n) = (dims(operand), dims(result));
    let fits = if from.used == to.used {
        m == n
    } else {
        // The wider type's elements stand for rows of the narrower one's.
        let (wide, narrow, ratio) = if to.used < from.used {
            (&m, &n, from.used / to.used)
        } else {
            (&n, &m, to.used / from.used)
        };
        narrow.split_last() == Some((&(ratio as usize), &wide[..]))
    };
    p.require(fits, "operand and result do not have the same bits")?;
    Ok(Box::new(BitcastConvert { from, to }))
}

impl Run for BitcastConvert {
    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], _: &mut [u8]) {
        reinterpret(self.from, self.to, operands[0].data, results[0].data);
    }
}

/// Reinterprets elements of `from` as elements of `to`; the two slices hold the same bits.
fn reinterpret(from: Bits, to: Bits, x: &[u8], out: &mut [u8]) {
    if from.used == to.used && !to.sign_extended && to.used >= 8
        || from.used.is_multiple_of(8) && to.used.is_multiple_of(8)
    {
        out.copy_from_slice(x);
        return;
    }
    let mut elements = x.chunks_exact(from.bytes);
    // Bits read but not yet written, low ones first; never more than 64 + 64.
    let (mut pending, mut count) = (0u128, 0);
    for out in out.chunks_exact_mut(to.bytes) {
        while count < to.used {
            let Some(element) = elements.next() else {
                return;
            };
            let bits = element
                .iter()
                .rev()
                .fold(0u128, |bits, &b| bits << 8 | u128::from(b));
            pending |= (bits & mask(from.used)) << count;
            count += from.used;
        }
        let mut bits = pending & mask(to.used);
        if to.sign_extended && bits >> (to.used - 1) == 1 {
            bits |= !mask(to.used);
        }
        out.copy_from_slice(&bits.to_le_bytes()[..to.bytes]);
        pending >>= to.used;
        count -= to.used;
    }
}

fn mask(bits: u32) -> u128 {
    (1u128 << bits) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sub_byte_elements_are_cut_low_bits_first() {
        let mut out = [0; 4];
        let (s8, s4) = (Bits::of(ElementType::S8), Bits::of(ElementType::S4));
        reinterpret(s8, s4, &[0x2f, 0x87], &mut out);
        assert_eq!(out.map(|b| b as i8), [-1, 2, 7, -8]);
        let mut back = [0; 2];
        reinterpret(s4, s8, &out, &mut back);
        assert_eq!(back, [0x2f, 0x87]);
        let u4 = Bits::of(ElementType::U4);
        reinterpret(s4, u4, &out.clone(), &mut out);
        assert_eq!(out, [15, 2, 7, 8]);
    }
}
