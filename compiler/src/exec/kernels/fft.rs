//! `fft`: Fourier transforms of the last one to three dimensions.

use slabplan_ir::ElementType;
use slabplan_ir::attr::AttrName;

use super::complex::Complex;
use super::convert::Convert;
use super::field::{get, set};
use super::fourier::{ELEMENT, Line};
use super::prepare::{Dims, Prepare, dims};
use super::scalar::width;
use super::{ArrayMut, ArrayRef, KernelError, Run};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Forward,
    Inverse,
    /// Real to the first half of the spectrum.
    RealForward,
    /// The first half of the spectrum to real.
    RealInverse,
}

/// Each transform is done on a copy in `c128`, the last dimension as long as the real or complex
/// side of it needs.
#[derive(Debug)]
struct Fft {
    kind: Kind,
    /// One for each transformed dimension.
    lines: Vec<Line>,
    lengths: Dims,
    /// Elements along the last dimension of operand and result.
    from: usize,
    to: usize,
    /// Operand elements to `c128`, and `c128` to result elements, with their widths.
    load: (Convert, usize),
    store: (Convert, usize),
}

/// Prepares an `fft`.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (x, result) = (p.operand(0)?, p.result()?);
    let lengths = p.sizes(AttrName::FftLength)?;
    let kind = match p.word(AttrName::FftType) {
        Some("FFT") => Kind::Forward,
        Some("IFFT") => Kind::Inverse,
        Some("RFFT") => Kind::RealForward,
        Some("IRFFT") => Kind::RealInverse,
        other => return Err(p.error(format!("fft_type {other:?} is unknown"))),
    };
    let (from, to) = (dims(x), dims(result));
    let Some((&n, outer)) = lengths.split_last() else {
        return Err(p.error("has no fft_length".into()));
    };
    let side = |real: bool| if real { n } else { n / 2 + 1 };
    let (own, other) = match kind {
        Kind::Forward | Kind::Inverse => (n, n),
        Kind::RealForward => (side(true), side(false)),
        Kind::RealInverse => (side(false), side(true)),
    };
    let (input, output) = (x.element_type, result.element_type);
    let real = |ty: ElementType| matches!(ty, ElementType::F32 | ElementType::F64);
    let ends_with = |sizes: &Dims, last: usize| {
        sizes.ends_with(&[outer, &[last]].concat())
            && sizes[..sizes.len() - lengths.len()] == from[..from.len() - lengths.len()]
    };
    p.require(
        lengths.len() <= 3
            && lengths.len() <= from.len()
            && from.len() == to.len()
            && ends_with(&from, own)
            && ends_with(&to, other)
            && if kind == Kind::RealForward {
                real(input)
            } else {
                input.is_complex()
            }
            && if kind == Kind::RealInverse {
                real(output)
            } else {
                output.is_complex()
            },
        "operand, result and fft_length do not match",
    )?;
    let convert = |from, to| {
        Convert::new(from, to)
            .ok_or_else(|| p.error("has an element type it is not defined on".into()))
    };
    p.require(
        lengths.iter().all(|&n| n <= 1 << 28),
        "fft_length is too large to execute",
    )?;
    let empty = x.element_count() == Some(0) || result.element_count() == Some(0);
    Ok(Box::new(Fft {
        kind,
        lines: if empty {
            Vec::new()
        } else {
            lengths.iter().map(|&n| Line::new(n)).collect()
        },
        from: own,
        to: other,
        lengths,
        load: (convert(input, ElementType::C128)?, width(input)),
        store: (convert(ElementType::C128, output)?, width(output)),
    }))
}

impl Run for Fft {
    fn scratch_bytes(&self) -> usize {
        let longest = self.lengths.iter().copied().max().unwrap_or(0);
        let convolution = self
            .lines
            .iter()
            .map(Line::scratch_bytes)
            .max()
            .unwrap_or(0);
        (self.lengths.iter().product::<usize>() + longest) * ELEMENT + convolution
    }

    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], scratch: &mut [u8]) {
        if self.lines.is_empty() {
            return;
        }
        let all = self.lengths.iter().product::<usize>() * ELEMENT;
        let longest = self.lengths.iter().copied().max().unwrap_or(0) * ELEMENT;
        let (memory, scratch) = scratch.split_at_mut(all);
        let (line, scratch) = scratch.split_at_mut(longest);
        let n = self.lengths[self.lengths.len() - 1];
        let rows = all / ELEMENT / n;
        let inputs = operands[0]
            .data
            .chunks_exact(rows * self.from * self.load.1);
        let outputs = results[0]
            .data
            .chunks_exact_mut(rows * self.to * self.store.1);
        for (input, output) in inputs.zip(outputs) {
            for (row, input) in input.chunks_exact(self.from * self.load.1).enumerate() {
                let row = &mut memory[row * n * ELEMENT..][..self.from * ELEMENT];
                self.load.0.apply(input, row);
            }
            // The half spectrum is completed after the other dimensions are done, and cut off before.
            if self.kind == Kind::RealInverse {
                self.outer_dimensions(memory, line, scratch, self.from);
                self.rows(memory, scratch);
            } else {
                self.rows(memory, scratch);
                self.outer_dimensions(memory, line, scratch, self.to);
            }
            for (row, output) in output.chunks_exact_mut(self.to * self.store.1).enumerate() {
                let row = &memory[row * n * ELEMENT..][..self.to * ELEMENT];
                self.store.0.apply(row, output);
            }
        }
    }
}

impl Fft {
    fn inverse(&self) -> bool {
        matches!(self.kind, Kind::Inverse | Kind::RealInverse)
    }

    /// Transforms along the last dimension.
    fn rows(&self, memory: &mut [u8], scratch: &mut [u8]) {
        let last = self.lengths.len() - 1;
        let n = self.lengths[last];
        for row in memory.chunks_exact_mut(n * ELEMENT) {
            if self.kind == Kind::RealInverse {
                for k in self.from..n {
                    let mirrored: Complex<f64> = get(row, n - k);
                    set(row, k, mirrored.conj());
                }
            }
            self.lines[last].run(row, self.inverse(), scratch);
        }
    }

    /// Transforms along the other dimensions, for the first `columns` of the last one.
    fn outer_dimensions(
        &self,
        memory: &mut [u8],
        line: &mut [u8],
        scratch: &mut [u8],
        columns: usize,
    ) {
        let total = memory.len() / ELEMENT;
        let row = self.lengths[self.lengths.len() - 1];
        let mut step = row;
        for d in (0..self.lengths.len() - 1).rev() {
            let n = self.lengths[d];
            for start in (0..total).filter(|i| (i / step).is_multiple_of(n) && i % row < columns) {
                for k in 0..n {
                    set(line, k, get::<Complex<f64>>(memory, start + k * step));
                }
                self.lines[d].run(&mut line[..n * ELEMENT], self.inverse(), scratch);
                for k in 0..n {
                    set(memory, start + k * step, get::<Complex<f64>>(line, k));
                }
            }
            step *= n;
        }
    }
}
