//! Folding elements with an embedded computation, many lanes at a time.

use std::ops::Range;

use slabplan_ir::{CompId, ElementType, Opcode};

use super::KernelError;
use super::accumulate::{Accumulate, accumulate};
use super::convert::Convert;
use super::elementwise::is_narrow;
use super::lanes::{Loop2, fill};
use super::prepare::Prepare;
use super::scalar::width;
use super::scalar_program::{LANES, ScalarProgram};

/// Accumulators and the computation that adds arguments to them.
#[derive(Debug)]
pub(super) struct Reducer {
    program: ScalarProgram,
    /// One for each array that is reduced.
    parts: Vec<Part>,
    associative: bool,
    accumulate: Option<Accumulate>,
}

/// An associative operation on one array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Simple {
    pub(super) op: Loop2,
    /// The same on many elements at a time.
    pub(super) accumulate: Option<Accumulate>,
    /// Conversions of elements to the type it computes in, and back.
    pub(super) widen: Option<(Convert, Convert)>,
}

/// How the elements of one array enter and leave the registers.
#[derive(Debug)]
struct Part {
    /// Bytes of an element.
    width: usize,
    /// Conversions where the registers are wider than the elements.
    widen: Option<(Convert, Convert)>,
}

impl Reducer {
    /// The reducer `comp`, of accumulators of the given types followed by as many arguments.
    ///
    /// A sum or product of narrow floats is computed in `f32` and rounded once at the end, as
    /// accelerators do.
    pub(super) fn new(
        p: &Prepare<'_>,
        comp: CompId,
        types: &[ElementType],
    ) -> Result<Self, KernelError> {
        let both: Vec<ElementType> = types.iter().chain(types).copied().collect();
        let program = ScalarProgram::new(p, comp, &both, types, LANES)?;
        let operation = program.as_binary();
        let plain = |program| Self {
            program,
            parts: types
                .iter()
                .map(|&ty| Part {
                    width: width(ty),
                    widen: None,
                })
                .collect(),
            associative: operation.is_some_and(is_associative),
            accumulate: None,
        };
        let (Some(opcode), &[ty]) = (operation, types) else {
            return Ok(plain(program));
        };
        if !is_associative(opcode) {
            return Ok(plain(program));
        }
        let register_type = if is_narrow(ty) { ElementType::F32 } else { ty };
        let Some(simple) = ScalarProgram::binary(opcode, register_type, LANES) else {
            return Ok(plain(program));
        };
        let mut reducer = plain(simple);
        if register_type == ty {
            reducer.accumulate = accumulate(opcode, ty);
        } else {
            reducer.parts[0].widen =
                Convert::new(ty, register_type).zip(Convert::new(register_type, ty));
        }
        Ok(reducer)
    }

    /// How to fold one array with an associative operation, if this is one.
    pub(super) fn simple(&self) -> Option<Simple> {
        let op = self.program.binary_loop().filter(|_| self.associative)?;
        Some(Simple {
            op,
            accumulate: self.accumulate,
            widen: self.parts[0].widen,
        })
    }

    /// Bytes of an element in a register of part 0.
    pub(super) fn register_width(&self) -> usize {
        self.program.input_width(0)
    }

    /// Whether the arguments may be grouped and ordered at will.
    pub(super) fn is_associative(&self) -> bool {
        self.associative
    }

    /// Number of arrays reduced together.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Bytes of an element of part `i`.
    pub(super) fn width(&self, i: usize) -> usize {
        self.parts[i].width
    }

    /// Bytes of its registers.
    pub(super) fn register_bytes(&self) -> usize {
        self.program.register_bytes()
    }

    /// Must be called once before the registers are used.
    pub(super) fn begin(&self, registers: &mut [u8]) {
        self.program.begin(registers);
    }

    /// Sets the accumulators of part `i` on `lanes` to copies of one element.
    pub(super) fn set_all(
        &self,
        registers: &mut [u8],
        i: usize,
        lanes: &Range<usize>,
        element: &[u8],
    ) {
        let mut copies = [0; LANES * 16];
        let copies = &mut copies[..lanes.len() * element.len()];
        fill(element, copies);
        self.set(registers, i, lanes, copies);
    }

    /// Sets the accumulators of part `i` on `lanes`.
    pub(super) fn set(
        &self,
        registers: &mut [u8],
        i: usize,
        lanes: &Range<usize>,
        elements: &[u8],
    ) {
        self.write(registers, i, i, lanes, elements);
    }

    /// Sets the arguments of part `i` on `lanes`.
    pub(super) fn argument(
        &self,
        registers: &mut [u8],
        i: usize,
        lanes: &Range<usize>,
        elements: &[u8],
    ) {
        self.write(registers, self.parts.len() + i, i, lanes, elements);
    }

    fn write(
        &self,
        registers: &mut [u8],
        input: usize,
        part: usize,
        lanes: &Range<usize>,
        elements: &[u8],
    ) {
        let to = self.program.input(registers, input, lanes);
        match &self.parts[part].widen {
            Some((widen, _)) => widen.apply(elements, to),
            None => to.copy_from_slice(elements),
        }
    }

    /// Adds the arguments to the accumulators on `lanes`.
    pub(super) fn step(&self, registers: &mut [u8], lanes: &Range<usize>) {
        self.program.run(registers, lanes);
        for i in 0..self.parts.len() {
            self.program.feed_back(registers, i, lanes);
        }
    }

    /// Writes the accumulators of part `i` on `lanes` as elements.
    pub(super) fn get(&self, registers: &mut [u8], i: usize, lanes: &Range<usize>, out: &mut [u8]) {
        let from = self.program.input(registers, i, lanes);
        match &self.parts[i].widen {
            Some((_, narrow)) => narrow.apply(from, out),
            None => out.copy_from_slice(from),
        }
    }
}

/// Whether XLA treats the operation as one whose arguments may be regrouped.
fn is_associative(opcode: Opcode) -> bool {
    use Opcode as O;
    matches!(
        opcode,
        O::Add | O::Multiply | O::Maximum | O::Minimum | O::And | O::Or | O::Xor
    )
}
