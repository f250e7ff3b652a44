//! A digest that ties a plan to its module.

use std::fmt::{self, Write};

use crate::attr::AttrName;
use crate::entity::{CompId, EntityId, InstrId, ShapeId};
use crate::instr::Payload;
use crate::module::Module;

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// FNV-1a, 64 bits, of everything a plan depends on: names, order, operations, shapes with layouts,
/// operands, called computations, aliasing. O(module).
///
/// What a plan does not depend on is left out (metadata, back-end configurations, the order in which
/// computations are listed), so that the text and the proto of one module have one fingerprint. It
/// tells modules apart by accident, not against malice.
pub fn fingerprint(module: &Module) -> u64 {
    let mut digest = Digest {
        module,
        hash: Fnv(FNV_OFFSET),
        shapes: vec![None; module.shapes.len()],
        numbers: vec![None; module.computations.len()],
        next: 0,
    };
    digest.header();
    digest.computation(module.entry);
    digest.hash.0
}

struct Digest<'m> {
    module: &'m Module,
    hash: Fnv,
    /// Digest of each shape met.
    shapes: Vec<Option<u64>>,
    /// Number of each computation met, in the order of the walk.
    numbers: Vec<Option<u32>>,
    next: u32,
}

impl Digest<'_> {
    fn header(&mut self) {
        self.text(self.module.str(self.module.name));
        self.hash.byte(u8::from(self.module.is_scheduled));
        for alias in &self.module.input_output_alias {
            self.debug(&alias.output_index);
            self.debug(&(alias.parameter, &alias.parameter_index));
            self.debug(&alias.kind);
        }
        for donor in &self.module.buffer_donors {
            self.debug(&(donor.parameter, &donor.parameter_index));
        }
    }

    /// Digests a computation and what it calls, each once, callees after it.
    fn computation(&mut self, root: CompId) {
        let mut work = vec![root];
        while let Some(comp) = work.pop() {
            let number = &mut self.numbers[comp.index()];
            if number.is_some() {
                continue;
            }
            *number = Some(self.next);
            self.next += 1;
            let module = self.module;
            let computation = &module.computations[comp];
            self.text(module.str(computation.name));
            for &instr in &computation.instrs {
                self.hash.byte(u8::from(instr == computation.root));
                self.instruction(instr);
                work.extend(module.instrs[instr].called_computations());
            }
        }
    }

    fn instruction(&mut self, id: InstrId) {
        let module = self.module;
        let instr = &module.instrs[id];
        self.text(module.name_of(id));
        self.text(instr.opcode.name());
        self.shape(instr.shape);
        match instr.payload {
            Payload::None => {}
            Payload::Parameter(n) => self.hash.number(u64::from(n)),
            // A literal's text may differ in form; its bytes do not matter to a plan.
            Payload::Literal(_) => self.hash.byte(1),
        }
        for &operand in instr.operands.iter().chain(instr.control_predecessors()) {
            self.text(module.name_of(operand));
        }
        for comp in instr.called_computations() {
            self.text(module.comp_name(comp));
        }
        for alias in instr.operand_aliases() {
            self.debug(alias);
        }
        for name in [AttrName::CustomCallTarget, AttrName::Kind] {
            self.text(module.attr_text(id, name).unwrap_or_default());
        }
    }

    fn shape(&mut self, id: ShapeId) {
        let digest = self.shapes[id.index()].unwrap_or_else(|| {
            let mut hash = Fnv(FNV_OFFSET);
            // Writing to a hash can't fail.
            let _ = write!(hash, "{}", self.module.shapes.display(id));
            hash.0
        });
        self.shapes[id.index()] = Some(digest);
        self.hash.number(digest);
    }

    fn debug(&mut self, value: &impl fmt::Debug) {
        let _ = write!(self.hash, "{value:?}");
        self.hash.byte(0);
    }

    /// A string and its end, so that `ab`, `c` and `a`, `bc` differ.
    fn text(&mut self, s: &str) {
        self.hash.bytes(s.as_bytes());
        self.hash.byte(0);
    }
}

/// The hash so far.
struct Fnv(u64);

impl Fnv {
    fn byte(&mut self, b: u8) {
        self.0 = (self.0 ^ u64::from(b)).wrapping_mul(FNV_PRIME);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.byte(b);
        }
    }

    fn number(&mut self, n: u64) {
        self.bytes(&n.to_le_bytes());
    }
}

impl Write for Fnv {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.bytes(s.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values published with the algorithm (Fowler, Noll, Vo).
    #[test]
    fn known_digests() {
        let fnv1a = |bytes: &[u8]| {
            let mut hash = Fnv(FNV_OFFSET);
            hash.bytes(bytes);
            hash.0
        };
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn what_a_plan_depends_on_counts() {
        let digest = |text: &str| fingerprint(&crate::text::parse(text).into_result().unwrap());
        let module = |body: &str| format!("HloModule m\nENTRY e {{\n{body}\n}}");
        let base = "x = f32[4] parameter(0)\nROOT y = f32[4] negate(x)";
        let plain = digest(&module(base));
        assert_eq!(
            plain,
            digest(&module(&format!("{base}, metadata={{op_name=\"a\"}}")))
        );
        for other in [
            "x = f32[4] parameter(0)\nROOT z = f32[4] negate(x)",
            "x = f32[4] parameter(0)\nROOT y = f32[4] abs(x)",
            "x = f32[5] parameter(0)\nROOT y = f32[5] negate(x)",
        ] {
            assert_ne!(plain, digest(&module(other)), "{other}");
        }
    }
}
