//! HLO text: parser and printer.
//!
//! [`parse`] reads what XLA's own parser reads (and prints); [`print()`] writes
//! what XLA prints, so that a module that XLA dumped comes back byte for byte.
//!
//! ```
//! let source = "HloModule m\n\nENTRY %e (p: f32[4]) -> f32[4] {\n  \
//!     %p = f32[4]{0} parameter(0)\n  ROOT %n = f32[4]{0} negate(%p)\n}\n\n";
//! let module = slabplan_ir::text::parse(source).into_result().unwrap();
//! assert_eq!(slabplan_ir::text::print(&module), source);
//! ```

mod agreement;
mod async_sugar;
mod attrs;
mod computation;
pub(crate) mod cursor;
pub(crate) mod diagnostic;
mod header;
mod instruction;
mod legal;
mod parser;
mod print;
mod print_attrs;
mod shapes;
mod single;
mod structured;

pub use diagnostic::Diagnostic;
pub use print::{definition_order, print, print_instruction};

use crate::module::Module;

/// What [`parse`] found.
#[derive(Debug)]
pub struct Parsed {
    /// The module, if the text has no error.
    pub module: Option<Module>,
    /// All errors found, in the order of the text; at most some dozens.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// The module, or the errors.
    pub fn into_result(self) -> Result<Module, Vec<Diagnostic>> {
        self.module.ok_or(self.diagnostics)
    }
}

/// Reads a module, or a single instruction, from HLO text.
///
/// Never panics, does no IO, and uses bounded stack whatever the text.
/// After an error it goes on with the next instruction or computation, so one run reports several.
/// Time and memory are linear in the text.
pub fn parse(source: &str) -> Parsed {
    parser::parse(source)
}
