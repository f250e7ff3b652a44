//! HLO protos: decoded, written out as HLO text, and read by the text parser.
//!
//! One reader builds modules, so text and proto of one module give the same
//! module and the same plan. Statistics and origins, which neither planning nor
//! execution looks at, are not carried over.

mod attributes;
mod enums;
mod literal;
pub(crate) mod messages;
mod names;
mod replica_groups;
mod shape;
mod sharding;
mod text;
pub(crate) mod write;

use prost::Message;
use slabplan_ir::Module;

use messages::{HloModule, HloProto};

pub use names::InstructionNames;

/// Reads an `HloModuleProto` or an `HloProto`; the error says what is wrong and what to do.
pub(super) fn parse(bytes: &[u8]) -> Result<Module, String> {
    let proto = decode(bytes)?;
    let text = text::write(&proto)?;
    slabplan_ir::text::parse(&text)
        .into_result()
        .map_err(|diagnostics| {
            let lines: Vec<String> = diagnostics
                .iter()
                .take(10)
                .map(ToString::to_string)
                .collect();
            format!(
                "the proto is not a valid module (places are in its text form):\n{}",
                lines.join("\n")
            )
        })
}

/// Both messages begin with field 1: a name in a module, a whole module in an `HloProto`. Only the
/// right reading has computations.
fn decode(bytes: &[u8]) -> Result<HloModule, String> {
    let as_module = HloModule::decode(bytes);
    if let Ok(module) = &as_module
        && !module.computations.is_empty()
    {
        return Ok(module.clone());
    }
    if let Ok(HloProto {
        hlo_module: Some(module),
        ..
    }) = HloProto::decode(bytes)
        && !module.computations.is_empty()
    {
        return Ok(module);
    }
    Err(match as_module {
        Err(e) => format!(
            "neither HLO text, HloModuleProto nor HloProto ({e}); is the file truncated or of another kind?"
        ),
        Ok(_) => "an HLO proto without computations".to_owned(),
    })
}
